package balcan

import (
	"context"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// TestBalcanLedger checks that the total is the budget, whatever the swaps take of it.
func TestBalcanLedger(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 5000, D: 30, K: 6, Separation: 8, Seed: 2})
	parts := norm.Table()
	for _, c := range []struct {
		budget      privacy.Budget
		exponential bool
		swaps       int
		neighbours  privacy.Neighbours
	}{{privacy.Budget{Epsilon: 1, Delta: 1e-6}, false, 0, ""}, {privacy.Budget{Epsilon: 0.2, Delta: -1}, true, 5, ""},
		{privacy.Budget{Epsilon: 3, Delta: 0}, false, 0, ""}, {privacy.Budget{Epsilon: 1, Delta: 1e-6}, false, -1, ""},
		{privacy.Budget{Epsilon: 1, Delta: 1e-6}, false, 0, privacy.ReplaceOne}} {
		seed := uint64(2)
		eng, _ := engine.New()
		res, err := eng.Run(context.Background(), &Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds,
			K: 6, Budget: c.budget, Neighbours: c.neighbours, Seed: &seed}, Exponential: c.exponential, Swaps: c.swaps})
		eng.Close()
		if err != nil {
			t.Fatal(err)
		}
		total := res.Ledger.TotalFor("outsider").Epsilon
		if total == nil || *total > c.budget.Epsilon*(1+1e-6) || *total < (1-1e-4)*c.budget.Epsilon {
			t.Errorf("%+v: total is %v", c, *total)
		}
	}
}
