package hybrid

import (
	"context"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
)

// TestOverseeded: without noise to speak of, the merged centres of a few far
// clusters are the means of the clusters, k of them.
func TestOverseeded(t *testing.T) {
	const k, d = 4, 30
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 4000, D: d, K: k, Separation: 30, Seed: 4})
	f := stagedtest.Plan(t, norm.Points, k)
	ample := staged.Share{Gaussian: true, Total: 1e4}
	o := &projectedPlan{mean: f.AddMean(ample), reach: f.AddDistances("the mean", ample),
		tree: f.AddTree(ample, 6), recover: f.AddEqualRound("recover", ample, 6)}
	var got []float32
	stagedtest.OnParty(t, f, norm.Points, func(ctx context.Context, p *staged.Party) error {
		mean, err := p.PrivateMean(ctx, o.mean)
		if err != nil {
			return err
		}
		reach, err := p.DistanceQuantile(ctx, o.reach, staged.GridRow(mean, p.FractionBits), 2*math.Sqrt(d), 1)
		if err != nil {
			return err
		}
		h := &plan{Plan: f, projected: o}
		got, _, err = h.overseeded(ctx, p, mean, reach, 0)
		return err
	})
	if len(got) != k*d {
		t.Fatalf("%d coordinates", len(got))
	}
	means, counts := make([]float64, k*d), make([]float64, k)
	for i := range norm.Points.N {
		c := int(table.Labels[i])
		counts[c]++
		for h, x := range norm.Points.Point(i, nil) {
			means[c*d+h] += float64(x)
		}
	}
	for c := range k {
		best := math.Inf(1)
		for j := range k {
			square := 0.0
			for h := range d {
				x := means[c*d+h]/counts[c] - float64(got[j*d+h])
				square += x * x
			}
			best = min(best, math.Sqrt(square))
		}
		if best > 0.05 {
			t.Errorf("no centre within 0.05 of the mean of cluster %d: the nearest is at %v", c, best)
		}
	}
}
