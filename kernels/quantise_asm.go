package kernels

import "math"

func quantise(dst []float32, src []float64, m *UnitMap) int {
	outside, period, most, scale := 0, len(m.lo), m.periodsPerCall(), math.Ldexp(1, m.FractionBits)
	for current != generic && len(src) >= period {
		n := min(len(src)/period, most)
		outside += asmQuantise(&dst[0], &src[0], n, &m.lo[0], &m.hi[0], &m.width[0], period/unitLanes, scale)
		dst, src = dst[n*period:], src[n*period:]
	}
	return outside + quantisePortable(dst, src, m)
}

func quantiseNarrow(dst, src []float32, m *UnitMap) int {
	outside, period, most, scale := 0, len(m.lo), m.periodsPerCall(), math.Ldexp(1, m.FractionBits)
	for current != generic && len(src) >= period {
		n := min(len(src)/period, most)
		outside += asmQuantiseNarrow(&dst[0], &src[0], n, &m.lo[0], &m.hi[0], &m.width[0], period/unitLanes, scale)
		dst, src = dst[n*period:], src[n*period:]
	}
	return outside + quantisePortable(dst, src, m)
}

// periodsPerCall bounds a call: a division takes as long as many multiply-adds.
func (m *UnitMap) periodsPerCall() int { return max(1, callBudget/64/len(m.lo)) }
