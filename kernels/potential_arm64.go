//go:build !purego

package kernels

func potentials(dots *Panels, norms, nearest, squares []float32, sums []float64) {
	potentialsPortable(dots, norms, nearest, squares, sums)
}

func lowerNearest(dots *Panels, q int, norms, nearest []float32, square float32) {
	lowerPortable(dots, q, norms, nearest, square)
}
