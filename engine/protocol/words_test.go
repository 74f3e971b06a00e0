package protocol

import (
	"bytes"
	"testing"

	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/internal/vary"
)

// Words of anybody, as several servers and a ring of parties send them, are those that were sent, or refused.
func FuzzWords(f *testing.F) {
	f.Add(secagg.AppendWords(nil, secagg.Ring64, []int64{1, -2}), false)
	f.Add(secagg.AppendWords(nil, secagg.Ring32, []int64{1 << 31, -2}), true)
	f.Add([]byte{1, 2, 3}, true)
	f.Fuzz(func(t *testing.T, b []byte, narrow bool) {
		vary.Bytes(b, func(b []byte) {
			ring := secagg.Ring64
			if narrow {
				ring = secagg.Ring32
			}
			words := make([]int64, 2)
			fits := len(b) == 2*ring.Bytes()
			if err := decodeWords(words, ring, b); (err == nil) != fits {
				t.Fatalf("%d bytes: %v", len(b), err)
			} else if fits && !bytes.Equal(secagg.AppendWords(nil, ring, words), b) {
				t.Fatalf("%x is read as %v", b, words)
			}
			m := secagg.NewMasked(ring, 3, 2)
			if err := m.ReadFrom(b, 1, 2); (err == nil) != fits {
				t.Fatalf("%d bytes of a masked vector: %v", len(b), err)
			} else if fits && !bytes.Equal(m.AppendWire(nil), b) {
				t.Fatalf("%x is read as another vector", b)
			}
		})
	})
}
