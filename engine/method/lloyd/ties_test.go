package lloyd

import (
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/flow"
)

// What ties of an assignment may do is a failure of the rounds that have one, once for all that a round releases, and a
// part of delta.
func TestTiesAreInTheLedger(t *testing.T) {
	parts := blobs(t, 2000, 2, 4, 4, 2)
	for _, m := range []Method{SuLloyd, Relative, CSuLloyd, FastLloyd} {
		for _, mech := range []protocol.Mechanism{protocol.Laplace, protocol.Gaussian} {
			job := Job{Method: m, Problem: protocol.Problem{K: 4, Clients: parts, Mechanism: mech, Iterations: 3,
				Budget: privacy.Budget{Epsilon: 0.7, Delta: 1e-6}, NoQuality: true}}
			pl, err := job.Plan()
			if err != nil {
				t.Fatal(err)
			}
			o, err := pl.Outline()
			if err != nil {
				t.Fatal(err)
			}
			failure, want := 0.0, 0.0
			for _, e := range o.Ledger.Entries() {
				failure += e.Cost.Failure
			}
			if m.Constrained() {
				want = flow.TieDelta(2000, 4, 3)
			}
			if !(math.Abs(failure-want) <= 1e-9*want) {
				t.Errorf("%s, %s: ties fail with a probability of %v, and the ledger has %v", m, mech, want, failure)
			}
		}
	}
}
