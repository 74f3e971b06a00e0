package flow

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestLongWaysInLargeQuanta: a way of many arcs is found although its length times the quantum
// is more than all costs, and another way was found before.
func TestLongWaysInLargeQuanta(t *testing.T) {
	const columns = 6
	for _, quantum := range []int64{1, 1 << 20, 1 << 40, 1 << 57} {
		s := transport{quantum: quantum}
		s.resize(columns)
		for u := range int32(columns - 1) {
			s.rows[u] = []entry{{quantum, u + 1, 0}} // of length 2
		}
		s.rows[0] = append(s.rows[0], entry{12 * quantum, columns - 1, 0}) // of length 13
		s.excess[0], s.excess[columns-1] = 1, -1
		if found, err := s.search(context.Background()); !found || err != nil {
			t.Fatalf("quantum %d: found %v, %v", quantum, found, err)
		}
		if want := int64(2 * (columns - 1)); s.last != want {
			t.Errorf("quantum %d: the deficit is at distance %d, want %d", quantum, s.last, want)
		}
	}
}

func TestEntryBytes(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size != entryBytes {
		t.Errorf("an entry takes %d bytes, not %d", size, entryBytes)
	}
}

// TestTally compares it with a sort and a sum over all sides.
func TestTally(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		columns := 1 + rng.IntN(40)
		w, want := scratch{size: make([]int64, columns)}, map[edgeCount]float64{}
		for range rng.IntN(400) {
			u, v := int32(rng.IntN(columns)), int32(rng.IntN(columns+1))
			e := edgeCount{u: min(u, v), v: max(u, v)}
			want[e]++
			e.count = 1
			w.sides = append(w.sides, e)
		}
		var sorted []edgeCount
		for e, count := range want {
			sorted = append(sorted, edgeCount{e.u, e.v, count})
		}
		slices.SortFunc(sorted, func(a, b edgeCount) int { return cmp.Compare(a.cell(), b.cell()) })
		if w.tally(); !slices.Equal(w.sides, sorted) {
			t.Fatalf("%d columns: %v, want %v", columns, w.sides, sorted)
		}
	}
}
