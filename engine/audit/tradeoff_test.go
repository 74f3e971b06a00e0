package audit

import (
	"context"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Of a Gaussian mechanism the bound on its trade-off shows most of mu, and more of epsilon than events do; it calls a
// claim that is right violated with the probability stated, and finds noise that is too small by a third.
func TestTradeoffOfAGaussianMechanism(t *testing.T) {
	const mu, delta = 0.5, 1e-5
	pool := engine.NewPool(1)
	defer pool.Close()
	seed := uint64(2)
	for _, c := range []struct {
		claimed  float64
		violated bool
	}{{mu, false}, {mu / 1.5, true}} {
		one := Case{Name: "a number", Watched: "it", Law: Direct, Weight: 1, Delta: delta,
			Epsilon: privacy.EpsilonOfMu(c.claimed, delta, 0), Mu: c.claimed,
			Draw: func(_ context.Context, _ *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
				return []float64{st.Normal() + mu*float64(sideOf(present))}, nil
			}}
		r, err := Run(context.Background(), pool, "number", privacy.Proven, []Case{one},
			Options{Trials: 20000, Confidence: sure, Seed: &seed})
		if err != nil {
			t.Fatal(err)
		}
		f := r.Cases[0]
		if f.Gaussian.Violated != c.violated || f.Violated != c.violated {
			t.Errorf("claimed mu %v: %+v", c.claimed, f.Gaussian)
		}
		if f.Gaussian.Lower < 0.7*mu || f.Gaussian.Lower > mu || f.Gaussian.Epsilon < 1.5*f.Lower {
			t.Errorf("mu at least %v of %v, epsilon %v, by events %v", f.Gaussian.Lower, mu, f.Gaussian.Epsilon, f.Lower)
		}
	}
}

// The claim of a ledger of Gaussian releases is that of one, and others claim no trade-off.
func TestClaimedMu(t *testing.T) {
	entry := func(family string, c privacy.Calibration, scale float64) privacy.Entry {
		return privacy.Entry{Kind: privacy.Release, Viewers: []string{privacy.Outsider}, Calibration: c,
			Cost: privacy.Spec{Family: family, Scale: scale}}
	}
	two := []privacy.Entry{entry("discrete-gaussian", privacy.Proven, 5), entry("gaussian", privacy.Proven, 5)}
	const delta = 1e-5
	want := math.Sqrt2 / 5
	if got := claimedMu(&privacy.Ledger{Entries: two}, privacy.Outsider, privacy.EpsilonOfMu(want, delta, 0),
		delta); math.Abs(got-want) > 1e-9 {
		t.Errorf("mu %v, want %v", got, want)
	}
	for _, e := range []privacy.Entry{entry("laplace", privacy.Proven, 5), entry("gaussian", privacy.Claimed, 5)} {
		if got := claimedMu(&privacy.Ledger{Entries: append(two[:1:1], e)}, privacy.Outsider, 1, delta); got != 0 {
			t.Errorf("%s, %s: mu %v, want none", e.Cost.Family, e.Calibration, got)
		}
	}
}
