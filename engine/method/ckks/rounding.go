package ckks

import (
	"crypto/aes"
	stdcipher "crypto/cipher"
	"encoding/binary"
	"math"
	"unsafe"
)

// rounding is a party's randomness for roundings, which makes their errors independent of the data: what
// T4 bounds the errors of encrypted totals by. It is the key stream of AES-256 in counter mode under a key of its own,
// 2^68 bytes for each polynomial of words.
type rounding struct{ block stdcipher.Block }

// rounding returns the randomness of one work item's roundings.
func (e entropy) rounding(purpose string, index int) *rounding {
	k := e.key(purpose, index)
	return &rounding{newBlock(k[:])}
}

// Words implements rns.Dither.
func (r *rounding) Words(index uint64, dst []uint32) { r.wordsFrom(index, 0, dst) }

// wordsFrom fills dst with the words of polynomial number index from number at on, a multiple of those in a block.
func (r *rounding) wordsFrom(index uint64, at int, dst []uint32) {
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[:], index)
	binary.BigEndian.PutUint64(counter[8:], uint64(at/(aes.BlockSize/4)))
	clear(dst)
	words := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 4*len(dst))
	stdcipher.NewCTR(r.block, counter[:]).XORKeyStream(words, words)
}

// dither is the randomness with which a column is rounded for comparisons. The computing party has it, too, and
// subtracts it: what is left of a rounding is uniform, whatever the column is (Schuchman 1964).
func dither(seed [seedSize]byte) *rounding { return &rounding{newBlock(seed[:])} }

// encodings is the number from which on words are those of encodings.
const encodings = 1 << 63

// round rounds x scale to integers: to floor(x scale + U) for U uniform in [0, 1), whose mean is x scale,
// or without randomness to the nearest.
func (m *embedder) round(x []float64, scale float64) []int64 {
	m.roundPart(x, 0, scale)
	m.drawn++
	return m.whole
}

// roundPart is round of the numbers from number lo on.
func (m *embedder) roundPart(x []float64, lo int, scale float64) {
	words, whole := m.words[lo:][:len(x)], m.whole[lo:][:len(x)]
	if m.dither == nil {
		for i, v := range x {
			whole[i] = int64(math.RoundToEven(v * scale))
		}
		return
	}
	m.dither.wordsFrom(encodings+m.drawn, lo, words)
	for i, v := range x {
		whole[i] = int64(math.Floor(float64(v*scale) + fraction(words[i])))
	}
}

// partWords is the length of parts that are rounded on a worker each.
const partWords = 1024

// roundParts is round of numbers that compute returns by parts, from one on and up to another.
func (m *embedder) roundParts(scale float64, run region, compute func(lo, hi int) []float64) []int64 {
	n := len(m.whole)
	run((n+partWords-1)/partWords, func(i int) {
		lo := i * partWords
		m.roundPart(compute(lo, min(lo+partWords, n)), lo, scale)
	})
	m.drawn++
	return m.whole
}

// fraction is the number in (0, 1) of a random word.
func fraction(word uint32) float64 { return (float64(word) + 0.5) / (1 << 32) }

// subtractDither sets dst to what has to be added to the polynomial of number index that was rounded with r at a scale.
func (m *embedder) subtractDither(r *rounding, index int, scale float64, dst []float64) {
	r.Words(encodings+uint64(index), m.words)
	for i, w := range m.words {
		dst[i] = (0.5 - fraction(w)) / scale
	}
}
