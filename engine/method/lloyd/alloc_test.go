package lloyd

import (
	"sync/atomic"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

// Steady-state rounds allocate nothing, whatever the method, the aggregator and
// the number of workers.
func TestRoundsAllocateNothing(t *testing.T) {
	seed := uint64(1)
	small, large := blobs(t, 600, 2, 4, 2, 1), blobs(t, 30000, 4, 8, 3, 1)
	for _, c := range []struct {
		name string
		job  Job
	}{
		{"lloyd", Job{Method: Lloyd, Init: step.Sphere}},
		{"sulloyd", Job{Method: SuLloyd}},
		{"sulloyd claimed", Job{Method: SuLloyd, Problem: protocol.Problem{Calibration: privacy.Claimed}}},
		{"sulloyd Gaussian", Job{Method: SuLloyd, Problem: protocol.Problem{Mechanism: protocol.Gaussian}}},
		{"relative", Job{Method: Relative, Schedule: Sqrt}},
		{"relative, excluding", Job{Method: Relative, Schedule: LaterCode}},
		{"ring", Job{Method: SuLloyd, Aggregator: ByRing}},
		{"split", Job{Method: SuLloyd, Problem: protocol.Problem{Mechanism: protocol.Gaussian, Noise: protocol.InShares}}},
		{"split laplace", Job{Method: SuLloyd, Problem: protocol.Problem{Noise: protocol.InShares}}},
		{"nonexclusive", Job{Method: FastLloyd, NonExclusive: true}},
		{"fastlloyd", Job{Method: FastLloyd}},
		{"csulloyd", Job{Method: CSuLloyd}},
		{"clloyd", Job{Method: CLloyd}},
		{"means of lloyd", Job{Method: Lloyd, Release: Centroid}},
	} {
		for _, parts := range [][]dataset.Part{small, large} {
			for _, workers := range []int{1, 2} {
				job := c.job
				job.K, job.Clients, job.Seed, job.Iterations = 8, parts, &seed, 400
				if job.Method.Private() {
					job.Budget = privacy.Budget{Epsilon: 1000, Delta: 1e-6}
				}
				if job.Method.Private() && job.Method.Constrained() && !job.NonExclusive {
					// Little noise, so that rounds resemble each other: the flow
					// solver's memory grows with the hardest round so far.
					// Shares of it would be too small.
					job.Budget.Epsilon, job.Noise = 1e6, protocol.ByServer
				}
				s := begin(t, workers, job)
				step := func() { s.step(t) }
				for range 100 { // buffers grow to what the rounds need
					step()
				}
				if n := testing.AllocsPerRun(20, step); n > 0 {
					t.Errorf("%s, %d records, %d workers: %g allocations per round", c.name, s.n, workers, n)
				}
				s.session.Close()
			}
		}
	}
}

// regions counts what the pool does until the last round has ended.
type regions struct {
	begun, inRounds atomic.Int64
}

func (r *regions) JobBegin(engine.JobInfo)         {}
func (r *regions) JobEnd(*engine.Result, error)    {}
func (r *regions) PhaseBegin(engine.Span)          {}
func (r *regions) PhaseEnd(engine.Span)            {}
func (r *regions) RegionBegin(int)                 { r.begun.Add(1) }
func (r *regions) RegionEnd(int)                   {}
func (r *regions) IterationEnd(_ engine.Iteration) { r.inRounds.Store(r.begun.Load()) }

// The quality of a result is measured after the last round of all parties: it is no part of its time.
func TestQualityIsNoPartOfARound(t *testing.T) {
	seed, parts := uint64(1), blobs(t, 60000, 4, 8, 3, 1)
	var got [2]int64
	for i, without := range []bool{true, false} {
		var r regions
		eng, err := engine.New(engine.WithWorkers(1), engine.WithObserver(&r))
		if err != nil {
			t.Fatal(err)
		}
		job := Job{Method: SuLloyd, Problem: protocol.Problem{K: 8, Clients: parts, Seed: &seed, Iterations: 3,
			NoQuality: without, Budget: privacy.Budget{Epsilon: 10}}}
		enginetest.Run(t, eng, &job)
		eng.Close()
		got[i] = r.inRounds.Load()
	}
	if got[0] != got[1] {
		t.Errorf("rounds have %d regions of the pool, %d with the quality measured", got[0], got[1])
	}
}

// A plan of many rounds of one noise takes room for their number alone.
func TestPlansOfManyRoundsAllocateLittle(t *testing.T) {
	j := Job{Method: SuLloyd, Problem: protocol.Problem{Clients: blobs(t, 600, 2, 4, 1, 1), K: 4,
		Budget: privacy.Budget{Epsilon: 1}}}
	plan := func(rounds int) float64 {
		j.Iterations = rounds
		return testing.AllocsPerRun(3, func() {
			if _, err := j.Plan(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := plan(2), plan(2000); many > few+20 {
		t.Errorf("a plan of 2 rounds has %g allocations, one of 2,000 has %g", few, many)
	}
}
