package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestProjectEqualsPortable(t *testing.T) {
	for _, p := range supportedPaths() {
		t.Run(p.String(), func(t *testing.T) {
			defer forcePath(p)()
			rng := rand.New(rand.NewPCG(21, 22))
			for _, d := range []int{1, 2, 3, 16, 17, 100, 784} {
				for _, q := range []int{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 24, 30} {
					n := 1 + rng.IntN(150)
					points := packed(hardRows(rng, n, d), n, d)
					m := NewMatrix(q, d, hardRows(rng, q, d))
					want, got := NewPanels(n, q), NewPanels(n, q)
					projectPortable(points, m, want)
					Project(*points, m, *got)
					if !sameBits(want.Data, got.Data) {
						t.Fatalf("n=%d d=%d q=%d differs from the portable form", n, d, q)
					}
				}
			}
		})
	}
}

// TestProject compares with sums in float64.
func TestProject(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	const n, d, q = 37, 50, 7
	rows, coefficients := make([]float32, n*d), make([]float32, q*d)
	for i := range rows {
		rows[i] = gridValue(rng, 16)
	}
	for i := range coefficients {
		coefficients[i] = float32(rng.NormFloat64())
	}
	dst := NewPanels(n, q)
	Project(*packed(rows, n, d), NewMatrix(q, d, coefficients), *dst)
	for i := range n {
		for a, got := range dst.Point(i, nil) {
			want := 0.0
			for j := range d {
				want += float64(rows[i*d+j]) * float64(coefficients[a*d+j])
			}
			if diff := float64(got) - want; diff > 1e-4 || diff < -1e-4 {
				t.Fatalf("product of point %d and row %d is %v, want %v", i, a, got, want)
			}
		}
	}
}

// BenchmarkProject has the shapes of projections of MNIST: 5 rows of one round of
// balcan-edler on all records, a tile and two tiles on records that fit the
// second-level cache, and one shard.
func BenchmarkProject(b *testing.B) {
	for _, s := range []struct{ n, d, q int }{{70000, 784, 5}, {70000, 784, 15}, {1600, 784, 12}, {1600, 784, 15},
		{320, 784, 5}} {
		b.Run(fmt.Sprintf("n=%d/d=%d/q=%d", s.n, s.d, s.q), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			rows := make([]float32, s.n*s.d)
			for i := range rows {
				rows[i] = gridValue(rng, 16)
			}
			p, m := packed(rows, s.n, s.d), NewMatrix(s.q, s.d, rows[:s.q*s.d])
			dst := NewPanels(s.n, s.q)
			run(b, s.n*s.d*s.q, measured().ProjectSeconds(s.n, s.d, s.q), 4*s.n*s.d, func() { Project(*p, m, *dst) })
		})
	}
}
