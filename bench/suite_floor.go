package bench

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
)

func floorSuites() []Suite {
	return []Suite{{
		Name: "rivals", Group: groupPerformance, Title: "hybrid against other private methods",
		About: "Mean NICV over 20 runs, proven, delta = 1/(n ln n), of hybrid and of eugkm (one uniform grid, " +
			"Su et al.), its combination with a noisy round of Lloyd's algorithm, lsf, relative and sulloyd. Goal: hybrid " +
			"at most 1 % above the best in every cell.",
		Needs: rivalSets,
		Run:   runRivals,
	}, {
		Name: "floor", Group: groupPerformance, Title: "hybrid against simpler answers",
		About: "Mean NICV of hybrid, proven, delta = 1/(n ln n), against answers that do less: the centre of the box, one " +
			"private mean, relative, lsf, sulloyd, and hybrid itself with half the clusters. Goals: at most 2 % above the " +
			"best of them, and no run above 1.5 times the mean. Generated sets have clusters that are well (6) or hardly (3) " +
			"separated; in `corner` nine of ten records are squeezed into an eighth of the box, in `mixed` the columns are " +
			"correlated. 20 runs each, 50 of one mean and of hybrid, with half the clusters, too, as rare runs weigh most in " +
			"their means: where the noise of a mean alone makes a run worse than 1.5 times the mean, so may an answer that " +
			"has a mean in it.",
		Needs: floorSets,
		Run:   runFloor,
	}}
}

// rivalSets are those of floor, and more.
var rivalSets = append(slices.Clone(floorSets), "letter", "synth_sep70_k10_d6", "synth_sep70_k20_d2",
	"synth_sep21_k20_d14", "synth_sep70_k10_d20")

func runRivals(ctx context.Context, e *Env) {
	for _, epsilon := range []float64{1, 0.1, 0.05, 0.25, 0.5, 2, 5} {
		for _, name := range rivalSets {
			e.on(ctx, name, "", []Label{L("set", name), L("epsilon", epsilon)},
				func(ctx context.Context, c *Case, s *Set) error {
					first, lowest, _, err := c.answers(ctx, s, epsilon, rivals)
					if err == nil {
						c.number("hybrid / best of the others", unitPlain, first.mean/lowest,
							atMost(1.01)...)
					}
					return err
				})
		}
	}
}

// answer is a method, its settings and its clusters of k.
type answer struct {
	name, method string
	settings     method.Settings
	clusters     func(k int) int
}

func wholeK(k int) int { return k }

// rivals are hybrid and what it is compared with.
var rivals = []answer{
	{"hybrid", "hybrid", nil, wholeK},
	{"eugkm", "eugkm", nil, wholeK},
	{"eugkm and a round", "eugkm", method.Settings{"iterations": "1"}, wholeK},
	{"evolve", "evolve", nil, wholeK},
	{"lsf", "lsf", nil, wholeK},
	{"relative", "relative", nil, wholeK},
	{"sulloyd", "sulloyd", nil, wholeK},
}

var (
	floorSets = []string{"iris", "lsun", "house", "s1", "adult", "birch2_25k", "synth_sep21_k10_d6",
		"synth_sep21_k10_d10", "synth_sep21_k10_d20"}
	floorEpsilons = []float64{0.1, 1, 0.01, 0.03, 0.3, 3, 10}
)

// floorCase is a generated set.
type floorCase struct {
	n, d, k    int
	separation float64
	shape      string // "blobs", "corner" or "mixed"
}

func floorCases() []floorCase {
	var out []floorCase
	for _, d := range []int{8, 16, 4, 30} {
		for _, n := range []int{1000, 300, 5000} {
			for _, k := range []int{5, 2, 20, 50} {
				out = append(out, floorCase{n, d, k, 6, "blobs"}, floorCase{n, d, k, 3, "blobs"})
			}
			out = append(out, floorCase{n, d, 1, 6, "blobs"})
			out = append(out, floorCase{n, d, 5, 6, "corner"}, floorCase{n, d, 5, 6, "mixed"})
		}
	}
	return out
}

// set makes the records of a case.
func (f floorCase) set(ctx context.Context) (*Set, error) {
	s, err := generatedSet(ctx, "blobs", dataset.Generator{N: f.n, D: f.d, K: f.k, Separation: f.separation, Seed: 1})
	if err != nil {
		return nil, err
	}
	s.K = f.k
	row, out := make([]float32, f.d), make([]float32, f.d)
	for i := range s.N {
		row = s.Norm.Points.Point(i, row)
		copy(out, row)
		switch {
		case f.shape == "corner" && i%10 != 0:
			for h, x := range row {
				out[h] = dataset.Truncate((float64(x)+1)/8-1, s.Norm.FractionBits)
			}
		case f.shape == "mixed":
			for h := range row {
				out[h] = dataset.Truncate(0.7*float64(row[h])+0.3*float64(row[(h+1)%f.d]), s.Norm.FractionBits)
			}
		}
		s.Norm.Points.Set(i, out)
	}
	return s, nil
}

func runFloor(ctx context.Context, e *Env) {
	for _, epsilon := range floorEpsilons {
		for _, name := range floorSets {
			e.floor(ctx, []Label{L("set", name), L("epsilon", epsilon)}, epsilon,
				func(ctx context.Context) (*Set, error) { return e.set(ctx, name) })
		}
		for _, f := range floorCases() {
			name := fmt.Sprintf("%s n=%d d=%d k=%d sep=%g", f.shape, f.n, f.d, f.k, f.separation)
			e.floor(ctx, []Label{L("set", name), L("epsilon", epsilon)}, epsilon, f.set)
		}
	}
}

// Answers that the suite looks for by name.
const oneMean, halfClusters = "one mean", "half the clusters"

// simpler are hybrid and the answers that it is not to be worse than.
var simpler = []answer{
	{"hybrid", "hybrid", nil, wholeK},
	{halfClusters, "hybrid", nil, func(k int) int { return (k + 1) / 2 }},
	{oneMean, "hybrid", method.Settings{"branch": "mean"}, func(int) int { return 1 }},
	{"relative", "relative", nil, wholeK},
	{"lsf", "lsf", nil, wholeK},
	{"sulloyd", "sulloyd", nil, wholeK},
}

// simplerThan is simpler without what is hybrid itself for one cluster.
func simplerThan(k int) []answer {
	if k > 1 {
		return simpler
	}
	return slices.DeleteFunc(slices.Clone(simpler), func(a answer) bool { return a.name == halfClusters })
}

// answered is what an answer came to: its mean NICV, and the ratio of its worst run to that.
type answered struct{ mean, worst float64 }

// answers runs hybrid, the first of the list, and the others on a set. It returns what hybrid came to, the lowest mean
// of the others, and what one mean came to.
func (c *Case) answers(ctx context.Context, s *Set, epsilon float64, list []answer) (first answered, lowest float64,
	one answered, err error) {
	lowest = math.Inf(1)
	for i, m := range list {
		count := c.Env.reps(20, 2)
		if i == 0 || m.name == oneMean || m.name == halfClusters {
			count = c.Env.reps(50, 4)
		}
		r, err := c.runs(ctx, count, func(run int) (engine.Job, error) {
			b := privacy.Budget{Epsilon: epsilon, Delta: -1}
			return catalog.Methods().Job(m.method, s.problem(m.clusters(s.K), b, run), m.settings)
		})
		if err != nil {
			return first, 0, one, err
		}
		mean := stat.Mean(r.nicv, nil)
		c.samples(m.name, unitPlain, r.nicv)
		found := answered{mean, slices.Max(r.nicv) / mean}
		if i == 0 {
			first = found
			continue
		}
		if m.name == oneMean {
			one = found
		}
		lowest = min(lowest, mean)
	}
	return first, lowest, one, nil
}

// floor measures hybrid and what is simpler on a set.
func (e *Env) floor(ctx context.Context, labels []Label, epsilon float64,
	set func(context.Context) (*Set, error)) {
	e.newCase(ctx, "", labels, func(ctx context.Context, c *Case) error {
		s, err := set(ctx)
		if err != nil {
			return err
		}
		first, lowest, one, err := c.answers(ctx, s, epsilon, simplerThan(s.K))
		if err != nil {
			return err
		}
		lowest = min(lowest, s.centreLoss())
		c.number("centre of the box", unitPlain, s.centreLoss())
		c.number("hybrid / best of these", unitPlain, first.mean/lowest, atMost(1.02)...)
		c.number("worst run / mean", unitPlain, first.worst, atMost(1.5)...)
		c.number("one mean, worst run / mean", unitPlain, one.worst)
		return nil
	})
}

// centreLoss is the NICV of the centre of the box.
func (s *Set) centreLoss() float64 {
	sum, row := 0.0, make([]float32, s.D)
	for i := range s.N {
		for _, x := range s.Norm.Points.Point(i, row) {
			sum += float64(x) * float64(x)
		}
	}
	return sum / float64(s.N)
}
