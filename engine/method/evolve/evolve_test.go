package evolve

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
)

// TestFindsClusters: more generations come nearer to far clusters, and the ledger spends the
// budget with either noise.
func TestFindsClusters(t *testing.T) {
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 20000, D: 2, K: 5, Separation: 12, Seed: 1})
	parts := norm.Table()
	eng := enginetest.New(t)
	seed, first := uint64(2), 0.0
	for _, mechanism := range []protocol.Mechanism{protocol.Gaussian, protocol.Laplace} {
		for _, generations := range []int{1, 0} {
			res := enginetest.Run(t, eng, &Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds,
				Labels: table.Labels, K: 5, Budget: privacy.Budget{Epsilon: 2, Delta: 1e-6}, Iterations: generations,
				Mechanism: mechanism, Seed: &seed}})
			if total := *res.Ledger.TotalFor("outsider").Epsilon; total > 2*(1+1e-6) || total < 1.9 {
				t.Errorf("%s, %d generations: the ledger says %g of 2", mechanism, res.Iterations, total)
			}
			if generations == 1 {
				first = *res.NICV
			} else if *res.ARI < 0.99 || *res.NICV >= first || res.Iterations < 2 {
				t.Errorf("%s: adjusted Rand index %g, NICV %g, %g in one generation", mechanism, *res.ARI, *res.NICV, first)
			}
		}
	}
}

// TestNext: the heaviest live on where they are, none without weight does, and the others of a
// generation are as many as asked for, near parents in proportion to their weights.
func TestNext(t *testing.T) {
	const d, size = 2, 40
	population := []float32{-0.5, -0.5, -0.4, -0.5, 0.5, 0.5, 0.5, 0.4, 0.9, -0.9}
	weights := []float64{600, 0, 300, 100, 0}
	out := next(population, weights, d, size, 16, privacy.NewStreams(new(uint64)).Stream(0, 0, "test"))
	if len(out) != size*d {
		t.Fatalf("%d candidates, want %d", len(out)/d, size)
	}
	if !slices.Equal(out[:6], []float32{-0.5, -0.5, 0.5, 0.5, 0.5, 0.4}) {
		t.Errorf("%v live on", out[:6])
	}
	near := 0
	for i := 3; i < size; i++ {
		x, y := float64(out[i*d])+0.5, float64(out[i*d+1])+0.5
		if math.Hypot(x, y) < 0.6*math.Hypot(1, 0.9)+1e-3 {
			near++ // to the heaviest, whose nearest living neighbour is 1.35 away
		}
		if math.Abs(float64(out[i*d])) > 1 || math.Abs(float64(out[i*d+1])) > 1 {
			t.Errorf("candidate %d is %v", i, out[i*d:i*d+2])
		}
	}
	if want := 0.6 * (size - 3); math.Abs(float64(near)-want) > 1 {
		t.Errorf("%d children of the heaviest, want %v", near, want)
	}
	few := next(population, weights, d, 4, 16, privacy.NewStreams(new(uint64)).Stream(0, 0, "test"))
	if len(few) != 4*d || !slices.Equal(few[:4], []float32{-0.5, -0.5, 0.5, 0.5}) {
		t.Errorf("of four candidates %v", few)
	}
}

// TestNearest counts each record once, at the candidate that is nearest.
func TestNearest(t *testing.T) {
	const n, d, m = 3000, 3, 17
	rng := rand.New(rand.NewPCG(5, 6))
	p := datasettest.GridPanels(rng, n, d)
	population := make([]float32, m*d)
	for i := range population {
		population[i] = staged.OnGrid(2*rng.Float64()-1, 16)
	}
	got, want := make([]int64, m), make([]int64, m)
	stagedtest.OnParty(t, stagedtest.Plan(t, p, 2), p, func(ctx context.Context, p *staged.Party) error {
		return nearest(ctx, p, population, got)
	})
	for i := range n {
		best, at := math.Inf(1), 0
		for c := range m {
			sum := 0.0
			for h, x := range p.Point(i, nil) {
				sum += math.Pow(float64(x)-float64(population[c*d+h]), 2)
			}
			if sum < best {
				best, at = sum, c
			}
		}
		want[at]++
	}
	if !slices.Equal(got, want) {
		t.Errorf("counts %v, directly %v", got, want)
	}
}

// TestRefuses: generations beyond what a run may have.
func TestRefuses(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 300, D: 2, K: 2, Seed: 1})
	parts := norm.Table()
	for _, generations := range []int{-1, mostGenerations + 1} {
		job := &Job{Problem: protocol.Problem{Clients: parts, K: 2, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5},
			Iterations: generations}}
		if _, err := job.Plan(); err == nil {
			t.Errorf("%d generations are taken", generations)
		}
	}
}

// TestMostClusters: the largest k, by what a party does with the plan's candidates.
func TestMostClusters(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 65540, D: 2, K: 2, Seed: 1})
	parts := norm.Table()
	eng := enginetest.New(t)
	seed := uint64(1)
	res, err := eng.Run(context.Background(), &Job{Problem: protocol.Problem{Clients: parts, K: 65534, Iterations: 1,
		Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}, Seed: &seed}})
	if err != nil || res.K != 65534 {
		t.Fatalf("k is %d, error %v", res.K, err)
	}
}
