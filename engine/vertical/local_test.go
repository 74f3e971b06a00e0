package vertical

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

var update = flag.Bool("update", false, "write the golden results anew")

// TestGoldenForest compares the local centres that forests give, and what they
// enter into the ledger, with stored ones, to the bit.
func TestGoldenForest(t *testing.T) {
	const n, d = 4000, 7
	data := mixture(t, n, d)
	type golden struct {
		Name    string
		Centers []float32
		Ledger  []privacy.Entry
	}
	var got []golden
	for _, c := range []struct {
		name     string
		noise    func(*party) forestNoise
		clusters int
	}{
		{"gaussian", func(p *party) forestNoise { return p.gaussianForest(forestLevels, 0.5) }, 3},
		{"gaussian, weak", func(p *party) forestNoise { return p.gaussianForest(forestLevels, 0.01) }, 5},
		{"laplace", func(p *party) forestNoise { return p.laplaceForest(paperLevels, 2) }, 4},
	} {
		pool := engine.NewPool(2)
		p := &party{points: data.Points, fractionBits: data.FractionBits, streams: privacy.NewStreams(seed(9)), rt: engine.NewRuntime(pool), clusters: c.clusters, records: n,
			protocol: Sketch, calibration: privacy.Proven}
		err := p.startForest(context.Background(), c.noise(p))
		pool.Close()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i := range p.ledger {
			p.ledger[i].Calibration = "" // not among what is stored
		}
		got = append(got, golden{c.name, p.centers, p.ledger})
	}
	b, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "forest.json")
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
