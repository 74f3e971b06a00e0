// Package rns computes on polynomials in residue number systems of primes below
// 2^30: the arithmetic of a ring-LWE scheme without its encoding, its keys or its
// security. A chain has the primes q_0 .. q_L of ciphertexts and auxiliary primes
// of key switching. The words and the bounds are those of the package ntt.
//
// Everything that depends on the level alone is worked out once (gadget.go,
// division.go): constants of base conversions, and the powers of R = 2^32 that
// Montgomery products lose, which join the constants of transforms and keys.
package rns

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/cohort-engine/cohort/kernels/ntt"
)

// Poly has one row of N words for each prime q_0 .. q_level.
type Poly [][]uint32

// Level is the index of the last prime.
func (p Poly) Level() int { return len(p) - 1 }

// Chain is a ring for each prime of a residue number system.
type Chain struct {
	n int
	// rings of q_0 .. q_L, then of the auxiliary primes.
	rings []*ntt.Ring
	main  int // number of primes q

	shelves shelves
}

// NewChain prepares the ring of degree 2^logN for the given primes, 1 to 4 of them
// auxiliary.
func NewChain(kind ntt.Kind, logN int, q, auxiliary []uint64) (*Chain, error) {
	if len(q) < 1 || len(auxiliary) < 1 || len(auxiliary) >= maxTerms {
		return nil, fmt.Errorf("rns: %d primes and %d auxiliary ones, want 1 or more and 1 to %d", len(q),
			len(auxiliary), maxTerms-1)
	}
	c := &Chain{n: 1 << logN, main: len(q)}
	for _, x := range append(append([]uint64(nil), q...), auxiliary...) {
		if x >= 1<<ntt.MaxBits {
			return nil, fmt.Errorf("rns: prime %d is not below 2^%d", x, ntt.MaxBits)
		}
		r, err := ntt.NewRing(kind, logN, uint32(x))
		if err != nil {
			return nil, fmt.Errorf("rns: %w", err)
		}
		c.rings = append(c.rings, r)
	}
	return c, nil
}

// maxTerms bounds the residues that are converted at once.
const maxTerms = 5

// MaxLevel is the index of the last prime of ciphertexts.
func (c *Chain) MaxLevel() int { return c.main - 1 }

// Q is prime number j of ciphertexts.
func (c *Chain) Q(j int) uint32 { return c.rings[j].Q() }

// Uniform is [ntt.Prime.Uniform] modulo prime i of those of ciphertexts and then the auxiliary ones.
func (c *Chain) Uniform(i int, dst []uint32, random []byte) (drawn, used int) {
	return c.rings[i].Uniform(dst, random)
}

// Tables returns what makes the tables of each prime's transforms, which these make otherwise when they come first.
func (c *Chain) Tables() (parts []func()) {
	for _, r := range c.rings {
		parts = append(parts, r.Prepare)
	}
	return parts
}

// auxiliary is the index in rings of auxiliary prime i.
func (c *Chain) auxiliary(i int) int { return c.main + i }

// place is where in rings the prime of row i is, of a polynomial modulo q_0 .. q_level and then auxiliary primes.
func (c *Chain) place(level, i int) int {
	if i <= level {
		return i
	}
	return c.auxiliary(i - level - 1)
}

// NewPoly returns a polynomial of a level with any content. [Chain.Free] takes it
// back.
func (c *Chain) NewPoly(level int) Poly { return c.Room().NewPoly(level) }

// Free keeps the rows of polynomials for later ones. They must not be used any
// more.
func (c *Chain) Free(ps ...Poly) { c.Room().Free(ps...) }

// Wipe is Free of polynomials that were made of a secret, which it clears: another role may have their rows next.
func (c *Chain) Wipe(ps ...Poly) { c.Room().Wipe(ps...) }

// FromWide copies rows of 64-bit residues, as the encoder and the samplers write
// them.
func (c *Chain) FromWide(rows [][]uint64) Poly {
	p := c.NewPoly(len(rows) - 1)
	for i, row := range rows {
		narrow(p[i], row)
	}
	return p
}

// narrow copies residues below 2^32.
func narrow(dst []uint32, src []uint64) {
	for i, x := range src {
		dst[i] = uint32(x)
	}
}

// ToWide is the inverse of [Chain.FromWide].
func (c *Chain) ToWide(p Poly) [][]uint64 {
	rows := make([][]uint64, len(p))
	for i, row := range p {
		rows[i] = make([]uint64, c.n)
		widen(rows[i], row)
	}
	return rows
}

// widen is the inverse of narrow.
func widen(dst []uint64, src []uint32) {
	for i, x := range src {
		dst[i] = uint64(x)
	}
}

// liftBits splits an integer into the words that Lift multiplies.
const liftBits = 26

// lift writes the integers x, below 2^56 in magnitude, modulo r's prime to row and transforms them.
func lift(r *ntt.Ring, row, upper []uint32, x []int64) {
	for i, v := range x {
		upper[i] = uint32(v >> liftBits)
		row[i] = uint32(v & (1<<liftBits - 1))
	}
	r.Scale(row, row, r.Constant(1))
	r.ScaleAdd(row, upper, r.Constant(1<<liftBits))
	r.Forward(row, row)
}

// Encrypt sets dst to row j of x - a s in the transform's domain: x are integers below 2^56 in magnitude, a canonical
// residues modulo q_j, and s such times 2^64.
func (c *Chain) Encrypt(j int, dst []uint32, x []int64, a, s []uint32) {
	r, row := c.rings[j], c.NewPoly(0)
	lift(r, dst, row[0], x)
	r.Scale(row[0], s, ^uint32(0)) // -s R
	r.MultiplyAdd(dst, a, row[0])
	c.Wipe(row)
}

// Lift returns the transform of integers below 2^56 in magnitude at a level.
func (c *Chain) Lift(x []int64, level int) Poly {
	out, upper := c.NewPoly(level), c.NewPoly(0)
	for j, row := range out {
		lift(c.rings[j], row, upper[0], x)
	}
	c.Wipe(upper)
	return out
}

// residue is x, rounded to an integer, modulo q. It divides: x is public.
func residue(x float64, r *ntt.Ring) uint64 {
	fraction, exponent := math.Frexp(math.RoundToEven(x))
	if math.IsNaN(fraction) || math.IsInf(fraction, 0) {
		panic("rns: residue of a number that is not finite")
	}
	q := uint64(r.Q())
	m := int64(math.Ldexp(fraction, 53))
	low := uint64(m) % q
	if m < 0 {
		if low = uint64(-m) % q; low > 0 {
			low = q - low
		}
	}
	switch e := exponent - 53; {
	case e > 0:
		low = low * r.Power(2, uint64(e)) % q
	case e < 0:
		low = low * r.Invert(r.Power(2, uint64(-e))) % q
	}
	return low
}

// centred is a residue as a word of magnitude up to q/2, what factors are given as.
func centred(x uint64, q uint32) uint32 {
	if x > uint64(q)/2 {
		return uint32(x) - q
	}
	return uint32(x)
}

// radix is R modulo the prime.
func radix(r *ntt.Ring) uint64 { return 1 << 32 % uint64(r.Q()) }

// AddConstant adds the constant x, rounded, to every value of a.
func (c *Chain) AddConstant(a Poly, x float64) {
	for j, row := range a {
		r := c.rings[j]
		r.AddScalar(row, row, uint32(residue(x, r)))
	}
}

// Scale sets dst to f, rounded, times a.
func (c *Chain) Scale(dst, a Poly, f float64) {
	for j, row := range dst {
		r := c.rings[j]
		r.Scale(row, a[j], r.Constant(residue(f, r)))
	}
}

// Add sets dst = a + b on the rows of dst.
func (c *Chain) Add(dst, a, b Poly) {
	for j, row := range dst {
		c.rings[j].Add(row, a[j], b[j])
	}
}

// Sub sets dst = a - b on the rows of dst.
func (c *Chain) Sub(dst, a, b Poly) {
	for j, row := range dst {
		c.rings[j].Sub(row, a[j], b[j])
	}
}

// Factor multiplies a by R: the form of a factor for [Chain.Multiply].
func (c *Chain) Factor(a Poly) {
	for j, row := range a {
		r := c.rings[j]
		r.Scale(row, row, r.Constant(radix(r)))
	}
}

// Unfactor sets dst to a over R: the inverse of [Chain.Factor], which makes a factor of what is times 2^64.
func (c *Chain) Unfactor(dst, a Poly) {
	for j, row := range dst {
		c.rings[j].Scale(row, a[j], 1)
	}
}

// Multiply sets dst = a b for a factor b.
func (c *Chain) Multiply(dst, a, b Poly) {
	for j, row := range dst {
		c.rings[j].Multiply(row, a[j], b[j])
	}
}

// MultiplyAdd adds a b to dst for a factor b.
func (c *Chain) MultiplyAdd(dst, a, b Poly) {
	for j, row := range dst {
		c.rings[j].MultiplyAdd(row, a[j], b[j])
	}
}

// Forward transforms a in place.
func (c *Chain) Forward(a Poly) {
	for j, row := range a {
		c.rings[j].Forward(row, row)
	}
}

// Inverse transforms a back in place.
func (c *Chain) Inverse(a Poly) {
	for j, row := range a {
		c.rings[j].Inverse(row, row, c.rings[j].Constant(1))
	}
}

// Copy copies the rows of dst from a.
func Copy(dst, a Poly) {
	for j, row := range dst {
		copy(row, a[j])
	}
}

// Clear sets a to zero.
func Clear(a Poly) {
	for _, row := range a {
		clear(row)
	}
}

// width is the number of bits of a prime.
func width(r *ntt.Ring) int { return bits.Len32(r.Q()) }
