package secagg

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// Elements are encoded one by one, little-endian, whatever the number of them; AddWords adds in 64 bits.
func TestWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, ring := range []Ring{Ring64, Ring32} {
		for n := range 40 {
			words, sums := make([]uint64, n), make([]uint64, n)
			var want []byte
			for i := range words {
				words[i], sums[i] = rng.Uint64(), rng.Uint64()
				if ring == Ring32 {
					words[i] &= 1<<32 - 1
					want = binary.LittleEndian.AppendUint32(want, uint32(words[i]))
				} else {
					want = binary.LittleEndian.AppendUint64(want, words[i])
				}
			}
			got := AppendWords([]byte("head"), ring, words)
			if !bytes.Equal(got, append([]byte("head"), want...)) {
				t.Fatalf("%v, %d elements: %x, not %x", ring, n, got, want)
			}
			read := make([]uint64, n)
			if ReadWords(read, ring, want); !slices.Equal(read, words) {
				t.Fatalf("%v, %d elements: read %x, not %x", ring, n, read, words)
			}
			added := slices.Clone(sums)
			AddWords(added, ring, want)
			for i := range sums {
				if added[i] != sums[i]+words[i] {
					t.Fatalf("%v: element %d of %d is %x, not %x", ring, i, n, added[i], sums[i]+words[i])
				}
			}
		}
	}
}
