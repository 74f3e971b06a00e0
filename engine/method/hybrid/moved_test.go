package hybrid

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/synopsis"
)

// TestMeasuredPoints: the points of each cluster have the mean that a round measured, and the weight that is expected
// of its count and of what they weighed, drawn together or not.
func TestMeasuredPoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(49, 50))
	const n, k, d = 300, 4, 3
	points := &synopsis.Weighted{D: d}
	for range n {
		points.Append([]float64{rng.Float64() / 2, rng.Float64() / 2, rng.Float64() / 2}, 5*rng.Float64())
	}
	found, err := synopsis.Search(t.Context(), nil, points, k, synopsis.SearchOptions{}, rng)
	if err != nil {
		t.Fatal(err)
	}
	m := &measured{make([]float32, k*d), make([]float32, k*d), []float64{100, 7, -3, 900},
		[]float64{10, 10, 10, 10}}
	for i, x := range found.Centers {
		m.from[i], m.to[i] = float32(x), float32(x+(rng.Float64()-0.5)/10)
	}
	for _, narrow := range []bool{false, true} {
		moved := m.points(points, narrow)
		sums, weights := make([]float64, k*d), make([]float64, k)
		for i, j := range found.Labels {
			weights[j] += moved.Weights[i]
			for h := range d {
				sums[int(j)*d+h] += moved.Weights[i] * moved.Points[i*d+h]
			}
		}
		_, before, _ := m.pieces(points)
		for j, n := range m.counts {
			if want := max(expectedCount(n, m.noise[j], before[j]), 1); math.Abs(weights[j]-want) > 1e-9 {
				t.Errorf("cluster %d weighs %v, its count is %v, expected to be %v", j, weights[j], n, want)
			}
			for h := range d {
				if got, want := sums[j*d+h]/weights[j], float64(m.to[j*d+h]); math.Abs(got-want) > 1e-5 {
					t.Errorf("cluster %d: the mean of column %d is %v, measured was %v", j, h, got, want)
				}
			}
		}
		if points.Weights[0] == moved.Weights[0] {
			t.Error("the weights are those of before")
		}
	}
}

// TestNearness: two clusters that share a cell, and are measured at a quarter of the distance that its halves have,
// draw its points together by as much; where one of them has no records, they draw them to one point. Points stay as
// far apart where clusters are as far apart as before, or farther.
func TestNearness(t *testing.T) {
	points := &synopsis.Weighted{D: 1}
	for i := range 40 { // a cell from 0 to .4
		points.Append([]float64{(float64(i) + 0.5) / 100}, 1)
	}
	for _, c := range []struct {
		to     [2]float32
		counts []float64
		factor float64
	}{
		{[2]float32{0.175, 0.225}, []float64{20, 20}, 0.25},
		{[2]float32{0.175, 0.225}, []float64{200, 200}, 0.25},
		{[2]float32{0.1, 0.3}, []float64{20, 20}, 1},
		{[2]float32{0.05, 0.4}, []float64{20, 20}, 1},
		{[2]float32{0.1, 0.3}, []float64{39999, -2}, 0.01},
	} {
		m := &measured{[]float32{0.1, 0.3}, c.to[:], c.counts, []float64{1, 1}}
		moved := m.points(points, true)
		if got := (moved.Points[19] - moved.Points[0]) / 0.19; math.Abs(got-c.factor) > 1e-3 {
			t.Errorf("%+v: points are drawn together by %v", c, got)
		}
		if plain := m.points(points, false); math.Abs(plain.Points[19]-plain.Points[0]-0.19) > 1e-6 {
			t.Errorf("%+v: points move by different distances", c)
		}
	}
}
