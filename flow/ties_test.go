package flow

import (
	"math/rand/v2"
	"testing"
)

// TestTiesOfWeights: points of several units on a coarse grid have many ties, of which the hash chooses; a solver that
// looks at few members must not miss any.
func TestTiesOfWeights(t *testing.T) {
	const n, d, k, f = 39, 2, 4, 3
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows := func(count int) [][]int {
			rows := make([][]int, count)
			for i := range rows {
				rows[i] = []int{rng.IntN(2<<f+1) - 1<<f, rng.IntN(2<<f+1) - 1<<f}
			}
			return rows
		}
		p := &Problem{Points: panels(rows(n), d, f), Centroids: grid(rows(k), f), FractionBits: f,
			Lo: make([]int, k), Hi: make([]int, k), Weights: make([]int32, n), Total: true}
		for j := range k {
			p.Lo[j], p.Hi[j] = rng.IntN(n/k), 2*n/k+rng.IntN(2*n/k)+3*n/k
		}
		for i := range p.Weights {
			p.Weights[i] = 1 + int32(rng.IntN(4))
		}
		for i := range p.Key {
			p.Key[i] = byte(rng.Uint32())
		}
		for _, s := range solvers() {
			if err := agree(p, s); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}
