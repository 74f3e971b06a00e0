package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/study"
)

// What a party of a study is given has no times of its machine, which depend on its records, but in a simulation.
func TestResultOfAStudyHasNoTimes(t *testing.T) {
	seed := uint64(1)
	for _, s := range []*study.Study{{}, {Seed: &seed}} {
		s.K, s.Records, s.FractionBits, s.Bounds = 1, 100, 16, [][2]float64{{0, 1}}
		r := &engine.Result{N: 100, D: 1, K: 1, Centroids: [][]float64{{0.5}}, Ledger: new(privacy.Ledger),
			Seed: s.Seed, Timings: map[string]engine.Timing{engine.PhaseAssign.String(): {Count: 1}}}
		folder := filepath.Join(t.TempDir(), "out")
		var out strings.Builder
		if err := deliverStudy(s, r, &options{format: "json", out: folder}, &out); err != nil {
			t.Fatal(err)
		}
		for where, text := range map[string]string{"printed": out.String(),
			"written": readText(t, filepath.Join(folder, "result.json"))} {
			if strings.Contains(text, engine.PhaseAssign.String()) != (s.Seed != nil) {
				t.Errorf("seed %v, %s: %s", s.Seed, where, text)
			}
		}
	}
}
