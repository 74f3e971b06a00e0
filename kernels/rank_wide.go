//go:build !arm64 || purego

package kernels

// rankPays is the rule that says which paths and shapes rank points where they are, from measurements of [Assign] with
// and without it.
func rankPays(d, k int) bool {
	if current == avx2 {
		return d > 5 && d < exactDims && k >= 8 && k <= 64
	}
	if d > exactDims { // where no candidate filter pays
		return current >= avx512vnni && d <= 256 && k >= 20 && k <= 256 && !filterPays(d, k)
	}
	return current >= avx512vnni && d >= 5 && k >= 4 && k <= 128
}

// rankPanels ranks the centroids for the points of whole panels.
func rankPanels(d int, x *float32, panels int, c *int32, k int, scale float32, band, low int32, labels,
	doubts *uint16) {
	asmRankN(d, x, panels, c, k, scale, band, low, labels, doubts)
}

// rankLong is rankPanels where ranksLong says so, for groups of rankGroup panels, with room for the words of one.
func rankLong(x *float32, groups, d int, c *int32, tiles, last int, scale float32, band int32, room *int32, labels,
	doubts *uint16) {
	asmRankLong(x, groups, d, c, tiles, last, scale, band, room, labels, doubts)
}
