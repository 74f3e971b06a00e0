package seeding

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/kernels"
)

// A record of weight w counts as w records do: in the potentials, and in which record is found.
func TestWeightsAreRepetitions(t *testing.T) {
	for _, d := range []int{3, 20} {
		rng := rand.New(rand.NewPCG(8, uint64(d)))
		points := blobs(rng, 3000, d, 5, 0.05)
		weights, rows := make([]float64, points.N), []float32(nil)
		for i := range weights {
			weights[i] = float64(i % 4)
			for range i % 4 {
				rows = append(rows, points.Point(i, nil)...)
			}
		}
		repeated := kernels.NewPanels(len(rows)/d, d)
		kernels.Pack(repeated, rows)
		a, b := NewPart(points, 3, nil), NewPart(*repeated, 3, nil)
		a.Weigh(weights)
		near := func(what string, x, y float64) {
			if math.Abs(x-y) > 1e-5*math.Abs(y) {
				t.Errorf("d=%d: %s is %g, want %g", d, what, x, y)
			}
		}
		near("the weight", a.Weight(), b.Weight())
		near("the sum of squares", a.Squares(), b.Squares())
		for range 3 {
			var candidates []float32
			for range 3 {
				candidates = append(candidates, points.Point(rng.IntN(points.N), nil)...)
			}
			x, y := a.Try(candidates), b.Try(candidates)
			for i := range x {
				near("a candidate's potential", x[i], y[i])
			}
			a.Add(1)
			b.Add(1)
			near("the potential", a.Potential(), b.Potential())
		}
		for range 200 {
			if i := a.find(rng.Float64() * a.Potential()); weights[i] == 0 {
				t.Errorf("d=%d: record %d is found, which weighs nothing", d, i)
			}
			x := rng.Float64() * a.Weight()
			if got, want := a.recordAt(a.atWeight(x), nil), b.recordAt(int(x), nil); squared(got, want) != 0 {
				t.Errorf("d=%d: the record at weight %g is %v, want %v", d, x, got, want)
			}
		}
	}
}
