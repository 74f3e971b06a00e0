package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Totals that a key holder decrypts of two neighbours differ, less their noise, by no more than the ledger has for
// them, by whatever way through the encryption.
func TestRandomNeighboursUnderEncryption(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(1))
	rt, rng := engine.NewRuntime(eng.Pool()), rand.New(rand.NewPCG(5, 77))
	most := 0.0
	for range 24 {
		p := newPair(rng, []string{"ckks"}, []int{2, 3, 4}, 20+rng.IntN(40))
		p.oneTable()
		p.weighted, p.bits, p.budget.Delta, p.k = false, min(p.bits, gridBits), 1e-5, 2+rng.IntN(3)
		if rng.IntN(2) == 0 { // the record is in a corner, and another one in the opposite
			for h := range p.d {
				for side, x := range []float32{1, -1} {
					p.sides[side][len(p.sides[side])-1].row[h] = x
				}
			}
		}
		cut := 1 + rng.IntN(p.d-1)
		p.columns = [][]int{nil, nil}
		for h := range p.d {
			party := 0
			if h >= cut {
				party = 1
			}
			p.columns[party] = append(p.columns[party], h)
		}
		share, err := p.decrypted(t, rt)
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		if most = max(most, share); share > 1+1e-7 {
			t.Errorf("%v: decrypted totals differ by %.9f of what the ledger has", p, share)
		}
	}
	if most < 0.9 {
		t.Errorf("the largest share was %.4f", most)
	}
}

// decrypted is by what part of what the ledger has for them the totals differ that the key holder of both sides
// decrypts.
func (p *pair) decrypted(t *testing.T, rt *engine.Runtime) (share float64, err error) {
	t.Helper()
	var totals [2][]int64
	var scales []float64
	var mu2 float64
	for side := range p.sides {
		job, err := catalog.Methods().Job(p.method, protocol.Problem{Clients: p.parts(side), Columns: p.columns, K: p.k,
			Budget: p.budget, Seed: &p.seed, NoQuality: true, Iterations: 1,
			Bounds: dataset.SameBounds(p.d, -1, 1)}, p.settings)
		if err != nil {
			return 0, err
		}
		plan, err := job.Plan()
		if err != nil {
			return 0, err
		}
		opened, err := ckks.Open(t.Context(), job.(*ckks.Job), rt)
		if err != nil {
			return 0, err
		}
		var views protocol.Views
		var draws protocol.Draws
		if _, err := opened.Close(t.Context(), p.seed, protocol.Options{Views: &views, Draws: &draws}); err != nil {
			return 0, err
		}
		for _, x := range views.Seen {
			if x.Viewer == 1 && x.Values != nil {
				totals[side] = append(totals[side], x.Values...)
			}
		}
		mu2, scales = 0, nil
		for _, r := range plan.(protocol.Runner).Core().Releases {
			for _, e := range r.Entries {
				if e.Cost.Family == "discrete-gaussian" {
					mu2 += float64(e.Cost.Times()) / (e.Cost.Scale * e.Cost.Scale)
				}
			}
		}
		for _, d := range draws.Seen {
			for _, z := range d.Values {
				if d.Role == 0 && len(scales) < len(totals[side]) {
					totals[side][len(scales)] -= z // Alice's noise alone is in what the key holder decrypts
					scales = append(scales, d.Noise.Scale)
				}
			}
		}
	}
	if len(totals[0]) == 0 || len(totals[0]) != len(totals[1]) || len(totals[0]) != len(scales) {
		return 0, fmt.Errorf("%d and %d totals, and noise of %d", len(totals[0]), len(totals[1]), len(scales))
	}
	sum := 0.0
	for i, x := range totals[0] {
		change := float64(x-totals[1][i]) / scales[i]
		sum += change * change
	}
	return math.Sqrt(sum / mu2), nil
}
