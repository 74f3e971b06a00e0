package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// assignAccumulateRadiusReference is the two steps one after the other.
func assignAccumulateRadiusReference(p *Panels, c *Centroids, r2 float32, labels []uint16, acc *Accumulator) {
	dist := make([]float32, p.N)
	assignPortable(p, c, labels, dist, nil)
	if p.D >= exactDims {
		distancesPortable(p, c, labels, dist)
	}
	cutPortable(labels, dist, r2, uint16(c.K))
	accumulatePortable(p, labels, acc)
}

func TestAssignAccumulateRadiusEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 9))
		check := func(n, d, k, f int) {
			p := packed(gridHardRows(rng, n, d, f), n, d)
			c := NewCentroids(k, d)
			c.Set(gridHardRows(rng, k, d, f))
			// A limit that some distance meets exactly.
			labels, dist := make([]uint16, n), make([]float32, n)
			assignPortable(p, c, labels, dist, nil)
			if d >= exactDims {
				distancesPortable(p, c, labels, dist)
			}
			for _, r2 := range []float32{dist[rng.IntN(n)], 0, float32(math.Inf(1))} {
				want, got := NewAccumulator(k, d, f), NewAccumulator(k, d, f)
				l0, l1 := make([]uint16, n), make([]uint16, n)
				assignAccumulateRadiusReference(p, c, r2, l0, want)
				AssignAccumulateRadius(*p, c, r2, l1, got)
				if !slices.Equal(want.Sums, got.Sums) || !slices.Equal(want.Counts, got.Counts) || !slices.Equal(l0, l1) {
					t.Fatalf("n=%d d=%d k=%d f=%d r2=%g:\n%v\n%v", n, d, k, f, r2, want.Counts, got.Counts)
				}
				again := NewAccumulator(k, d, f)
				AssignAccumulateRadius(*p, c, r2, nil, again)
				if !slices.Equal(want.Sums, again.Sums) || !slices.Equal(want.Counts, again.Counts) {
					t.Fatalf("without labels: n=%d d=%d k=%d f=%d r2=%g", n, d, k, f, r2)
				}
			}
		}
		i := 0
		shapes(func(n, d, k int) {
			i++
			check(n, d, k, []int{16, 22, 18, 19, 0}[i%5])
		})
		check(40000, 2, 3, 16)
		check(40000, 2, 40, 18)
	})
}
