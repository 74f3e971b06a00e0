package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTopTwoEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 7))
		shapes(func(n, d, k int) {
			if d >= TopTwoDims {
				return
			}
			p := packed(hardRows(rng, n, d), n, d)
			c := NewCentroids(k, d)
			c.Set(hardRows(rng, k, d))
			weight := make([]float32, k)
			for a := range weight {
				weight[a] = float32(rng.IntN(3)) * rng.Float32() // equal ones too
			}
			wantLabels, wantCells, wantGap := make([]uint16, n), make([]uint32, n), make([]float32, n)
			labels, cells, gap := make([]uint16, n), make([]uint32, n), make([]float32, n)
			topTwoPortable(p, c.rows, weight, 1e-6, 0.3, wantLabels, wantCells, wantGap)
			TopTwo(*p, c.rows, weight, 1e-6, 0.3, labels, cells, gap)
			same := slices.EqualFunc(gap, wantGap, func(x, y float32) bool {
				return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
			})
			if !slices.Equal(labels, wantLabels) || !slices.Equal(cells, wantCells) || !same {
				t.Fatalf("n=%d d=%d k=%d:\n%v\n%v\n%v\n%v\n%v\n%v", n, d, k, wantLabels, labels, wantCells, cells, wantGap, gap)
			}
		})
	})
}

// TestTopTwoAreTheLeast checks the meaning against Assign2 without weight: gaps
// with the slack that [TopTwoBits] asks for are lower bounds and close, labels with
// a positive one are certain, and twins are each other's second.
func TestTopTwoAreTheLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 7))
	const n, d, k = 400, 2, 9
	p := packed(gridRows(rng, n, d, 16), n, d)
	c := NewCentroids(k, d)
	rows := gridRows(rng, k, d, 16)
	copy(rows[4*d:], rows[2*d:3*d]) // centroids 2 and 4 coincide
	c.Set(rows)
	want, labels := make([]uint16, n), make([]uint16, n)
	dist, second, gap, cells := make([]float32, n), make([]float32, n), make([]float32, n), make([]uint32, n)
	Assign2(*p, c, want, dist, second)
	slack := float32(math.Ldexp(1, TopTwoBits(k)-21))
	TopTwo(*p, c.rows, make([]float32, k), slack, math.MaxFloat32, labels, cells, gap)
	twins := 0
	for i := range n {
		exact := second[i] - dist[i]
		if gap[i] > exact || gap[i] < exact-4*slack*second[i] || gap[i] > 0 && labels[i] != want[i] ||
			cells[i]/k != uint32(labels[i]) || cells[i]%k == uint32(labels[i]) {
			t.Fatalf("point %d: label %d, cell %d, gap %g; want label %d and gap %g", i, labels[i], cells[i], gap[i],
				want[i], exact)
		}
		if labels[i] == 2 {
			twins++
			if cells[i]%k != 4 || gap[i] > 0 {
				t.Fatalf("point %d: second %d of 2 at gap %g, want its twin 4 at 0", i, cells[i]%k, gap[i])
			}
		}
	}
	if twins == 0 {
		t.Fatal("no point is near the twins")
	}
	TopTwo(*p, c.rows, make([]float32, k), slack, -1, labels, cells, gap)
	for i, cell := range cells {
		if cell != uint32(k*k)+uint32(labels[i]) {
			t.Fatalf("point %d: cell %d outside the window, want %d", i, cell, k*k+int(labels[i]))
		}
	}
}
