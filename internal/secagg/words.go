package secagg

import (
	"encoding/binary"
	"slices"
)

// Vectors are encoded little-endian, in four or eight bytes an element. Of long ones the loops below take eight bytes
// or four elements at once: they are what a party's processor does with a vector besides its seals.

// word is an element, modulo the ring in its low bits.
type word interface{ int64 | uint64 }

// AppendWords appends elements, encoded.
func AppendWords[W word](b []byte, r Ring, words []W) []byte {
	from, size := len(b), r.Bytes()
	b = slices.Grow(b, size*len(words))[:from+size*len(words)]
	out := b[from:]
	if size == 8 {
		for len(words) >= 4 && len(out) >= 32 {
			x, y := words[:4:4], out[:32:32]
			binary.LittleEndian.PutUint64(y[0:8], uint64(x[0]))
			binary.LittleEndian.PutUint64(y[8:16], uint64(x[1]))
			binary.LittleEndian.PutUint64(y[16:24], uint64(x[2]))
			binary.LittleEndian.PutUint64(y[24:32], uint64(x[3]))
			words, out = words[4:], out[32:]
		}
	}
	for i, w := range words {
		if size == 8 {
			binary.LittleEndian.PutUint64(out[8*i:], uint64(w))
		} else {
			binary.LittleEndian.PutUint32(out[4*i:], uint32(w))
		}
	}
	return b
}

// ReadWords reads as many elements as words has, without signs.
func ReadWords[W word](words []W, r Ring, b []byte) {
	if r.Bytes() == 8 {
		for len(words) >= 4 && len(b) >= 32 {
			x, y := words[:4:4], b[:32:32]
			x[0], x[1] = W(binary.LittleEndian.Uint64(y[0:8])), W(binary.LittleEndian.Uint64(y[8:16]))
			x[2], x[3] = W(binary.LittleEndian.Uint64(y[16:24])), W(binary.LittleEndian.Uint64(y[24:32]))
			words, b = words[4:], b[32:]
		}
	}
	for i := range words {
		words[i] = W(r.word(b, i))
	}
}

// AddWords adds to words as many elements as it has, without taking residues.
func AddWords[W word](words []W, r Ring, b []byte) {
	if r.Bytes() == 8 {
		for len(words) >= 4 && len(b) >= 32 {
			x, y := words[:4:4], b[:32:32]
			x[0] += W(binary.LittleEndian.Uint64(y[0:8]))
			x[1] += W(binary.LittleEndian.Uint64(y[8:16]))
			x[2] += W(binary.LittleEndian.Uint64(y[16:24]))
			x[3] += W(binary.LittleEndian.Uint64(y[24:32]))
			words, b = words[4:], b[32:]
		}
	}
	for i := range words {
		words[i] += W(r.word(b, i))
	}
}

// word is an element.
func (r Ring) word(b []byte, i int) uint64 {
	if r == Ring32 {
		return uint64(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return binary.LittleEndian.Uint64(b[8*i:])
}
