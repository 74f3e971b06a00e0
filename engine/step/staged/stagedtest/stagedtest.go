// Package stagedtest runs staged methods in tests.
package stagedtest

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/kernels"
)

// Plan begins a plan of hybrid on the records of p alone, with the box for
// bounds.
func Plan(t testing.TB, p *kernels.Panels, k int) *staged.Plan {
	t.Helper()
	return PlanOf(t, datasettest.Part(p), k)
}

// PlanOf is Plan for a client.
func PlanOf(t testing.TB, part dataset.Part, k int) *staged.Plan {
	t.Helper()
	seed := uint64(1)
	problem := &protocol.Problem{Clients: []dataset.Part{part}, Bounds: datasettest.UnitBounds(part.Points.D),
		K: k, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}, Seed: &seed}
	f, err := staged.New("hybrid", problem, protocol.Gaussian, 1)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// OnParty lets the party of f that holds the records of p run.
func OnParty(t testing.TB, f *staged.Plan, p *kernels.Panels, run func(ctx context.Context, p *staged.Party) error) {
	t.Helper()
	OnClient(t, f, datasettest.Part(p), run)
}

// OnClient is OnParty for a client.
func OnClient(t testing.TB, f *staged.Plan, part dataset.Part, run func(ctx context.Context, p *staged.Party) error) {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	program := f.Program(step.Records{Part: part},
		func(ctx context.Context, p *staged.Party) (*protocol.Outcome, error) { return nil, run(ctx, p) })
	if err := protocol.Start(engine.NewRuntime(pool), f.Plan, []protocol.Program{program}, nil,
		protocol.Options{}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Text is a result as the command line prints it.
func Text(t *testing.T, r *engine.Result) string {
	t.Helper()
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ClustersOf are the sums, row-major, and counts of the records of p by the
// nearest of centres in the space of points, in float64.
func ClustersOf(p, points *kernels.Panels, centers []float32) (sums, counts []float64) {
	q, d := points.D, p.D
	k := len(centers) / q
	sums, counts = make([]float64, k*d), make([]float64, k)
	for i := range p.N {
		y, best, at := points.Point(i, nil), math.Inf(1), 0
		for j := range k {
			square := 0.0
			for h := range q {
				x := float64(y[h]) - float64(centers[j*q+h])
				square += x * x
			}
			if square < best {
				best, at = square, j
			}
		}
		counts[at]++
		for h, x := range p.Point(i, nil) {
			sums[at*d+h] += float64(x)
		}
	}
	return sums, counts
}

// Pool is two workers.
func Pool(t *testing.T) *engine.Pool {
	t.Helper()
	pool := engine.NewPool(2)
	t.Cleanup(pool.Close)
	return pool
}
