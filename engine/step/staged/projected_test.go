package staged_test

import (
	"context"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
)

// TestRecovery compares, without noise to speak of, the centres that are
// recovered in all dimensions with the direct means of the records of each
// projected cluster.
func TestRecovery(t *testing.T) {
	const k, d, n = 4, 25, 5000
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: n, D: d, K: k, Separation: 6, Seed: 5})
	f, ample, origin := stagedtest.Plan(t, norm.Points, k), staged.Share{Gaussian: true, Total: 1e6}, make([]float32, d)
	tree, recover := f.AddTree(ample, 6), f.AddEqualRound("recover", ample, 4)
	top := 2 * math.Sqrt(d) // no offset is cut
	var low *staged.Projected
	var got []float32
	var released []float64
	stagedtest.OnParty(t, f, norm.Points, func(ctx context.Context, p *staged.Party) (err error) {
		if low, err = p.ProjectedStart(ctx, tree, k, origin, top); err != nil {
			return err
		}
		got, released, err = p.Recover(ctx, recover, low, origin, top)
		return err
	})
	sums, counts := stagedtest.ClustersOf(norm.Points, low.Records, low.Centers)
	for j := range k {
		if math.Abs(released[j]-counts[j]) > 2 {
			t.Errorf("cluster %d has %v records, directly %v", j, released[j], counts[j])
		}
		for h := range d {
			if x := float64(got[j*d+h]); counts[j] > 100 && math.Abs(x-sums[j*d+h]/counts[j]) > 2e-3 {
				t.Fatalf("coordinate %d of centre %d is %v, directly %v", h, j, x, sums[j*d+h]/counts[j])
			}
		}
	}
}
