package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/flow"
)

// grid5 are the numbers of clusters and of dimensions of the synthetic sets in the
// data folder.
var grid5 = []int{2, 6, 10, 14, 20}

// syntheticSet is set number seed of a shape as FastLloyd generates it: sizes of
// clusters uniform in (1 +- spread) n/k, so the number of records varies too.
func syntheticSet(ctx context.Context, n, k, d int, separation, spread float64, seed int) (*Set, error) {
	r := rand.New(rand.NewPCG(uint64(seed), uint64(k)<<32|uint64(d)))
	records := 0.0
	for range k {
		records += float64(n) / float64(k) * (1 + spread*(2*r.Float64()-1))
	}
	s, err := generatedSet(ctx, "synth",
		dataset.Generator{N: int(records), D: d, K: k, Separation: separation, Spread: spread, Seed: uint64(seed)})
	if err != nil {
		return nil, err
	}
	s.K = k
	return s, nil
}

// heatMap is Figure 5 or 6: synthetic sets of one separation, by k and d;
// ours says what the stored results have.
func heatMap(name, title, source string, separation float64, ours string) Suite {
	var figures []Figure
	for _, f := range []struct{ title, value string }{
		{"NICV of sulloyd", suLloyd.name()}, {"NICV of fastlloyd, published", fastLloydCode.name()},
		{"NICV lowered by fastlloyd, published", "lower by"},
		{"NICV lowered by fastlloyd, claimed", "lower by, claimed"},
	} {
		figures = append(figures, Figure{Title: f.title, X: "d", Y: f.value, Series: []string{"k"}, Heat: true})
	}
	return Suite{
		Name: name, Group: groupFastLloyd, Title: title,
		About: "NICV at epsilon 1 by number of clusters and dimensions, and by how much fastlloyd lowers it against " +
			"sulloyd: three sets of each shape, 20 runs on each. The paper made its sets with the R package " +
			"clusterGeneration and kept no seeds; these are built in (builtin:synth, the same construction), about 10,000 " +
			"records each. The figure's numbers are not in the text, which says more than 40% less for many clusters in few " +
			"dimensions (overlapping), and up to 89% less, 78% at the most clusters and dimensions (separated), in all cases. " +
			ours + " A quick run takes one set of nine shapes.",
		Source: source, Figures: figures,
		Run: func(ctx context.Context, e *Env) {
			axis, sets := []int{2, 20, 10, 6, 14, 4, 8, 12, 16, 18}, 3
			if e.Quick {
				axis, sets = axis[:3], 1
			}
			for _, k := range axis {
				for _, d := range axis {
					e.newCase(ctx, "", []Label{L("k", k), L("d", d)}, func(ctx context.Context, c *Case) error {
						return c.heatMapCell(ctx, k, d, separation, sets)
					})
				}
			}
		},
	}
}

// heatMapCell measures sets of one shape.
func (c *Case) heatMapCell(ctx context.Context, k, d int, separation float64, sets int) error {
	var nicv [3][]float64
	protocols := []variant{suLloyd, fastLloydCode, fastLloyd}
	for seed := 1; seed <= sets; seed++ {
		s, err := syntheticSet(ctx, 10000, k, d, separation, 0.25, seed)
		if err != nil {
			return err
		}
		for i, p := range protocols {
			r, err := c.runs(ctx, c.Env.reps(20, 3), func(run int) (engine.Job, error) { return p.job(s, 1, run, nil) })
			if err != nil {
				return err
			}
			nicv[i] = append(nicv[i], r.nicv...)
		}
	}
	for i, p := range protocols {
		c.samples(p.name(), unitPlain, nicv[i])
	}
	base := float64(c.Row.Values[0].Mean)
	c.number("lower by", "%", 100*(1-float64(c.Row.Values[1].Mean)/base))
	c.number("lower by, claimed", "%", 100*(1-float64(c.Row.Values[2].Mean)/base))
	c.Row.Seeds += fmt.Sprintf(" on sets 1..%d", sets)
	return nil
}

// ablationAxis are the numbers of clusters and of dimensions, and separations the
// indices, of the sets of FastLloyd's appendix B.
var (
	ablationAxis = []int{4, 16, 2, 8}
	separations  = []float64{0.25, 0.75, 0.5}
	allClusters  = "all"
)

// ablation is Figure 9 or 10: the factors of the smallest and the largest
// cluster, and the post-processing of centroids.
func ablation(name, title, source string, epsilon float64) Suite {
	return Suite{
		Name: name, Group: groupFastLloyd, Title: title,
		About: "NICV of fastlloyd by the factor alpha of one bound, the other at 5, and by the post-processing of " +
			"centroids with both at 5: clusters have at least n/(alpha_min k) and at most alpha_max n/k records. As in the " +
			"released code, 48 synthetic sets of about 2048 records (k and d of 2, 4, 8, 16; separation 0.25, 0.5, 0.75), 20 " +
			"runs on each with its noise (published); a curve is the mean over the 12 sets of one k, the one of all is over " +
			"the 48, with the interval over sets. Sets that no assignment satisfies are left out. The sets are built in " +
			"(builtin:synth); the figure prints no numbers.",
		Source: source,
		Figures: []Figure{
			{Table: "sizes", Title: "NICV by alpha", X: "alpha", Y: "NICV", Series: []string{"k"}, Panel: "bound"},
			{Table: "post-processing", Title: "NICV by post-processing", X: "post", Y: "NICV", Bars: true},
		},
		Run: func(ctx context.Context, e *Env) { e.ablateSizes(ctx, epsilon) },
	}
}

func (e *Env) ablateSizes(ctx context.Context, epsilon float64) {
	loose := func(j *lloyd.Job) { j.EtaMinAlpha, j.EtaMaxAlpha = 5, 5 }
	alphas := []float64{1.25, 2, 5, 1.5, 1, 1.75, 2.5}
	for _, alpha := range alphas[:e.reps(len(alphas), 3)] {
		for _, bound := range []string{"alpha_min", "alpha_max"} {
			edit := func(j *lloyd.Job) {
				loose(j)
				if bound == "alpha_min" {
					j.EtaMinAlpha = alpha
				} else {
					j.EtaMaxAlpha = alpha
				}
			}
			labels := []Label{L("bound", bound), L("alpha", alpha)}
			from := len(e.rows)
			for _, k := range ablationAxis {
				e.newCase(ctx, "sizes", append(labels[:2:2], L("k", k)), func(ctx context.Context, c *Case) error {
					return c.overSets(ctx, []int{k}, epsilon, edit)
				})
			}
			parts := e.rows[from:]
			if len(parts) < len(ablationAxis) {
				continue // no time left, or a row failed
			}
			e.newCase(ctx, "sizes", append(labels[:2:2], L("k", allClusters)), func(_ context.Context, c *Case) error {
				c.add(pooled("NICV", parts))
				c.Row.Seeds = parts[0].Seeds
				return nil
			})
		}
	}
	posts := []step.Post{step.Fold, step.Truncate, step.Keep}
	for _, post := range posts {
		edit := func(j *lloyd.Job) {
			loose(j)
			j.Post = post
		}
		e.newCase(ctx, "post-processing", []Label{L("post", post)}, func(ctx context.Context, c *Case) error {
			return c.overSets(ctx, ablationAxis, epsilon, edit)
		})
	}
}

// overSets records the mean of the mean NICV of each set with one of the given
// numbers of clusters.
func (c *Case) overSets(ctx context.Context, ks []int, epsilon float64, edit func(*lloyd.Job)) error {
	var means []float64
	lost := 0
	axis, indices := ablationAxis, separations
	if c.Env.Quick {
		axis, indices = axis[:2], indices[:2]
	}
	for _, k := range ks {
		for _, d := range axis {
			for i, separation := range indices {
				s, err := syntheticSet(ctx, 2048, k, d, separation, 0.3, i+1)
				if err != nil {
					return err
				}
				r, err := c.runs(ctx, c.Env.reps(20, 3),
					func(run int) (engine.Job, error) { return fastLloydCode.job(s, epsilon, run, edit) })
				if err != nil && !errors.Is(err, flow.ErrInfeasible) {
					return err
				}
				if len(r.nicv) == 0 {
					lost++
					continue
				}
				means = append(means, stat.Mean(r.nicv, nil))
			}
		}
	}
	c.Row.Note = ""
	if lost > 0 {
		c.Row.Note = fmt.Sprintf("%d of %d sets have no assignment within the constraints", lost, lost+len(means))
	}
	c.samples("NICV", unitPlain, means)
	return nil
}

// pooled is the mean and interval of the samples of several rows together,
// reckoned from the means and intervals of each.
func pooled(name string, rows []Row) Value {
	v := Value{Name: name}
	sum, squares := 0.0, 0.0
	for i := range rows {
		if p := rows[i].value(name); p != nil && p.N > 0 {
			v.N += p.N
			sum += float64(p.N) * float64(p.Mean)
		}
	}
	mean := sum / float64(v.N)
	for i := range rows {
		if p := rows[i].value(name); p != nil && p.N > 0 {
			away := float64(p.Mean) - mean
			squares += float64(p.N) * away * away
			if p.N > 1 {
				sd := float64(p.Half) * math.Sqrt(float64(p.N)) / student(p.N)
				squares += float64(p.N-1) * sd * sd
			}
		}
	}
	v.Mean, v.Median, v.P99 = Number(mean), Number(math.NaN()), Number(math.NaN())
	if v.N > 1 {
		v.Half = Number(student(v.N) * math.Sqrt(squares/float64(v.N-1)/float64(v.N)))
	}
	return v
}
