package lloyd

import (
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
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
		{"lloyd", Job{Algorithm: Lloyd, Init: Sphere}},
		{"sulloyd", Job{Algorithm: SuLloyd}},
		{"sulloyd claimed", Job{Algorithm: SuLloyd, Calibration: privacy.Claimed}},
		{"sulloyd Gaussian", Job{Algorithm: SuLloyd, Mechanism: Gaussian}},
		{"relative", Job{Algorithm: Relative, Schedule: Sqrt}},
		{"relative, excluding", Job{Algorithm: Relative, Schedule: LaterCode}},
		{"ring", Job{Algorithm: SuLloyd, Aggregator: ByRing}},
		{"split", Job{Algorithm: SuLloyd, Mechanism: Gaussian, Noise: Split}},
		{"split laplace", Job{Algorithm: SuLloyd, Noise: Split}},
		{"nonexclusive", Job{Algorithm: FastLloyd, NonExclusive: true}},
		{"fastlloyd", Job{Algorithm: FastLloyd}},
		{"csulloyd", Job{Algorithm: CSuLloyd}},
		{"clloyd", Job{Algorithm: CLloyd}},
		{"means of lloyd", Job{Algorithm: Lloyd, Release: Centroid}},
	} {
		for _, parts := range [][]dataset.Part{small, large} {
			for _, workers := range []int{1, 2} {
				job := c.job
				job.K, job.Clients, job.Seed, job.Iterations = 8, parts, &seed, 400
				job.Budget = privacy.Budget{Epsilon: 1000, Delta: 1e-6}
				if job.Algorithm.Constrained() && !job.NonExclusive {
					// Little noise, so that rounds resemble each other: the flow
					// solver's memory grows with the hardest round so far.
					// Shares of it would be too small.
					job.Budget.Epsilon, job.Noise = 1e6, ByTheServer
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
