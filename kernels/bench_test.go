package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// lloydShapes are the nine (n, d, k) of the reference figures.
var lloydShapes = [][3]int{
	{5000, 2, 15}, {25000, 2, 100}, {100000, 2, 5}, {100000, 5, 5}, {1000000, 2, 15},
	{1000000, 8, 5}, {1000000, 16, 64}, {70000, 784, 10}, {100000, 100, 64},
}

// lloydData draws normal points, scaled into [-1, 1] on the grid, and takes the
// first k as centroids.
func lloydData(n, d, k, f int) (*Panels, *Centroids) {
	rng := rand.New(rand.NewPCG(1, uint64(n+d+k)))
	p := NewPanels(n, d)
	grid := float32(int(1) << f)
	row, centres := make([]float32, d), make([]float32, 0, k*d)
	for i := range n {
		for j := range row {
			x := min(max(float32(rng.NormFloat64())/4, -1), 1)
			row[j] = float32(int32(x*grid)) / grid
		}
		p.Set(i, row)
		if i < k {
			centres = append(centres, row...)
		}
	}
	c := NewCentroids(k, d)
	c.Set(centres)
	return p, c
}

// perPoint reports the time per point.
func perPoint(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/point")
}

func BenchmarkLloyd(b *testing.B) {
	for _, s := range lloydShapes {
		n, d, k := s[0], s[1], s[2]
		p, c := lloydData(n, d, k, 16)
		labels := make([]uint16, n)
		acc := NewAccumulator(k, d, 16)
		name := fmt.Sprintf("n=%d/d=%d/k=%d", n, d, k)
		b.Run(name+"/assign", func(b *testing.B) {
			for b.Loop() {
				for lo := 0; lo < n; lo += 4096 {
					hi := min(lo+4096, n)
					Assign(p.Slice(lo, hi), c, labels[lo:hi], nil)
				}
			}
			perPoint(b, n)
		})
		b.Run(name+"/accumulate", func(b *testing.B) {
			for b.Loop() {
				AssignAccumulate(*p, c, labels, acc)
			}
			perPoint(b, n)
		})
	}
}

func BenchmarkMinHash(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	keys, digests := randomBlocks(rng, 2048), randomBlocks(rng, 100000)
	offsets := []int{0, 20000, 40000, 60000, 80000, 100000}
	dst := make([]uint64, 2*len(keys)*5)
	for b.Loop() {
		MinHash(keys, digests, offsets, dst)
	}
	b.ReportMetric(2*float64(len(keys)*len(digests))*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Ghash/s")
}
