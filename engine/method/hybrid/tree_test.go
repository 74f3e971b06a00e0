package hybrid

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
)

// TestRefinement: rounds and radius grow with the signal; a coarse tree gets
// three rounds at least with a smaller radius, unless the signal is too weak.
func TestRefinement(t *testing.T) {
	for _, c := range []struct {
		snr, halvings float64
		d, rounds     int
		radius        float64
	}{
		{10, 9, 2, 1, 0.9}, {3, 9, 2, 1, 0.9}, {100, 9, 2, 2, 0.9 * math.Pow(10, 0.3)}, {1e5, 20, 2, 10, 3},
		{1000, 20, 2, 8, 3},
		{10, 9, 6, 3, 0.54}, {3, 9, 6, 1, 0.9}, {1e5, 11, 6, 10, 1.8},
	} {
		rounds, radius := refinement(c.snr, c.halvings, c.d)
		if rounds != c.rounds || math.Abs(radius-c.radius) > 1e-9 {
			t.Errorf("snr %v, %v halvings, d=%d: %d rounds of radius %v, want %d of %v", c.snr, c.halvings, c.d, rounds, radius,
				c.rounds, c.radius)
		}
	}
}

// TestTreeOfManyRecords: the cells of a tree grow with the records up to a bound, or to a share of each cluster.
func TestTreeOfManyRecords(t *testing.T) {
	for _, c := range []struct{ records, k, cuts int }{
		{10_000, 10, 12}, {1_000_000, 10, 18}, {1_000_000_000, 10, 18}, {1_000_000_000, 10_000, 20},
	} {
		shape := dataset.Part{Points: dataset.Shape(c.records, *box(2), datasettest.Bits).Points,
			FractionBits: datasettest.Bits}
		job := &Job{Branch: "tree", Problem: protocol.Problem{Clients: []dataset.Part{shape}, Bounds: *box(2), K: c.k,
			Budget: privacy.Budget{Epsilon: 1, Delta: 1e-9}}}
		h, err := job.plan()
		if err != nil {
			t.Fatal(err)
		}
		if cuts := h.tree.Cuts(); cuts != c.cuts {
			t.Errorf("%d records, %d clusters: %d cuts, want %d", c.records, c.k, cuts, c.cuts)
		}
	}
}

// TestLeafSpread compares weights and radii of clusters with the mean squared
// distances of many points in each box.
func TestLeafSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(47, 48))
	const k, d, n = 3, 2, 900
	var boxes []synopsis.Box
	for range 40 {
		b := synopsis.Box{Lo: make([]float64, d), Hi: make([]float64, d), Weight: 10 * rng.Float64()}
		for h := range d {
			b.Lo[h] = 1.8*rng.Float64() - 1
			b.Hi[h] = b.Lo[h] + 0.2*rng.Float64()
		}
		boxes = append(boxes, b)
	}
	centroids := []float32{-0.5, -0.5, 0.5, 0.5, 0.5, -0.5}
	spread := leafSpread(boxes, centroids, n, k, d)
	weights, rms := spread.weights, spread.rms
	direct, squares, all := make([]float64, k), make([]float64, k), 0.0
	for _, b := range boxes {
		best, at := math.Inf(1), 0
		for j := range k {
			x, y := (b.Lo[0]+b.Hi[0])/2-float64(centroids[j*d]), (b.Lo[1]+b.Hi[1])/2-float64(centroids[j*d+1])
			if s := x*x + y*y; s < best {
				best, at = s, j
			}
		}
		const side = 60
		for i := range side * side {
			x := b.Lo[0] + (b.Hi[0]-b.Lo[0])*(float64(i%side)+0.5)/side - float64(centroids[at*d])
			y := b.Lo[1] + (b.Hi[1]-b.Lo[1])*(float64(i/side)+0.5)/side - float64(centroids[at*d+1])
			squares[at] += b.Weight * (x*x + y*y) / (side * side)
			all += b.Weight * (x*x + y*y) / (side * side)
		}
		direct[at] += b.Weight
	}
	const prior = n / (2.0 * k)
	for j := range k {
		want := math.Sqrt((squares[j] + all*prior/n) / (direct[j] + prior))
		if math.Abs(weights[j]-direct[j]) > 1e-9 || math.Abs(rms[j]-want) > 1e-3*want {
			t.Errorf("cluster %d: weight %v, radius %v; directly %v, %v", j, weights[j], rms[j], direct[j], want)
		}
	}
}
