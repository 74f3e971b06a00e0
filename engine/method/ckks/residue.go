package ckks

import "math/bits"

// Arithmetic modulo the aggregates' primes on secrets: the coefficients of keys,
// decrypted totals before all noise is on them, and the noise. Its time and the
// addresses it reads do not depend on the values (no division, no branch, no table).

// modulus is a prime below 2^31 with floor((2^64 - 1)/q) (Barrett 1986).
type modulus struct{ q, inverse uint64 }

func newModulus(q uint64) modulus { return modulus{q, ^uint64(0) / q} }

// below subtracts q where x >= q, for x < 2q.
func (m modulus) below(x uint64) uint64 {
	x -= m.q
	return x + m.q&-(x>>63)
}

// reduce returns x modulo q.
func (m modulus) reduce(x uint64) uint64 {
	quotient, _ := bits.Mul64(x, m.inverse)
	// The quotient is at most 1 too small: x (2^64 - 1 - q inverse) < q 2^64.
	return m.below(x - quotient*m.q)
}

// add returns x + y for residues.
func (m modulus) add(x, y uint64) uint64 { return m.below(x + y) }

// multiply returns x y for residues.
func (m modulus) multiply(x, y uint64) uint64 { return m.reduce(x * y) }

// inner returns the sum of the products of x and y, residues.
func (m modulus) inner(x, y []uint64) (sum uint64) {
	y = y[:len(x)]
	for ; len(x) >= 4; x, y = x[4:], y[4:] { // four products below 2^62
		sum = m.add(sum, m.reduce(x[0]*y[0]+x[1]*y[1]+x[2]*y[2]+x[3]*y[3]))
	}
	for i, v := range x {
		sum = m.add(sum, m.multiply(v, y[i]))
	}
	return sum
}

// signed returns z modulo q.
func (m modulus) signed(z int64) uint64 {
	sign := uint64(z >> 63)
	r := m.reduce((uint64(z) ^ sign) - sign)
	// q - r for negative z, and 0 for r = 0.
	return m.below(r ^ (r^(m.q-r))&sign)
}
