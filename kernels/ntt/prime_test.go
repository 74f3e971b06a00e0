package ntt

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestIsPrime compares with the tests of math/big: on small numbers and such below powers of two, on products that pass
// the strong tests to two of the bases, and on random ones.
func TestIsPrime(t *testing.T) {
	check := func(q uint32) {
		t.Helper()
		if got, want := IsPrime(q), big.NewInt(int64(q)).ProbablyPrime(0); got != want {
			t.Errorf("%d is prime: %t, want %t", q, got, want)
		}
	}
	for q := range uint32(1 << 16) {
		check(q)
		check(-q)
		check(1<<30 - q)
	}
	// Strong pseudoprimes to two of the bases 2, 7 and 61 each, and one to the bases up to 7.
	pseudo := []uint32{314821, 2269093, 916327, 2205967, 79381, 178709, 3215031751}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		pseudo = append(pseudo, rng.Uint32())
	}
	for _, q := range pseudo {
		check(q)
	}
}
