package staged

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/kernels"
)

// weightBits is the grid of weights: a record counts for a multiple of 2^-weightBits of the cap.
const weightBits = 16

// Weights are what the records of a party count for, in units of 2^-weightBits of the public cap, at most the whole
// of it; nil where all count for one.
type Weights []uint32

// newWeights puts weights, finite and not negative, onto their grid. One above the cap counts as the cap.
func newWeights(weights []float64, most float64) Weights {
	units := make(Weights, len(weights))
	for i, w := range weights {
		units[i] = uint32(math.Round(min(w/most, 1) * (1 << weightBits)))
	}
	return units
}

// Bits is the grid of counts.
func (w Weights) Bits() int {
	if w == nil {
		return 0
	}
	return weightBits
}

// Of is what record i counts for, on the grid of counts.
func (w Weights) Of(i int) int64 {
	if w == nil {
		return 1
	}
	return int64(w[i])
}

// totalShare is the share of the total weight, where records have weights.
const totalShare = 0.02

// AddTotal plans the total weight of all records, where they have weights: before the program of a party runs it is
// released, and taken for their number by the post-processing. What is left of the budget is for the rest of the run.
func (f *Plan) AddTotal() {
	if !f.problem.Weighted() {
		return
	}
	f.conditions = append(f.conditions, f.problem.WeightCondition())
	f.total = f.addRelease("weight", "total weight of all records", f.Bound("total weight", 0), f.Share.Part(totalShare),
		1, 1)
	f.total.Words = 1
	f.Share = f.Share.Part(1 - totalShare)
}

// withTotal is the party in a run whose records weigh as much together as is released now, in caps. Without such a
// release it is the party.
func (p *Party) withTotal(ctx context.Context) (*Party, error) {
	if p.total == nil {
		return p, nil
	}
	total, err := p.ReleaseCounts(ctx, p.total, 1, func(words []int64) error {
		for _, u := range p.Weights {
			words[0] += int64(u)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p.with(func(core *protocol.Plan) { core.N = max(int(math.Round(total[0])), 1) }), nil
}

// weigh states what a run ends with in the units of the weights, in which it has been in caps.
func (p *Party) weigh(o *protocol.Outcome) {
	if p.Weights == nil {
		return
	}
	most := p.problem.MostWeight()
	total := float64(p.N) * most
	o.Weight = &total
	o.Sizes = slices.Clone(o.Sizes)
	for i := range o.Sizes {
		o.Sizes[i] *= most
	}
	o.Synopsis = slices.Clone(o.Synopsis)
	for i := range o.Synopsis {
		o.Synopsis[i].Weight *= most
	}
}

// weigh adds the records of one shard, whose labels are set, each as often as it counts. A record's part of a sum is
// its cut offset times its weight, truncated toward zero: at most as long as the cut offset (THEOREMS.md T15).
func (w *offsetWorker) weigh(p kernels.Panels, units Weights, c *kernels.Centroids, radius []float64, limit []float32,
	fractionBits int) {
	kernels.Distances(p, c, w.labels, w.dist)
	d, grid := p.D, math.Ldexp(1, fractionBits)
	for i, l := range w.labels {
		u, j := int64(units[i]), int(l)
		factor := float32(grid)
		if w.dist[i] > limit[j] {
			factor = step.Shorten(radius[j], w.dist[i], d, grid)
		}
		w.offsets.Counts[j] += u
		x := p.Data[i/kernels.Lanes*kernels.Lanes*d+i%kernels.Lanes:]
		sums := w.offsets.Sums[j*d : (j+1)*d]
		for h, y := range c.Row(j) {
			sums[h] += u * int64(int32((x[h*kernels.Lanes]-y)*factor)) / (1 << weightBits)
		}
	}
}
