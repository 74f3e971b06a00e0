//go:build !arm64 || purego

package kernels

// leastDotPart is leastDot for as many sums as a call may take.
func leastDotPart(x []float64, stride, n int, coef []float64) (float64, int) {
	if current >= avx512 {
		return asmLeastDotAny(&x[0], stride, n, &coef[0], len(coef))
	}
	return leastDotLanes(x, stride, n, coef)
}
