package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRivalsEqualPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 7))
		shapes(func(n, d, k int) {
			if d >= WithinDims {
				return
			}
			p := packed(hardRows(rng, n, d), n, d)
			c := NewCentroids(k, d)
			c.Set(hardRows(rng, k, d))
			bias := make([]float32, k)
			for a := range bias {
				bias[a] = float32(rng.IntN(3)) * rng.Float32() // equal ones too
			}
			wantLabels, wantRivals, wantGap := make([]uint16, n), make([]uint16, n), make([]float32, n)
			labels, rivals, gap := make([]uint16, n), make([]uint16, n), make([]float32, n)
			rivalsPortable(p, c, bias, 1e-6, wantLabels, wantRivals, wantGap)
			Rivals(*p, c, bias, 1e-6, labels, rivals, gap)
			same := slices.EqualFunc(gap, wantGap, func(x, y float32) bool {
				return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
			})
			if !slices.Equal(labels, wantLabels) || !slices.Equal(rivals, wantRivals) || !same {
				t.Fatalf("n=%d d=%d k=%d:\n%v\n%v\n%v\n%v\n%v\n%v", n, d, k, wantLabels, labels, wantRivals, rivals, wantGap, gap)
			}
		})
	})
}

// TestRivalsAreTheTwoLeast checks the meaning against Assign2 without bias and
// the order of ties.
func TestRivalsAreTheTwoLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 7))
	const n, d, k = 400, 2, 9
	p := packed(gridRows(rng, n, d, 16), n, d)
	c := NewCentroids(k, d)
	rows := gridRows(rng, k, d, 16)
	copy(rows[4*d:], rows[2*d:3*d]) // centroids 2 and 4 coincide
	c.Set(rows)
	want, labels, rivals := make([]uint16, n), make([]uint16, n), make([]uint16, n)
	dist, second, gap, other := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	Assign2(*p, c, want, dist, second)
	Rivals(*p, c, make([]float32, k), 0, labels, rivals, gap)
	Distances(*p, c, rivals, other)
	twins := 0
	for i := range n {
		if labels[i] != want[i] || rivals[i] == labels[i] || other[i] != second[i] || gap[i] != second[i]-dist[i] {
			t.Fatalf("point %d: label %d, rival %d at %g, gap %g; want label %d, %g and %g", i, labels[i], rivals[i], other[i], gap[i], want[i], second[i], dist[i])
		}
		if labels[i] == 2 {
			twins++
			if rivals[i] != 4 || gap[i] != 0 {
				t.Fatalf("point %d: rival %d of 2 at gap %g, want its twin 4 at 0", i, rivals[i], gap[i])
			}
		}
	}
	if twins == 0 {
		t.Fatal("no point is near the twins")
	}
}
