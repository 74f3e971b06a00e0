package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestWithinEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(2, 7))
		shapes(func(n, d, k int) {
			if d >= WithinDims {
				return
			}
			p := packed(hardRows(rng, n, d), n, d)
			c := NewCentroids(k, d)
			c.Set(hardRows(rng, k, d))
			labels, dist := make([]uint16, n), make([]float32, n)
			assignPortable(p, c, labels, dist, nil)
			limit := make([]float32, panelCount(n)*Lanes)
			for i := range limit {
				limit[i] = -1
				if i < n && rng.IntN(4) > 0 {
					limit[i] = dist[i] * float32(rng.IntN(3))
				}
			}
			want, got := make([]uint16, panelCount(n)*k), make([]uint16, panelCount(n)*k)
			withinPortable(p, c, limit, want)
			Within(*p, c, limit, got)
			if !slices.Equal(want, got) {
				t.Fatalf("n=%d d=%d k=%d:\n%x\n%x", n, d, k, want, got)
			}
		})
	})
}
