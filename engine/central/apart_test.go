package central

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol/protocoltest"
)

// TestRolesApart runs every method with each role in a goroutine of its own, which
// shares nothing but bytes with the others, and gets the bits of the roles that
// share a process.
func TestRolesApart(t *testing.T) {
	seed := uint64(12)
	norm, _ := builtin(t, "blobs", dataset.Generator{N: 1500, D: 9, K: 4, Separation: 6, Seed: 6})
	budget, pure := privacy.Budget{Epsilon: 2, Delta: 1e-5}, privacy.Budget{Epsilon: 2, Delta: 0}
	pool := engine.NewPool(2)
	defer pool.Close()
	split := func(m int) Data {
		parts, err := norm.Split(m, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		return Data{Clients: parts, Bounds: norm.Bounds}
	}
	for _, c := range []struct {
		name string
		job  engine.Job
	}{
		{"tree of three", &Hybrid{Data: split(3), K: 4, Budget: budget, Branch: "tree", Seed: &seed}},
		{"balanced tree of two", &Hybrid{Data: split(2), K: 4, Budget: pure, Balance: 1.5, Seed: &seed}},
		{"projected of three", &Hybrid{Data: split(3), K: 4, Budget: budget, Branch: "projected", Seed: &seed}},
		{"high-d of two", &Hybrid{Data: split(2), K: 4, Budget: pure, Branch: "high-d", Seed: &seed}},
		{"lsf", &LSF{Data: split(1), K: 4, Budget: budget, Seed: &seed}},
		{"balcan", &Balcan{Data: split(1), K: 4, Budget: budget, Seed: &seed}},
		{"balcan-edler", &Edler{Data: split(1), K: 4, Budget: budget, Seed: &seed}},
		{"pca", &PCA{Data: split(1), K: 4, Seed: &seed}},
	} {
		plan, err := c.job.Plan()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		together, err := plan.Run(context.Background(), engine.NewRuntime(pool))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		o := plan.(planned)
		apart, err := o.Connect(context.Background(), engine.NewRuntime(pool), protocoltest.Apart(o.frame.Plan))
		if err != nil {
			t.Fatalf("%s, apart: %v", c.name, err)
		}
		if diff := cmp.Diff(text(t, together), text(t, apart)); diff != "" {
			t.Errorf("%s: roles apart differ:\n%s", c.name, diff)
		}
	}
}

// text is a result as the command line prints it.
func text(t *testing.T, r *engine.Result) string {
	t.Helper()
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
