package dataset

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// columnDigests are keyed digests of the columns of a table, whatever the order of its rows and the bounds:
// sums, modulo 2^128, of the AES of each value. Whoever has the key can test guesses of a whole column.
type columnDigests struct {
	block cipher.Block
	sums  [][2]uint64
}

func newColumnDigests(key [16]byte, d int) *columnDigests {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("dataset: " + err.Error()) // AES takes every key of 16 bytes
	}
	return &columnDigests{block, make([][2]uint64, d)}
}

// add adds rows of len(sums) values.
func (c *columnDigests) add(rows []float64) {
	var b [16]byte
	for i := range rows {
		x := rows[i]
		switch {
		case x == 0:
			x = 0 // not -0
		case math.IsNaN(x):
			x = math.NaN() // a missing value, whatever bits it came with
		}
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
		binary.LittleEndian.PutUint64(b[8:], 1)
		c.block.Encrypt(b[:], b[:])
		s := &c.sums[i%len(c.sums)]
		var carry uint64
		s[0], carry = bits.Add64(s[0], binary.LittleEndian.Uint64(b[:]), 0)
		s[1], _ = bits.Add64(s[1], binary.LittleEndian.Uint64(b[8:]), carry)
	}
}

// empty are digests of no rows under the same key.
func (c *columnDigests) empty() *columnDigests {
	return &columnDigests{c.block, make([][2]uint64, len(c.sums))}
}

// merge adds the rows of others.
func (c *columnDigests) merge(o *columnDigests) {
	for i, x := range o.sums {
		var carry uint64
		c.sums[i][0], carry = bits.Add64(c.sums[i][0], x[0], 0)
		c.sums[i][1], _ = bits.Add64(c.sums[i][1], x[1], carry)
	}
}

// text returns the digests of columns of n rows.
func (c *columnDigests) text(n int) []string {
	list := make([]string, len(c.sums))
	for j, s := range c.sums {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], s[0])
		binary.LittleEndian.PutUint64(b[8:], s[1])
		for i := range 8 {
			b[i] ^= byte(uint64(n) >> (8 * i))
		}
		c.block.Encrypt(b[:], b[:])
		list[j] = fmt.Sprintf("%x", b)
	}
	return list
}

// Digest is a keyed digest of the records as they are used, in their order, with their bounds and weights.
func (n *Normalised) Digest(key []byte) []byte {
	h := hmac.New(sha256.New, key)
	var word [8]byte
	number := func(x uint64) {
		binary.LittleEndian.PutUint64(word[:], x)
		h.Write(word[:])
	}
	for _, x := range []int{n.Points.N, n.Points.D, n.FractionBits, len(n.Weights)} {
		number(uint64(x))
	}
	for _, list := range [][]float64{n.Bounds.Lo, n.Bounds.Hi, n.Weights} {
		for _, x := range list {
			number(math.Float64bits(x))
		}
	}
	h.Write(asBytes(n.Points.Data))
	return h.Sum(nil)
}
