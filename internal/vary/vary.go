// Package vary lets a fuzz target try many inputs for each that it is given. Where what is fuzzed takes a
// microsecond, handing an input over takes a hundred times as long as it does.
package vary

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
)

// variable says how many inputs are made of each; none without it.
const variable = "COHORT_FUZZ_EACH"

// each is what variable says.
var each = sync.OnceValue(func() int {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return 0
	}
	return n
})

// Bytes calls try with b, and with others that are made of it, always the same. What try does to the bytes
// that it is given does not matter.
func Bytes(b []byte, try func(b []byte)) { some(each(), b, try) }

// some is Bytes with n inputs of each.
func some(n int, b []byte, try func(b []byte)) {
	if n == 0 {
		try(b)
		return
	}
	h := fnv.New64a()
	h.Write(b)
	rng := rand.New(rand.NewPCG(h.Sum64(), uint64(len(b))))
	var room []byte
	for i := range n + 1 {
		room = append(room[:0], b...)
		if i > 0 {
			for range 1 + rng.IntN(4) {
				room = change(rng, room)
			}
		}
		try(room[:len(room):len(room)])
	}
}

// edges are numbers at which lengths and signs turn.
var edges = [...]uint64{0, 1, 2, 3, 4, 8, 16, 127, 128, 255, 256, 1<<15 - 1, 1 << 15, 1<<16 - 1, 1 << 16, 1<<31 - 1,
	1 << 31, 1<<32 - 1, 1<<53 + 1, 1<<63 - 1, 1 << 63, 0x7ff0000000000000, 1<<64 - 1}

// change makes one change.
func change(rng *rand.Rand, b []byte) []byte {
	at := rng.IntN(len(b) + 1)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], edges[rng.IntN(len(edges))])
	length := 1 << rng.IntN(4)
	switch kind := rng.IntN(8); {
	case kind == 0: // cut off
		return b[:at]
	case kind == 1: // longer
		return append(b, word[:length]...)
	case kind == 2: // a part twice
		part := b[at:min(len(b), at+rng.IntN(64))]
		return append(b[:at:at], append(part[:len(part):len(part)], b[at:]...)...)
	case kind == 3: // a part left out
		return append(b[:at], b[min(len(b), at+rng.IntN(64)):]...)
	case at == len(b):
		return b
	case kind == 4:
		b[at] ^= 1 << rng.IntN(8)
	case kind == 5:
		b[at] = byte(rng.Uint32())
	case kind == 6: // a part of it, elsewhere
		copy(b[at:], b[rng.IntN(len(b)):])
	default:
		copy(b[at:], word[:length])
	}
	return b
}
