package kernels

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// aesTables holds the S-box and the combined SubBytes and MixColumns table of
// one byte; the tables of the other three bytes are rotations of it.
type aesTables struct {
	sbox  [256]byte
	mixed [256]uint32
}

// aesTable computes the tables of FIPS 197 on first use.
var aesTable = sync.OnceValue(func() *aesTables {
	t := new(aesTables)
	// p runs over the powers of the generator 3, q over their inverses.
	p, q := byte(1), byte(1)
	for {
		p ^= double(p)
		q ^= q << 1
		q ^= q << 2
		q ^= q << 4
		if q&0x80 != 0 {
			q ^= 0x09
		}
		t.sbox[p] = 0x63 ^ q ^ bits.RotateLeft8(q, 1) ^ bits.RotateLeft8(q, 2) ^ bits.RotateLeft8(q,
			3) ^ bits.RotateLeft8(q, 4)
		if p == 1 {
			break
		}
	}
	t.sbox[0] = 0x63
	for i, s := range t.sbox {
		t.mixed[i] = uint32(double(s)) | uint32(s)<<8 | uint32(s)<<16 | uint32(s^double(s))<<24
	}
	return t
})

// double multiplies by x in GF(2^8) modulo x^8+x^4+x^3+x+1.
func double(b byte) byte {
	return b<<1 ^ 0x1b&-(b>>7)
}

// expandKey writes the AES-128 key schedule, words in little endian.
func expandKey(sbox *[256]byte, key *[16]byte, w *[44]uint32) {
	for i := range 4 {
		w[i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	round := byte(1)
	for i := 4; i < len(w); i++ {
		t := w[i-1]
		if i%4 == 0 {
			t = bits.RotateLeft32(t, -8)
			t = uint32(sbox[t&255]) | uint32(sbox[t>>8&255])<<8 | uint32(sbox[t>>16&255])<<16 | uint32(sbox[t>>24])<<24
			t ^= uint32(round)
			round = double(round)
		}
		w[i] = w[i-4] ^ t
	}
}

// encryptBlock returns AES-128 of a block; both are two little-endian words.
func encryptBlock(t *aesTables, w *[44]uint32, x, y uint64) (low, high uint64) {
	a, b := uint32(x)^w[0], uint32(x>>32)^w[1]
	c, d := uint32(y)^w[2], uint32(y>>32)^w[3]
	mix := func(a, b, c, d, k uint32) uint32 {
		return t.mixed[a&255] ^ bits.RotateLeft32(t.mixed[b>>8&255], 8) ^
			bits.RotateLeft32(t.mixed[c>>16&255], 16) ^ bits.RotateLeft32(t.mixed[d>>24], 24) ^ k
	}
	last := func(a, b, c, d, k uint32) uint64 {
		return uint64((uint32(t.sbox[a&255]) | uint32(t.sbox[b>>8&255])<<8 |
			uint32(t.sbox[c>>16&255])<<16 | uint32(t.sbox[d>>24])<<24) ^ k)
	}
	for r := 4; r < 40; r += 4 {
		a, b, c, d = mix(a, b, c, d, w[r]), mix(b, c, d, a, w[r+1]), mix(c, d, a, b, w[r+2]), mix(d, a, b, c, w[r+3])
	}
	return last(a, b, c, d, w[40]) | last(b, c, d, a, w[41])<<32, last(c, d, a, b, w[42]) | last(d, a, b, c, w[43])<<32
}
