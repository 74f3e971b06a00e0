//go:build !amd64 || purego

package kernels

func leastDot(x []float64, stride, n int, coef []float64) (float64, int) {
	return leastDotPortable(x, stride, 0, n, coef)
}
