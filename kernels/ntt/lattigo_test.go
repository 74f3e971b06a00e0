package ntt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// lattigoRing is Lattigo's ring for the same prime.
func lattigoRing(t testing.TB, r *Ring) *ring.SubRing {
	t.Helper()
	var l *ring.Ring
	var err error
	if r.kind == ConjugateInvariant {
		l, err = ring.NewRingConjugateInvariant(r.n, []uint64{uint64(r.q)})
	} else {
		l, err = ring.NewRing(r.n, []uint64{uint64(r.q)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l.SubRings[0]
}

// TestTransformsEqualLattigo compares transforms, their inverses and products
// with Lattigo's, bit for bit.
func TestTransformsEqualLattigo(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	top := 12
	if !testing.Short() {
		top = MaxLogN
	}
	for logN := MinLogN; logN <= top; logN++ {
		for _, r := range testRings(t, logN) {
			l := lattigoRing(t, r)
			x, y := words(rng, r.n, 0, int64(r.q)), words(rng, r.n, 0, int64(r.q))
			wide := func(w []uint32) []uint64 {
				out := make([]uint64, len(w))
				for i, v := range w {
					out[i] = uint64(v)
				}
				return out
			}
			same := func(what string, got []uint32, want []uint64) {
				t.Helper()
				for i := range got {
					if uint64(got[i]) != want[i] {
						t.Fatalf("%s of kind %d, degree 2^%d, prime %d: word %d is %d, Lattigo's %d", what, r.kind, logN, r.q, i,
							got[i], want[i])
					}
				}
			}
			lx, ly := wide(x), wide(y)
			l.NTT(lx, lx)
			l.INTT(ly, ly)
			got := make([]uint32, r.n)
			r.Forward(got, x)
			same("transform", got, lx)
			r.Inverse(got, y, r.Constant(1))
			same("inverse", got, ly)
			lx, ly = wide(x), wide(y)
			l.MulCoeffsBarrett(lx, ly, lx)
			r.Multiply(got, x, y)
			r.Scale(got, got, r.Constant(r.Power(2, 32)))
			same("product", got, lx)
		}
	}
}

// BenchmarkLattigo times the transforms that ours replace.
func BenchmarkLattigo(b *testing.B) {
	for logN := 13; logN <= 15; logN++ {
		r, err := NewRing(ConjugateInvariant, logN, testPrimes[1])
		if err != nil {
			b.Fatal(err)
		}
		l := lattigoRing(b, r)
		a := make([]uint64, r.n)
		for i := range a {
			a[i] = uint64(i) * 2654435761 % uint64(r.q)
		}
		for name, f := range map[string]func(){"forward": func() { l.NTT(a, a) }, "inverse": func() { l.INTT(a, a) }} {
			b.Run(fmt.Sprintf("%s/N=2^%d", name, logN), func(b *testing.B) {
				for b.Loop() {
					f()
				}
			})
		}
	}
}
