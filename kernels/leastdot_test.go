package kernels

import (
	"math/rand/v2"
	"testing"
)

func TestLeastDotEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 7))
		for n := 1; n < 100; n++ {
			for _, d := range []int{1, 2, 3, 7, 20} {
				stride := n + rng.IntN(9)
				x, coef := make([]float64, (d-1)*stride+n), make([]float64, d)
				for i := range x {
					x[i] = rng.NormFloat64()
					if n%2 == 0 {
						x[i] = float64(rng.IntN(3) - 1) // equal sums
					}
				}
				for c := range coef {
					coef[c] = float64(rng.IntN(5) - 2)
				}
				want, first := leastDotPortable(x, stride, 0, n, coef)
				if got, at := LeastDot(x, stride, n, coef); got != want || at != first {
					t.Fatalf("n=%d d=%d stride=%d: %g at %d, want %g at %d", n, d, stride, got, at, want, first)
				}
			}
		}
	})
}

// TestLeastDotOverManyCalls has sums so long that a call takes few of them: the
// least is found in any of them, and of equal ones the first.
func TestLeastDotOverManyCalls(t *testing.T) {
	const n, d = 37, 100000
	x, coef := make([]float64, n*d), make([]float64, d)
	for c := range coef {
		coef[c] = 1
	}
	withPaths(t, func(t *testing.T) {
		for _, at := range []int{0, 15, 16, 17, 36} {
			x[(d-1)*n+at] = -1
			want, first := leastDotPortable(x, n, 0, n, coef)
			if got, i := LeastDot(x, n, n, coef); got != want || i != first || first != at {
				t.Errorf("%g at %d, want %g at %d", got, i, want, at)
			}
			x[(d-1)*n+at] = 0
			if got, i := LeastDot(x, n, n, coef); got != 0 || i != 0 {
				t.Errorf("%g at %d of equal sums, want 0 at 0", got, i)
			}
		}
	})
}
