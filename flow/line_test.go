package flow

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLineIsExact: the dual at the prices of a problem on a line is the optimum.
func TestLineIsExact(t *testing.T) {
	var l line
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n, k, bits := 1+rng.IntN(60), 1+rng.IntN(8), 1+rng.IntN(6)
		row := func() []int { return []int{rng.IntN(2<<bits+1) - 1<<bits} }
		points, centroids := make([][]int, n), make([][]int, k)
		for i := range points {
			points[i] = row()
		}
		sizes := make([]int, k)
		for range n {
			sizes[rng.IntN(k)]++
		}
		for j := range centroids {
			centroids[j] = row()
		}
		p := &Problem{Points: panels(points, 1, bits), Centroids: grid(centroids, bits), FractionBits: bits,
			Lo: slices.Clone(sizes), Hi: slices.Clone(sizes)}
		for j := range k {
			p.Lo[j], p.Hi[j] = p.Lo[j]-rng.IntN(p.Lo[j]+1), p.Hi[j]+rng.IntN(3)*rng.IntN(n)
		}
		res, err := Reference(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		prices := make([]int64, k)
		l.solve(p, prices)
		dual := int64(0)
		for _, x := range points {
			least := int64(infinity)
			for j, c := range centroids {
				least = min(least, int64((x[0]-c[0])*(x[0]-c[0]))+prices[j])
			}
			dual += least
		}
		for j, price := range prices {
			dual -= max(price, 0)*int64(min(p.Hi[j], n)) + min(price, 0)*int64(p.Lo[j])
		}
		if want := Distance(p, res).Lo; uint64(dual) != want {
			t.Fatalf("seed %d: the dual is %d at prices %d, want %d", seed, dual, prices, want)
		}
	}
}
