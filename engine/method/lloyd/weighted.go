package lloyd

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// checkWeights refuses weights beside options that do not count them.
func (j *Job) checkWeights() error {
	if j.Weighted() && (j.Release == Centroid || j.Aggregator == Naive) {
		return fault.Request("weights", "are for sums and counts", "leave the weights out, or the other options")
	}
	return nil
}

// leastUnits is how many units the average weight has at least.
const leastUnits = 64

// weigh sets the unit of the weights, a power of two: as fine as sums of all records fit the ring, so that integers
// are exact. It returns the number of units of all records together.
func (p *Plan) weigh() (int, error) {
	p.weightUnit = 1
	if p.weighted = p.job.Weighted(); !p.weighted {
		return p.n, nil
	}
	total := 0.0
	for _, c := range p.job.Clients {
		for _, w := range c.Weights {
			total += w
		}
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return 0, fault.Request("weights", fmt.Sprintf("have the sum %g", total),
			"give weights whose sum is positive and finite")
	}
	most := math.Ldexp(1, p.job.RingBits-3-p.fraction) // units of all records
	p.weightUnit = math.Ldexp(1, int(math.Ceil(math.Log2(total/most))))
	if most < leastUnits*float64(p.n) {
		return 0, fault.Request("weights", fmt.Sprintf("of %d records need more than a ring of %d bits", p.n,
			p.job.RingBits), "take a ring of 64 bits and fewer fraction bits")
	}
	return int(math.Ceil(total/p.weightUnit)) + p.n, nil // each may be rounded up
}

// weighted assigns each record to its nearest centroid, and adds it up as often as it weighs. Sums are integers, in
// units of
// weight and grid. It is for runs without a budget, and goes over all records in every round.
type weighted struct {
	c       *client
	units   []int64
	partial []*kernels.Accumulator // by worker
	labels  [][]uint16             // by worker
	shards  []engine.Shard
}

func newWeighted(c *client) *weighted {
	a := &weighted{c: c, units: make([]int64, c.points.N), shards: engine.Shards([]int{c.points.N}, c.d)}
	for i, w := range c.weights {
		a.units[i] = c.weightUnits(w)
	}
	for range c.party.Pool().Workers() {
		a.partial = append(a.partial, kernels.NewAccumulator(c.k, c.d, c.fraction))
		a.labels = append(a.labels, make([]uint16, a.shards[0].Hi-a.shards[0].Lo))
	}
	return a
}

func (a *weighted) assign(ctx context.Context, t int) error {
	span := a.c.party.Begin(engine.PhaseAssign, t)
	defer a.c.party.End(span)
	for _, p := range a.partial {
		p.Reset()
	}
	err := a.c.party.Pool().Run(ctx, len(a.shards), func(worker, i int) {
		s := a.shards[i]
		points, labels := a.c.points.Slice(s.Lo, s.Hi), a.labels[worker][:s.Hi-s.Lo]
		kernels.Assign(points, a.c.centres, labels, nil)
		a.c.addWeighted(points, labels, a.units[s.Lo:s.Hi], a.partial[worker])
	})
	a.c.acc.Reset()
	for _, p := range a.partial {
		a.c.acc.Merge(p)
	}
	return err
}

// weightUnits is a weight in units.
func (p *Plan) weightUnits(weight float64) int64 { return int64(math.Round(weight / p.weightUnit)) }

// addWeighted adds records of such labels to the sums, each times its units.
func (p *Plan) addWeighted(points kernels.Panels, labels []uint16, units []int64, acc *kernels.Accumulator) {
	d, scale := p.d, float32(p.scale)
	for i, label := range labels {
		u := units[i]
		if u == 0 {
			continue
		}
		acc.Counts[label] += u
		sums := acc.Sums[int(label)*d : (int(label)+1)*d]
		at := points.Data[i/kernels.Lanes*kernels.Lanes*d+i%kernels.Lanes:]
		for h := range sums {
			sums[h] += u * int64(at[h*kernels.Lanes]*scale)
		}
	}
}
