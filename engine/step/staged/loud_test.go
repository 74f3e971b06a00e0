package staged_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/catalog/standard"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// TestNoiseThatCannotBeDrawn: a budget so small that a release's noise has no sampler is refused by the plan, before
// anything is paid for.
func TestNoiseThatCannotBeDrawn(t *testing.T) {
	part := datasettest.Part(datasettest.GridPanels(rand.New(rand.NewPCG(1, 2)), 50, 2))
	for _, name := range []string{"hybrid", "eugkm", "evolve", "lsf", "balcan"} {
		for epsilon, refused := range map[float64]bool{1e-6: true, 0.1: false} {
			job, err := standard.Methods().Job(name, protocol.Problem{Clients: []dataset.Part{part}, K: 2, Records: 2e9,
				Budget: privacy.Budget{Epsilon: epsilon, Delta: 1e-12}, NoQuality: true}, method.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := job.Plan(); refused != fault.IsRequest(err) || !refused && err != nil {
				t.Errorf("%s at epsilon %v: %v", name, epsilon, err)
			}
		}
	}
}
