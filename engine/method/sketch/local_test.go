package sketch

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
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
		noise    func(*run) *forestRelease
		clusters int
	}{
		{"gaussian", func(r *run) *forestRelease { return r.gaussianForest(0, data.Points.D, forestLevels, 0.5) }, 3},
		{"gaussian, weak", func(r *run) *forestRelease { return r.gaussianForest(0, data.Points.D, forestLevels, 0.01) }, 5},
		{"laplace", func(r *run) *forestRelease { return r.laplaceForest(0, data.Points.D, paperLevels, 2) }, 4},
	} {
		r := &run{Plan: &protocol.Plan{Parties: 2, Seed: seed(9)}, job: &Job{Method: Sketch,
			Problem: protocol.Problem{Calibration: privacy.Proven, Neighbours: privacy.AddRemove,
				Clients: data.Table(), Bounds: data.Bounds}},
			plan: &plan{clusters: c.clusters}, bits: data.FractionBits}
		p := &party{run: r, points: data.Points, releases: partyReleases{forest: c.noise(r)}}
		onParty(t, p, p.startForest)
		var ledger []privacy.Entry
		for _, x := range r.Releases {
			for _, e := range x.Entries {
				e.Calibration, e.Conditions = "", nil // not among what is stored
				ledger = append(ledger, e)
			}
		}
		got = append(got, golden{c.name, p.centers, ledger})
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
