package synopsis

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/flow"
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

// TestSearchBalancedIsOptimal compares the loss at the centres that are returned
// with that of the reference solver for the same units and sizes.
func TestSearchBalancedIsOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const k, least, most = 4, 0.2, 0.3
	w := &Weighted{D: 3}
	for range 60 {
		w.Append([]float64{rng.Float64() - 0.5, math.Pow(rng.Float64(), 3), rng.Float64()}, rng.Float64())
	}
	s, err := SearchBalanced(context.Background(), nil, w, k, least, most, SearchOptions{Starts: 3, Swaps: 20}, rng)
	if err != nil {
		t.Fatal(err)
	}
	units, owner := unitPoints(w)
	n := len(owner)
	p := flow.Problem{Points: *units, FractionBits: balancedBits, Centroids: make([]float32, k*w.D), Lo: make([]int, k),
		Hi: make([]int, k)}
	for i, x := range s.Centers {
		p.Centroids[i] = float32(x)
	}
	for j := range k {
		p.Lo[j], p.Hi[j] = int(math.Floor(least*float64(n))), int(math.Ceil(most*float64(n)))
	}
	res, err := flow.Reference(context.Background(), &p)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Ldexp(flow.Distance(&p, res).Float(), -2*balancedBits) * w.Total() / float64(n)
	if math.Abs(s.Loss-want) > 1e-9*want {
		t.Errorf("loss %v, the reference assigns the units at %v", s.Loss, want)
	}
}
