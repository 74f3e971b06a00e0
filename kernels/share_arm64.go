//go:build !purego

package kernels

func shareCounts(weights, shares []float64, length int, rows []int32, sets []uint64, counts, backgrounds []float64) {
	shareCountsPortable(weights, shares, length, rows, sets, counts, backgrounds)
}

func sumMaxima(x, y []float64) float64 { return sumMaximaPortable(x, y) }
