package lloyd

import (
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Each client assigns by its own number, and the noise is for the largest.
func TestExclusivityOfEachClient(t *testing.T) {
	seed, parts := uint64(3), blobs(t, 600, 2, 4, 3, 2)
	loss := func(one int, each []int) (float64, *Plan) {
		job := Job{Method: CSuLloyd, Problem: protocol.Problem{K: 4, Clients: parts, Seed: &seed, Iterations: 2,
			Budget: privacy.Budget{Epsilon: 100, Delta: -1}}, Exclusivity: one, ExclusivityOf: each, EtaMinAlpha: 1}
		plan := planOf(t, &job)
		return *run(t, 1, job).NICV, plan
	}
	same, want := loss(2, nil)
	if each, plan := loss(0, []int{2, 2, 2}); each != same || plan.parts[0].scales[0] != want.parts[0].scales[0] {
		t.Errorf("2,2,2 gives a loss of %g, 2 of %g", each, same)
	}
	mixed, plan := loss(0, []int{1, 1, 2})
	if one, _ := loss(1, nil); mixed == same || mixed == one {
		t.Errorf("1,1,2 gives a loss of %g, as one number for all does (%g and %g)", mixed, one, same)
	}
	if plan.parts[0].scales[0] != want.parts[0].scales[0] || plan.exclusivity != 2 {
		t.Errorf("1,1,2 has noise for %d", plan.exclusivity)
	}
	for _, each := range [][]int{{1, 2}, {1, 0, 1}, {1, 5, 1}} {
		job := Job{Method: CLloyd, Problem: protocol.Problem{K: 4,
			Clients: []dataset.Part{parts[0], parts[1], parts[2]}},
			ExclusivityOf: each}
		if _, err := job.check(); !fault.IsRequest(err) {
			t.Errorf("%v: %v", each, err)
		}
	}
}
