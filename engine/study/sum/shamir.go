package sum

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Shamir's scheme over GF(2^16), in which a secret of 32 bytes is 16 elements. The
// polynomial is x^16 + x^12 + x^3 + x + 1. Products take the same steps whatever secret
// factors are; points and weights are public.

const (
	secretBytes = 32
	elements    = secretBytes / 2
)

// times multiplies in GF(2^16).
func times(a, b uint16) uint16 {
	var product uint32
	wide := uint32(a)
	for i := range 16 {
		product ^= wide << i & -(uint32(b) >> i & 1)
	}
	for i := 30; i >= 16; i-- {
		product ^= 0x1100b << (i - 16) & -(product >> i & 1)
	}
	return uint16(product)
}

// inverse is a^(2^16-2).
func inverse(a uint16) uint16 {
	result, square := uint16(1), a
	for range 15 {
		square = times(square, square)
		result = times(result, square)
	}
	return result
}

// lanes are the elements of a secret, four in a word.
type lanes [elements / 4]uint64

func lanesOf(b []byte) (l lanes) {
	for i := range l {
		l[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return l
}

// scaled is every element times a public factor: the steps depend on that alone.
func (l lanes) scaled(factor uint16) (out lanes) {
	const tops = 0x8000800080008000
	for bit := bits.Len16(factor) - 1; bit >= 0; bit-- {
		add := -uint64(factor >> bit & 1)
		for i, v := range out {
			out[i] = (v&^tops)<<1 ^ (v&tops)>>15*0x100b ^ l[i]&add
		}
	}
	return out
}

// share returns the share of a secret at point x, which is not 0. coefficients has
// threshold-1 blocks of as many bytes as the secret.
func share(secret [secretBytes]byte, coefficients []byte, x uint16) (out [secretBytes]byte) {
	var y lanes
	for at := len(coefficients) - secretBytes; at >= -secretBytes; at -= secretBytes {
		block := secret[:]
		if at >= 0 {
			block = coefficients[at : at+secretBytes]
		}
		y = y.scaled(x)
		for i, v := range lanesOf(block) {
			y[i] ^= v
		}
	}
	return y.bytes()
}

func (l lanes) bytes() (out [secretBytes]byte) {
	for i, v := range l {
		binary.LittleEndian.PutUint64(out[8*i:], v)
	}
	return out
}

// errShares says that shares do not determine a secret.
var errShares = errors.New("sum: a share is there twice")

// weights are the Lagrange coefficients at 0 of distinct points.
func weights(points []uint16) ([]uint16, error) {
	w := make([]uint16, len(points))
	for i, x := range points {
		above, below := uint16(1), uint16(1)
		for j, y := range points {
			if i == j {
				continue
			}
			above, below = times(above, y), times(below, x^y)
		}
		if below == 0 {
			return nil, errShares
		}
		w[i] = times(above, inverse(below))
	}
	return w, nil
}

// combine returns the secret of shares with their weights.
func combine(w []uint16, shares [][secretBytes]byte) [secretBytes]byte {
	var sum lanes
	for k, s := range shares {
		for i, v := range lanesOf(s[:]).scaled(w[k]) {
			sum[i] ^= v
		}
	}
	return sum.bytes()
}
