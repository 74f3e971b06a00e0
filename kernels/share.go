package kernels

import (
	"fmt"
	"math"
	"math/bits"
)

// MaxCells is the largest number of cells in a row of [ShareCounts].
const MaxCells = 64

// RowCells returns the length of rows of [ShareCounts] with room for so many cells, at
// most MaxCells: 8, 16, 32 or 64.
func RowCells(cells int) int {
	row := 8
	for row < cells {
		row *= 2
	}
	return row
}

// ShareCounts shares events out among the cells of a grid that could have caused them, as
// a step of expectation maximisation does. Cells lie in rows of a length from [RowCells];
// rows are the places in weights, and in shares, of the first cells of those rows that
// the events have in common. Of an event bit i of its set says whether cell i of every
// row is a member. Its count over the sum of the weights of its members and its
// background, nothing where that sum is not positive, goes to the share of each member.
//
// Cell i is in chain i modulo 8, in which weights are added by row, then by cell, and the
// chains two by two: chain l+4 to l, l+2 and l+1, the background last. What the events
// give to a cell of the rows is added up before it is added to the shares. Weights are not
// negative, rows within the grid; len(weights) = len(shares), len(sets) = len(counts) =
// len(backgrounds).
func ShareCounts(weights, shares []float64, length int, rows []int32, sets []uint64, counts, backgrounds []float64) {
	checkLength("ShareCounts", "shares", len(shares), len(weights))
	checkLength("ShareCounts", "counts", len(counts), len(sets))
	checkLength("ShareCounts", "backgrounds", len(backgrounds), len(sets))
	if length > MaxCells || length < 1 || RowCells(length) != length {
		panic(fmt.Sprintf("kernels: ShareCounts: length=%d of a row, want 8, 16, 32 or 64", length))
	}
	for _, r := range rows {
		if r < 0 || int(r) > len(weights)-length {
			panic(fmt.Sprintf("kernels: ShareCounts: row at %d of %d cells, want it within %d weights", r, length, len(weights)))
		}
	}
	if len(rows) > 0 && len(sets) > 0 {
		shareCounts(weights, shares, length, rows, sets, counts, backgrounds)
	}
}

// shareCountsPortable is the reference form of [ShareCounts].
func shareCountsPortable(weights, shares []float64, length int, rows []int32, sets []uint64,
	counts, backgrounds []float64) {
	var sums, given [MaxCells]float64
	for _, r := range rows {
		for i, w := range weights[r : int(r)+length] {
			sums[i] += w
		}
	}
	for e, set := range sets {
		set &= 1<<length - 1
		var c [8]float64
		for s := set; s != 0; s &= s - 1 {
			i := bits.TrailingZeros64(s)
			c[i%8] += sums[i]
		}
		sum := ((c[0] + c[4]) + (c[2] + c[6])) + ((c[1] + c[5]) + (c[3] + c[7])) + backgrounds[e]
		if !(sum > 0) {
			continue
		}
		x := counts[e] / sum
		for s := set; s != 0; s &= s - 1 {
			given[bits.TrailingZeros64(s)] += x
		}
	}
	for _, r := range rows {
		for i := range length {
			shares[int(r)+i] += given[i]
		}
	}
}

// maximaChains is the number of chains of [SumMaxima].
const maximaChains = 32

// SumMaxima adds the larger of x and y, element i in chain i modulo 32 in order, and the
// chains two by two: chain l+16 to l, then l+8 to l, l+4, l+2 and l+1. The numbers are not
// negative; len(x) = len(y).
func SumMaxima(x, y []float64) float64 {
	checkLength("SumMaxima", "y", len(y), len(x))
	return sumMaxima(x, y)
}

// sumMaximaPortable is the reference form of [SumMaxima].
func sumMaximaPortable(x, y []float64) float64 {
	var sums [maximaChains]float64
	addMaxima(x, y, &sums)
	return addChains(sums[:])
}

// addMaxima adds maxima to their chains.
func addMaxima(x, y []float64, sums *[maximaChains]float64) {
	for i, v := range x { // bits of numbers that are not negative are in their order
		sums[i%maximaChains] += math.Float64frombits(max(math.Float64bits(v), math.Float64bits(y[i])))
	}
}
