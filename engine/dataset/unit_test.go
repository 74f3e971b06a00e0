package dataset

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/internal/fault"
)

// ToUnit keeps directions whatever the size of the numbers.
func TestToUnit(t *testing.T) {
	for _, size := range []float64{1, 1e-300, 1e300, 5e-324} {
		row := []float64{3 * size, -4 * size, 0}
		if !ToUnit(row) || math.Abs(row[0]-0.6) > 1e-15 || math.Abs(row[1]+0.8) > 1e-15 || row[2] != 0 {
			t.Errorf("size %g: %v", size, row)
		}
	}
	for _, row := range [][]float64{{0, 0}, {math.Inf(1), 1}, {math.NaN(), 1}} {
		first := row[0]
		if ToUnit(row) || row[0] != first && !math.IsNaN(first) {
			t.Errorf("%v is scaled to %v", first, row)
		}
	}
}

// Records that are scaled to length 1 are those of a table that was scaled beforehand;
// what has no direction is refused by its row, and so are other bounds.
func TestPrepareUnit(t *testing.T) {
	rows, scaled := []float64{3, 4, -10, 0, 1e-9, 1e-9}, []float64{0.6, 0.8, -1, 0, math.Sqrt2 / 2, math.Sqrt2 / 2}
	got, err := prepared(t, rows, PrepareOptions{Unit: true})
	if err != nil {
		t.Fatal(err)
	}
	want, err := prepared(t, scaled, PrepareOptions{Bounds: &Bounds{Lo: []float64{-1, -1}, Hi: []float64{1, 1}},
		FractionBits: MaxFractionBits})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for h, x := range want.Points.Point(i, nil) {
			if y := got.Points.Point(i, nil)[h]; math.Abs(float64(x-y)) > 0x1p-22 {
				t.Errorf("row %d, column %d: %g, want %g", i+1, h+1, y, x)
			}
		}
	}
	if !got.Unit || got.FractionBits != MaxFractionBits || got.Bounds.FromData || got.Bounds.Lo[0] != -1 {
		t.Errorf("unit %t, %d bits, bounds %v", got.Unit, got.FractionBits, got.Bounds)
	}
	if _, err := prepared(t, []float64{1, 2, 0, 0}, PrepareOptions{Unit: true}); err == nil ||
		!strings.Contains(err.Error(), "row 2") {
		t.Errorf("a record of length 0: %v", err)
	}
	if _, err := prepared(t, []float64{1, 2, math.NaN(), 0}, PrepareOptions{Unit: true}); err == nil ||
		!strings.Contains(err.Error(), "row 2, column 1") {
		t.Errorf("a record without a number: %v", err)
	}
	if _, err := prepared(t, rows, PrepareOptions{Unit: true,
		Bounds: &Bounds{Lo: []float64{0, 0}, Hi: []float64{1, 1}}}); !fault.IsRequest(err) {
		t.Errorf("other bounds: %v", err)
	}
}

func prepared(t *testing.T, rows []float64, opts PrepareOptions) (*Prepared, error) {
	t.Helper()
	s, err := (&Table{Name: "rows", N: len(rows) / 2, D: 2, Rows: rows}).Source()
	if err != nil {
		t.Fatal(err)
	}
	return Prepare(context.Background(), s, opts)
}
