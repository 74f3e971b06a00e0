package privacy

import (
	"math"
	"testing"
)

// permuteAndFlipDistribution is the exact distribution of permute-and-flip: the sum, over all
// orders of the candidates, of the probability that i is the first whose coin
// falls.
func permuteAndFlipDistribution(coins []float64) []float64 {
	distribution := make([]float64, len(coins))
	order := make([]int, 0, len(coins))
	used := make([]bool, len(coins))
	orders := 1.0
	for i := range coins {
		orders *= float64(i + 1)
	}
	var visit func()
	visit = func() {
		if len(order) == len(coins) {
			reach := 1.0
			for _, i := range order {
				distribution[i] += reach * coins[i] / orders
				reach *= 1 - coins[i]
			}
			return
		}
		for i := range coins {
			if !used[i] {
				used[i] = true
				order = append(order, i)
				visit()
				order = order[:len(order)-1]
				used[i] = false
			}
		}
	}
	visit()
	return distribution
}

// TestSelectionLaws compares both mechanisms with their exact distributions. A
// frequency that deviates by 6 standard errors has probability below 2e-9, so
// the test fails by chance with probability below 1e-7.
func TestSelectionLaws(t *testing.T) {
	const n = 100000
	seed := uint64(1)
	for i, c := range []struct {
		selection Selection
		scores    []float64
		rate      float64 // exponent per unit of score
	}{
		{Selection{Epsilon: 1, Sensitivity: 2, Monotone: true}, []float64{-3, -1, -1.5, -8}, 0.5},
		{Selection{Epsilon: 1, Sensitivity: 2}, []float64{5, 9, 7}, 0.25},
		{Selection{Epsilon: 0.3, Sensitivity: 1, Monotone: true, Neighbours: ReplaceOne},
			[]float64{0, -2, -2, -4, -20}, 0.15},
		{Selection{Epsilon: 1, Sensitivity: 1, Monotone: true}, []float64{0, -60}, 1},
		{Selection{Epsilon: 1, Sensitivity: 1}, []float64{4}, 0.5},
	} {
		best := math.Inf(-1)
		for _, u := range c.scores {
			best = math.Max(best, u)
		}
		coins, sum := make([]float64, len(c.scores)), 0.0
		for j, u := range c.scores {
			coins[j] = math.Exp((u - best) * c.rate)
			sum += coins[j]
		}
		exponential := make([]float64, len(coins))
		for j, p := range coins {
			exponential[j] = p / sum
		}
		for name, distribution := range map[string][]float64{"permute-and-flip": permuteAndFlipDistribution(coins),
			"exponential": exponential} {
			stream := NewStreams(&seed).Stream(i, 0, name)
			counts := make([]float64, len(distribution))
			for range n {
				choose := c.selection.PermuteAndFlip
				if name == "exponential" {
					choose = c.selection.ExponentialMechanism
				}
				chosen, err := choose(stream, c.scores)
				if err != nil {
					t.Fatal(err)
				}
				counts[chosen]++
			}
			for j, p := range distribution {
				if limit := 6*math.Sqrt(p*(1-p)/n) + 1e-12; math.Abs(counts[j]/n-p) > limit {
					t.Errorf("case %d, %s: candidate %d has frequency %v, distribution %v", i, name, j, counts[j]/n, p)
				}
			}
		}
	}
}
