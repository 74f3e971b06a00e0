//go:build arm64 && !purego

package kernels

// filterPays is the rule that says which paths and shapes use the candidate filter: that
// of AVX-512 VNNI, as an instruction has at least four times the products of a
// multiply-add here too. It is not measured on a machine.
func filterPays(d, k int) bool { return current >= neondot && d >= 32 && k >= 128 }

// screenPays is the rule that says which paths and shapes screen candidates of k-means++ (see [Screen]): none, as no
// machine was measured.
func screenPays(int, int) bool { return false }

// filterGroups lists the numbers of integers in a word that the path in use has
// instructions for.
func filterGroups() []int {
	switch current {
	case neoni8mm: // as many instructions a cycle as of SDOT, by the tables of LLVM
		return []int{8}
	case neondot:
		return []int{4}
	}
	return nil
}

// filterCost is the cost of the filter with group integers in a word, that of AVX-512 VNNI (kernels/filter_wide.go).
func filterCost(group int, d, k, undecided, candidates float64) float64 {
	return k/(Lanes*float64(group)) + (200+k/2)/d + undecided*(3+(500+0.6*k)/d) + candidates*25/d
}

// filterZero is what is added to bytes of points.
func filterZero() int32 { return 128 }

// filterShifts says whether a routine takes bytes of points as they are stored.
func filterShifts(group int) bool { return group == 8 }

// filterRuns says that no products are added in 16 bits.
func filterRuns(int) bool { return false }

// filterWords is the number of words of a point that the routines take, for one that has so many.
func filterWords(_, words int) int { return words }

// filterWordsTogether is the number of words that centroids have together.
func filterWordsTogether(int) int { return 1 }

// filterGroupPanels is the number of panels that are scored together.
func filterGroupPanels(int) int { return 1 }

// filterScores leaves the scores of a panel, at x, and of tiles from tile+first on in s, from its tile first on.
func filterScores(call *filterCall, _ int, x *byte, tile, first, tiles int, _ uintptr, _ int, s *filterScratch) {
	g, at := call.c, (tile+first)*filterTile
	asmFilterBytes1(x, g.words, &g.data[at*g.size()], &call.base[at], tiles,
		&s.scores[first*filterTile*Lanes], &s.least[first*Lanes], &s.best[0])
}

// nearest says that no routine labels points by their least scores alone.
func (s *filterScratch) nearest(int, int, int, int) bool { return false }

// integers says that no routine rounds coordinates of a centroid.
func (f *filterCentroids) integers(int, []float32) (done int, totals [2]int32, errors float64) {
	return 0, totals, 0
}

// candidates lists the scores of one panel of several that are within its limit, which falls to the least so far, at
// most most, plus band; first is the number of the first centroid. Most tiles have none, which their least scores tell.
func (s *filterScratch) candidates(tiles, panels, panel, first int, band, most int32) int {
	limit := (*[Lanes]int32)(s.limit[panel*Lanes:])
	labels, counts := (*[Lanes]int32)(s.labels[panel*Lanes:]), (*[Lanes]int32)(s.counts[panel*Lanes:])
	for l, x := range s.before[panel*Lanes : (panel+1)*Lanes] {
		limit[l] = min(limit[l], min(s.best[panel*Lanes+l], most)+band)
		if x > limit[l] {
			counts[l] = 0
		}
	}
	found := s.found
	for tile := range tiles {
		if lanesWithin(s.least[(tile*panels+panel)*Lanes:], limit) == 0 {
			continue
		}
		for a := tile * filterTile; a < (tile+1)*filterTile; a++ {
			scores := s.scores[(a*panels+panel)*Lanes:]
			mask := lanesWithin(scores, limit)
			if mask == 0 {
				continue
			}
			for l := range Lanes {
				if mask>>l&1 != 0 {
					labels[l] = int32(first + a)
					counts[l]++
				}
			}
			s.list[found] = mask | uint64(panel)<<16 | uint64(first+a)<<32
			copy(s.kept[found][:], scores)
			found++
		}
	}
	return found - s.found
}

// lanesWithin has a bit for each lane whose score is within its limit.
func lanesWithin(scores []int32, limit *[Lanes]int32) (mask uint64) {
	for l, x := range (*[Lanes]int32)(scores) {
		if x <= limit[l] {
			mask |= 1 << l
		}
	}
	return mask
}

// filterPrune leaves of the entries of a list the points whose scores are at most their limits, and the entries that
// have any, and returns their number.
func filterPrune(list []uint64, kept [][Lanes]int32, limits *[filterPanels * Lanes]int32) int {
	left := 0
	for i, e := range list {
		limit := (*[Lanes]int32)(limits[int(e>>16)&0xffff*Lanes:])
		if mask := e & 0xffff & lanesWithin(kept[i][:], limit); mask != 0 {
			list[left], kept[left] = e&^0xffff|mask, kept[i]
			left++
		}
	}
	return left
}

// filterRows copies blocks of 16 dimensions of a panel to rows, blocks of rowBlock.
func filterRows(panel []float32, blocks int, rows []float32) {
	for b := range blocks {
		from, to := (*[Lanes * Lanes]float32)(panel[b*Lanes*Lanes:]), (*[Lanes * Lanes]float32)(rows[b*rowBlock:])
		for j := range Lanes {
			for l := range Lanes {
				to[l*Lanes+j] = from[j*Lanes+l]
			}
		}
	}
}

// filterDots writes the inner products of pairs point<<16 | centroid, of points by row.
func filterDots(x []float32, c *Centroids, pairs []uint32, dots []float32) {
	for i, pair := range pairs {
		row := c.Row(int(pair & 0xffff))
		var sums [4]float32
		at := int(pair>>16) * Lanes
		for ; len(row) >= Lanes; row, at = row[Lanes:], at+rowBlock {
			for j, y := range (*[Lanes]float32)(row) {
				sums[j%4] = fma32(x[at+j], y, sums[j%4])
			}
		}
		sum := (sums[0] + sums[1]) + (sums[2] + sums[3])
		for j, y := range row {
			sum = fma32(x[at+j], y, sum)
		}
		dots[i] = sum
	}
}

// shortPays says that products with candidates take centroids as they are.
func shortPays(int, int) bool { return false }

// filterShorts says that no routine rounds coordinates of a centroid.
func filterShorts([]float32, float32, []int16) int { return 0 }

// filterShortDots is for paths on which the short form pays.
func filterShortDots([]float32, *Centroids, []uint32, []float32) {
	panic(noRoutine("FilterShortDots", 0))
}
