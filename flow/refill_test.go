package flow

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/flow/tree"
	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// TestLowerSkipsBlocks lowers prices of clusters one after the other, and sorts all points for each beside it: on
// points in order, on points in none, and on ties.
func TestLowerSkipsBlocks(t *testing.T) {
	const bits = 10
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, handfulLeaf, 1000} {
		for _, d := range []int{1, 2, 5} {
			for _, side := range []int{8, 1 << bits} {
				on := func() float32 { return float32(rnd.IntN(2*side+1)-side) / float32(side) }
				rows := make([]float32, n*d)
				for i := range rows {
					rows[i] = on()
				}
				if d == 1 {
					slices.Sort(rows)
				}
				const k = 7
				p := &Problem{Points: *kernels.NewPanels(n, d), Centroids: make([]float32, k*d), FractionBits: bits}
				kernels.Pack(&p.Points, rows)
				for i := range p.Centroids {
					p.Centroids[i] = on()
				}
				prices, labels := make([]int64, k), make([]uint16, n)
				for j := range prices {
					prices[j] = rnd.Int64N(1 << (2 * bits))
				}
				for i := range labels {
					for j := range prices {
						if p.cost(i, j)+prices[j] < p.cost(i, int(labels[i]))+prices[labels[i]] {
							labels[i] = uint16(j)
						}
					}
				}
				compareLower(t, p, labels, prices, rnd)
			}
		}
	}
}

func compareLower(t *testing.T, p *Problem, labels []uint16, prices []int64, rnd *rand.Rand) {
	t.Helper()
	for _, each := range []int{1, 3} {
		for _, run := range []Runner{parallel.Serial{}, two{}} {
			var h handful
			h.take(p, labels, prices, each)
			for range 30 {
				j, most := rnd.IntN(len(prices)), rnd.IntN(len(h.values))+1
				h.lacking = append(h.lacking, lack{cluster: j, price: prices[j], count: rnd.IntN(most)})
			}
			compareWithSorting(t, p, run, &h, each)
		}
	}
}

// two is two workers, one after the other.
type two struct{ parallel.Serial }

func (two) Workers() int { return 2 }

func compareWithSorting(t *testing.T, p *Problem, run Runner, h *handful, each int) {
	t.Helper()
	want := slices.Clone(h.values)
	for index, l := range h.lacking {
		above := make([]int64, len(want))
		for q, value := range want {
			above[q] = p.cost(q*each, l.cluster) + l.price - value
		}
		by := slices.Sorted(slices.Values(above))[l.count]
		for q, x := range above {
			want[q] += min(0, x-by)
		}
		if got, err := h.lower(context.Background(), run, index); err != nil || got != by || !slices.Equal(h.values, want) {
			t.Fatalf("n %d, d %d, every %d: lower %+v by %d, want %d, and values differ: %t", p.Points.N, p.Points.D, each,
				l, got, by, !slices.Equal(h.values, want))
		}
		for level, leaves := range tree.Runs {
			for b, most := range h.cover.Most[level] {
				first := b * leaves * handfulLeaf
				values := h.values[first:min(len(h.values), first+leaves*handfulLeaf)]
				if most < slices.Max(values) {
					t.Fatalf("a box has %d, and a point of it %d", most, slices.Max(values))
				}
			}
		}
	}
}
