package hybrid

import (
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// TestDrawsAreAsLikely: in one column, the mean and the spread of the draws are those of all places added up by how
// likely they are, for a place about the centre, one that no step reaches, and one that the noise hides.
func TestDrawsAreAsLikely(t *testing.T) {
	for _, c := range []struct{ offsets, radii, deviations []float64 }{
		{[]float64{0.1, 0.05}, []float64{1, 0.4}, []float64{0.2, 0.1}},
		{[]float64{-0.6, -0.5, -0.3}, []float64{0.9, 0.6, 0.4}, []float64{0.3, 0.2, 0.15}},
		{[]float64{0.4}, []float64{1}, []float64{3}},
	} {
		var steps []staged.MeanStep
		for i, x := range c.offsets {
			steps = append(steps, staged.MeanStep{From: []float32{0}, Radius: c.radii[i], Offset: []float64{x},
				Variance: c.deviations[i] * c.deviations[i]})
		}
		var weight, mean, square float64
		room := make([]float64, 1)
		for z := -10.0; z <= 10; z += 1e-3 {
			w := elementary.Exp(likelihood(steps, []float64{z}, room))
			x := min(max(z, -guessWall), guessWall)
			weight, mean, square = weight+w, mean+w*x, square+w*x*x
		}
		mean, square = mean/weight, square/weight
		const times = 10
		var drawn, drawnSquare float64
		for seed := range uint64(times) {
			last := steps[len(steps)-1].Variance
			for _, x := range draws(steps, []float64{0}, last, privacy.NewStreams(&seed).Stream(0, 0, "guess")) {
				drawn, drawnSquare = drawn+x/(times*placeDraws), drawnSquare+x*x/(times*placeDraws)
			}
		}
		if math.Abs(drawn-mean) > 0.02 || math.Abs(drawnSquare-square) > 0.02 {
			t.Errorf("%+v: mean %.3f, mean square %.3f of the draws, %.3f, %.3f of all places", c, drawn, drawnSquare, mean,
				square)
		}
	}
}

// TestPlaceBeyondCuts: the many are drawn near a corner of the box that no sum of a mean is near, as each step began at
// the centre and was cut, and about the centre where noise alone would make such sums.
func TestPlaceBeyondCuts(t *testing.T) {
	const d = 8
	seed := uint64(3)
	for _, c := range []struct {
		noise       float64 // deviation that the steps have for each part of the half diagonal that offsets are cut to
		least, most float64
	}{{0.2, 0.75, 0.9}, {1.5, 0, 0.15}} {
		var steps []staged.MeanStep
		for _, part := range []float64{0.9, 0.6, 0.4} {
			s := staged.MeanStep{From: make([]float32, d), Radius: part * math.Sqrt(d), Variance: math.Pow(part*c.noise, 2)}
			for range d {
				s.Offset = append(s.Offset, -min(0.8, part)*0.85)
			}
			steps = append(steps, s)
		}
		centre := make([]float64, d)
		far := 0.0
		found := draws(steps, centre, steps[2].Variance, privacy.NewStreams(&seed).Stream(0, 0, "guess"))
		for _, x := range found {
			far -= x / float64(len(found))
		}
		if far < c.least || far > c.most {
			t.Errorf("noise %v: places %.3f from the centre in each column, not %v to %v", c.noise, far, c.least, c.most)
		}
	}
}
