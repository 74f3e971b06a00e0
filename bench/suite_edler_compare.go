package bench

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// edlerComparison is one of Tables 13 to 17: the thesis's algorithm and ours.
func (e *Env) edlerComparison(ctx context.Context, number string) {
	mnist := func(ctx context.Context, e *Env) (*Set, error) { return e.set(ctx, "mnist") }
	if number == "13" {
		for _, epsilon := range edlerEpsilons {
			e.compare(ctx, L("epsilon", epsilon), mnist, 255, 10, epsilon, edlerMoreRuns)
		}
		return
	}
	t := map[string]struct {
		abscissa string
		at       []int
	}{
		"14": {"k", []int{2, 4, 8, 16, 32, 64}}, "15": {"k", []int{64, 2, 4, 8, 16, 32}},
		"16": {"d", []int{5, 50, 500}}, "17": {"k", []int{8, 16, 32, 64}},
	}[number]
	for _, x := range t.at {
		epsilon, k, d, clusters := 1.0, x, 100, 64
		set, width := mnist, 255.0
		switch number {
		case "16":
			epsilon, k, d, clusters = 0.5, 32, x, 32
		case "17":
			clusters = k
		}
		if number != "14" {
			width = blobsWidth
			set = func(ctx context.Context, e *Env) (*Set, error) { return e.blobs(ctx, d, clusters, 1) }
		}
		e.compare(ctx, L(t.abscissa, x), set, width, k, epsilon, edlerSomeRuns)
	}
}

// compare measures one row of Tables 13 to 17, with that many runs of the thesis's
// algorithm. Table 16's other private column was run at epsilon 1.
func (e *Env) compare(ctx context.Context, at Label, set func(context.Context, *Env) (*Set, error), width float64,
	k int, epsilon float64, most int) {
	e.newCase(ctx, "", []Label{at}, func(ctx context.Context, c *Case) error {
		s, err := set(ctx, c.Env)
		if err != nil {
			return err
		}
		for _, method := range []string{"balcan-edler", "balcan", "hybrid", "k-means++"} {
			if v := c.Env.measured(method); v != nil && method == "k-means++" && at.Name == "epsilon" {
				c.add(*v) // it does not depend on epsilon
				continue
			}
			count := edlerRuns
			if method == "balcan-edler" {
				count = most
			}
			budget := privacy.Budget{Epsilon: epsilon, Delta: mnistDelta}
			runs, err := c.runs(ctx, c.Env.reps(count, 1), func(run int) (engine.Job, error) {
				return centralJob(method, s, k, budget, run, true)
			})
			if err != nil {
				return err
			}
			inertia := rawInertia(runs.wcss, width)
			if method == "balcan-edler" {
				if err := c.againstThesis(method, inertia); err != nil {
					return err
				}
				continue
			}
			c.samples(method, unitPlain, inertia)
			if method != "k-means++" {
				printed, err := c.Env.printedFor(c.Row.file(), c.Row.Labels, "balcan-edler")
				if err != nil {
					return err
				}
				c.number(method+" / thesis", unitPlain, stat.Mean(inertia, nil)/float64(printed[0].Value))
			}
		}
		if width == blobsWidth {
			if err := c.withChapter4Gamma(ctx, s, width, k, epsilon, most); err != nil {
				return err
			}
		}
		if mine := c.Row.value("balcan-edler"); mine.N > edlerRuns {
			c.Row.Seeds = fmt.Sprintf("1..%d; balcan-edler 1..%d", edlerRuns, mine.N)
		}
		if at.Name == "d" {
			c.Row.Note = "epsilon 0.5; the thesis ran diffprivlib at epsilon 1"
		}
		return nil
	})
}

// withGammaOfChapter4 is the thesis's algorithm with chapter 5's changes but that of gamma.
const withGammaOfChapter4 = "balcan-edler, gamma of chapter 4"

// withChapter4Gamma measures the thesis's algorithm with all of chapter 5's changes but that of gamma, which stays
// twice as large. On blobs, whose clusters have n/k records each, a cube's count is near the threshold, so that gamma
// decides how many clusters have candidates; on MNIST it hardly matters.
func (c *Case) withChapter4Gamma(ctx context.Context, s *Set, width float64, k int, epsilon float64, most int) error {
	runs, err := c.runs(ctx, c.Env.reps(most, 1), func(run int) (engine.Job, error) {
		job := edlerJob(s, k, epsilon, run)
		job.GammaFactor = 2
		return job, nil
	})
	if err != nil {
		return err
	}
	inertia := rawInertia(runs.wcss, width)
	printed, err := c.Env.printedFor(c.Row.file(), c.Row.Labels, "balcan-edler")
	if err != nil {
		return err
	}
	c.samples(withGammaOfChapter4, unitPlain, inertia)
	c.toThesis(withGammaOfChapter4, inertia, printed, edlerRuns)
	return nil
}

// measured is a value of an earlier row of the suite, nil if there is none.
func (e *Env) measured(name string) *Value {
	for i := range e.rows {
		if v := e.rows[i].value(name); v != nil {
			return v
		}
	}
	return nil
}
