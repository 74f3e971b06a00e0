package bench

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

func clientSuites() []Suite {
	return []Suite{{
		Name: "clients", Group: groupPerformance, Title: "Many and unequal clients",
		About: "NICV of hybrid and relative (proven, epsilon 1, delta = 1/(n ln n), mean of 20 runs, 5 of 1,000 clients) " +
			"with the noise in shares, one client assumed to read along, over that of one client whose noise is " +
			"sqrt(M/(M-1)) times as large. The last case has four clients of 8:4:2:1. Goal: at most 1.05.",
		Needs: []string{"s1", "adult", "birch2_25k"},
		Run:   runClients,
	}}
}

func runClients(ctx context.Context, e *Env) {
	for _, name := range []string{"s1", "adult", "birch2_25k"} {
		for _, method := range []string{"hybrid", "relative"} {
			e.on(ctx, name, "", []Label{L("set", name), L("method", method)},
				func(ctx context.Context, c *Case, s *Set) error {
					for _, m := range []int{10, 100, 1000} {
						if e.Quick && m > 100 {
							break
						}
						if err := c.clients(ctx, s, method, m, nil); err != nil {
							return err
						}
					}
					return c.clients(ctx, s, method, 4, []float64{8, 4, 2, 1})
				})
		}
	}
}

// clients measures a method with m clients beside one that has the noise of all shares.
func (c *Case) clients(ctx context.Context, s *Set, method string, m int, proportions []float64) error {
	budget := privacy.Budget{Epsilon: 1, Delta: privacy.DefaultDelta(s.N)}
	mu, err := privacy.DiscreteMu(budget, 0)
	if err != nil {
		return err
	}
	noisier := budget
	noisier.Epsilon = privacy.EpsilonOfMu(mu*math.Sqrt(float64(m-1)/float64(m)), budget.Delta, 0)
	reps := 20
	if m > 100 {
		reps = 5 // seconds each
	}
	run := func(clients int, shares []float64, b privacy.Budget) (float64, error) {
		parts, err := s.Norm.Split(clients, shares, 1)
		if err != nil {
			return 0, err
		}
		r, err := c.runs(ctx, c.Env.reps(reps, 2), func(run int) (engine.Job, error) {
			p := s.problem(s.K, b, run)
			p.Clients = parts
			if clients > 1 {
				p.Noise = protocol.InShares
			}
			return catalog.Methods().Job(method, p, nil)
		})
		return stat.Mean(r.nicv, nil), err
	}
	many, err := run(m, proportions, budget)
	if err != nil {
		return err
	}
	one, err := run(1, nil, noisier)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d clients", m)
	if proportions != nil {
		what = "4 clients of 8:4:2:1"
	}
	c.number(what, unitPlain, many)
	c.number(what+" / one", unitPlain, many/one, atMost(1.05)...)
	return nil
}
