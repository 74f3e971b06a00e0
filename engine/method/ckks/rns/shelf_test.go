package rns

import (
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/kernels/ntt"
)

// Free rows serve again with the worker that has used them, at any level, before those of another one; none is made
// while one is free, and none serves twice.
func TestFreeRowsStayWithTheirWorker(t *testing.T) {
	const n = 1 << ntt.MinLogN
	at := func(p Poly) (rows []*uint32) {
		for _, row := range p {
			rows = append(rows, &row[0])
		}
		return rows
	}
	c := &Chain{n: n}
	all, second := c.Room(), Room{c: c, first: 1}
	p, q := all.NewPoly(11), second.NewPoly(2)
	rows, own := at(p), at(q)
	all.Free(p)
	second.Free(q)
	if got := at(second.NewPoly(2)); !slices.Equal(got, []*uint32{own[2], own[1], own[0]}) {
		t.Error("a worker's rows are another's")
	}
	lower := all.NewPoly(10)
	if got := at(lower); !slices.Equal(got, rows[:11]) {
		t.Error("rows of another level have other places")
	}
	lower = all.Truncate(lower, 4)
	if got := at(second.NewPoly(0)); got[0] != rows[7] && got[0] != rows[5] && got[0] != rows[9] {
		t.Error("a row of another worker is taken first")
	}
	seen := map[*uint32]bool{}
	for _, row := range at(lower) {
		seen[row] = true
	}
	for range 6 { // of those above level 4, and the last of the first polynomial
		row := at(second.NewPoly(0))[0]
		if seen[row] || !slices.Contains(rows, row) {
			t.Error("a row is made while others are free, or serves twice")
		}
		seen[row] = true
	}
	if slices.Contains(rows, at(second.NewPoly(0))[0]) {
		t.Error("a row serves twice")
	}
}
