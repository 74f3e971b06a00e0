package line

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPricesProveTheOptimum: the dual at the prices is the least cost of intervals.
func TestPricesProveTheOptimum(t *testing.T) {
	var l Solver
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n, k, side := 1+rng.IntN(60), 1+rng.IntN(8), 1<<(1+rng.IntN(6))
		place := func() int64 { return int64(rng.IntN(2*side+1) - side) }
		x, weights, clusters := make([]int64, n), make([]int32, n), make([]int64, k)
		var units []int64 // each as often as it is there
		for i := range x {
			x[i], weights[i] = place(), int32(1+rng.IntN(3)*rng.IntN(2))
			units = append(units, slices.Repeat([]int64{x[i]}, int(weights[i]))...)
		}
		if seed%2 == 0 {
			x, weights = slices.Clone(units), nil
		}
		lo, hi := make([]int, k), make([]int, k)
		for range units {
			lo[rng.IntN(k)]++
		}
		for j := range clusters {
			clusters[j] = place()
			lo[j], hi[j] = lo[j]-rng.IntN(lo[j]+1), lo[j]+rng.IntN(3)*rng.IntN(n)
		}
		prices := make([]int64, k)
		l.Solve(slices.Clone(x), weights, clusters, lo, hi, prices)
		dual := int64(0)
		for _, at := range units {
			least := square(at-clusters[0]) + prices[0]
			for j, c := range clusters {
				least = min(least, square(at-c)+prices[j])
			}
			dual += least
		}
		for j, price := range prices {
			dual -= max(price, 0)*int64(min(hi[j], len(units))) + min(price, 0)*int64(lo[j])
		}
		if want := byIntervals(units, clusters, lo, hi); dual != want {
			t.Fatalf("seed %d: the dual is %d at prices %d, want %d", seed, dual, prices, want)
		}
	}
}

func square(x int64) int64 { return x * x }

// byIntervals is the least cost of intervals of the sorted units, by all their ends.
func byIntervals(units, clusters []int64, lo, hi []int) int64 {
	const none = 1 << 40
	slices.Sort(units)
	order := make([]int, len(clusters))
	for j := range order {
		order[j] = j
	}
	slices.SortFunc(order, func(a, b int) int { return int(clusters[a] - clusters[b]) })
	best := slices.Repeat([]int64{none}, len(units)+1) // of the clusters so far, by their units in all
	best[0] = 0
	for _, j := range order {
		next := slices.Repeat([]int64{none}, len(units)+1)
		for first, cost := range best {
			for last := first; last <= len(units) && last-first <= hi[j]; last++ {
				if last-first >= lo[j] {
					next[last] = min(next[last], cost)
				}
				if last < len(units) {
					cost += square(units[last] - clusters[j])
				}
			}
		}
		best = next
	}
	return best[len(units)]
}
