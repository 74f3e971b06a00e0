package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// ones is n times 1.
func ones(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

func TestQuantiseEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(15, 7))
		for _, d := range equalityDims {
			for _, n := range []int{1, 7, 8, 9, 16, 63} {
				lo, hi, src := make([]float64, d), make([]float64, d), make([]float64, n*d)
				for j := range lo {
					lo[j] = math.Ldexp(rng.NormFloat64(), rng.IntN(40)-20)
					hi[j] = lo[j] + math.Ldexp(rng.Float64()+0.1, rng.IntN(40)-20)
					if !(hi[j] > lo[j]) {
						hi[j] = lo[j] + 1
					}
				}
				for i := range src {
					j := i % d
					switch rng.IntN(9) {
					case 0:
						src[i] = lo[j]
					case 1:
						src[i] = hi[j]
					case 2:
						src[i] = math.Nextafter(lo[j], -math.MaxFloat64)
					case 3:
						src[i] = math.Nextafter(hi[j], math.MaxFloat64)
					case 4:
						src[i] = math.Copysign(1e300, rng.NormFloat64())
					case 6:
						src[i] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(3)]
					case 5: // the middle and its neighbours, whose images are +0
						src[i] = math.Nextafter((lo[j]+hi[j])/2, lo[j])
					default:
						src[i] = lo[j] + (hi[j]-lo[j])*rng.Float64()
					}
				}
				m := NewUnitMap(lo, hi, rng.IntN(MaxFractionBits+1))
				want, got := make([]float32, n*d), make([]float32, n*d)
				outside := quantisePortable(want, src, m)
				if count := Quantise(got, src, m); count != outside || !sameBits(want, got) {
					t.Fatalf("n=%d d=%d f=%d: %d and %d outside:\n%v\n%v", n, d, m.FractionBits, outside, count, want, got)
				}
				narrow := make([]float32, n*d)
				for i, x := range src {
					narrow[i], src[i] = float32(x), float64(float32(x))
				}
				outside = quantisePortable(want, src, m)
				if count := Quantise(got, narrow, m); count != outside || !sameBits(want, got) {
					t.Fatalf("float32, n=%d d=%d f=%d: %d and %d outside:\n%v\n%v", n, d, m.FractionBits, outside, count, want, got)
				}
			}
		}
	})
}

// TestQuantiseTruncates checks values by hand.
func TestQuantiseTruncates(t *testing.T) {
	m := NewUnitMap([]float64{0}, []float64{10}, 2)
	got := make([]float32, 8)
	outside := Quantise(got, []float64{0, 10, 5, 4.9, 6.3, 8.7, -1, 11}, m)
	for i, want := range []float32{-1, 1, 0, 0, 0.25, 0.5, -1, 1} {
		if math.Float32bits(got[i]) != math.Float32bits(want) {
			t.Errorf("value %d is %v, want %v", i, got[i], want)
		}
	}
	if outside != 2 {
		t.Errorf("%d values outside, want 2", outside)
	}
	if outside := Quantise(got, []float64{math.NaN(), 1, math.Inf(1), 1, 1, -math.NaN(), 1, math.Inf(-1)},
		m); outside != 4 || got[0] != -1 || got[5] != -1 {
		t.Errorf("%d values outside, want the 4 that are not finite, at %v", outside, got)
	}
}

// BenchmarkQuantise states the share of the read bandwidth; a third of the bytes
// that it moves are written.
func BenchmarkQuantise(b *testing.B) {
	for _, s := range [][2]int{{1000, 5}, {1000, 8}, {100000, 5}, {1000000, 8}, {10000, 784}} {
		n, d := s[0], s[1]
		b.Run(fmt.Sprintf("n=%d/d=%d", n, d), func(b *testing.B) {
			dst, src, m := make([]float32, n*d), ones(n*d), NewUnitMap(make([]float64, d), ones(d), 16)
			run(b, n*d, 0, 12*n*d, func() { Quantise(dst, src, m) })
		})
	}
}
