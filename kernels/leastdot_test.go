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
