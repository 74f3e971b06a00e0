package kernels

import (
	"fmt"
	"math"
)

// UnitMap maps each of D columns affinely from its bounds to [-1, 1] on the grid
// 2^-FractionBits. It is read-only for [Quantise], so workers may share it.
type UnitMap struct {
	D, FractionBits int
	lo, hi, width   []float64 // [period], the columns over and over
}

// unitLanes is the number of float64 to which the period of a map is rounded up.
const unitLanes = 8

// NewUnitMap makes the map of columns with bounds lo < hi, whose widths hi-lo are
// finite. It panics unless len(lo) = len(hi) > 0 and 0 <= fractionBits <= 22.
func NewUnitMap(lo, hi []float64, fractionBits int) *UnitMap {
	if len(lo) == 0 || fractionBits < 0 || fractionBits > MaxFractionBits {
		panic(fmt.Sprintf("kernels: NewUnitMap: d=%d, fractionBits=%d, want d > 0 and 0 <= fractionBits <= %d", len(lo),
			fractionBits, MaxFractionBits))
	}
	checkLength("NewUnitMap", "hi", len(hi), len(lo))
	d, period := len(lo), len(lo)
	for period%unitLanes != 0 {
		period += d
	}
	m := &UnitMap{D: d, FractionBits: fractionBits, lo: aligned[float64](period), hi: aligned[float64](period),
		width: aligned[float64](period)}
	for i := range period {
		m.lo[i], m.hi[i], m.width[i] = lo[i%d], hi[i%d], hi[i%d]-lo[i%d]
	}
	return m
}

// Quantise maps row-major records of D values: v becomes ((v-lo)-(hi-v)) /
// (hi-lo), each operation rounded to float64, or -1 below lo and 1 above hi, and is
// then truncated toward zero onto the grid. NaN becomes -1 and counts as outside. It
// returns the number of values outside their bounds, so where that is zero all were
// finite.
func Quantise[T float32 | float64](dst []float32, src []T, m *UnitMap) int {
	checkLength("Quantise", "dst", len(dst), len(src))
	if len(src)%m.D != 0 {
		panic(fmt.Sprintf("kernels: Quantise: len(src)=%d, want a multiple of d=%d", len(src), m.D))
	}
	outside, period := 0, len(m.lo)
	most := max(1, callBudget/64/period) // a division takes as long as many multiply-adds
	for current != generic && len(src) >= period {
		n := min(len(src)/period, most)
		outside += quantisePeriods(dst, src, n, m)
		dst, src = dst[n*period:], src[n*period:]
	}
	return outside + quantisePortable(dst, src, m)
}

// quantisePeriods maps the first n periods of src.
func quantisePeriods[T float32 | float64](dst []float32, src []T, n int, m *UnitMap) int {
	blocks, scale := len(m.lo)/unitLanes, math.Ldexp(1, m.FractionBits)
	switch src := any(src).(type) {
	case []float32:
		return asmQuantiseNarrow(&dst[0], &src[0], n, &m.lo[0], &m.hi[0], &m.width[0], blocks, scale)
	case []float64:
		return asmQuantise(&dst[0], &src[0], n, &m.lo[0], &m.hi[0], &m.width[0], blocks, scale)
	}
	panic("kernels: Quantise: no type of numbers")
}

// quantisePortable is the reference form of [Quantise].
func quantisePortable[T float32 | float64](dst []float32, src []T, m *UnitMap) int {
	outside := 0
	scale := float64(int64(1) << m.FractionBits)
	for i, v := range src {
		j := i % m.D
		v, lo, hi := float64(v), m.lo[j], m.hi[j]
		u := ((v - lo) - (hi - v)) / m.width[j]
		if !(v >= lo) {
			u = -1
			outside++
		} else if v > hi {
			u = 1
			outside++
		}
		dst[i] = float32(float64(int64(u*scale)) / scale)
	}
	return outside
}
