package lloyd

import (
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Rounds that repeat have one line of each table of the plan, however many they are, and every round finds its own.
func TestStages(t *testing.T) {
	const most = protocol.MostIterations
	later := Job{Method: Relative, Schedule: LaterCode}
	for _, c := range []struct {
		job    Job
		rounds int
		want   []int
	}{
		{Job{Method: SuLloyd}, most, []int{0}},
		{Job{Method: FastLloyd}, most, []int{0}},
		{Job{Method: Lloyd}, most, []int{0}},
		{Job{Method: SuLloyd, Drops: []Drop{{2, most - 1}, {1, 5}}}, most, []int{0, 5, most - 1}},
		{later, maxRadii, []int{0, 1}},
		{later, 1, []int{0}},
		{Job{Method: Relative}, 4, []int{0, 1, 2, 3}},
	} {
		job := c.job
		job.Problem = protocol.Problem{K: 2, Clients: blobs(t, 600, 2, 2, 3, 1), Iterations: c.rounds, NoQuality: true}
		if job.Method.Private() {
			job.Budget = privacy.Budget{Epsilon: 1e6, Delta: 1e-5}
		}
		if job.Schedule != "" {
			job.Calibration = privacy.Published
		}
		p := planOf(t, &job)
		if !slices.Equal(p.stages, c.want) {
			t.Errorf("%s, %d rounds: stages begin at %v, want %v", job.Method, c.rounds, p.stages, c.want)
		}
		for at, first := range p.stages {
			if last := p.until(at, c.rounds) - 1; p.stage(first) != at || p.stage(last) != at {
				t.Errorf("rounds %d to %d are of stages %d and %d, not of %d", first, last, p.stage(first), p.stage(last), at)
			}
		}
		for _, part := range p.parts {
			if job.Method.Private() && len(part.scales) != len(c.want) {
				t.Errorf("%s: %d scales for %d stages", job.Method, len(part.scales), len(c.want))
			}
		}
		for _, e := range p.release.Entries {
			if times := e.Cost.Times(); e.Cost.Family != "" && len(c.want) == 1 && times != c.rounds {
				t.Errorf("%s: %s is paid for %d times", job.Method, e.What, times)
			}
		}
	}
}

// More rounds with a radius and noise each than have room are refused; without noise there is room.
func TestMostRadii(t *testing.T) {
	for _, s := range []Schedule{Sqrt, Geometric} {
		job := Job{Method: FastLloyd, Schedule: s, Problem: protocol.Problem{K: 2, Clients: blobs(t, 600, 2, 2, 1, 1),
			Iterations: maxRadii + 1, Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}}}
		if _, err := job.Plan(); err == nil || !strings.Contains(err.Error(), "at most 1000") {
			t.Errorf("%s: %v", s, err)
		}
		job.Method, job.Budget = CLloyd, privacy.Budget{}
		if _, err := job.Plan(); err != nil {
			t.Errorf("%s without noise: %v", s, err)
		}
	}
}
