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

// Rows that were made of a secret are cleared before another role may have them.
func TestSecretsLeaveNoRows(t *testing.T) {
	primes := testPrimes(t, 30, 30, 29, 29, 30)
	c, err := NewChain(ntt.ConjugateInvariant, ntt.MinLogN, primes[:4], primes[4:])
	if err != nil {
		t.Fatal(err)
	}
	ones := func(level int) Poly {
		p := c.NewPoly(level)
		for _, row := range p {
			for i := range row {
				row[i] = 1
			}
		}
		return p
	}
	s, a, dst := ones(4), ones(0)[0], c.NewPoly(0)[0]
	for what, use := range map[string]func(){
		"a row of a ciphertext": func() { c.Encrypt(1, dst, make([]int64, c.n), a, s[1]) },
		"a row of a key":        func() { c.NewGadget(1, 1, 1, 3).Encrypt(0, 0, dst, a, s, s, make([]int8, c.n)) },
		"a polynomial":          func() { c.Wipe(ones(4)) },
	} {
		use()
		for _, row := range c.NewPoly(11) { // all that are free, others are new
			if slices.ContainsFunc(row, func(x uint32) bool { return x != 0 }) {
				t.Errorf("%s leaves a row", what)
			}
		}
	}
}
