package census

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

func clients(sizes ...int) []dataset.Part {
	var parts []dataset.Part
	for _, n := range sizes {
		parts = append(parts, dataset.Part{Points: kernels.NewPanels(n, 1), FractionBits: 16})
	}
	return parts
}

// Noise of the scale that the ledger states is added, whoever adds it, and it costs what is given. The
// mean of |Z| is 2q/(1-q^2), its deviation at most sqrt 2 b: six deviations of the mean of
// 4,000 are left with probability below 1e-8.
func TestCountHasItsNoise(t *testing.T) {
	const epsilon, trials = 0.5, 4000
	q := math.Exp(-epsilon)
	want, deviation := 2*q/(1-q*q), math.Sqrt2/epsilon
	pool := engine.NewPool(1)
	defer pool.Close()
	for _, c := range []struct {
		noise protocol.NoiseBy
		sizes []int
	}{{"", []int{900}}, {protocol.ByServer, []int{500, 400}}} {
		sum := 0.0
		for seed := range uint64(trials) {
			j := &Job{Clients: clients(c.sizes...), Epsilon: epsilon, Noise: c.noise, Seed: &seed}
			plan, err := j.Plan()
			if err != nil {
				t.Fatal(err)
			}
			r, err := plan.Run(context.Background(), engine.NewRuntime(pool))
			if err != nil {
				t.Fatal(err)
			}
			sum += math.Abs(float64(Of(r) - 900))
			if seed > 0 {
				continue
			}
			if e := r.Ledger.TotalFor(privacy.Outsider).Epsilon; math.Abs(*e-epsilon) > 1e-6 {
				t.Errorf("the count costs %v of %v", *e, epsilon)
			}
		}
		if mean := sum / trials; math.Abs(mean-want) > 6*deviation/math.Sqrt(trials) {
			t.Errorf("%v: the noise is %.3f records on average, by the scale in the ledger %.3f", c.noise, mean, want)
		}
	}
}

// No parameter of the count follows from the number of records, and no single client of several
// knows the noise.
func TestPlanOfTheCountKnowsNoNumber(t *testing.T) {
	outline := func(sizes ...int) (string, *engine.Outline) {
		seed := uint64(1)
		plan, err := (&Job{Clients: clients(sizes...), Epsilon: 1, Seed: &seed}).Plan()
		if err != nil {
			t.Fatal(err)
		}
		o, err := plan.Outline()
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), o
	}
	some, o := outline(10, 20)
	if many, _ := outline(1, 7000); some != many {
		t.Errorf("%s for 30 records, %s for 7001", some, many)
	}
	if total := o.Ledger.TotalFor(privacy.Server); total.Unbounded {
		t.Error("the server knows the noise of the clients' count")
	}
	for _, j := range []*Job{nil, {Epsilon: 1}, {Clients: clients(3)}, {Clients: clients(3), Epsilon: math.NaN()}} {
		if _, err := j.Plan(); !fault.IsRequest(err) {
			t.Errorf("%+v: %v", j, err)
		}
	}
}
