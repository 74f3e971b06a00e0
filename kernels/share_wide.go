//go:build !arm64 || purego

package kernels

func shareCounts(weights, shares []float64, length int, rows []int32, sets []uint64, counts, backgrounds []float64) {
	if current == generic {
		shareCountsPortable(weights, shares, length, rows, sets, counts, backgrounds)
		return
	}
	asmShareN(length, &weights[0], &shares[0], &rows[0], len(rows), &sets[0], &counts[0], &backgrounds[0], len(sets))
}

func sumMaxima(x, y []float64) float64 {
	blocks := len(x) / maximaChains
	if current == generic || blocks == 0 {
		return sumMaximaPortable(x, y)
	}
	var sums [maximaChains]float64
	asmSumMaxima(&x[0], &y[0], blocks, &sums)
	addMaxima(x[blocks*maximaChains:], y[blocks*maximaChains:], &sums)
	return addChains(sums[:])
}
