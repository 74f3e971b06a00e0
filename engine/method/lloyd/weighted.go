package lloyd

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// checkWeights refuses weights beside options that do not count them.
func (j *Job) checkWeights() error {
	switch {
	case !j.Weighted():
	case j.Release == Centroid || j.Aggregator == Naive:
		return fault.Request("weights", "are for sums and counts", "leave the weights out, or the other options")
	case j.Method.Private() && j.Calibration != "" && j.Calibration != privacy.Proven:
		return fault.Request("weights", "have no claim in the papers", "use the calibration proven, or leave the weights out")
	}
	return nil
}

// leastUnits is how many units the average weight has at least.
const leastUnits = 64

// weigh sets the unit of the weights. Without a budget it is a power of two, as fine as sums of all records fit the
// ring, so that integers are exact; under privacy weights count in caps, on the records' own grid. It returns the
// number of units of all records together.
func (p *Plan) weigh() (int, error) {
	p.weightUnit = 1
	switch {
	case !p.weighted:
		return p.n, nil
	case p.Private: // a record counts for at most the cap, and caps take the place of records
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
		return 0, fault.Request("weights", fmt.Sprintf("of %s need more than a ring of %d bits",
			fault.Count(p.n, "record"), p.job.RingBits), "take a ring of 64 bits and fewer fraction bits")
	}
	return int(math.Ceil(total/p.weightUnit)) + p.n, nil // each may be rounded up
}

// weighted assigns each record to its nearest centroid, and adds it up as often as it weighs. Sums are integers, in
// units of weight and grid, under privacy of caps and grid. It goes over all records in every round.
type weighted struct {
	c       *client
	units   []int64
	partial []*kernels.Accumulator // by worker
	labels  [][]uint16             // by worker
	offsets [][]int64              // by worker, under privacy
	origin  []float32              // what offsets are from, but for Relative
	shards  []engine.Shard
}

func newWeighted(c *client) *weighted {
	a := &weighted{c: c, units: make([]int64, c.points.N), origin: make([]float32, c.d),
		shards: engine.Shards(c.points.N, c.d)}
	for i, w := range c.weights {
		a.units[i] = c.weightUnits(w)
	}
	longest := 0 // a client without records has no shard
	for _, s := range a.shards {
		longest = max(longest, s.Hi-s.Lo)
	}
	for range c.party.Pool().Workers() {
		a.partial = append(a.partial, kernels.NewAccumulator(c.k, c.d, c.fraction))
		a.offsets = append(a.offsets, make([]int64, c.d))
		a.labels = append(a.labels, make([]uint16, longest))
	}
	return a
}

func (a *weighted) assign(ctx context.Context, t int) error {
	span := a.c.party.Begin(engine.PhaseAssign, t)
	defer a.c.party.End(span)
	for _, p := range a.partial {
		p.Reset()
	}
	reach := int64(math.MaxInt64)
	if a.c.job.Method == Relative {
		reach = step.Reach(a.c.radiusOf(t), a.c.scale)
	}
	err := a.c.party.Pool().Run(ctx, len(a.shards), func(worker, i int) {
		s := a.shards[i]
		points, labels := a.c.points.Slice(s.Lo, s.Hi), a.labels[worker][:s.Hi-s.Lo]
		kernels.Assign(points, a.c.centres, labels, nil)
		if a.c.Private {
			a.addCapped(points, labels, a.units[s.Lo:s.Hi], a.partial[worker], a.offsets[worker], reach)
		} else {
			a.c.addWeighted(points, labels, a.units[s.Lo:s.Hi], a.partial[worker])
		}
	})
	a.c.acc.Reset()
	for _, p := range a.partial {
		a.c.acc.Merge(p)
	}
	return err
}

// weightUnits is a weight in units, under privacy in caps on the records' grid, at most one.
func (p *Plan) weightUnits(weight float64) int64 {
	if p.Private { // a cap may be so small that there is no unit of it
		return int64(math.Round(min(weight/p.job.MostWeight(), 1) * p.scale))
	}
	return int64(math.Round(weight / p.weightUnit))
}

// addCapped adds records of such labels to the sums, in grid units: each coordinate, of Relative that of the
// offset from the centroid cut to squared length reach, times the weight in caps, truncated toward zero. So a
// record moves no sum further than one of weight 1 without weights does (THEOREMS.md T15).
func (a *weighted) addCapped(points kernels.Panels, labels []uint16, units []int64, acc *kernels.Accumulator,
	offset []int64, reach int64) {
	c := a.c
	d, most := c.d, int64(c.scale)
	for i, label := range labels {
		u, j := units[i], int(label)
		if u == 0 {
			continue
		}
		from := a.origin
		if c.job.Method == Relative {
			from = c.centres.Row(j)
		}
		at, length := points.Data[i/kernels.Lanes*kernels.Lanes*d+i%kernels.Lanes:], int64(0)
		for h, x := range from {
			offset[h] = c.units(at[h*kernels.Lanes]) - c.units(x)
			length += offset[h] * offset[h]
		}
		if length > reach {
			if c.job.Beyond != Clip {
				continue
			}
			step.Clip(offset, length, reach)
		}
		acc.Counts[j] += u
		for h, t := range offset {
			acc.Sums[j*d+h] += u * t / most
		}
	}
}

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
