package dataset

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// source is a ChaCha8 stream for built-in sets and shuffles: simulation
// randomness, not noise. The draws below use integers and comparisons only, so
// the same seed gives the same values on every architecture.
type source struct{ stream *rand.ChaCha8 }

// newSource returns the stream of a seed for one purpose.
func newSource(seed uint64, purpose string) *source {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	copy(key[8:], purpose)
	return &source{rand.NewChaCha8(key)}
}

// below returns a uniform integer in [0, n) without bias (Lemire 2019).
func (s *source) below(n uint64) uint64 {
	hi, lo := bits.Mul64(s.stream.Uint64(), n)
	if lo < n {
		for limit := -n % n; lo < limit; {
			hi, lo = bits.Mul64(s.stream.Uint64(), n)
		}
	}
	return hi
}

// uniform returns a uniform multiple of 2^-53 in (0, 1).
func (s *source) uniform() float64 {
	for {
		if u := s.stream.Uint64() >> 11; u != 0 {
			return float64(u) * 0x1p-53
		}
	}
}

// shuffle permutes order uniformly (Fisher and Yates).
func shuffle(s *source, order []int) {
	for i := len(order) - 1; i > 0; i-- {
		j := s.below(uint64(i + 1))
		order[i], order[j] = order[j], order[i]
	}
}

// expBernoulli returns true with probability exp(-p), 0 <= p <= 1, by von
// Neumann's method: the first descent p > u1 > u2 > ... ends after an even
// number of steps with that probability.
func (s *source) expBernoulli(p float64) bool {
	accept := true
	for {
		u := s.uniform()
		if u >= p {
			return accept
		}
		p = u
		accept = !accept
	}
}

// normal returns a standard normal value by Algorithm N of Karney (ACM TOMS 42,
// 2016), which needs no logarithm.
func (s *source) normal() float64 {
	for {
		k := 0
		for s.expBernoulli(0.5) {
			k++
		}
		accept := true
		for i := 0; accept && i < k*(k-1); i++ {
			accept = s.expBernoulli(0.5)
		}
		if !accept {
			continue
		}
		x := s.uniform()
		p := x * (float64(2*k) + x) / float64(2*k+2)
		for i := 0; accept && i <= k; i++ {
			accept = s.expBernoulli(p)
		}
		if !accept {
			continue
		}
		y := float64(k) + x
		if s.stream.Uint64()&1 == 1 {
			y = -y
		}
		return y
	}
}
