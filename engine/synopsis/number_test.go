package synopsis

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// TestNumbers: far groups of points have the greatest silhouette at their own number, which is
// the elbow as well, and silhouettes are those of the definition.
func TestNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := &Weighted{D: 2}
	for i := range 400 {
		group := float64(i % 5)
		w.Append([]float64{0.8*math.Cos(group*1.2566) + 0.05*rng.NormFloat64(),
			0.8*math.Sin(group*1.2566) + 0.05*rng.NormFloat64()}, 1)
	}
	w.Append([]float64{0, 0}, -3) // of no weight
	curve, err := Numbers(context.Background(), nil, w, 2, 9, SearchOptions{Starts: 3, Swaps: 20}, rng)
	if err != nil {
		t.Fatal(err)
	}
	if by, elbow := BySilhouette(curve), ByElbow(curve); by != 5 || elbow != 5 {
		t.Errorf("silhouette says %d, elbow %d, of %v", by, elbow, curve)
	}
	for i, c := range curve {
		if c.K != i+2 || i > 0 && c.Loss > curve[i-1].Loss*1.001 {
			t.Errorf("%d: %+v after %+v", i, c, curve[max(i-1, 0)])
		}
	}
	if one := BySilhouette([]Clustering{{K: 4}}); one != 4 || ByElbow([]Clustering{{K: 4}}) != 4 {
		t.Error("a single number is not chosen")
	}
}

// TestSilhouettes compares with the definition, point by point; points of one place are one.
func TestSilhouettes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	w := randomWeighted(rng, 30, 3)
	for i := range w.Weights {
		w.Weights[i] = 1
	}
	labels := make([]uint16, 30)
	for i := range labels {
		labels[i] = uint16(rng.IntN(4))
	}
	labels[7] = 4 // alone
	s := newSample(w, 30)
	if len(s.index) != 30 {
		t.Fatalf("%d points", len(s.index))
	}
	out := []Clustering{{K: 5}}
	s.silhouettes([][]uint16{s.labels(labels)}, out)
	want := 0.0
	for i := range labels {
		sums, counts := make([]float64, 5), make([]float64, 5)
		for q, j := range labels {
			if q != i {
				sums[j] += math.Sqrt(elementary.SquaredDistance(w.Points[i*3:i*3+3], w.Points[q*3:q*3+3]))
				counts[j]++
			}
		}
		a, b := 0.0, math.Inf(1)
		for j := range sums {
			if j == int(labels[i]) {
				a = sums[j] / counts[j]
			} else {
				b = min(b, sums[j]/counts[j])
			}
		}
		if i != 7 {
			want += (b - a) / max(a, b) / 30
		}
	}
	if math.Abs(out[0].Silhouette-want) > 1e-12 {
		t.Errorf("silhouette %v, by its definition %v", out[0].Silhouette, want)
	}
	heavy := &Weighted{D: 1, Points: []float64{0, 1}, Weights: []float64{90, 10}}
	s = newSample(heavy, 20)
	if len(s.index) != 20 {
		t.Fatalf("%d points of 20", len(s.index))
	}
	out = []Clustering{{K: 2}}
	s.silhouettes([][]uint16{s.labels([]uint16{0, 1})}, out)
	if out[0].Silhouette != 0 {
		t.Errorf("places alone in their clusters have a silhouette of %v", out[0].Silhouette)
	}
}
