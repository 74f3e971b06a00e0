package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// shares are random events on a random grid.
type shares struct {
	weights, shares     []float64
	rows                []int32
	sets                []uint64
	counts, backgrounds []float64
}

func newShares(rng *rand.Rand, length, rows, events int) *shares {
	g := &shares{weights: make([]float64, (rows+3)*length), sets: make([]uint64, events), counts: make([]float64, events),
		backgrounds: make([]float64, events)}
	g.shares = make([]float64, len(g.weights))
	for i := range g.weights {
		g.weights[i], g.shares[i] = rng.ExpFloat64()*float64(rng.IntN(2)), rng.Float64()
	}
	for _, r := range rng.Perm(rows + 3)[:rows] {
		g.rows = append(g.rows, int32(r*length))
	}
	for e := range g.sets {
		g.sets[e] = rng.Uint64() & rng.Uint64() >> rng.IntN(64) // beyond the row too
		g.counts[e] = float64(rng.IntN(10))
		g.backgrounds[e] = rng.Float64() * float64(rng.IntN(2))
	}
	return g
}

// TestShareCountsEqualsPortable: all paths have the bits of the portable form, sums of
// nothing included.
func TestShareCountsEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(31, 7))
		for length := 8; length <= MaxCells; length *= 2 {
			for _, rows := range []int{0, 1, 2, 7} {
				for _, events := range []int{0, 1, 2, 30, 100} {
					g := newShares(rng, length, rows, events)
					want := slices.Clone(g.shares)
					shareCountsPortable(g.weights, want, length, g.rows, g.sets, g.counts, g.backgrounds)
					ShareCounts(g.weights, g.shares, length, g.rows, g.sets, g.counts, g.backgrounds)
					if !slices.Equal(g.shares, want) {
						t.Fatalf("length %d, %d rows, %d events:\n%v\n%v", length, rows, events, g.shares, want)
					}
				}
			}
		}
	})
}

// TestShareCounts: every event's count goes to its members, in proportion to nothing but
// their number, so what is given times weights adds up to the counts less the part of
// the background.
func TestShareCounts(t *testing.T) {
	const length, rows, events = 32, 5, 50
	g := newShares(rand.New(rand.NewPCG(32, 7)), length, rows, events)
	want := 0.0
	for e, set := range g.sets {
		sum := 0.0
		for _, r := range g.rows {
			for i := range length {
				sum += g.weights[int(r)+i] * float64(set>>i&1)
			}
		}
		if sum > 0 {
			want += g.counts[e] * sum / (sum + g.backgrounds[e])
		}
	}
	clear(g.shares)
	ShareCounts(g.weights, g.shares, length, g.rows, g.sets, g.counts, g.backgrounds)
	got := 0.0
	for i, x := range g.shares {
		got += x * g.weights[i]
	}
	if !(math.Abs(got-want) < 1e-9*want) {
		t.Errorf("shares times weights are %v, want %v", got, want)
	}
}

func TestSumMaximaEqualsPortable(t *testing.T) {
	withPaths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(33, 7))
		for _, n := range []int{0, 1, 31, 32, 33, 64, 65, 1000} {
			x, y, want := make([]float64, n), make([]float64, n), 0.0
			for i := range x {
				x[i], y[i] = rng.ExpFloat64(), rng.ExpFloat64()*float64(rng.IntN(2))
				want += max(x[i], y[i])
			}
			got := SumMaxima(x, y)
			if got != sumMaximaPortable(x, y) || math.Abs(got-want) > 1e-12*want {
				t.Fatalf("n=%d: %v, portable %v, want about %v", n, got, sumMaximaPortable(x, y), want)
			}
		}
	})
}

// BenchmarkShareCounts has the events of one set of tails on the grids of four parties
// with 5 clusters each, and of two with 15; an item is an event.
func BenchmarkShareCounts(b *testing.B) {
	for _, s := range [][3]int{{25, 7, 20}, {25, 3, 180}, {15, 8, 5}, {49, 13, 8}} {
		cells, rows, events := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("cells=%d/rows=%d/events=%d", cells, rows, events), func(b *testing.B) {
			length := RowCells(cells)
			g := newShares(rand.New(rand.NewPCG(34, 7)), length, rows, events)
			for e := range g.sets {
				g.sets[e] = g.sets[e]&(1<<cells-1) | 1
			}
			run(b, events, 0, 0, func() { ShareCounts(g.weights, g.shares, length, g.rows, g.sets, g.counts, g.backgrounds) })
		})
	}
}

func BenchmarkSumMaxima(b *testing.B) {
	x, y := make([]float64, 4096), make([]float64, 4096)
	run(b, len(x), 0, 16*len(x), func() { x[0] = SumMaxima(x, y) })
}
