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
	case d == 5 || d > 512:
		return 64
	case d < 8:
		return 16
	case d <= 200:
		return 10
	case d <= 256:
		return 20
	}
	return 32
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
//
//go:noinline
func rankTile(d, k int) (tile, last int) {
	if current == avx2 && !rankCrosses(d, k) {
		return 6, 4
	}
	return 4, 2
}

// rankCrosses says whether words are multiplied crosswise. With AVX2 smaller tiles, and integers that leave room for
// sums of two and so make more points doubtful, take what it spares where dimensions or centroids are few.
func rankCrosses(d, k int) bool {
	if current == avx2 {
		return k >= 32 && d > 14 || k > 10 && d >= 32
	}
	return d > 6
}

// rankPartner is the word that word w of points of d dimensions is multiplied crosswise with, w if none is: two of
// three words go crosswise where additions have units of their own, all of them where they share those of products.
func rankPartner(w, d, k int) int {
	block := 3
	if current == avx2 {
		block = 2
	}
	if at := w % block; rankCrosses(d, k) && at < 2 && w-at+block <= (d+1)/2 {
		return w - at + 1 - at
	}
	return w
}

// rankGroup is the number of panels that the tiles of centroids go by together.
func rankGroup() int {
	if current == avx2 {
		return 1
	}
	return 4
}

// rankLeast is the number of words of the least of each row and of up to six columns where centroids are in so many
// tiles, which AVX2 keeps in memory.
func rankLeast(tiles int) int {
	if current == avx2 {
		return (6 + tiles) * Lanes / 2
	}
	return 0
}

// rankPairs ranks the centroids for the points of pairs of panels.
func rankPairs(x *float32, pairs, d int, c *int32, k int, scale float32, band int32, labels, doubts *uint16) {
	asmRankN((d+1)/2, x, pairs, d, c, k, scale, band, labels, doubts, nil, nil, 0)
}

// wordSumsPay is the rule that says where points of d dimensions that are ranked in pairs are added to words meanwhile:
// with more dimensions and fewer centroids, the products leave too little over.
func wordSumsPay(d, k int) bool {
	return current >= avx512vnni && rankPays(d, k) && !ranksLong(d) && (d < Lanes && k >= 4*(d-8) || k >= 40)
}

// rankSum is rankPairs that adds points to words; those in doubt have the label k, which has a row, too.
func rankSum(x *float32, pairs, d int, c *int32, k int, scale float32, band int32, labels, doubts *uint16, t *wordSums,
	bias float32) {
	asmRankN((d+1)/2, x, pairs, d, c, k, scale, band, labels, doubts, &t.words[0], &t.counts[0], bias)
}

// rankLong is rankPairs where ranksLong says so, for groups of rankGroup panels, with room for the words of one.
func rankLong(x *float32, groups, d int, c *int32, k int, scale float32, band int32, room *int32, labels,
	doubts *uint16) {
	tiles, last := rankTiles(k, d)
	if current == avx2 {
		tile, _ := rankTile(d, k)
		asmRankTiles(x, groups, d, c, tile, tiles, last, scale, band, room, labels, doubts)
		return
	}
	asmRankLong(x, groups, d, c, tiles, last, scale, band, room, labels, doubts)
}
