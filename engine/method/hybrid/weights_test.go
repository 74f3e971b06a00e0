package hybrid

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// weighted are records of two groups, those right of the middle of the first column heavier.
func weighted(t *testing.T, light, heavy float64) (*dataset.Normalised, []float64) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 20000, D: 2, K: 6, Separation: 9, Seed: 3})
	norm.Weights = make([]float64, norm.Points.N)
	var row []float32
	for i := range norm.Weights {
		norm.Weights[i] = light
		if row = norm.Points.Point(i, row); row[0] > 0 {
			norm.Weights[i] = heavy
		}
	}
	return norm, norm.Weights
}

func weightedJob(norm *dataset.Normalised, clients int, most float64) *Job {
	parts, _ := norm.Split(clients, nil, 1)
	seed := uint64(7)
	return &Job{Problem: protocol.Problem{Clients: parts, Bounds: norm.Bounds, K: 6, WeightCap: most, NoQuality: true,
		Budget: privacy.Budget{Epsilon: 4, Delta: 1e-6}, Seed: &seed}}
}

// TestWeightsMoveTheResult: sizes are weights, in their own units, together nearly the noisy total, and heavy records
// have as many times more of them; every branch runs.
func TestWeightsMoveTheResult(t *testing.T) {
	norm, weights := weighted(t, 2, 6)
	total := 0.0
	for _, w := range weights {
		total += w
	}
	eng := enginetest.New(t)
	for _, branch := range []string{"tree", "projected", "high-d", "mean"} {
		for _, clients := range []int{1, 3} {
			job := weightedJob(norm, clients, 8)
			job.Branch = branch
			res, err := eng.Run(context.Background(), job)
			if err != nil {
				t.Fatalf("%s, %d clients: %v", branch, clients, err)
			}
			if res.Weight == nil || math.Abs(*res.Weight-total) > 0.02*total {
				t.Errorf("%s, %d clients: the weight of all is %v, want %v", branch, clients, *res.Weight, total)
			}
			sum := 0.0
			for _, size := range res.Sizes {
				sum += size
			}
			if res.Sizes != nil && math.Abs(sum-total) > 0.05*total {
				t.Errorf("%s, %d clients: sizes add up to %v, want %v", branch, clients, sum, total)
			}
			if spent := res.Ledger.TotalFor(privacy.Outsider); spent.Epsilon == nil || *spent.Epsilon > 4*(1+1e-9) {
				t.Errorf("%s, %d clients: the ledger's total is %v", branch, clients, spent.Epsilon)
			}
		}
	}
}

// TestPlanKnowsNoWeights: the plan is the same whatever the records weigh.
func TestPlanKnowsNoWeights(t *testing.T) {
	var first string
	for _, heavy := range []float64{0, 0.5, 1000} {
		norm, _ := weighted(t, 1, heavy)
		plan, err := weightedJob(norm, 2, 1).Plan()
		if err != nil {
			t.Fatal(err)
		}
		outline, err := plan.Outline()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(outline)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(text)
		}
		if string(text) != first {
			t.Errorf("heavy records of %v have another plan", heavy)
		}
	}
}

func TestBadWeights(t *testing.T) {
	for what, change := range map[string]func(*Job){
		"a negative weight":        func(j *Job) { j.Clients[0].Weights[3] = -1 },
		"no number":                func(j *Job) { j.Clients[0].Weights[3] = math.NaN() },
		"too few":                  func(j *Job) { j.Clients[0].Weights = j.Clients[0].Weights[1:] },
		"a client without":         func(j *Job) { j.Clients[1].Weights = nil },
		"an infinite cap":          func(j *Job) { j.WeightCap = math.Inf(1) },
		"a cap of nothing":         func(j *Job) { j.Clients[0].Weights, j.Clients[1].Weights = nil, nil },
		"a negative cap":           func(j *Job) { j.WeightCap = -1 },
		"figures of other weights": func(j *Job) { j.NoQuality = false },
	} {
		norm, _ := weighted(t, 1, 2)
		job := weightedJob(norm, 2, 1)
		change(job)
		if _, err := job.Plan(); !fault.IsRequest(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
