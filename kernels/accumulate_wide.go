//go:build !arm64 || purego

package kernels

// lanePoints is the number of points of a panel that a lane of the masked form
// takes.
const lanePoints = 1

// laneWords is the number of lanes of the masked form for k clusters of d
// coordinates, [k][d][16], or 0 where there is no such form.
func laneWords(k, d int) int {
	most := min(16, 88/d) // beyond, by label is faster
	if current == avx2 {  // half as many lanes: by label is faster sooner
		most = 8
		if d <= maxNarrowD {
			most = 5
		}
	}
	if current == generic || k > most || d > 8 {
		return 0
	}
	return k * d * Lanes
}

// assignAdd assigns whole panels and adds them to the lanes and counts.
func assignAdd(x *float32, panels int, c *Centroids, r2 float32, labels *uint16, acc *Accumulator) {
	asmAssignAddN(c.D, x, panels, &c.rows[0], c.K, r2, labels, &acc.scratch.lanes[0], &acc.Counts[0])
}

func foldLanes(acc *Accumulator, scale float32) {
	asmFoldLanes(&acc.scratch.lanes[0], acc.K*acc.D, scale, &acc.Sums[0])
}

// tableEndsAtD says whether the last block of columns of a table row stands for
// the last dimensions.
const tableEndsAtD = true

// scatter adds whole panels to the table of the accumulator; those that come next are so many bytes ahead.
func scatter(x *float32, panels int, labels *uint16, acc *Accumulator, bias float32, ahead int) {
	table := &acc.scratch.table[0]
	if acc.D <= maxNarrowD {
		asmScatterNarrow(x, panels, acc.D, labels, table, acc.K+1, bias)
	} else {
		asmScatter(x, panels, acc.D, labels, table, tablePitch(acc.D), bias, &acc.scratch.tally[0], ahead)
	}
}

// sumsRows says whether points of d dimensions that are by row already are added by row.
func sumsRows(d int) bool { return current != generic && d%Lanes == 0 }

// scatterByRow adds 16 points by row to the table of the accumulator.
func scatterByRow(rows []float32, labels *[Lanes]uint16, acc *Accumulator, bias float32) {
	asmScatterByRow(&rows[0], acc.D/Lanes, &labels[0], &acc.scratch.table[0], tablePitch(acc.D), bias,
		&acc.scratch.tally[0])
}

// slotsPay is the rule that says where points of d dimensions are added to slots of k clusters.
func slotsPay(d, k int) bool { return hasOneTile() && d >= oneTileDims && k <= oneTile }

// sumSlots adds points of two panels to slots.
func sumSlots(x *float32, d int, order *slotOrder, passes int, bias float32, slots []int32) {
	asmSumSlots(x, d, &order[0], passes, bias, &slots[0])
}

// assignDotSum labels the points of two panels by the one tile of c, and adds the pair before to slots.
func assignDotSum(x *float32, c *Centroids, labels *[slotPoints]uint16, before *slotPair, bias float32, slots []int32) {
	asmAssignDotSum(x, c.D, &c.tiles[0], &c.half[0], &labels[0], before.from(x), &before.order[0], before.passes, bias,
		&slots[0])
}
