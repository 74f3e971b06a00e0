package ntt

import (
	"fmt"
	"math/bits"
)

// Prime is an odd prime below 2^30 with the constants of arithmetic modulo it.
type Prime struct {
	q    uint32
	lazy bool
	// words is what assembly reads: q, q^-1 mod 2^32, 2q, 4q, and the constants
	// of the conjugate-invariant ring's first layer (see tables.go).
	words [wordCount]uint32
}

// The places in Prime.words.
const (
	wordQ = iota
	wordInverse
	word2Q
	word4Q
	wordI        // I R, where I is a square root of -1
	wordFold     // -I w R for the twiddle w of the first layer
	wordUnfold   // 1/(-I w) R
	wordMinusI   // -I R
	wordMiddle   // w (1 - I) R, for coefficient N/2
	wordUnmiddle // its inverse
	wordMask     // the low bits, as many as the prime has
	wordCount
)

// lazyLimit bounds the primes for which a summand may wait two layers: 7.5 q < 2^32.
const lazyLimit = (1<<32)*2/15 - 1

// MaxBits is the size of the largest primes.
const MaxBits = 30

// NewPrime returns the arithmetic modulo q, an error unless q is an odd prime
// below 2^30.
func NewPrime(q uint32) (*Prime, error) {
	if q < 3 || q >= 1<<MaxBits || !IsPrime(q) {
		return nil, fmt.Errorf("ntt: modulus %d is not an odd prime below 2^%d", q, MaxBits)
	}
	p := &Prime{q: q, lazy: q < lazyLimit}
	inverse := q // correct modulo 8; each step doubles the bits
	for range 4 {
		inverse *= 2 - q*inverse
	}
	p.words = [wordCount]uint32{wordQ: q, wordInverse: inverse, word2Q: 2 * q, word4Q: 4 * q,
		wordMask: 1<<bits.Len32(q) - 1}
	return p, nil
}

// IsPrime tells whether q is a prime: the strong tests to these bases prove it below 4,759,123,141 (Jaeschke 1993).
func IsPrime(q uint32) bool {
	bases := [...]uint64{2, 7, 61}
	for _, b := range bases {
		if uint64(q)%b == 0 {
			return uint64(q) == b
		}
	}
	if q < 3 {
		return false
	}
	p, minus := Prime{q: q}, uint64(q)-1
	twos := bits.TrailingZeros64(minus)
	for _, b := range bases {
		x := p.Power(b, minus>>twos)
		passed := x == 1
		for range twos {
			passed = passed || x == minus
			x = x * x % uint64(q)
		}
		if !passed {
			return false
		}
	}
	return true
}

// Q returns the prime.
func (p *Prime) Q() uint32 { return p.q }

// Constant returns x R modulo q, centred: the form in which a factor is given.
// It divides and is meant for public values.
func (p *Prime) Constant(x uint64) uint32 {
	q := uint64(p.q)
	c := (x % q << 32) % q
	if c > q/2 {
		c -= q
	}
	return uint32(c)
}

// Power returns x^e modulo q. Its time depends on e.
func (p *Prime) Power(x, e uint64) uint64 {
	q, r := uint64(p.q), uint64(1)
	for x %= q; e > 0; e >>= 1 {
		if e&1 == 1 {
			r = r * x % q
		}
		x = x * x % q
	}
	return r
}

// Invert returns x^-1 modulo q.
func (p *Prime) Invert(x uint64) uint64 { return p.Power(x, uint64(p.q)-2) }

// mont returns y w / R modulo q: the product that all paths share.
func (p *Prime) mont(y, w uint32) uint32 {
	return p.divide(int64(int32(y)) * int64(int32(w)))
}

// divide returns t / R modulo q, of magnitude below |t|/2^32 + q/2.
func (p *Prime) divide(t int64) uint32 {
	m := int32(uint32(t) * p.words[wordInverse])
	return uint32((t - int64(m)*int64(p.q)) >> 32)
}

// reduce maps [-2h, 2h) to [-h, h).
func reduce(x, h uint32) uint32 { return min(x, x+2*h) - h }

// canonical maps [-2q, 2q) to [0, q).
func (p *Prime) canonical(x uint32) uint32 {
	x = min(x, x+2*p.q)
	return min(x, x-p.q)
}

// centred maps a constant in (-2q, 2q) to (-q/2, q/2).
func (p *Prime) centred(c uint32) uint32 {
	c = p.canonical(c)
	return c - p.q&uint32(int32(p.q/2-c)>>31) // half of random ones would mislead a branch
}

// generator is the smallest primitive root from 3 on.
func (p *Prime) generator() uint64 {
	var factors []uint64
	m := uint64(p.q) - 1
	for d := uint64(2); d*d <= m; d++ {
		if m%d == 0 {
			factors = append(factors, d)
			for m%d == 0 {
				m /= d
			}
		}
	}
	if m > 1 {
		factors = append(factors, m)
	}
	for g := uint64(3); ; g++ {
		ok := true
		for _, f := range factors {
			ok = ok && p.Power(g, (uint64(p.q)-1)/f) != 1
		}
		if ok {
			return g
		}
	}
}
