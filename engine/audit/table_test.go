package audit

import (
	"math"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// What the horizontal protocols enter in their ledgers is what the table of calibrations says.
func TestLedgersAgreeWithTheTable(t *testing.T) {
	p := chain(3, 2)
	for _, c := range []struct {
		method      lloyd.Method
		calibration privacy.Calibration
		mechanism   protocol.Mechanism
		neighbours  privacy.Neighbours
	}{
		{lloyd.SuLloyd, privacy.Proven, protocol.Laplace, privacy.AddRemove},
		{lloyd.SuLloyd, privacy.Proven, protocol.Laplace, privacy.ReplaceOne},
		{lloyd.SuLloyd, privacy.Proven, protocol.Gaussian, privacy.AddRemove},
		{lloyd.SuLloyd, privacy.Claimed, protocol.Laplace, privacy.AddRemove},
		{lloyd.CSuLloyd, privacy.Proven, protocol.Laplace, privacy.AddRemove},
		{lloyd.CSuLloyd, privacy.Proven, protocol.Gaussian, privacy.ReplaceOne},
		{lloyd.CSuLloyd, privacy.Claimed, protocol.Laplace, privacy.AddRemove},
		{lloyd.FastLloyd, privacy.Proven, protocol.Laplace, privacy.AddRemove},
		{lloyd.FastLloyd, privacy.Proven, protocol.Gaussian, privacy.ReplaceOne},
		{lloyd.FastLloyd, privacy.Claimed, protocol.Laplace, privacy.AddRemove},
		{lloyd.FastLloyd, privacy.Published, protocol.Laplace, privacy.AddRemove},
	} {
		job := lloyd.Job{Method: c.method, Problem: protocol.Problem{K: p.K, Start: p.Start,
			Calibration: c.calibration, Neighbours: c.neighbours, Mechanism: c.mechanism,
			Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5}, Iterations: 1, NoQuality: true,
			Clients: p.parts(true, privacy.AddRemove)}, EtaMinAlpha: p.Alpha, EtaMaxAlpha: 100}
		plan, err := job.Plan()
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := plan.(*lloyd.Plan).Ledger(nil)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, r := range privacy.Rules(string(c.method), c.calibration) {
			for _, e := range ledger.Entries() {
				if e.Norm == "" || !strings.Contains(e.What, r.Release) {
					continue
				}
				found++
				s := privacy.Shape{D: p.D, K: p.K, Bound: 1, Lo: 2, Exclusivity: 1, Unit: math.Ldexp(1, -gridBits),
					Neighbours: c.neighbours}
				want := r.L1
				if e.Norm == "L2" {
					want = r.L2
				}
				if v := want(s); math.Abs(v-e.Sensitivity) > 1e-12*v {
					t.Errorf("%s %s %s: the ledger says %s = %v, the table %v", c.method, c.calibration, e.What, e.Norm,
						e.Sensitivity, v)
				}
				if e.Theorem != r.Theorem {
					t.Errorf("%s %s %s: the ledger cites %s, the table %s", c.method, c.calibration, e.What, e.Theorem, r.Theorem)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s %s: no entry matches a rule", c.method, c.calibration)
		}
	}
}
