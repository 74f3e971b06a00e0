package kernels

import "math"

// maxFusedBits is the finest grid for the masked form: a lane may take
// 2^(24-f) points before its float32 sum could round, and is then folded.
const maxFusedBits = 18

// fuses says whether the masked form may be used: small tables, and sums of
// one lane that stay exact in float32 over enough panels to be worth it.
func fuses(acc *Accumulator) bool {
	return current != generic && acc.scratch.lanes != nil && acc.FractionBits <= maxFusedBits
}

// assignAccumulateFused keeps labels in registers between the two steps. Points
// farther than r2 are left out.
func assignAccumulateFused(p *Panels, c *Centroids, r2 float32, labels []uint16, acc *Accumulator) {
	full := p.N / Lanes
	scale := float32(math.Ldexp(1, acc.FractionBits))
	exact := 1 << (24 - acc.FractionBits) / lanePoints // panels until a lane could round
	step := min(panelsPerCall(2*c.K*c.D), exact)
	since := 0
	for at := 0; at < full; at += step {
		count := min(step, full-at)
		if since+count > exact {
			foldLanes(acc, scale)
			since = 0
		}
		since += count
		var l *uint16
		if labels != nil {
			l = &labels[at*Lanes]
		}
		assignAdd(&p.Data[at*Lanes*p.D], count, c, r2, l, acc)
	}
	foldLanes(acc, scale)
	if base := full * Lanes; base < p.N {
		rest := p.Slice(base, p.N)
		var l [Lanes]uint16
		var dist [Lanes]float32
		assign(&rest, c, l[:rest.N], dist[:rest.N], nil)
		cutPortable(l[:rest.N], dist[:rest.N], r2, uint16(c.K))
		accumulatePortable(&rest, l[:rest.N], acc)
		if labels != nil {
			copy(labels[base:], l[:rest.N])
		}
	}
}
