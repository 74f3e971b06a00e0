//go:build !purego

package kernels

func potentials(dots *Panels, norms, nearest, squares []float32, sums []float64) {
	potentialsPortable(dots, norms, nearest, squares, sums)
}
