package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// potentialData draws products, lengths and distances: some distances are
// infinite, as before the first centre, and some products make a negative square.
func potentialData(rng *rand.Rand, n, q int) (dots *Panels, norms, nearest, squares []float32) {
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = rng.Float32()
		}
		return x
	}
	dots = NewPanels(n, q)
	Pack(dots, draw(n*q))
	norms, nearest, squares = draw(n), draw(n), draw(q)
	for i := range nearest {
		if rng.IntN(8) == 0 {
			nearest[i] = float32(math.Inf(1))
		}
	}
	return dots, norms, nearest, squares
}

func TestPotentialsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(20, 7))
		for _, n := range slices.Concat(equalityNs, []int{3000}) {
			for _, q := range []int{1, 2, 8, 13} {
				dots, norms, nearest, squares := potentialData(rng, n, q)
				want, got := make([]float64, q), make([]float64, q)
				potentialsPortable(dots, norms, nearest, squares, want)
				Potentials(*dots, norms, nearest, squares, got)
				if !sameFloats(want, got) {
					t.Fatalf("n=%d q=%d: %v, want %v", n, q, got, want)
				}
				least := slices.Clone(nearest)
				lowerPortable(dots, q/2, norms, least, squares[q/2])
				if Lower(*dots, q/2, norms, nearest, squares[q/2]); !slices.Equal(least, nearest) {
					t.Fatalf("n=%d q=%d: distances differ", n, q)
				}
			}
		}
	})
}

func BenchmarkPotentials(b *testing.B) {
	dots, norms, nearest, squares := potentialData(rand.New(rand.NewPCG(1, 1)), 1<<14, 8)
	sums := make([]float64, 8)
	run(b, dots.N, 0, 4*dots.N*(dots.D+2), func() { Potentials(*dots, norms, nearest, squares, sums) })
}

func BenchmarkLower(b *testing.B) {
	dots, norms, nearest, squares := potentialData(rand.New(rand.NewPCG(1, 1)), 1<<14, 8)
	run(b, dots.N, 0, 4*dots.N*4, func() { Lower(*dots, 3, norms, nearest, squares[3]) })
}
