//go:build (amd64 || arm64) && !purego

package kernels

import "math"

func quantise(dst []float32, src []float64, m *UnitMap) int {
	outside, period := 0, len(m.lo)
	most := max(1, callBudget/64/period) // a division takes as long as many multiply-adds
	scale := math.Ldexp(1, m.FractionBits)
	for current != generic && len(src) >= period {
		n := min(len(src)/period, most)
		outside += asmQuantise(&dst[0], &src[0], n, &m.lo[0], &m.hi[0], &m.width[0], period/unitLanes, scale)
		dst, src = dst[n*period:], src[n*period:]
	}
	return outside + quantisePortable(dst, src, m)
}
