package seeding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/kernels"
)

// Extend keeps distances and owners as a plain search over all candidates finds them,
// also with candidates that are alike, and with weights.
func TestExtendKeepsTheNearest(t *testing.T) {
	for _, d := range []int{2, 16, 40} {
		rng := rand.New(rand.NewPCG(5, uint64(d)))
		points := blobs(rng, 4321, d, 9, 0.1)
		p, weights := NewPart(points, 3, together), make([]float64, points.N)
		for i := range weights {
			weights[i] = float64(i % 3)
		}
		p.Weigh(weights)
		for range 2 { // Forget begins anew
			p.Forget()
			var all []float32
			for _, count := range []int{1, 20, 20} {
				var rows []float32
				for range count {
					rows = append(rows, p.recordAt(rng.IntN(points.N), nil)...)
				}
				copy(rows, all[:min(d, len(all))]) // alike
				all = append(all, rows...)
				p.Extend(rows)
			}
			potential, owned := 0.0, make([]float64, len(all)/d)
			for i := range points.N {
				row, least, owner := p.recordAt(i, nil), math.Inf(1), 0
				for a := range owned {
					if x := squared(row, all[a*d:(a+1)*d]); x < least {
						least, owner = x, a
					}
				}
				potential += weights[i] * least
				owned[owner] += weights[i]
			}
			if math.Abs(p.Potential()-potential) > 1e-4*potential+1e-3 {
				t.Errorf("d=%d: the potential is %g, want %g", d, p.Potential(), potential)
			}
			if !slices.Equal(p.Owned(), owned) {
				t.Errorf("d=%d: the candidates own %v, want %v", d, p.Owned(), owned)
			}
		}
	}
}

// Recluster takes candidates that weigh something alone, each centre one of them.
func TestReclusterTakesCandidates(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	const d, k = 3, 12
	points := blobs(rng, 90, d, k, 0.01)
	rows, weights := []float32(nil), make([]float64, points.N)
	for i := range weights {
		rows = append(rows, points.Point(i, nil)...)
		if weights[i] = float64(i % 4); rows[i*d] > 0.3 {
			weights[i] = 0
		}
	}
	centres := Recluster(rows, weights, d, k, rng.Float64, nil)
	if len(centres) != k*d {
		t.Fatalf("%d numbers, want %d", len(centres), k*d)
	}
	for a := 0; a < len(centres); a += d {
		at := -1
		for i := range weights {
			if slices.Equal(centres[a:a+d], rows[i*d:(i+1)*d]) {
				at = i
			}
		}
		if at < 0 || weights[at] == 0 {
			t.Errorf("centre %v is candidate %d", centres[a:a+d], at)
		}
	}
}

// The first centre follows the weights: with all weight on the last of two parts it is
// a record of it.
func TestFirstCentreFollowsWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	var parts []*Part
	for q := range 2 {
		rows := make([]float32, 40)
		for i := range rows {
			rows[i] = float32(q)/2 + float32(i)/(1<<10)
		}
		points, weights := kernels.NewPanels(20, 2), make([]float64, 20)
		kernels.Pack(points, rows)
		weights[7] = float64(q)
		parts = append(parts, NewPart(*points, 2, nil))
		parts[q].Weigh(weights)
	}
	if got, want := PlusPlus(parts, 1, 2, rng.Float64), parts[1].recordAt(7, nil); !slices.Equal(got, want) {
		t.Errorf("the first centre is %v, want %v", got, want)
	}
}
