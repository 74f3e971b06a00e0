//go:build amd64 && !purego

package kernels

import (
	"math"

	"github.com/cohort-engine/cohort/asm"
)

// maxFusedBits is the finest grid for the masked form: a lane may take
// 2^(24-f) points before its float32 sum could round, and is then folded.
const maxFusedBits = 18

// assignAccumulateFused keeps labels in registers between the two steps. Points
// farther than r2 are left out.
func assignAccumulateFused(p *Panels, c *Centroids, r2 float32, labels []uint16, acc *Accumulator) {
	full := p.N / Lanes
	scale := float32(math.Ldexp(1, acc.FractionBits))
	exact := 1 << (24 - acc.FractionBits) // panels until a lane could round
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

// fuses says whether the masked form may be used: small tables, and sums of
// one lane that stay exact in float32 over enough panels to be worth it.
func fuses(acc *Accumulator) bool {
	most := maxFusedK
	if current == avx2 { // half as many lanes: by label is faster sooner
		most = 8
		if acc.D <= maxNarrowD {
			most = 5
		}
	}
	return current != generic && acc.K <= most && acc.scratch.lanes != nil && acc.FractionBits <= maxFusedBits
}

// assignAdd assigns whole panels and adds them to the lanes and counts.
func assignAdd(x *float32, panels int, c *Centroids, r2 float32, labels *uint16, acc *Accumulator) {
	r, lanes, counts := &c.rows[0], &acc.scratch.lanes[0], &acc.Counts[0]
	if current == avx2 {
		switch c.D {
		case 1:
			asm.AssignAdd1AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 2:
			asm.AssignAdd2AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 3:
			asm.AssignAdd3AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 4:
			asm.AssignAdd4AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 5:
			asm.AssignAdd5AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 6:
			asm.AssignAdd6AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 7:
			asm.AssignAdd7AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		case 8:
			asm.AssignAdd8AVX2(x, panels, r, c.K, r2, labels, lanes, counts)
		}
		return
	}
	switch c.D {
	case 1:
		asm.AssignAdd1AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 2:
		asm.AssignAdd2AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 3:
		asm.AssignAdd3AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 4:
		asm.AssignAdd4AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 5:
		asm.AssignAdd5AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 6:
		asm.AssignAdd6AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 7:
		asm.AssignAdd7AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	case 8:
		asm.AssignAdd8AVX512(x, panels, r, c.K, r2, labels, lanes, counts)
	}
}

func foldLanes(acc *Accumulator, scale float32) {
	if current == avx512 {
		asm.FoldLanesAVX512(&acc.scratch.lanes[0], acc.K*acc.D, scale, &acc.Sums[0])
	} else {
		asm.FoldLanesAVX2(&acc.scratch.lanes[0], acc.K*acc.D, scale, &acc.Sums[0])
	}
}
