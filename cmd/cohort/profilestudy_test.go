package main

import (
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/study"
)

// The text of a study's profile fits 80 columns, whatever its numbers are.
func TestStudyProfileFits(t *testing.T) {
	s := &study.Status{ID: "0011223344556677", State: "done", Took: 1.23e9, Rounds: 100}
	for _, sums := range []int{0, 100} {
		s.Sums, s.Parties = sums, []study.PartyStatus{{Sent: 1 << 50}}
		p := studyProfile{ID: s.ID, State: s.State, Sums: sums, TookMS: s.Took}
		if sums == 0 {
			p.whole(s)
		} else {
			for _, step := range []string{"keys", "shares", "masked vectors", "signatures", "unmasking"} {
				s.Steps = append(s.Steps, study.StepStatus{Step: step, Answers: 1e6, Mean: 1.23e9, Most: 1.23e9, Bytes: 1 << 56})
			}
			p.sums(s)
		}
		var b strings.Builder
		if err := p.text(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > 80 || strings.HasSuffix(line, " ") {
				t.Errorf("%d columns: %q", len(line), line)
			}
		}
		for _, want := range []string{"ccWAN100  ", "Cross-continental WAN (medium): 100 Mbit/s, 120 ms", "in all"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("it lacks %q: %s", want, b.String())
			}
		}
	}
}
