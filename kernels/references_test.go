package kernels

import (
	"math"
	"slices"
)

// Reference forms of kernels that no build needs.

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

// narrowPackPortable is the reference form of narrowPack: it rounds chunks of a panel to words and to rest, whose
// points have those of stride chunks, and writes, by lane, the squares of X - M, the largest of a chunk, the squares of
// r, and the largest magnitude of X as an integer, all ones where one is none.
func narrowPackPortable(panel []float32, chunks int, origin, words, rest []int32, stride int,
	sums *[4 * Lanes]float32) {
	for l := range Lanes {
		var squares, largest, rough float32
		most := uint32(0)
		for chunk := range chunks {
			var part float32
			for j := chunk * narrowDims; j < (chunk+1)*narrowDims; j++ {
				x, d := panel[j*Lanes+l]*narrowGrid, int32(math.MinInt32)
				if x >= -1<<31 && x < 1<<31 {
					d = int32(math.RoundToEven(float64(x)))
				}
				if most = max(most, uint32(max(d, -d))); float32(d) != x {
					most = math.MaxUint32
				}
				d -= origin[j]
				u := (d + narrowRest/2) >> 8
				r := d - u<<8
				part, rough = fma32(float32(d), float32(d), part), fma32(float32(r), float32(r), rough)
				word, bytes := &words[j/2*Lanes+l], &rest[l*stride*narrowChunk/2+j/4]
				if j%2 == 0 {
					*word = 0
				}
				if j%4 == 0 {
					*bytes = 0
				}
				*word |= int32(uint32(uint16(u)) << (j % 2 * 16))
				*bytes |= int32(uint32(uint8(r)) << (j % 4 * 8))
			}
			squares, largest = squares+part, max(largest, part)
		}
		sums[l], sums[Lanes+l], sums[2*Lanes+l] = squares, largest, rough
		sums[3*Lanes+l] = math.Float32frombits(most)
	}
}

// narrowRowPortable is the reference form of narrowRow: it writes the coordinates of the point whose words are Lanes
// apart.
func narrowRowPortable(words, rest, origin []int32, chunks int, row []float32) {
	for j := range chunks * narrowDims {
		u := int16(uint32(words[j/2*Lanes]) >> (j % 2 * 16))
		r := int8(uint32(rest[j/4]) >> (j % 4 * 8))
		row[j] = float32(int32(u)*narrowRest+int32(r)+origin[j]) / narrowGrid
	}
}
