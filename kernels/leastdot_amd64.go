//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

func leastDot(x []float64, stride, n int, coef []float64) (float64, int) {
	switch {
	case current == avx512:
		return asm.LeastDotAVX512(&x[0], stride, n, &coef[0], len(coef))
	case current == generic || n < 8:
		return leastDotPortable(x, stride, 0, n, coef)
	}
	var values [8]float64
	var places [8]int64
	blocks := n / 8
	asm.LeastDotAVX2(&x[0], stride, blocks, &coef[0], len(coef), &values[0], &places[0])
	least, at := leastDotPortable(x, stride, 8*blocks, n, coef)
	for l, v := range values {
		if p := int(places[l]); v < least || v == least && p < at {
			least, at = v, p
		}
	}
	return least, at
}
