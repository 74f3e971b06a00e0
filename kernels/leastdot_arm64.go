//go:build arm64 && !purego

package kernels

// leastDotPart is leastDot for as many sums as a call may take.
func leastDotPart(x []float64, stride, n int, coef []float64) (float64, int) {
	return leastDotLanes(x, stride, n, coef)
}
