package lloyd

import (
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/kernels"
)

// longRun is a run whose rounds go on from the round before.
type longRun struct {
	name    string
	n, d, k int
	workers int
	job     Job
	radius  []float64 // in turns, of a round
}

// longRuns have much and little noise, far records and a radius that shrinks and grows, clients
// that fail, and workers that share clients or not.
var longRuns = []longRun{
	{"lloyd", 60000, 2, 5, 2, Job{Method: Lloyd, Init: step.Sphere}, nil},
	{"lloyd, one worker", 40000, 3, 4, 1, Job{Method: Lloyd, Init: step.Sphere}, nil},
	{"little noise", 60000, 3, 5, 2, Job{Method: SuLloyd}, nil},
	{"a client fails", 60000, 2, 6, 2, Job{Method: SuLloyd, Drops: []Drop{{Client: 1, Iteration: 6}}}, nil},
	{"shared clients", 50000, 5, 4, 3, Job{Method: SuLloyd}, nil},
	{"one cluster", 150000, 2, 1, 2, Job{Method: SuLloyd}, nil},
	{"many clusters", 6000, 3, 40, 2, Job{Method: SuLloyd}, nil},
	{"relative", 60000, 2, 5, 2, Job{Method: Relative}, nil},
	{"relative, shared clients", 60000, 2, 5, 3, Job{Method: Relative}, []float64{0.9, 0.2, 0.12, 0.1, 0.4}},
	{"relative, up and down", 50000, 4, 3, 2, Job{Method: Relative, Beyond: Exclude},
		[]float64{2, 0.3, 0.11, 0.5, 0.09}},
	{"relative, much noise", 50000, 4, 3, 2,
		Job{Method: Relative, Problem: protocol.Problem{Budget: privacy.Budget{Epsilon: 3, Delta: 1e-6}}},
		[]float64{1, 0.5, 0.25, 0.15, 0.1}},
	// A block that a small radius cuts must not pass for settled when it grows.
	{"relative, cut and not measured", 60000, 2, 5, 2, Job{Method: Relative}, []float64{0.5, 0.5, 0.15, 0.14, 0.5}},
	{"relative, cut anew", 60000, 2, 5, 2, Job{Method: Relative}, []float64{0.5, 0.5, 0.17, 0.5, 0.5}},
}

// start begins the run, and once more, with one worker, to begin each of its rounds anew.
func (c longRun) start(t *testing.T, seed uint64) (s, again *trial) {
	job := c.job
	job.K, job.Clients, job.Seed, job.Iterations = c.k, blobs(t, c.n, c.d, c.k, 2, seed+1), &seed, 14
	if job.Method.Private() && job.Budget.Epsilon == 0 {
		job.Budget = privacy.Budget{Epsilon: 5000, Delta: 1e-6}
	}
	if c.radius != nil { // from the centres of the blobs, so that few records are far
		from := seed + 1
		job.Start = step.HalvedPacking(c.k, c.d, privacy.NewStreams(&from).Stream(0, 0, "blobs"))
	}
	s, again = begin(t, c.workers, job), begin(t, 1, job)
	for r := range c.radius {
		for q := r; q < len(s.radius); q += len(c.radius) {
			s.radius[q], again.radius[q] = c.radius[r], c.radius[r]
		}
	}
	return s, again
}

// Rounds that go on from the round before have the sums of rounds that begin
// anew, bit for bit.
func TestRoundsGoOnFromTheRoundBefore(t *testing.T) {
	modes := make(map[step.Mode]int)
	settled := 0
	for i, c := range longRuns {
		t.Run(c.name, func(t *testing.T) {
			s, again := c.start(t, uint64(i))
			for more := true; more; {
				if len(c.radius) > 0 && c.radius[s.steps%5] == 0.17 {
					for _, client := range s.clients {
						client.steps.(*nearest).deltas.Forget()
					}
				}
				more = s.step(t)
				again.step(t)
				for q, client := range s.clients {
					other := again.clients[q]
					if !client.Present(client.party.Role, s.steps-1) {
						continue
					}
					h := client.steps.(*nearest).deltas
					if h == nil {
						t.Fatal("there are no deltas")
					}
					modes[h.Mode()]++
					if h.Left() == 0 {
						settled++
					}
					other.steps.(*nearest).deltas = nil
					if !slices.Equal(client.acc.Sums, other.acc.Sums) ||
						!slices.Equal(client.acc.Counts, other.acc.Counts) {
						t.Fatalf("round %d, client %d, mode %d: counts %v, anew %v", s.steps, q+1, h.Mode(),
							client.acc.Counts, other.acc.Counts)
					}
					if !slices.Equal(client.centroids, other.centroids) {
						t.Fatalf("round %d: centroids %v, anew %v", s.steps, client.centroids, other.centroids)
					}
				}
			}
		})
	}
	t.Logf("rounds by mode: %v, %d settled", modes, settled)
	if modes[step.Anew] < 20 || modes[step.Carried] < 20 || modes[step.Measured] < 20 || settled < 20 {
		t.Errorf("rounds by mode: %v, %d settled: too few of one kind to tell", modes, settled)
	}
}

// Where clusters lie apart, the rounds look at few records from the third on, though the first centroids move far.
func TestRoundsLeaveOutSeparateClusters(t *testing.T) {
	seed := uint64(1)
	job := Job{Method: SuLloyd, Problem: protocol.Problem{Budget: privacy.Budget{Epsilon: 5000, Delta: 1e-6}}}
	job.K, job.Clients, job.Seed, job.Iterations = 5, blobs(t, 60000, 2, 5, 2, seed), &seed, 6
	job.Start = step.HalvedPacking(job.K, 2, privacy.NewStreams(&seed).Stream(0, 0, "blobs"))
	for i := range job.Start {
		job.Start[i] *= 0.25
	}
	s := begin(t, 2, job)
	for more := true; more; {
		more = s.step(t)
		for q, client := range s.clients {
			left, n := client.steps.(*nearest).deltas.Left(), client.points.N
			if s.steps > 2 && left > n/4 {
				t.Errorf("round %d, client %d: %d of %d records left", s.steps, q+1, left, n)
			}
		}
	}
}

// A constrained client's sums are those of the labels of its round, with second
// memberships and fillers, however many records changed since the round before.
func TestTalliesFollowLabels(t *testing.T) {
	all, some := 0, 0
	for _, c := range []struct {
		name string
		job  Job
	}{
		{"little noise", Job{Method: FastLloyd,
			Problem: protocol.Problem{Budget: privacy.Budget{Epsilon: 1e5, Delta: 1e-6}}}},
		{"much noise", Job{Method: CSuLloyd,
			Problem: protocol.Problem{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6}}}},
		{"no noise", Job{Method: CLloyd}},
		{"two clusters each", Job{Method: FastLloyd,
			Problem: protocol.Problem{Budget: privacy.Budget{Epsilon: 1e5, Delta: 1e-6}}, Exclusivity: 2}},
		{"radius", Job{Method: FastLloyd,
			Problem: protocol.Problem{Budget: privacy.Budget{Epsilon: 1e5, Delta: 1e-6}}, Radius: 0.3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := uint64(1)
			job := c.job
			job.K, job.Clients, job.Seed, job.Iterations = 4, blobs(t, 2000, 3, 4, 2, 1), &seed, 8
			s := begin(t, 2, job)
			first := s.atStart()
			grid, before := slices.Clone(first.grid), make([]uint16, s.clients[0].points.N)
			for more := true; more; {
				more = s.step(t)
				changed := 0
				a := s.clients[0].steps.(*constrained)
				for i, l := range a.tally.labels {
					if l != before[i] {
						changed++
					}
				}
				before = slices.Clone(a.tally.labels)
				if changed > len(before)/updateShare {
					all++
				} else {
					some++
				}
				for q, client := range s.clients {
					want := kernels.NewAccumulator(s.k, s.d, s.fraction)
					kernels.Accumulate(client.points, client.steps.(*constrained).result.Labels, want)
					add := func(j int, n int64, x []float32) {
						for h := range s.d {
							want.Sums[j*s.d+h] += n * client.units(x[h])
						}
						want.Counts[j] += n
					}
					for _, m := range client.steps.(*constrained).result.Extra {
						add(int(m.Cluster), 1, client.points.Point(int(m.Point), nil))
					}
					for j, n := range client.steps.(*constrained).result.Fillers {
						add(j, int64(n), grid[j*s.d:])
					}
					if !slices.Equal(client.acc.Sums, want.Sums) || !slices.Equal(client.acc.Counts, want.Counts) {
						t.Fatalf("round %d, client %d: counts %v, want %v", s.steps, q+1, client.acc.Counts,
							want.Counts)
					}
				}
				copy(grid, s.clients[0].grid)
			}
		})
	}
	if all < 5 || some < 5 {
		t.Errorf("%d rounds summed all records, %d some: too few of one kind to tell", all, some)
	}
}
