package staged_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
	"github.com/cohort-engine/cohort/kernels"
)

// TestProjection compares project with the direct form, and each projected
// record with what it is when it stands alone.
func TestProjection(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const n, d, q = 100, 37, 5
	p := datasettest.GridPanels(rng, n, d)
	ctx, pool, seed := context.Background(), stagedtest.Pool(t), uint64(1)
	for _, kind := range []staged.Projection{staged.Dense, staged.Sparse} {
		rows := staged.RandomProjection(kind, q, d, 0.05, privacy.NewStreams(&seed).Stream(0, 0, string(kind)))
		origin := make([]float32, d)
		for h := range origin {
			origin[h] = staged.OnGrid(rng.Float64()-0.5, datasettest.Bits)
		}
		low, err := staged.Project(ctx, pool, p, kernels.NewMatrix(q, d, rows), origin, datasettest.Bits)
		if err != nil {
			t.Fatal(err)
		}
		clipped := 0
		for i := range n {
			x, y := p.Point(i, nil), low.Point(i, nil)
			for a := range q {
				want := 0.0
				for h := range d {
					want += float64(rows[a*d+h]) * (float64(x[h]) - float64(origin[h]))
				}
				if math.Abs(want) > 1 {
					clipped++
				}
				want = min(max(want, -1), 1)
				if math.Abs(float64(y[a])-want) > 1e-4 {
					t.Fatalf("%s: coordinate %d of record %d is %v, directly %v", kind, a, i, y[a], want)
				}
				if g := float64(y[a]) * (1 << datasettest.Bits); g != math.Trunc(g) {
					t.Fatalf("%s: %v is not on the grid", kind, y[a])
				}
			}
		}
		alone := kernels.NewPanels(1, d)
		alone.Set(0, p.Point(n-1, nil))
		single, err := staged.Project(ctx, pool, alone, kernels.NewMatrix(q, d, rows), origin, datasettest.Bits)
		if err != nil {
			t.Fatal(err)
		}
		for a, y := range single.Point(0, nil) {
			if y != low.Point(n-1, nil)[a] {
				t.Errorf("%s: a record's projection depends on the others", kind)
			}
		}
	}
}

// TestRandomProjection checks mean, variance and values. With 10^6 entries a
// deviation of 6 standard errors has probability below 1e-8.
func TestRandomProjection(t *testing.T) {
	seed := uint64(1)
	for _, kind := range []staged.Projection{staged.Dense, staged.Sparse} {
		rows := staged.RandomProjection(kind, 1000, 1000, 2, privacy.NewStreams(&seed).Stream(0, 0, "test"))
		var sum, squares, zeros float64
		for _, x := range rows {
			sum += float64(x)
			squares += float64(x) * float64(x)
			if x == 0 {
				zeros++
			}
		}
		n := float64(len(rows))
		if math.Abs(sum/n) > 6*2/1e3 || math.Abs(squares/n-4) > 6*4*math.Sqrt2/1e3 {
			t.Errorf("%s: mean %v, mean square %v, want 0 and 4", kind, sum/n, squares/n)
		}
		if kind == staged.Sparse && math.Abs(zeros/n-2.0/3) > 6*0.48/1e3 {
			t.Errorf("sparse: %v of the entries are 0, want 2/3", zeros/n)
		}
	}
}
