package dataset

import (
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
)

// ToUnit scales a row to length 1. It reports false, having changed nothing, of a row without a direction: one that is
// all zeros, or not finite.
func ToUnit(row []float64) bool {
	most := 0.0
	for _, x := range row {
		if most = max(most, math.Abs(x)); math.IsNaN(most) {
			return false
		}
	}
	if most == 0 || math.IsInf(most, 0) {
		return false
	}
	sum := 0.0
	for _, x := range row { // of at most 1 each, so that no square overflows or vanishes
		sum += float64(x / most * (x / most))
	}
	length := math.Sqrt(sum)
	for h, x := range row {
		row[h] = x / most / length
	}
	return true
}

// checkUnit refuses other bounds of records of length 1.
func (b *Bounds) checkUnit() error {
	for j := range b.Lo {
		if b.Lo[j] != -1 || b.Hi[j] != 1 {
			return fault.Request("bounds", "are given for records that are scaled to length 1, which lie in -1:1",
				"leave them out")
		}
	}
	return nil
}

// toUnit scales the records of the block to length 1. What is not finite stays as it is.
func (b *Block) toUnit() error {
	d := b.schema.D
	for i := range b.N {
		row := b.Rows[i*d : (i+1)*d]
		if ToUnit(row) || notFinite(row) >= 0 {
			continue
		}
		return fault.Failed(b.cell(i, -1), "the record has length 0, so no direction",
			"leave it out, or use another metric", nil)
	}
	return nil
}
