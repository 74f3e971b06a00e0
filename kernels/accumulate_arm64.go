//go:build arm64 && !purego

package kernels

// lanePoints is the number of points of a panel that a lane of the masked form
// takes.
const lanePoints = 4

// laneWords is the number of lanes of the masked form for k clusters of d
// coordinates, [k][1+d][4] with the counts first, or 0 where there is no such form.
// With vectors of four, additions under a mask for each cluster cost less than
// additions by label up to some four clusters: by the models of llvm-mca for
// Cortex-A57, ThunderX2, TSV110, Apple and Cortex-A55, no machine was at hand.
func laneWords(k, d int) int {
	if current < neon || k > 4 || d > 8 {
		return 0
	}
	return k * (1 + d) * 4
}

// assignAdd assigns whole panels and adds them to the lanes.
func assignAdd(x *float32, panels int, c *Centroids, r2 float32, labels *uint16, acc *Accumulator) {
	asmAssignAddN(c.D, x, panels, &c.rows[0], c.K, r2, labels, &acc.scratch.lanes[0])
}

func foldLanes(acc *Accumulator, scale float32) {
	asmFoldLanes(&acc.scratch.lanes[0], acc.K, acc.D, scale, &acc.Sums[0], &acc.Counts[0])
}

// tableEndsAtD says whether the last block of columns of a table row stands for
// the last dimensions.
const tableEndsAtD = false

// scatter adds whole panels to the table of the accumulator.
func scatter(x *float32, panels int, labels *uint16, acc *Accumulator, bias float32, _ int) {
	table := &acc.scratch.table[0]
	if acc.D <= maxNarrowD {
		asmScatterN(acc.D, x, panels, labels, table, acc.K+1, bias)
	} else {
		asmScatter(x, panels, acc.D, labels, table, tablePitch(acc.D), bias, &acc.scratch.tally[0])
	}
}

// sumsRows says whether points of d dimensions that are by row already are added by row.
func sumsRows(int) bool { return false }

// scatterByRow is not called, as sumsRows says.
func scatterByRow([]float32, *[Lanes]uint16, *Accumulator, float32) {}

// slotsPay is false: there is no routine.
func slotsPay(int, int) bool { return false }

// sumSlots is not called, as slotsPay says.
func sumSlots(*float32, int, *slotOrder, int, float32, []int32) {}

// assignDotSum is not called, as there is no tile of so many centroids.
func assignDotSum(*float32, *Centroids, *[slotPoints]uint16, *slotPair, float32, []int32) {}
