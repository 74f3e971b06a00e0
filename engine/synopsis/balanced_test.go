package synopsis

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSearchBalanced checks sizes, means and that the constraint binds: three
// quarters of the weight are in one place.
func TestSearchBalanced(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	w := &Weighted{D: 2}
	for range 400 {
		x, y := 0.2*rng.Float64()-0.8, 0.2*rng.Float64()-0.8
		if rng.IntN(4) == 0 {
			x, y = 1.6*rng.Float64()-0.8, 1.6*rng.Float64()-0.8
		}
		w.Append([]float64{x, y}, 0.5+rng.Float64())
	}
	const k = 5
	s, err := SearchBalanced(context.Background(), nil, w, k, 0.8/k, 1.25/k, SearchOptions{Starts: 3, Swaps: 20}, rng)
	if err != nil {
		t.Fatal(err)
	}
	free, err := Search(context.Background(), nil, w, k, SearchOptions{Starts: 3, Swaps: 20}, rng)
	if err != nil {
		t.Fatal(err)
	}
	total, sum := w.Total(), 0.0
	outside := false
	for j, x := range s.Weights {
		sum += x
		if share := x / total; share < 0.8/k-1.5/balancedUnits || share > 1.25/k+1.5/balancedUnits {
			t.Errorf("cluster %d has a share of %v, want %v to %v", j, share, 0.8/k, 1.25/k)
		}
		if share := free.Weights[j] / total; share < 0.8/k || share > 1.25/k {
			outside = true
		}
	}
	if math.Abs(sum-total) > 1e-6*total {
		t.Errorf("clusters weigh %v, want %v", sum, total)
	}
	if !outside {
		t.Error("the free search keeps the sizes by itself: the test shows nothing")
	}
	if s.Loss < free.Loss*(1-1e-3) {
		t.Errorf("loss with sizes %v, without %v", s.Loss, free.Loss)
	}
	if _, err := SearchBalanced(context.Background(), nil, w, k, 0.3, 1, SearchOptions{}, rng); err == nil {
		t.Error("infeasible sizes are accepted")
	}
}
