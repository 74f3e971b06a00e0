package hybrid

import (
	"context"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
)

// TestLooseBoundsAreCheap: under bounds twenty times as wide as the records, off the centre, the loss
// is that under tight ones; without the frame it is not.
func TestLooseBoundsAreCheap(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 20000, D: 2, K: 8, Separation: 9, Seed: 3})
	eng, err := engine.New()
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	loss := func(frame string) (sum float64) {
		parts, err := norm.Split(1, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(3) {
			res, err := eng.Run(context.Background(), &Job{Frame: frame, Problem: protocol.Problem{Clients: parts,
				Bounds: norm.Bounds, K: 8, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}, Seed: &seed}})
			if err != nil {
				t.Fatal(err)
			}
			sum += *res.NICV / 3
		}
		return sum
	}
	tight := loss("")
	const factor = 20
	row := make([]float32, 2)
	for i := range norm.Points.N {
		row = norm.Points.Point(i, row)
		norm.Points.Set(i, []float32{staged.OnGrid(float64(row[0])/factor+0.7, 16),
			staged.OnGrid(float64(row[1])/factor-0.3, 16)})
	}
	loose, without := loss("")*factor*factor, loss("off")*factor*factor
	if loose > 1.1*tight || without < 1.5*tight {
		t.Errorf("NICV %v under tight bounds, %v under loose ones, %v of them without the frame", tight, loose, without)
	}
}
