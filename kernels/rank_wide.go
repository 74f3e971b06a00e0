//go:build !arm64 || purego

package kernels

// rankPays is the rule that says which paths and shapes rank points where they are, from measurements of [Assign] with
// and without it.
func rankPays(d, k int) bool {
	if current == avx2 {
		return d > 5 && d < exactDims && k >= 8 && k <= 64
	}
	return current >= avx512vnni && d >= 5 && d <= exactDims && k >= 4 && k <= 128
}

// rankPanels ranks the centroids for the points of whole panels.
func rankPanels(d int, x *float32, panels int, c *int32, k int, scale float32, band, low int32, labels,
	doubts *uint16) {
	asmRankN(d, x, panels, c, k, scale, band, low, labels, doubts)
}
