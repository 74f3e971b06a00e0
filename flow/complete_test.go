package flow

import (
	"context"
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
