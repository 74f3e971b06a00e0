package kernels

import "math"

func largest(labels []uint16) uint16 {
	var most uint16
	if current != generic {
		const perBlock = 2 * Lanes
		for len(labels) >= perBlock {
			n := min(len(labels)/perBlock, blocksPerCall)
			most = max(most, asmMaxLabel(&labels[0], n))
			labels = labels[n*perBlock:]
		}
	}
	return max(most, largestPortable(labels))
}

func cut(labels []uint16, dist []float32, r2 float32, none uint16) {
	if current != generic {
		for len(labels) >= Lanes {
			n := min(len(labels)/Lanes, blocksPerCall)
			asmCutLabels(&labels[0], &dist[0], n, r2, int(none))
			labels, dist = labels[n*Lanes:], dist[n*Lanes:]
		}
	}
	cutPortable(labels, dist, r2, none)
}

// columns are up to Lanes centroids, coordinate by coordinate: [D][Lanes]. The first use after Set makes them. Routines
// of amd64 take those of a panel's labels from a vector of them, where a gather from rows takes ten times as long.
type columns struct {
	form lazy
	data []float32
}

// of returns the columns of c.
func (s *columns) of(c *Centroids) *float32 {
	s.form.need(func() {
		if s.data == nil {
			s.data = alignedFloat32(Lanes * c.D)
		}
		for i := range c.K {
			for j, x := range c.Row(i) {
				s.data[j*Lanes+i] = x
			}
		}
	})
	return &s.data[0]
}

func distances(p *Panels, c *Centroids, labels []uint16, dist []float32) {
	if current == generic || c.K*c.D > math.MaxInt32 {
		distancesPortable(p, c, labels, dist)
		return
	}
	full := p.N / Lanes
	step := panelsPerCall(16 * c.D) // a gather takes as long as many multiply-adds
	for at := 0; at < full; at += step {
		labelDistances(&p.Data[at*Lanes*p.D], min(step, full-at), c, &labels[at*Lanes], &dist[at*Lanes])
	}
	if base := full * Lanes; base < p.N {
		rest := p.Slice(base, p.N)
		distancesPortable(&rest, c, labels[base:], dist[base:])
	}
}

// AccumulateOffsets adds the offset of each point from the centroid that its label names, times the point's factor,
// each coordinate truncated toward zero, to the sums and counts of that cluster; points with the label K are skipped.
// The factor takes offsets to grid units or less: no coordinate is more than 2^(FractionBits+offsetBits) of them.
func AccumulateOffsets(p Panels, c *Centroids, labels []uint16, factor []float32, acc *Accumulator) {
	const what = "AccumulateOffsets"
	acc.checkAssigned(what, &p, c, labels)
	checkLength(what, "factor", len(factor), p.N)
	checkLabels(what, labels, c.K)
	accumulateOffsets(&p, c, labels, factor, acc)
}

// accumulateOffsetsPortable is the reference form of [AccumulateOffsets].
func accumulateOffsetsPortable(p *Panels, c *Centroids, labels []uint16, factor []float32, acc *Accumulator) {
	for i, label := range labels {
		if int(label) == c.K {
			continue
		}
		acc.Counts[label]++
		sums := acc.Sums[int(label)*c.D:]
		x := p.Data[i/Lanes*Lanes*c.D+i%Lanes:]
		for j, y := range c.Row(int(label)) {
			sums[j] += int64(int32((x[j*Lanes] - y) * factor[i]))
		}
	}
}

// offsetBits is the logarithm of how many times the box offsets are within.
const offsetBits = 3

// offsetLimit is the number of offsets that a row of an accumulator's table may take.
func offsetLimit(acc *Accumulator) int { return 1<<(31-offsetBits-acc.FractionBits) - Lanes }

// offsetPanels is the number of panels whose offsets are written before they are added.
func offsetPanels(acc *Accumulator) int {
	const bytes = 8 << 10
	return min(max(bytes/4/Lanes/acc.D, 1), offsetLimit(acc)/Lanes)
}

func accumulateOffsets(p *Panels, c *Centroids, labels []uint16, factor []float32, acc *Accumulator) {
	// On a finer grid offsets are no integers of a float32 as sinks take them.
	if current == generic || acc.scratch.table == nil || acc.FractionBits > MaxFractionBits-offsetBits ||
		c.K*c.D > math.MaxInt32 {
		accumulateOffsetsPortable(p, c, labels, factor, acc)
		return
	}
	s := newSink(acc)
	s.limit = offsetLimit(acc)
	step := offsetPanels(acc)
	if acc.scratch.offsets == nil {
		acc.scratch.offsets = alignedFloat32(step * Lanes * c.D)
	}
	add := func(x *float32, panels int, labels *uint16, factor *float32) {
		cutOffsets(x, panels, c, labels, factor, float32(math.Ldexp(1, -acc.FractionBits)), acc.scratch.offsets)
		s.reserve(panels * Lanes)
		scatter(&acc.scratch.offsets[0], panels, labels, acc, s.bias, 0)
	}
	full := p.N / Lanes
	for at := 0; at < full; at += step {
		add(&p.Data[at*Lanes*p.D], min(step, full-at), &labels[at*Lanes], &factor[at*Lanes])
	}
	if base := full * Lanes; base < p.N {
		var l [Lanes]uint16
		var f [Lanes]float32
		copy(f[:], factor[base:])
		for i := copy(l[:], labels[base:]); i < Lanes; i++ {
			l[i] = uint16(c.K)
		}
		add(&p.Data[base*p.D], 1, &l[0], &f[0])
	}
	s.fold()
}
