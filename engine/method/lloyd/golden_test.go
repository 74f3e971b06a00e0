package lloyd

import (
	"flag"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

var update = flag.Bool("update", false, "write the golden results anew")

// The results of a few seeded jobs are the stored ones, to the bit: on every
// architecture and instruction set. Epsilons of the ledger come from numeric
// accountants, whose last bits are not part of that promise, so they are left
// out.
func TestGoldenResults(t *testing.T) {
	seed := uint64(20)
	parts := blobs(t, 1500, 3, 5, 3, 11)
	wide := blobs(t, 400, 20, 4, 2, 12)
	ample := privacy.Budget{Epsilon: 2, Delta: -1}
	type golden struct {
		Name      string
		Rounds    int
		Centroids [][]float64
		NICV      float64
		Comm      engine.Comm
	}
	var got []golden
	for _, c := range []struct {
		name string
		job  Job
	}{
		{"lloyd", Job{Method: Lloyd, Problem: protocol.Problem{K: 5, Clients: parts}, Init: step.Sphere}},
		{"plain k-means", Job{Method: Lloyd, Problem: protocol.Problem{K: 5, Clients: parts}}},
		{"plain k-means, one party", Job{Method: Lloyd, Problem: protocol.Problem{K: 7, Clients: wide[:1]}}},
		{"records", Job{Method: Lloyd, Problem: protocol.Problem{K: 5, Clients: parts}, Init: SomeRecords, NInit: 2}},
		{"clloyd kmeans++", Job{Method: CLloyd, Problem: protocol.Problem{K: 5, Clients: parts},
			Init: KMeansPlusPlus}},
		{"clloyd exclusivity 2", Job{Method: CLloyd, Problem: protocol.Problem{K: 5, Clients: parts}, Exclusivity: 2,
			EtaMinAlpha: 1.1}},
		{"clloyd nonexclusive", Job{Method: CLloyd, Problem: protocol.Problem{K: 5, Clients: parts},
			NonExclusive: true}},
		{"sulloyd", Job{Method: SuLloyd, Problem: protocol.Problem{K: 5, Clients: parts, Budget: ample}}},
		{"sulloyd claimed", Job{Method: SuLloyd, Problem: protocol.Problem{K: 5, Clients: parts, Budget: ample,
			Calibration: privacy.Claimed}}},
		{"sulloyd split", Job{Method: SuLloyd, Problem: protocol.Problem{K: 5, Clients: parts, Budget: ample,
			Calibration: privacy.Claimed, Noise: protocol.InShares, Colluders: 2}}},
		{"csulloyd", Job{Method: CSuLloyd, Problem: protocol.Problem{K: 5, Clients: parts, Budget: ample}}},
		{"fastlloyd published", Job{Method: FastLloyd, Problem: protocol.Problem{K: 5, Clients: parts, Budget: ample,
			Calibration: privacy.Published}}},
		{"fastlloyd radius", Job{Method: FastLloyd, Problem: protocol.Problem{K: 5, Clients: parts, Budget: ample},
			Radius: 0.8}},
		{"relative", Job{Method: Relative, Problem: protocol.Problem{K: 5, Clients: parts, Budget: ample}}},
		{"relative ring", Job{Method: Relative, Problem: protocol.Problem{K: 5, Clients: parts, Budget: ample,
			Mechanism: protocol.Laplace}, Aggregator: ByRing}},
		{"relative wide", Job{Method: Relative, Problem: protocol.Problem{K: 4, Clients: wide, Budget: ample}}},
		{"lloyd wide", Job{Method: Lloyd, Problem: protocol.Problem{K: 4, Clients: wide}, Init: step.Random}},
	} {
		c.job.Seed = &seed
		res := run(t, 2, c.job)
		got = append(got, golden{c.name, res.Iterations, res.Centroids, *res.NICV, res.Comm})
	}
	enginetest.Golden(t, "golden.json", got, *update)
}
