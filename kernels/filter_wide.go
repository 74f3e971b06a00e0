//go:build !arm64 || purego

package kernels

// filterPays is the rule that says which paths and shapes use the candidate
// filter, from measurements of [Assign] with and without it.
func filterPays(d, k int) bool {
	switch {
	case current >= avx512vnni: // with fewer centroids, reading the integers costs what they gain
		return d >= 32 && k >= 128
	case current == avx2: // as many instructions as multiply-adds, on more ports
		return d >= 64 && k >= 256
	}
	return false // with AVX-512 alone, multiply-adds are as fast
}

// filterGroups lists the numbers of integers in a word that the path in use has
// instructions for.
func filterGroups() []int {
	if current >= avx512vnni {
		return []int{4, 2}
	}
	return []int{2}
}

// filterTakesPanels reports whether there are routines for several panels at a time.
func filterTakesPanels() bool { return current >= avx512vnni }

// filterScores leaves the scores of panels and tiles in s.
func filterScores(group, panels int, x *byte, words int, c *byte, half *float32, shift *int32, tiles int, scale,
	offset float32, s *filterScratch) {
	if group == 4 {
		asmFilterBytesN(panels, x, words, c, half, shift, tiles, scale, offset, &s.scores[0], &s.least[0], &s.best[0])
		return
	}
	asmFilterScoreN(panels, x, words, c, half, shift, tiles, scale, offset, &s.scores[0], &s.least[0], &s.best[0])
}

// candidates lists the scores of one panel of several that are within its limit, the
// least so far, at most most, plus band; first is the number of the first centroid.
func (s *filterScratch) candidates(tiles, panels, panel, first int, band, most int32) int {
	at := panel * Lanes
	return asmFilterCandidates(&s.scores[0], &s.least[0], tiles, panels, panel, first, &s.best[at], &s.before[at], band,
		most, &s.labels[at], &s.counts[at], &s.list[s.found], &s.kept[s.found][0])
}
