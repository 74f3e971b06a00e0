//go:build !arm64 || purego

package kernels

// rankPays is the rule that says which paths and shapes rank points where they are, from measurements of [Assign] with
// and without it; where a filter pays, too, points have it or none of both.
func rankPays(d, k int) bool {
	switch {
	case current < avx512vnni:
		return current == avx2 && k >= leastRanked(d)
	case d > exactDims:
		return d <= 256 && k >= 20 && k <= 256 && !filterPays(d, k)
	}
	return d >= 5 && k >= 4 && k <= 128
}

// leastRanked is the number of centroids from which on AVX2 ranks points of d dimensions. With few dimensions the steps
// of the minimum, with many the points in doubt take what the products gain.
func leastRanked(d int) int {
	switch {
	case d < 5 || d > 1024:
		return maxK + 1
	case d == 5 || d > 256:
		return 64
	case d < 8:
		return 16
	case d <= 64:
		return 10
	}
	return 20
}

// rankSpeed is how many times as fast as multiply-adds the ranking is, where it pays.
func rankSpeed() float64 {
	if current == avx2 {
		return 1.35
	}
	return 2.4
}

// ranksLong is the rule that says where the ranking takes tiles of centroids, whose integers and those of points go
// through memory.
func ranksLong(d int) bool { return current == avx2 || d > 2*rankWords }

// rankTile is the number of centroids of a tile where ranksLong says so, and of the last one where these suffice.
func rankTile() (tile, last int) {
	if current == avx2 {
		return 6, 4
	}
	return 4, 2
}

// rankCrosses says whether word w of so many is multiplied crosswise, with the one before or after.
func rankCrosses(w, words int) bool {
	return current != avx2 && words > rankBlock && w%rankBlock < 2 && w/rankBlock*rankBlock+rankBlock <= words
}

// rankGroup is the number of panels that the tiles of centroids go by together.
func rankGroup() int {
	if current == avx2 {
		return 1
	}
	return 4
}

// rankLeast is the number of words of the least of each row and column where centroids are in so many tiles, which AVX2
// keeps in memory.
func rankLeast(tiles int) int {
	if tile, _ := rankTile(); current == avx2 {
		return (tile + tiles) * Lanes / 2
	}
	return 0
}

// rankPairs ranks the centroids for the points of pairs of panels.
func rankPairs(x *float32, pairs, d int, c *int32, k int, scale float32, band int32, labels, doubts *uint16) {
	asmRankN((d+1)/2, x, pairs, d, c, k, scale, band, labels, doubts)
}

// rankLong is rankPairs where ranksLong says so, for groups of rankGroup panels, with room for the words of one.
func rankLong(x *float32, groups, d int, c *int32, tiles, last int, scale float32, band int32, room *int32, labels,
	doubts *uint16) {
	asmRankLong(x, groups, d, c, tiles, last, scale, band, room, labels, doubts)
}
