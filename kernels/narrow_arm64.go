//go:build arm64 && !purego

package kernels

// narrowPays says that no path gains from a narrow form of points.
func narrowPays(d, k int) bool { return narrows() }

// narrows says that no path has the routines of narrow points.
func narrows() bool { return false }

func narrowPack(panel []float32, chunks int, origin, words, rest []int32, stride int, sums *[4 * Lanes]float32) {
	panic(noRoutine("NarrowPack", chunks))
}

func narrowRow(words, rest, origin []int32, chunks int, row []float32) {
	panic(noRoutine("NarrowRow", chunks))
}

func narrowMove(row []float32, scale float32, from, to []int64) {
	panic(noRoutine("NarrowMove", len(row)))
}

func narrowAssign(words *int32, stride, chunks int, c []int32, tiles, last int, band float32, room []float32,
	labels *[2 * Lanes]uint16, doubts *[2]uint16) {
	panic(noRoutine("NarrowAssign", chunks))
}

// boundsPay says that no points are ranked as they are.
func boundsPay(d, k int) bool { return false }

func narrowSum(x *float32, shifts []float32, c []int32, band float32, room []float32, labels *[slotPoints]uint16,
	doubts *[2]uint16, before *slotPair, bias float32, slots []int32) {
	panic(noRoutine("NarrowSum", len(shifts)))
}

func narrowLengths(panel, shifts []float32, sums *[4 * Lanes]float32) {
	panic(noRoutine("NarrowLengths", len(shifts)))
}
