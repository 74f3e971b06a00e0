package balcan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Split is the share of the budget of each stage of the pipeline of Balcan et
// al.: candidates, local swap, recovery, private k-means, choice of a run.
type Split struct{ Candidates, Swap, Recover, KMeans, Choice float64 }

// The splits of Thesis-B: its own (section 5.2) and the corrected one of the
// Matlab code (section 4.3).
var (
	EdlerSplit  = Split{0.7, 0.01, 0.04, 0.2, 0.05}
	MatlabSplit = Split{4. / 9, 1. / 18, 1. / 9, 1. / 3, 1. / 18}
)

// Edler is Thesis-B's pipeline as it stands, under its own claim: project to
// ln(n)/2 dimensions, partition shifted cubes privately into candidate centres,
// swap, recover the centres in all dimensions and refine them by private
// k-means (Algorithms 8 to 13; 1 to 6 by the options). The claimed epsilon is
// not what it costs: the mean of every cluster is released with noise for one
// coordinate, so recovery and k-means cost about (d+1)/2 times as much
// (THEOREMS.md T5). The ledger states both.
//
// The choices are made by permute-and-flip or the exponential mechanism with the
// best score subtracted and the loss as a cost, as the library that the thesis
// calls does; its listings omit the one and have the sign of the other wrong. A
// cluster without records keeps the middle of the box for its mean.
type Edler struct {
	// Problem's Budget is what the run claims; the method uses no delta. Its Iterations are
	// those of private k-means, 3 by default; negative means none.
	protocol.Problem
	// Options of the thesis; zero fields mean its Algorithms 8 to 13.
	GammaFactor float64 // gamma = factor/epsilon' ln(n/failure probability): 20, 2 or 1 (default)
	Failure     float64 // failure probability, default 0.1 (the thesis's delta)
	Rounds      int     // T of Algorithm 8, default 1
	Partitions  int     // T of Algorithm 9, default 3
	Swaps       int     // T of Algorithm 11, default min(k, 20)
	Exponential bool    // the exponential mechanism in place of permute-and-flip
	AllCubes    bool    // no reduction of the candidates (Listing 5.3)
	Repeats     bool    // local swap draws its first k centres with replacement: "uniformly" may mean either
	Undivided   bool    // the projection's entries have deviation 1, not one over the root of its dimension
	Split       Split   // default EdlerSplit
	Projection  staged.Projection
	// OneRange keeps columns in their own units, with the widest range for all of them.
	// Otherwise columns of unlike widths are first stretched to the widest: the thesis's
	// data have one range, and noise for the widest column drowns a narrow one.
	OneRange bool
	// Post is what happens to coordinates outside the bounds: step.Keep, as in the
	// thesis (also if empty), or step.Truncate. Either is post-processing.
	Post step.Post
}

// edlerName is what results call the method.
const edlerName = "balcan-edler"

var edlerTakes = protocol.Takes{Private: true, Iterations: true, Mechanisms: []protocol.Mechanism{protocol.Laplace}}

// edlerClusters bounds k: the scores of so many clusters' exchanges take half a gigabyte.
const edlerClusters = 8192

// edlerWidth bounds the width of a column, so that squares of distances, in the columns' own units, are finite.
const edlerWidth = 1e150

// check checks the fields.
func (j *Edler) check() error {
	if err := j.Check(edlerName, edlerTakes); err != nil {
		return err
	}
	if len(j.Bounds.Lo) == 0 {
		return fault.Request("bounds", "are not given", "give one pair per column: the noise follows from their width")
	}
	switch {
	case slices.Equal(j.Bounds.Lo, j.Bounds.Hi):
		return fault.Request("bounds", "are of no width in any column", "give wider ones: the noise follows from them")
	case j.K > edlerClusters:
		return fault.Request("k", fmt.Sprintf("is %d, and each swap weighs k exchanges for each of at least k candidates",
			j.K),
			fmt.Sprintf("take at most %d, or method balcan", edlerClusters))
	case j.Failure == 1:
		return fault.Range("failure-probability", j.Failure, "in (0, 1)")
	}
	s := j.split()
	if sum := s.Candidates + s.Swap + s.Recover + s.KMeans + s.Choice; !(sum > 0 && sum < 1+1e-9) ||
		min(s.Candidates, s.Swap, s.Recover, s.KMeans, s.Choice) < 0 || s.Candidates == 0 || s.Swap == 0 || s.Recover == 0 {
		return fault.Range("split", fmt.Sprintf("%v", s), "five shares of at most 1 together, the first three positive")
	}
	return j.own().Check()
}

func (j *Edler) split() Split {
	if j.Split == (Split{}) {
		return EdlerSplit
	}
	return j.Split
}

// edlerPlan is what a run releases. Everything is in the units of the columns,
// measured from the lower bounds: their own, or stretched to one width.
type edlerPlan struct {
	*staged.Plan
	job            *Edler
	width          []float64 // of each column
	stretched      bool      // columns were, to one width
	r              float64   // range of the data: the largest width
	failure        float64
	factor         float64
	rounds, kmeans int
	runs           []edlerStages
	choice         *edlerStage
}

// edlerStages are the releases of one of the T runs of Algorithm 8.
type edlerStages struct {
	partitions []*edlerStage
	swap       *edlerStage
	means      []*edlerStage // recovery, then private k-means
}

// edlerStage is a planned release with what it is claimed to cost.
type edlerStage struct {
	*protocol.Release
	epsilon float64
}

// farOutside bounds the coordinates of the thesis's noisy means in a measurement.
const farOutside = 1 << 16

// Plan implements engine.Job.
func (j *Edler) Plan() (engine.Plan, error) { return staged.Make(j, (*Edler).plan) }

func (j *Edler) plan() (*edlerPlan, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	f, err := staged.New(edlerName, &j.Problem, protocol.Laplace, 1)
	if err != nil {
		return nil, err
	}
	f.Calibration = privacy.Claimed
	f.Notes = append([]string{
		"the thesis's failure probability (0.1) is no privacy parameter: the claim is pure epsilon"}, f.Notes...)
	e := &edlerPlan{Plan: f, job: j, width: make([]float64, f.D), failure: j.Failure, factor: j.GammaFactor,
		rounds: cmp.Or(j.Rounds, 1), kmeans: max(cmp.Or(j.Iterations, 3), 0)}
	if e.failure == 0 {
		e.failure = 0.1
	}
	if e.factor == 0 {
		e.factor = 1
	}
	for h := range e.width {
		e.width[h] = j.Bounds.Hi[h] - j.Bounds.Lo[h]
		e.r = max(e.r, e.width[h])
	}
	if e.r > edlerWidth {
		return nil, fault.Request("bounds", fmt.Sprintf("are %g wide, and the noise follows from squares of distances", e.r),
			fmt.Sprintf("give a width of at most %g: choose another unit", float64(edlerWidth)))
	}
	if e.stretched = !j.OneRange && slices.Min(e.width) < e.r; e.stretched {
		for h := range e.width {
			e.width[h] = e.r
		}
	}
	split, epsilon := j.split(), f.Budget.Epsilon/float64(e.rounds)
	for t := range e.rounds {
		var o edlerStages
		times := cmp.Or(j.Partitions, 3)
		for i := range times {
			o.partitions = append(o.partitions, e.addPartition(t*times+i, epsilon*split.Candidates/float64(times)))
		}
		o.swap = e.addSwap(t, epsilon*split.Swap)
		o.means = append(o.means, e.addMeans(0, epsilon*split.Recover))
		for i := range e.kmeans {
			o.means = append(o.means, e.addMeans(i+1, epsilon*split.KMeans/float64(e.kmeans)))
		}
		e.runs = append(e.runs, o)
	}
	if e.rounds > 1 {
		claim := e.claim("scores of runs")
		entry := claim.Entry(fmt.Sprintf("choice among %d runs", e.rounds), e.selectionName(), "L1")
		entry.Unit = "loss"
		e.choice = e.add(entry, epsilon*split.Choice)
	}
	f.Rounds = e.rounds * e.kmeans
	f.Does(farOutside, func(ctx context.Context, p *staged.Party) (*protocol.Outcome, error) {
		return (&edlerRun{p, e}).run(ctx)
	})
	return e, nil
}

// add plans a release that is claimed to be epsilon-private.
func (e *edlerPlan) add(entry privacy.Entry, epsilon float64) *edlerStage {
	entry.Viewers, entry.Cost = e.Audience, privacy.Spec{Family: "pure", Epsilon: epsilon}
	return &edlerStage{e.Add(&protocol.Release{Name: entry.What, Makers: protocol.Holder,
		Entries: []privacy.Entry{entry}}), epsilon}
}

// passes is the number of levels that a partition of Algorithm 10 examines, of
// which the decisions of the last are never used; own is what one costs.
func (e *edlerPlan) passes(epsilon float64) (passes int, own float64) {
	logN := max(elementary.Log(float64(e.N)), 1) // of one or two records, nothing is cut
	return min(int(elementary.Log(float64(e.N)))+1, 64/staged.LowDimension(e.N, e.D)), epsilon / (2 * logN)
}

func (e *edlerPlan) addPartition(at int, epsilon float64) *edlerStage {
	passes, own := e.passes(epsilon)
	if passes == 1 {
		return &edlerStage{epsilon: epsilon}
	}
	entry := e.claim("cubes that pass").Entry(fmt.Sprintf("partition %d: which cubes pass gamma, %s", at+1,
		fault.Count(passes-1, "level")), "laplace", "L1")
	entry.Scale, entry.Unit = 1/own, "records"
	entry.True = &privacy.Spec{Family: "pure", Epsilon: own * float64(passes-1)}
	return e.add(entry, epsilon)
}

// swaps is T of Algorithm 11.
func (e *edlerPlan) swaps() int { return cmp.Or(e.job.Swaps, min(e.K, 20)) }

func (e *edlerPlan) addSwap(round int, epsilon float64) *edlerStage {
	entry := e.claim("scores of swaps").Entry(fmt.Sprintf("local swap %d: %s and a choice", round+1,
		fault.Count(e.swaps(), "swap")),
		e.selectionName(), "L1")
	entry.Unit = "loss"
	return e.add(entry, epsilon)
}

func (e *edlerPlan) addMeans(step int, epsilon float64) *edlerStage {
	what := "recovery: the mean of each cluster in all dimensions"
	if step > 0 {
		what = fmt.Sprintf("private k-means %d: the mean of each cluster", step)
	}
	// The count costs epsilon/2, the mean d epsilon/2 n'/(n+1), about d epsilon/2.
	claim, mean := e.claim("cluster counts"), e.claim("cluster means")
	entry := claim.Entry(what, "laplace", "L1")
	entry.Scale, entry.Unit = 2*claim.L1()/epsilon, "records for the count"
	entry.True = &privacy.Spec{Family: "pure", Epsilon: epsilon / 2 * float64(e.D+1)}
	entry.Beside = &mean
	entry.Remark = "the means are released with noise for one coordinate and with a noisy count in the " +
		"denominator: the true cost is about (d+1)/2 times the claim, and more where a cluster is small"
	return e.add(entry, epsilon)
}

func (e *edlerPlan) selectionName() string {
	if e.job.Exponential {
		return "exponential"
	}
	return "permute-and-flip"
}

// claim is the line of the table of calibrations for a release of the thesis's
// method, on data in [0, r]^d.
func (e *edlerPlan) claim(release string) privacy.Bound {
	b, err := privacy.At(e.Method, privacy.Claimed, release, privacy.Shape{D: e.D, K: e.K, Bound: e.r})
	if err != nil {
		panic("balcan: " + err.Error()) // the table lacks what the method does
	}
	return b
}
