package catalog

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// heavy are records of two groups in one column, of which the right one weighs so much and the left one 2.
func heavy(t *testing.T, right float64) (*dataset.Normalised, float64) {
	t.Helper()
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 6000, D: 2, K: 6, Separation: 9, Seed: 3})
	total, row := 0.0, []float32(nil)
	for i := range norm.Points.N {
		w := 2.
		if row = norm.Points.Point(i, row); row[0] > 0 {
			w = right
		}
		norm.Weights, total = append(norm.Weights, w), total+w
	}
	return norm, total
}

// TestWeightsOfEveryMethod: a private method counts records for their weights, up to the cap and in their own units,
// within its budget, or refuses them with its reason.
func TestWeightsOfEveryMethod(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(2))
	methods := Methods()
	for i := range methods {
		m := &methods[i]
		if m.Weighs != (m.Unweighed == "") {
			t.Errorf("%s: weighs is %v, and it does not because %q", m.Name, m.Weighs, m.Unweighed)
		}
		if m.Holds == method.Columns || !m.Private && m.Weighs {
			continue
		}
		for _, right := range []float64{6, 0, 1000} { // of a cap of 8
			norm, total := heavy(t, right)
			if right > 8 {
				_, total = heavy(t, 8)
			}
			seed := uint64(5)
			p := protocol.Problem{Clients: norm.Table(), Bounds: norm.Bounds, K: 6, Seed: &seed, NoQuality: true}
			if m.Private {
				p.Budget = privacy.Budget{Epsilon: 8, Delta: 1e-6}
			}
			var set method.Settings
			if m.Weighs {
				set = method.Settings{"weight-cap": "8"}
			}
			if m.Name == "eugkm" {
				set["iterations"] = "1" // the sizes of its grid are sums of what is positive, noise too
			}
			job, err := methods.Job(m.Name, p, set)
			if !m.Weighs {
				if !fault.IsRequest(err) || !strings.Contains(err.Error(), m.Unweighed) {
					t.Errorf("%s: %v", m.Name, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", m.Name, err)
			}
			res, err := eng.Run(context.Background(), job)
			if err != nil {
				t.Fatalf("%s: %v", m.Name, err)
			}
			sum, onRight := 0.0, 0.0
			edge := norm.Bounds.Lo[0] + 0.6*(norm.Bounds.Hi[0]-norm.Bounds.Lo[0])
			for j, size := range res.Sizes {
				if sum += size; res.Centroids[j][0] > edge {
					onRight += size
				}
			}
			if math.Abs(sum-total) > 0.1*total {
				t.Errorf("%s, %v: sizes add up to %v, want %v", m.Name, right, sum, total)
			}
			if right == 0 && onRight > 0.1*total {
				t.Errorf("%s: records of no weight count for %v of %v", m.Name, onRight, total)
			}
			if spent := res.Ledger.TotalFor(privacy.Outsider); spent.Epsilon == nil || *spent.Epsilon > 8*(1+1e-9) {
				t.Errorf("%s: the ledger's total is %v", m.Name, spent.Epsilon)
			}
		}
	}
}
