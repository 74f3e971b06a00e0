package eugkm

import (
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
)

// TestGrid: the cells a side are the paper's (n epsilon/10)^(2/(2+d)), at most 2^17 in all.
func TestGrid(t *testing.T) {
	for _, c := range []struct {
		n, d    int
		epsilon float64
		side    int
	}{{5000, 2, 1, 22}, {5000, 2, 0.05, 5}, {400, 2, 0.1, 2}, {150, 4, 1, 2}, {48842, 6, 1, 7}, {70000, 784, 1, 1},
		{10, 1, 0.1, 1}} {
		if g := gridFor(c.n, c.d, c.epsilon); g.Side != c.side {
			t.Errorf("%+v: %d cells a side", c, g.Side)
		}
	}
}

// TestCentres: the points are the middles of the cells that Count means.
func TestCentres(t *testing.T) {
	g := synopsis.Grid{D: 2, Side: 3}
	points := centres(g, []float64{0, 0, 5, -1, 0, 0, 0, 7, 0})
	if points.Len() != 2 || points.Weights[0] != 5 || points.Weights[1] != 7 {
		t.Fatalf("%+v", points)
	}
	for i, want := range []float64{-2. / 3, 2. / 3, 2. / 3, 0} {
		if math.Abs(points.Points[i]-want) > 1e-12 {
			t.Errorf("coordinate %d is %g, want %g", i, points.Points[i], want)
		}
	}
}

// TestFindsClusters: with little noise far clusters are found, a noisy round brings their
// centres to the means, and the ledger spends the budget.
func TestFindsClusters(t *testing.T) {
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 20000, D: 2, K: 5, Separation: 12, Seed: 1})
	parts := norm.Table()
	eng := enginetest.New(t)
	seed, last := uint64(2), math.Inf(1)
	for rounds := range 2 {
		for _, mechanism := range []protocol.Mechanism{protocol.Gaussian, protocol.Laplace} {
			res := enginetest.Run(t, eng, &Job{Problem: protocol.Problem{Clients: parts,
				Bounds: norm.Bounds, Labels: table.Labels, K: 5, Budget: privacy.Budget{Epsilon: 2, Delta: 1e-6},
				Iterations: rounds, Mechanism: mechanism, Seed: &seed}})
			if *res.ARI < 0.99 || *res.NICV > last*1.01 {
				t.Errorf("%d rounds: adjusted Rand index %g, NICV %g after %g", rounds, *res.ARI, *res.NICV, last)
			}
			if total := *res.Ledger.TotalFor("outsider").Epsilon; total > 2*(1+1e-6) ||
				mechanism == protocol.Gaussian && total < 1.95 {
				t.Errorf("%d rounds: the ledger says %g of 2", rounds, total)
			}
			last = *res.NICV
		}
	}
}
