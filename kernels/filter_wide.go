//go:build !arm64 || purego

package kernels

// filterPays is the rule that says which paths and shapes use the candidate
// filter, from measurements of [Assign] with and without it.
func filterPays(d, k int) bool {
	switch {
	case current >= avx512vnni: // with fewer centroids, reading the integers costs what they gain
		return d >= 32 && k >= 128
	case current == avx2: // the same, where filterCost agrees
		return d >= 32 && k >= 128
	}
	return false // with AVX-512 alone, multiply-adds are as fast
}

// screenPays is the rule that says which paths and shapes screen candidates of k-means++ (see [Screen]), as far as the
// points may have integers beside them: with AVX2 where it was measured, with AVX-512 VNNI from (64, 500) on, where it
// takes .5 to .6 of the time, as at (128, 1000) and (768, 500); at (64, 256) and (32, 200) it gained nothing.
func screenPays(d, k int) bool {
	return filterPays(d, k) && d >= 64 && (current == avx2 && k >= 256 || current != avx2 && d*k >= 32000)
}

// filterGroups lists the numbers of integers in a word that the path in use has
// instructions for.
func filterGroups() []int { return []int{4, 2} }

// filterCost is the cost of the filter with group integers in a word (see filterGroup) where a share of the points is
// undecided and each has so many candidates. With AVX-512 VNNI the products take as many times less than k/16 as
// integers are in a word; (200 + k/2)/d is for what is done to all scores, 3 + (500 + .6 k)/d for a point that they do
// not decide, for which more tiles are searched, and 25/d for each of its candidates: as measured at (d, k) from (32,
// 256) to (768, 1000) and (128, 4096), where the form chosen is within a tenth of the better one. Tiles multiply faster
// by far, but their sums are finished by vectors. AVX2 has fewer points together, and measured so from (32, 256) to
// (1536, 256) and (32, 4096).
func filterCost(group int, d, k, undecided, candidates float64) float64 {
	speed, scan, search := float64(group), k/2, 500+0.6*k
	switch {
	case filterWordsTogether(group) > 1:
		speed = 6
	case current == avx2:
		speed, scan, search = 1.35, 0.15*k, 0
		if group == 4 {
			speed = 2.9
		}
	}
	return k/(Lanes*speed) + (200+scan)/d + undecided*(3+search/d) + candidates*25/d
}

// filterZero is what the path in use adds to bytes of points; AVX-512 alone has the routines of AVX2.
func filterZero() int32 {
	if current < avx512vnni {
		return 91
	}
	return 128
}

// filterShifts says whether a routine takes bytes of points as they are stored; runs make up for it on their own.
func filterShifts(group int) bool { return group >= 4 && !filterRuns(group) }

// filterRuns says whether routines add products of group integers in a word in 16 bits.
func filterRuns(group int) bool { return current < avx512vnni && group == 4 }

// filterWords is the number of words of a point that the routines for group integers in a word take, for one that has
// so many.
func filterWords(group, words int) int {
	if current < avx512vnni {
		return (words + 1) &^ 1
	}
	return words
}

// filterWordsTogether is the number of words at most that centroids have together, for products of group integers in a
// word.
func filterWordsTogether(group int) int {
	if current >= amx && group == 4 {
		return 16
	}
	return 1
}

// filterGroupPanels is the number of panels that are scored together.
func filterGroupPanels(chunk int) int {
	switch {
	case chunk > 1:
		return 2
	case current >= avx512vnni:
		return 3
	}
	return 1
}

// filterScores leaves the scores of panels, the first of which is at x, and of tiles from tile+first on in s, from its
// tile first on.
func filterScores(call *filterCall, panels int, x *byte, tile, first, tiles int, ahead uintptr, lines int,
	s *filterScratch) {
	g, at, size := call.c, (tile+first)*filterTile, panels*Lanes
	c, base := &g.data[at*g.size()], &call.base[at]
	scores, least, best := &s.scores[first*filterTile*size], &s.least[first*size], &s.best[0]
	switch {
	case g.chunk > 1:
		config := tileForm(g.chunk)
		asmFilterTilesN(panels, &config[0], x, g.words, g.chunk, c, base, tiles*filterTile/filterWideTile,
			scores, least, best)
	case g.runs:
		asmFilterRuns(x, g.words, g.run, c, base, tiles, scores, least, best, ahead, lines)
	case g.group == 4:
		asmFilterBytesN(panels, x, g.words, c, base, tiles, scores, least, best, ahead, lines)
	default:
		asmFilterScoreN(panels, x, g.words, c, base, tiles, scores, least, best, ahead, lines)
	}
}

// integers rounds as many of a centroid's coordinates as a routine does, to words from word on, and returns their
// number, the totals of the integers in the first halves of words and in the others, and that of the squares of the
// errors.
func (f *filterCentroids) integers(word int, row []float32) (done int, sums [2]int32, errors float64) {
	blocks := len(row) / Lanes
	vnni := f.group == 4 && f.chunk == 1 && current >= avx512vnni
	if blocks == 0 || current == generic || !vnni && !f.runs {
		return 0, sums, 0
	}
	var totals [16]int32
	var squares [8]float64
	asmFilterIntegers(&row[0], blocks, float32(f.scale), 1/f.scale, &f.data[4*word], &totals, &squares)
	for i, x := range totals {
		sums[i/2%2] += x
	}
	for _, x := range squares {
		errors += x
	}
	return blocks * Lanes, sums, errors
}

// tileForm is what AMX is told of its tiles, for chunks of so many words: the bytes of a row and the rows of each, for
// sums, centroids and points. See LDTILECFG in Intel's manual.
func tileForm(chunk int) (form [64]byte) {
	form[0] = 1 // the palette
	for t, shape := range [8][2]int{4: {4 * chunk, 16}, 5: {4 * chunk, 16}, 6: {64, chunk}, 7: {64, chunk}} {
		if t < 4 {
			shape = [2]int{64, 16}
		}
		form[16+2*t], form[48+t] = byte(shape[0]), byte(shape[1])
	}
	return form
}

// candidates lists the scores of one panel of several that are within its limit, which falls to the least so far, at
// most most, plus band; first is the number of the first centroid.
func (s *filterScratch) candidates(tiles, panels, panel, first int, band, most int32) int {
	at := panel * Lanes
	return asmFilterCandidates(&s.scores[0], &s.least[0], tiles, panels, panel, first, &s.best[at], &s.before[at], band,
		most, &s.limit[at], &s.labels[at], &s.counts[at], &s.list[s.found], &s.kept[s.found][0])
}

// nearest labels the points of one panel of several that have a score as low as their least so far by a centroid that
// has it; first is the number of the first centroid. It reports false, having done nothing, where no routine does that.
func (s *filterScratch) nearest(tiles, panels, panel, first int) bool {
	if current < avx512vnni {
		return false
	}
	at := panel * Lanes
	asmFilterNearest(&s.scores[0], &s.least[0], tiles, panels, panel, first, &s.best[at], &s.labels[at])
	return true
}

// filterPrune leaves of the entries of a list the points whose scores are at most their limits, and the entries that
// have any, and returns their number.
func filterPrune(list []uint64, kept [][Lanes]int32, limits *[filterPanels * Lanes]int32) int {
	return asmFilterPrune(&list[0], &kept[0][0], len(list), &limits[0])
}

// filterRows copies blocks of 16 dimensions of a panel to rows, blocks of rowBlock.
func filterRows(panel []float32, blocks int, rows []float32) {
	if blocks > 0 {
		asmFilterRows(&panel[0], blocks, &rows[0])
	}
}

// filterDots writes the inner products of pairs point<<16 | centroid, of points by row.
func filterDots(x []float32, c *Centroids, pairs []uint32, dots []float32) {
	asmFilterDots(&x[0], c.D, &c.rows[0], &pairs[0], len(pairs), &dots[0])
}

// shortPays is the rule that says which paths and shapes take products with candidates of a short form of centroids:
// those whose coordinates are more than the second-level cache holds, with AVX2 only in many dimensions, where points
// have several candidates.
func shortPays(d, k int) bool {
	return d*k >= 1<<18 && (current >= avx512vnni || current == avx2 && d >= 512)
}

// filterShorts rounds as many of a centroid's coordinates, times scale, as a routine does, and returns their number.
func filterShorts(row []float32, scale float32, to []int16) int {
	blocks := len(row) / Lanes
	if blocks > 0 {
		asmFilterShorts(&row[0], blocks, scale, &to[0])
	}
	return blocks * Lanes
}

// filterShortDots is filterDots with the short form of centroids.
func filterShortDots(x []float32, c *Centroids, pairs []uint32, dots []float32) {
	asmFilterShortDots(&x[0], c.D, &c.filter.short[0], &pairs[0], len(pairs), &dots[0])
}
