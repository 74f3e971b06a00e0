package audit

import (
	"context"
	"math"
	"slices"
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
		one := Case{Name: "a number", Watched: "it", Distribution: direct, Weight: 1, Delta: delta,
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

// ledgerOf is a ledger of entries at delta 0.
func ledgerOf(t *testing.T, entries ...privacy.Entry) *privacy.Ledger {
	t.Helper()
	l := &privacy.Ledger{}
	for _, e := range entries {
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// The claim of a ledger of Gaussian releases is that of one, and others claim no trade-off.
func TestClaimedTradeoff(t *testing.T) {
	entry := func(family string, c privacy.Calibration, scale float64) privacy.Entry {
		return privacy.Entry{Kind: privacy.Release, Viewers: []string{privacy.Outsider}, Calibration: c,
			Cost: privacy.Spec{Family: family, Scale: scale}}
	}
	two := []privacy.Entry{entry("discrete-gaussian", privacy.Proven, 5), entry("gaussian", privacy.Proven, 5)}
	const delta = 1e-5
	want := math.Sqrt2 / 5
	if got := claimed(ledgerOf(t, two...), privacy.Outsider, privacy.EpsilonOfMu(want, delta, 0),
		delta); math.Abs(got.mu-want) > 1e-9 || len(got.pure) != 0 {
		t.Errorf("%+v, want mu %v", got, want)
	}
	for _, e := range []privacy.Entry{entry("laplace", privacy.Proven, 5), entry("gaussian", privacy.Claimed, 5)} {
		if got := claimed(ledgerOf(t, two[0], e), privacy.Outsider, 1, delta); got.mu != 0 {
			t.Errorf("%s, %s: %+v, want none", e.Cost.Family, e.Calibration, got)
		}
	}
}

func beside(mu, epsilon float64, times int) mixed {
	return mixed{mu, []privacy.Responses{{Epsilon: epsilon, Times: times}}}
}

// The trade-off of noise beside pure choices is that of noise where there are none, its epsilon at delta is what its
// most powerful tests come to, and it claims more than the noise.
func TestTradeoffBesideChoices(t *testing.T) {
	for _, x := range []float64{1e-6, 1e-3, 0.2, 0.7} {
		if a, b := (mixed{0.4, nil}).power(x), beside(0.4, 1e-9, 1).power(x); math.Abs(a-b) > 1e-6 {
			t.Errorf("at %v: %v without choices, %v with none worth anything", x, a, b)
		}
	}
	for _, m := range []mixed{beside(0.3, 0.2, 1), beside(0.25, 0.01, 2), beside(1, 0.2, 5)} {
		for _, delta := range []float64{1e-5, 1e-2} {
			epsilon, most := m.total(delta), 0.0
			for x := 1e-9; x < 1; x *= 1.01 {
				most = math.Max(most, m.power(x)-math.Exp(epsilon)*x)
			}
			if math.Abs(most-delta) > 0.01*delta {
				t.Errorf("%+v: epsilon %v at delta %v, and the best test has %v", m, epsilon, delta, most)
			}
			if noise := privacy.EpsilonOfMu(m.mu, delta, 0); !(epsilon > noise && epsilon < noise+m.epsilon()) {
				t.Errorf("%+v at %v: epsilon %v, of the noise %v", m, delta, epsilon, noise)
			}
		}
	}
	choices := privacy.Entry{Kind: privacy.Release, Viewers: []string{privacy.Outsider}, Calibration: privacy.Proven,
		Cost: privacy.Spec{Family: "exponential", Epsilon: 0.01, Rounds: 2}}
	noise := privacy.Entry{Kind: privacy.Release, Viewers: []string{privacy.Outsider}, Calibration: privacy.Proven,
		Cost: privacy.Spec{Family: "discrete-gaussian", Scale: 4}}
	want := beside(0.25, 0.01, 2)
	got := claimed(ledgerOf(t, choices, noise), privacy.Outsider, want.total(1e-5), 1e-5)
	if math.Abs(got.mu-want.mu) > 1e-6 || !slices.Equal(got.pure, want.pure) {
		t.Errorf("%+v is claimed, want %+v", got, want)
	}
}

// Draws of a mechanism of noise and choices show most of it and not more, and half of a claim is refuted.
func TestBoundBesideChoices(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	seed := uint64(6)
	is := beside(0.4, 0.3, 1)
	for _, c := range []struct {
		claim    mixed
		violated bool
	}{{is, false}, {is.part(0.5), true}} {
		one := Case{Name: "a number and a bit", Watched: "both", Distribution: direct, Ratio: true, Weight: 1, Delta: 1e-5,
			Epsilon: c.claim.total(1e-5), Mu: c.claim.mu, Pure: c.claim.pure,
			Draw: func(_ context.Context, _ *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
				side := 2*float64(sideOf(present)) - 1
				ratio := is.mu*st.Normal() + side*is.mu*is.mu/2
				if st.Float64Open() < 1/(1+math.Exp(-is.epsilon())) {
					return []float64{ratio + side*is.epsilon()}, nil
				}
				return []float64{ratio - side*is.epsilon()}, nil
			}}
		r, err := Run(context.Background(), pool, "both", privacy.Proven, []Case{one},
			Options{Trials: 40000, Confidence: sure, Seed: &seed})
		if err != nil {
			t.Fatal(err)
		}
		g := r.Cases[0].Gaussian
		if g.Violated != c.violated || g.Lower > is.mu || g.Lower < 0.7*is.mu {
			t.Errorf("claimed %+v of %+v: %+v", c.claim, is, g)
		}
	}
}
