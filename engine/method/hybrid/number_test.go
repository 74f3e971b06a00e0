package hybrid

import (
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// TestChoosesK: a range of numbers gives the number of far clusters, on the tree and on
// projections, with one client and several, at the price of a stated number.
func TestChoosesK(t *testing.T) {
	eng := enginetest.New(t)
	seed := uint64(6)
	for _, c := range []struct {
		d, clients int
		branch     string
		elbow      bool
	}{{2, 1, "tree", false}, {2, 3, "tree", true}, {16, 1, "projected", false}} {
		norm, table := datasettest.Builtin(t, "blobs",
			dataset.Generator{N: 20000, D: c.d, K: 5, Separation: 14, Seed: 4})
		parts, err := norm.Split(c.clients, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		job := &Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds, Labels: table.Labels, K: 12,
			Budget: privacy.Budget{Epsilon: 2, Delta: 1e-6}, Seed: &seed}, KLeast: 2, Branch: c.branch,
			Elbow: c.elbow}
		res := enginetest.Run(t, eng, job)
		if res.K != 5 || len(res.Centroids) != 5 || *res.ARI < 0.99 || *res.EmptyClusters != 0 || len(res.Sizes) != 5 {
			t.Errorf("%+v: %d clusters, adjusted Rand index %v, %d empty, sizes %v", c, res.K, *res.ARI,
				*res.EmptyClusters, res.Sizes)
		}
		if len(res.KCurve) != 11 || res.KCurve[3].K != 5 {
			t.Errorf("%+v: the curve is %v", c, res.KCurve)
		}
		total := *res.Ledger.TotalFor("outsider").Epsilon
		job.K, job.KLeast, job.Elbow = 5, 0, false
		stated := enginetest.Run(t, eng, job)
		if same := *stated.Ledger.TotalFor("outsider").Epsilon; math.Abs(total-same) > 1e-3 || total > 2*(1+1e-6) {
			t.Errorf("%+v: epsilon %v in all, with 5 clusters stated %v", c, total, same)
		}
		if stated.KCurve != nil {
			t.Error("a run with k stated has a curve")
		}
	}
	for _, bad := range []*Job{{KLeast: 5}, {KLeast: -1}, {KLeast: 2, Balance: 2}, {KLeast: 2, Branch: "mean"},
		{Elbow: true}, {KLeast: 2, Elbow: true, Branch: "projected"}} {
		norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 200, D: 2, K: 2, Seed: 4})
		parts := norm.Table()
		bad.Clients, bad.Bounds, bad.K = parts, norm.Bounds, 4
		bad.Budget = privacy.Budget{Epsilon: 1, Delta: 1e-5}
		if _, err := bad.Plan(); err == nil {
			t.Errorf("k %d from %d, branch %q, balance %v, elbow %t is taken", bad.K, bad.KLeast, bad.Branch, bad.Balance,
				bad.Elbow)
		}
	}
}
