package lloyd

import (
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// The table holds the iterations of the published code, read from the reference
// figures of the papers' sets.
func TestIterationRules(t *testing.T) {
	type set struct{ n, d, k int }
	iris, s1, house, adult, lsun, birch := set{150, 4, 3}, set{5000, 2, 15}, set{1837, 3, 3}, set{48842, 6, 3},
		set{400, 2, 3}, set{25000, 2, 100}
	for _, c := range []struct {
		set
		epsilon       float64
		sums, centres int
	}{
		{iris, 0.1, 2, 2}, {iris, 2, 2, 2}, {s1, 1, 2, 2}, {s1, 2, 2, 2}, {house, 1, 2, 2}, {house, 2, 4, 4},
		{adult, 0.1, 2, 2}, {adult, 0.25, 5, 5}, {adult, 0.5, 7, 7}, {lsun, 2, 2, 2}, {birch, 2, 2, 2},
	} {
		if got := iterationsSumCount(c.epsilon, c.n, c.d, c.k, 1); got != c.sums {
			t.Errorf("%v eps %g: %d iterations for sums and counts, want %d", c.set, c.epsilon, got, c.sums)
		}
		eta := 2 * int(math.Ceil(float64(c.n)/(1.25*float64(c.k)*2)))
		if got := iterationsCentroid(c.epsilon, c.d, c.k, 1, eta); got != c.centres {
			t.Errorf("%v eps %g: %d iterations for centroids, want %d", c.set, c.epsilon, got, c.centres)
		}
	}
}

// Exclusivity E multiplies eps_m by E (Thesis-H §6.2.4 and §6.3.3).
func TestIterationRulesWithExclusivity(t *testing.T) {
	for e := 1; e <= 4; e++ {
		if got, want := iterationsSumCount(4, 48842, 6, 3, e),
			iterationsSumCount(4/float64(e), 48842, 6, 3, 1); got != want {
			t.Errorf("E = %d: %d iterations for sums and counts, want %d", e, got, want)
		}
		if got, want := iterationsCentroid(1, 6, 3, e, 20000),
			iterationsCentroid(1/float64(e), 6, 3, 1, 20000); got != want {
			t.Errorf("E = %d: %d iterations for centroids, want %d", e, got, want)
		}
	}
}

// FastLloyd's later code ran these numbers of iterations.
func TestLaterCodeIterations(t *testing.T) {
	for _, c := range []struct {
		n, d, k int
		epsilon float64
		want    int
	}{
		{5000, 2, 15, 0.5, 2}, {5000, 2, 15, 0.75, 4}, {5000, 2, 15, 1, 7}, {1837, 3, 3, 0.75, 6}, {400, 2, 3, 2, 6},
		{400, 2, 3, 1, 2},
		{25000, 2, 100, 1, 3}, {48842, 6, 3, 0.1, 7}, {150, 4, 3, 2, 2},
	} {
		mu, err := privacy.MuOf(privacy.Budget{Epsilon: c.epsilon, Delta: privacy.DefaultDelta(c.n)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := iterationsLater(1/mu, c.n, c.d, c.k); got != c.want {
			t.Errorf("n=%d d=%d k=%d eps %g: %d iterations, the code ran %d", c.n, c.d, c.k, c.epsilon, got, c.want)
		}
	}
}

func TestRoot(t *testing.T) {
	for _, c := range []struct {
		x float64
		n int
	}{{15, 2}, {100, 2}, {3, 6}, {0.2025 * 2, 3}, {1, 5}, {10, 784}, {65535, 1}} {
		got, want := root(c.x, c.n), math.Pow(c.x, 1/float64(c.n))
		if math.Abs(got-want) > 1e-14*want {
			t.Errorf("root(%g, %d) = %.17g, want %.17g", c.x, c.n, got, want)
		}
	}
}

func TestRadiusSchedules(t *testing.T) {
	for _, c := range []struct {
		s       Schedule
		t, k, d int
		want    float64
	}{
		{Geometric, 0, 15, 2, 2 * math.Sqrt2 / math.Sqrt(15)},
		{Geometric, 3, 15, 2, 2 * math.Sqrt2 / math.Sqrt(15) * 0.512},
		{Geometric, 0, 1, 3, 2 * math.Sqrt(3)},
		{Sqrt, 0, 9, 4, 1}, {Sqrt, 3, 9, 4, 0.5},
		{LaterCode, 0, 15, 2, math.Sqrt2}, {LaterCode, 1, 16, 4, 0.8}, {LaterCode, 6, 16, 4, 0.8},
	} {
		if got := c.s.radius(c.t, c.k, c.d); math.Abs(got-c.want) > 1e-14 {
			t.Errorf("%s t=%d k=%d d=%d: %g, want %g", c.s, c.t, c.k, c.d, got, c.want)
		}
	}
}

// The least size at a client is rounded up and the greatest down: 2B/(M lo) is then within the bound for lo
// of all clients (THEOREMS.md T1, condition 4).
func TestSizesAreRoundedInwards(t *testing.T) {
	j := Job{Problem: protocol.Problem{K: 3, Clients: blobs(t, 1000, 2, 3, 2, 1)}, EtaMinAlpha: DefaultAlpha,
		EtaMaxAlpha: DefaultAlpha}
	if lo, hi := j.sizes(0); lo != 134 || hi != 208 { // 1000/(1.25 6) = 133.3, 1.25 1000/6 = 208.3
		t.Errorf("sizes %d to %d at each client, want 134 to 208", lo, hi)
	}
}

// Under the proven calibration constrained methods take as many rounds as their own noise
// leaves room for: one where a round's noise is as wide as the box, seven where it is
// nothing; and results whose noise is wider than a quarter of the box say so.
func TestRoundsFollowFromNoise(t *testing.T) {
	plan := func(epsilon float64, change func(*Job)) *Plan {
		t.Helper()
		job := Job{Method: FastLloyd, Problem: protocol.Problem{K: 3, Clients: blobs(t, 900, 2, 3, 1, 3),
			Budget: privacy.Budget{Epsilon: epsilon, Delta: -1}}}
		change(&job)
		p := planOf(t, &job)
		return p
	}
	for _, method := range []Method{FastLloyd, CSuLloyd} {
		last := 1
		for _, epsilon := range []float64{0.01, 0.5, 1, 2, 5, 100} {
			p := plan(epsilon, func(j *Job) { j.Method = method })
			if p.job.Mechanism != protocol.Gaussian || p.rounds < last || epsilon == 0.01 && p.rounds != 1 || epsilon == 100 &&
				p.rounds != 7 {
				t.Errorf("%s, epsilon %g: %d rounds of %s noise after %d", method, epsilon, p.rounds, p.job.Mechanism,
					last)
			}
			if wide := math.Sqrt(p.centroidVariance()) > 0.5; wide != (len(p.Doubts) > 0) || wide != (epsilon == 0.01) {
				t.Errorf("%s, epsilon %g: noise of %g, doubts %v", method, epsilon, math.Sqrt(p.centroidVariance()),
					p.Doubts)
			}
			last = p.rounds
		}
	}
	pure := plan(1, func(j *Job) { j.Budget.Delta = 0 })
	if with := plan(1, func(*Job) {}); pure.job.Mechanism != protocol.Laplace || pure.rounds > with.rounds {
		t.Errorf("pure: %s noise in %d rounds, with a delta %d", pure.job.Mechanism, pure.rounds, with.rounds)
	}
	// The rule sees the noise that is added: every client's whole noise is more of it.
	local := plan(2, func(j *Job) { j.Clients, j.Noise = blobs(t, 900, 2, 3, 9, 3), protocol.ByEach })
	if once := plan(2, func(j *Job) { j.Clients = blobs(t, 900, 2, 3, 9, 3) }); local.rounds >= once.rounds {
		t.Errorf("%d rounds with nine times the variance, %d without", local.rounds, once.rounds)
	}
	if claimed := plan(0.01, func(j *Job) { j.Calibration = privacy.Claimed }); claimed.rounds != 2 ||
		claimed.job.Mechanism != protocol.Laplace {
		t.Errorf("claimed: %d rounds of %s noise, the paper has two at least", claimed.rounds, claimed.job.Mechanism)
	}
}
