package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestExtendEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		sameRanges(t, Extend[float32], extendPortable[float32])
		sameRanges(t, Extend[float64], extendPortable[float64])
	})
}

func sameRanges[T float32 | float64](t *testing.T, extend, portable func(*Ranges[T], []T) bool) {
	rng := rand.New(rand.NewPCG(16, 7))
	for _, d := range equalityDims {
		for _, n := range []int{0, 1, 7, 15, 16, 17, 33, 90} {
			want, got := NewRanges[T](d), NewRanges[T](d)
			for part := range 3 {
				rows := make([]T, n*d)
				for i := range rows {
					switch rng.IntN(9) {
					case 0:
						rows[i] = 0
					case 1:
						rows[i] = T(math.Copysign(0, -1))
					case 2:
						rows[i] = T(math.Copysign(math.MaxFloat32, rng.NormFloat64()))
					case 3:
						rows[i] = T(math.SmallestNonzeroFloat32)
					default:
						rows[i] = T(math.Ldexp(rng.NormFloat64(), rng.IntN(40)-20))
					}
				}
				if n > 0 && part == 2 {
					rows[rng.IntN(n*d)] = T([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 1}[rng.IntN(4)])
				}
				finite := portable(want, rows)
				if extend(got, rows) != finite {
					t.Fatalf("n=%d d=%d: finite is %t on the portable path alone", n, d, finite)
				}
				for j := 0; j < d && finite; j++ {
					a, b := want.Column(j)
					x, y := got.Column(j)
					if math.Float64bits(a) != math.Float64bits(x) || math.Float64bits(b) != math.Float64bits(y) {
						t.Fatalf("n=%d d=%d column %d: %v to %v, want %v to %v", n, d, j, x, y, a, b)
					}
				}
			}
		}
	}
}

// TestExtend checks ranges by hand.
func TestExtend(t *testing.T) {
	r := NewRanges[float32](2)
	if !Extend(r, []float32{1, 5, -3, 7}) || !Extend(r, []float32{0, 6}) {
		t.Error("finite values are not")
	}
	for j, want := range [][2]float64{{-3, 1}, {5, 7}} {
		if lo, hi := r.Column(j); lo != want[0] || hi != want[1] {
			t.Errorf("column %d from %v to %v, want %v", j, lo, hi, want)
		}
	}
}

// BenchmarkExtend states the share of the read bandwidth.
func BenchmarkExtend(b *testing.B) {
	for _, s := range [][2]int{{1000, 8}, {100000, 10}, {10000, 784}} {
		n, d := s[0], s[1]
		b.Run(fmt.Sprintf("n=%d/d=%d", n, d), func(b *testing.B) {
			rows, r := make([]float32, n*d), NewRanges[float32](d)
			run(b, n*d, 0, 4*n*d, func() { Extend(r, rows) })
		})
	}
}
