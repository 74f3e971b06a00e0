package central

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

var update = flag.Bool("update", false, "write the golden results anew")

// TestGoldenResults compares the results of a few seeded jobs with stored ones,
// to the bit: on every architecture and instruction set. Epsilons of the ledger
// come from numeric accountants, whose last bits are not part of that promise.
func TestGoldenResults(t *testing.T) {
	seed := uint64(20)
	norm, _ := builtin(t, "blobs", dataset.Generator{N: 3000, D: 10, K: 5, Separation: 5, Seed: 6})
	flat, _ := builtin(t, "blobs", dataset.Generator{N: 3000, D: 2, K: 5, Separation: 6, Seed: 7})
	three, _ := norm.Split(3, nil, 1)
	one, _ := norm.Split(1, nil, 1)
	two, _ := flat.Split(1, nil, 1)
	data, clients, plane := Data{Clients: one, Bounds: norm.Bounds}, Data{Clients: three, Bounds: norm.Bounds}, Data{Clients: two, Bounds: flat.Bounds}
	budget, pure := privacy.Budget{Epsilon: 1, Delta: 1e-5}, privacy.Budget{Epsilon: 1, Delta: 0}
	type golden struct {
		Name      string
		Centroids [][]float64
		NICV      float64
		Comm      engine.Comm
	}
	var got []golden
	eng, err := engine.New()
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for _, c := range []struct {
		name string
		job  engine.Job
	}{
		{"lsf", &LSF{Data: data, K: 5, Budget: budget, Seed: &seed}},
		{"lsf laplace", &LSF{Data: data, K: 5, Budget: pure, Levels: 9, Seed: &seed}},
		{"hybrid tree", &Hybrid{Data: data, K: 5, Budget: budget, Branch: "tree", Seed: &seed}},
		{"hybrid plane", &Hybrid{Data: plane, K: 5, Budget: budget, Seed: &seed}},
		{"hybrid balance", &Hybrid{Data: plane, K: 5, Budget: pure, Balance: 1.2, Seed: &seed}},
		{"hybrid projected", &Hybrid{Data: clients, K: 5, Budget: budget, Branch: "projected", Seed: &seed}},
		{"hybrid high-d", &Hybrid{Data: data, K: 5, Budget: budget, Branch: "high-d", Seed: &seed}},
		{"balcan", &Balcan{Data: data, K: 5, Budget: budget, Seed: &seed}},
		{"balcan-edler", &Edler{Data: data, K: 5, Budget: budget, Rounds: 2, Seed: &seed}},
	} {
		res, err := eng.Run(context.Background(), c.job)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got = append(got, golden{c.name, res.Centroids, *res.NICV, res.Comm})
	}
	b, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "golden.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b) {
		t.Errorf("results differ from %s; run with -update if they should", path)
	}
}
