package hybrid

import (
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
)

// TestLooseBoundsAreCheap: under bounds many times as wide as the records, off the centre, the loss is
// that under tight ones, for few records, too; without the frame it is not.
func TestLooseBoundsAreCheap(t *testing.T) {
	eng := enginetest.New(t)
	for _, c := range []struct {
		n, d, k int
		factor  float64
	}{{20000, 2, 8, 20}, {2500, 3, 4, 80}} {
		norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: c.n, D: c.d, K: c.k, Separation: 9, Seed: 3})
		loss := func(frame string) (sum float64) {
			parts := norm.Table()
			for seed := range uint64(3) {
				res := enginetest.Run(t, eng, &Job{Frame: frame, Problem: protocol.Problem{Clients: parts,
					Bounds: norm.Bounds, K: c.k, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}, Seed: &seed}})
				sum += *res.NICV / 3
			}
			return sum
		}
		tight := loss("")
		row := make([]float32, c.d)
		for i := range norm.Points.N {
			row = norm.Points.Point(i, row)
			for h, side := range []float64{0.7, -0.3, 0.1}[:c.d] {
				row[h] = staged.OnGrid(float64(row[h])/c.factor+side, 16)
			}
			norm.Points.Set(i, row)
		}
		loose, without := loss("")*c.factor*c.factor, loss("off")*c.factor*c.factor
		if loose > 1.1*tight || without < 1.5*tight {
			t.Errorf("%+v: NICV %v under tight bounds, %v under loose ones, %v of them without the frame", c, tight, loose,
				without)
		}
	}
}
