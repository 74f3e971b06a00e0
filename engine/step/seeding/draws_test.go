package seeding

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/kernels"
)

// TestProposalsFollowTheDistancesOfTheirStep: candidates of a step whose proposals were drawn a step before, when most
// distances were longer, are records in proportion to the squared distances that they have now. Each of 48 shares is
// within 6 standard deviations, which fails with probability below 48 * 2e-9 = 1e-7. So many proposals are passed over
// that steps often take some of the next ones too.
func TestProposalsFollowTheDistancesOfTheirStep(t *testing.T) {
	const n, d, trials, rounds = 48, 16, 3, 40000
	rng := rand.New(rand.NewPCG(12, 1))
	points := blobs(rng, n, d, 3, 0.2)
	centres := kernels.NewCentroids(drawnSteps, d)
	rows := make([]float32, drawnSteps*d) // the origin, many times
	centres.Set(rows)
	p := NewPart(points, trials, nil)
	p.Expect(1000)
	var taken [n]float64
	again := 0
	for range rounds {
		p.Begin(centres)
		p.Candidates(rng.Float64)
		p.Try(points.Point(5, nil)) // takes the records of its blob
		p.Add(0)
		for _, pick := range p.Candidates(rng.Float64) {
			taken[int(pick.At)]++
		}
		if len(p.draws.records) != 2*trials {
			again++
		}
	}
	if again < rounds/4 {
		t.Errorf("proposals are drawn amid the step in %d rounds of %d", again, rounds)
	}
	total := p.Potential()
	for i, count := range taken {
		share := float64(p.nearest[i]) / total
		mean := trials * rounds * share
		if math.Abs(count-mean) > 6*math.Sqrt(mean)+1e-9 {
			t.Errorf("record %d is a candidate %.0f times, want about %.0f", i, count, mean)
		}
	}
}
