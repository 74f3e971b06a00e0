package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNearestSumsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(20, 8))
		for _, n := range slices.Concat(equalityNs, []int{3000}) {
			for _, d := range []int{1, 2, 7, 15, 33} {
				points, nearest, rows := nearerData(rng, n, d)
				want, got := make([]float64, len(rows)/d), make([]float64, len(rows)/d)
				nearestSumsPortable(points, rows, nearest, want)
				NearestSums(*points, rows, nearest, got)
				if !sameFloats(want, got) {
					t.Fatalf("n=%d d=%d: %v, want %v", n, d, got, want)
				}
				lower := slices.Clone(nearest)
				nearerPortable(points, rows[:d], lower)
				if Nearer(*points, rows[:d], nearest); !slices.Equal(lower, nearest) {
					t.Fatalf("n=%d d=%d: distances differ", n, d)
				}
			}
		}
	})
}

// nearerData draws points, distances, some of them infinite, and five candidates.
func nearerData(rng *rand.Rand, n, d int) (points *Panels, nearest, rows []float32) {
	points, nearest, rows = NewPanels(n, d), make([]float32, n), make([]float32, 5*d)
	draw := func(x []float32) {
		for i := range x {
			x[i] = rng.Float32()*2 - 1
		}
	}
	all := make([]float32, n*d)
	draw(all)
	Pack(points, all)
	draw(rows)
	_, distances, _, _ := potentialData(rng, n, 1)
	return points, append(nearest[:0], distances...), rows
}

func BenchmarkNearestSums(b *testing.B) {
	points, nearest, rows := nearerData(rand.New(rand.NewPCG(1, 1)), 1<<11, 2)
	sums := make([]float64, 5)
	run(b, 5*points.N, 0, 4*5*points.N*3, func() { NearestSums(*points, rows, nearest, sums) })
}

func BenchmarkNearer(b *testing.B) {
	points, nearest, rows := nearerData(rand.New(rand.NewPCG(1, 1)), 1<<11, 2)
	run(b, points.N, 0, 4*points.N*4, func() { Nearer(*points, rows[:2], nearest) })
}
