package kernels

import (
	"math"
	"slices"
)

// Reference forms of kernels that no build needs.

// accumulateRelativePortable is the reference form of [AccumulateRelative], term
// by term.
func accumulateRelativePortable(p *Panels, c *Centroids, r2 []float32, labels []uint16, acc *Accumulator) {
	d := p.D
	scale := float32(math.Ldexp(1, acc.FractionBits))
	for i, label := range labels {
		if int(label) == c.K {
			continue
		}
		base := i/Lanes*d*Lanes + i%Lanes
		var dist float32
		for j, cj := range c.Row(int(label)) {
			t := p.Data[base+j*Lanes] - cj
			dist = fma32(t, t, dist)
		}
		if !(dist <= r2[label]) {
			continue
		}
		acc.Counts[label]++
		sums := acc.Sums[int(label)*d : int(label)*d+d]
		for j, cj := range c.Row(int(label)) {
			sums[j] += int64((p.Data[base+j*Lanes] - cj) * scale)
		}
	}
}

// reassignPortable is the reference form of [Reassign].
func reassignPortable(p *Panels, c *Centroids, r2 float32, labels []uint16, acc *Accumulator) Change {
	now, dist := make([]uint16, p.N), make([]float32, p.N)
	assignPortable(p, c, now, dist, nil)
	if p.D >= exactDims {
		distancesPortable(p, c, now, dist)
	}
	cutPortable(now, dist, r2, uint16(c.K))
	return Change{Moved: updateSumsPortable(p, labels, now, p.N, acc), Cut: slices.Contains(now, uint16(c.K))}
}

// updateSumsPortable is the reference form of [UpdateSums].
func updateSumsPortable(p *Panels, before, now []uint16, most int, acc *Accumulator) int {
	count := 0
	for i, l := range now {
		if l != before[i] {
			count++
		}
	}
	if count > most {
		return -1
	}
	old, sums := NewAccumulator(acc.K, acc.D, acc.FractionBits), NewAccumulator(acc.K, acc.D, acc.FractionBits)
	accumulatePortable(p, before, old)
	accumulatePortable(p, now, sums)
	for i := range acc.Sums {
		acc.Sums[i] += sums.Sums[i] - old.Sums[i]
	}
	for i := range acc.Counts {
		acc.Counts[i] += sums.Counts[i] - old.Counts[i]
	}
	copy(before, now)
	return count
}

// accumulateWeightedPortable is the reference form of what [AssignAccumulateWeighted] adds up
// once records have labels. It reads points and weights alone.
func accumulateWeightedPortable(w *WeightedPoints, labels []uint16, dist []float32, acc *WeightedAccumulator) {
	d, chains := acc.D, weightedChains
	if (acc.K+1)*weightedWidth(d) > maxWeightedTable {
		chains = 1
	}
	type sum = [weightedChains]float64
	weights, sums, cost := make([]sum, acc.K), make([]sum, acc.K*d), sum{}
	for i, label := range labels {
		weight := w.Weights[i]
		cost[i%weightedChains] += float64(weight * float64(dist[i]))
		if int(label) == acc.K {
			continue
		}
		weights[label][i%chains] += weight
		base := i/Lanes*d*Lanes + i%Lanes
		for j := range d {
			sums[int(label)*d+j][i%chains] += float64(weight * float64(w.Points.Data[base+j*Lanes]))
		}
	}
	for j := range weights {
		acc.Weights[j] += tree(&weights[j])
	}
	for j := range sums {
		acc.Sums[j] += tree(&sums[j])
	}
	acc.Cost += tree(&cost)
}
