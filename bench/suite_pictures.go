package bench

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Tables of the suite pictures.
const (
	timeTable = "time of an iteration"
	lossTable = "loss against epsilon"
)

// lossSeries is the label of the methods.
const lossSeries = "method"

func pictureSuites() []Suite {
	return []Suite{{
		Name: "pictures", Group: groupPerformance, Title: "The pictures of the README",
		About: "CPU time of one Lloyd iteration on one thread that looks at every record and sums all, beside " +
			"scikit-learn's and FAISS's on the same points in turn, where a Python has them. And the mean squared distance " +
			"to the nearest centroid (NICV) on a built-in set of 5,000 points and 15 clusters by epsilon, proven, " +
			"delta = 1/(n ln n), 20 runs each, public bounds; plain k-means is the level that no privacy reaches.",
		Figures: []Figure{
			{Table: timeTable, Title: "CPU time of an iteration", X: "shape", Y: "iteration", Bars: true, LogY: true},
			{Table: lossTable, Title: "Loss against epsilon", X: "epsilon", Y: "NICV", Series: []string{lossSeries},
				LogX: true, LogY: true, Level: withoutNoise},
		},
		Run: runPictures,
	}}
}

func runPictures(ctx context.Context, e *Env) {
	for _, s := range []struct{ n, d, k int }{{100000, 10, 20}, {1000000, 16, 64}, {70000, 784, 10}, {50000, 128, 1024}} {
		n := s.n
		if e.Quick {
			n = max(n/20, 4*s.k)
		}
		labels := []Label{L("shape", fmt.Sprintf("%d x %d, k = %d", n, s.d, s.k))}
		e.newCase(ctx, timeTable, labels, func(ctx context.Context, c *Case) error {
			unpin := pin()
			defer unpin()
			it := newEmbeddingIteration(n, s.d, s.k)
			other, err := it.peers(ctx, c)
			if err != nil {
				return err
			}
			defer other.close()
			samples, err := it.measure(ctx, c, other)
			if err != nil {
				return err
			}
			var refs []Reference
			for _, name := range []string{"sklearn", "faiss"} {
				if x := samples[name]; len(x) > 0 {
					v := summarise(name, unitNanoseconds, x)
					v.Timed = true
					refs = append(refs, Reference{Name: name, Kind: kindPeer, Value: Number(v.shown()),
						Source: "the same run, on the same points, one thread each"})
				}
			}
			c.durations("iteration", samples["iteration without labels"], refs...)
			return nil
		})
	}
	e.lossPicture(ctx)
}

// lossPicture measures the loss of private methods by epsilon, and the level of plain k-means.
func (e *Env) lossPicture(ctx context.Context) {
	s, err := builtinSet(ctx)
	if err != nil {
		e.fail(err)
		return
	}
	one := func(table string, labels []Label, method string, b privacy.Budget) {
		e.newCase(ctx, table, append(labels, L(lossSeries, method)), func(ctx context.Context, c *Case) error {
			r, err := c.runs(ctx, c.Env.reps(20, 2), func(run int) (engine.Job, error) {
				return catalog.Methods().Job(method, s.problem(s.K, b, run), nil)
			})
			if err == nil {
				c.samples("NICV", unitPlain, r.nicv)
			}
			return err
		})
	}
	one(withoutNoise, nil, "lloyd", privacy.Budget{})
	for _, epsilon := range []float64{1, 0.1, 0.3, 3, 0.03, 10} {
		for _, m := range []string{"hybrid", "relative", "fastlloyd", "sulloyd", "lsf"} {
			one(lossTable, []Label{L("epsilon", epsilon)}, m, privacy.Budget{Epsilon: epsilon, Delta: -1})
		}
	}
}

// builtinSet is the built-in set of the pictures, in public bounds.
func builtinSet(ctx context.Context) (*Set, error) {
	const name, k, width = "s1-like", 15, 1e6
	t, err := dataset.Generate(ctx, name, dataset.Generator{Seed: 1})
	if err != nil {
		return nil, err
	}
	return newSet(name, t, func(*dataset.Table) (dataset.Bounds, error) {
		return dataset.Bounds{Lo: []float64{0, 0}, Hi: []float64{width, width}}, nil
	}, k)
}
