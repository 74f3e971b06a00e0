//go:build !arm64 || purego

package kernels

// narrowPays is the rule that says which paths and shapes gain from a narrow form of points, from measurements of
// [Assign] and [Reassign] with and without it: those took 1.0 to 1.6 times as long without from (64, 10) on. A routine
// goes by all centroids for two panels, so these are not too many.
func narrowPays(d, k int) bool {
	return narrows() && d >= 64 && k >= 2 && k < 128 && k*d <= 1<<18 && !rankPays(d, k)
}

// narrows says whether the path in use has the routines of narrow points.
func narrows() bool { return current >= avx512vnni }

// narrowPack is narrowPackPortable by a routine.
func narrowPack(panel []float32, chunks int, origin, words, rest []int32, stride int, sums *[4 * Lanes]float32) {
	asmNarrowPack(&panel[0], chunks, &origin[0], &words[0], &rest[0], stride, &sums[0])
}

// narrowRow is narrowRowPortable by a routine.
func narrowRow(words, rest, origin []int32, chunks int, row []float32) {
	asmNarrowRow(&words[0], &rest[0], &origin[0], chunks, &row[0])
}

// narrowMove takes the coordinates of whole blocks of Lanes from sums to others.
func narrowMove(row []float32, scale float32, from, to []int64) {
	asmNarrowMove(&row[0], len(row)/Lanes, scale, &from[0], &to[0])
}

// narrowAssign ranks the centroids of tiles for the points of two panels of words.
func narrowAssign(words *int32, stride, chunks int, c []int32, tiles, last int, band float32, room []float32,
	labels *[2 * Lanes]uint16, doubts *[2]uint16) {
	asmNarrowAssign(words, stride, chunks, &c[0], tiles, last, band, &room[0], &labels[0], &doubts[0])
}

// boundsPay is the rule that says where points of d dimensions as they are, summed by way of slots, gain from being
// ranked by u: where that is one tile of routines, and words are whole. Not where units are as wide as vectors: there
// multiply-adds of coordinates go as fast as these come from memory, and without u 70,000 points of 784 dimensions
// and 7 centroids take .86 of the time, 214,000 of 256 and 8 .91, 20,000 of 2,500 and 10 .97 (Zen 5).
func boundsPay(d, k int) bool {
	return narrows() && !wideUnits && slotsPay(d, k) && k > narrowLast && d%2 == 0
}

// narrowSum ranks the centroids of one tile for the points of two panels, and adds the pair before to slots.
func narrowSum(x *float32, shifts []float32, c []int32, band float32, room []float32, labels *[slotPoints]uint16,
	doubts *[2]uint16, before *slotPair, bias float32, slots []int32) {
	asmNarrowSum(x, len(shifts)/2, &shifts[0], &c[0], band, &room[0], &labels[0], &doubts[0], before.from(x),
		&before.order[0], before.passes, bias, &slots[0])
}

// narrowLengths measures the points of a panel.
func narrowLengths(panel, shifts []float32, sums *[4 * Lanes]float32) {
	asmNarrowLengths(&panel[0], len(shifts)/2, &shifts[0], &sums[0])
}
