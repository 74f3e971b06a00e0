package audit

import (
	"context"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// sure is the confidence of the bounds in tests that must not fail by chance: over the some 40 cases
// below the failure probability is under 1e-6.
const sure = 1 - 2e-8

func audit(t *testing.T, method string, c privacy.Calibration, cases []Case, o Options) *Report {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	r, err := Run(context.Background(), pool, method, c, cases, o)
	if err != nil {
		t.Fatalf("%s %s: %v", method, c, err)
	}
	return r
}

// The quick form over every method: what is proven is consistent, and claims that THEOREMS.md refutes
// are caught. Of the claimed calibrations those of sulloyd, relative, ind-lap and ldp-agg have sound
// sensitivities.
func TestEveryMethodQuickly(t *testing.T) {
	bad := map[string]int{"fastlloyd": 2000, "csulloyd": 2000, "sketch": 30000, "sketch-basic": 30000, "ckks": 1000, "balcan-edler": 14000}
	trials := map[string]int{"sketch": 4000, "sketch-basic": 4000}
	seed := uint64(3)
	for _, m := range library() {
		for _, c := range m.calibrations {
			cases, err := Cases(m.name, c, Settings{})
			if err != nil {
				t.Errorf("%s %s: %v", m.name, c, err)
				continue
			}
			want, n := Consistent, 1500
			if x := trials[m.name]; x > 0 {
				n = x
			}
			if x := bad[m.name]; c != privacy.Proven && x > 0 {
				want, n = Violated, x
			}
			if c == privacy.Claimed && m.name == "sketch-basic" {
				continue // the same release as sketch's
			}
			r := audit(t, m.name, c, cases, Options{Trials: n, Confidence: sure, Seed: &seed})
			if r.Verdict != want {
				t.Errorf("%s %s: %s, want %s: %+v", m.name, c, r.Verdict, want, r.Cases)
			}
		}
	}
}

// Both counterexamples of T1 are caught one by one, and the ledger's true epsilon is not exceeded.
func TestCounterexamplesOfTheSizeConstraint(t *testing.T) {
	seed := uint64(4)
	cases, err := Cases("fastlloyd", privacy.Claimed, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range audit(t, "fastlloyd", privacy.Claimed, cases, Options{Trials: 4000, Confidence: sure, Seed: &seed}).Cases {
		if !f.Violated || f.True == nil || f.Lower > *f.True {
			t.Errorf("%s: bound %v, ledger %v, true %v", f.Case, f.Lower, f.Epsilon, f.True)
		}
	}
}

func TestReplaceOneIsAuditedOnReplacedRecords(t *testing.T) {
	seed := uint64(5)
	for _, m := range []string{"sulloyd", "relative", "fastlloyd", "csulloyd"} {
		cases, err := Cases(m, privacy.Proven, Settings{Neighbours: privacy.ReplaceOne})
		if err != nil {
			t.Errorf("%s: %v", m, err)
			continue
		}
		if r := audit(t, m, privacy.Proven, cases, Options{Trials: 1000, Confidence: sure, Seed: &seed}); r.Verdict != Consistent {
			t.Errorf("%s: %+v", m, r)
		}
	}
	if _, err := Cases("sketch", privacy.Proven, Settings{Neighbours: privacy.ReplaceOne}); err == nil {
		t.Error("sketch has no proof for replace-one, and is audited for it")
	}
}

// known is a mechanism of known epsilon as a case that claims another.
func known(epsilon, delta float64, law Law, draw func(*privacy.Stream) float64, shift float64) Case {
	return Case{Name: "known", Epsilon: epsilon, Delta: delta, Law: law, Weight: 1,
		Draw: func(_ context.Context, _ *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
			x := draw(st)
			if present {
				x += shift
			}
			return []float64{x}, nil
		}}
}

// The auditor's own error rate: at 90% confidence it accuses a mechanism of exactly the claimed epsilon
// in at most one of ten audits. 300 audits accuse at most 61 times but with probability 2e-8
// (binomial tail at rate 0.1), and Laplace noise attains its epsilon, so the rate is not 0 for free.
func TestAuditorErrorRate(t *testing.T) {
	laplace := func(st *privacy.Stream) float64 { return st.Laplace() }
	accused := 0
	for i := range uint64(300) {
		r := audit(t, "laplace", privacy.Proven, []Case{known(1, 0, Laplace, laplace, 1)}, Options{Trials: 500, Confidence: 0.9, Seed: &i})
		if r.Verdict == Violated {
			accused++
		}
	}
	if accused > 61 {
		t.Errorf("%d of 300 audits accuse Laplace noise of its own epsilon at 90%% confidence", accused)
	}
}

// The auditor finds most of the epsilon of mechanisms whose epsilon is known.
func TestAuditorPower(t *testing.T) {
	seed := uint64(6)
	laplace := func(st *privacy.Stream) float64 { return st.Laplace() }
	normal := func(st *privacy.Stream) float64 { return st.Normal() }
	for _, c := range []struct {
		name  string
		c     Case
		least float64
	}{
		{"laplace", known(0.9, 0, Laplace, laplace, 1), 0.92},
		{"laplace, learned", known(0.9, 0, Learned, laplace, 1), 0.9},
		// mu = 1: epsilon 1.9 at delta 0.0189
		{"gaussian", known(1, 0.02, Gaussian, normal, 1), 1},
	} {
		r := audit(t, c.name, privacy.Proven, []Case{c.c}, Options{Trials: 200000, Confidence: 0.999, Seed: &seed})
		if f := r.Cases[0]; f.Lower < c.least || r.Verdict != Violated {
			t.Errorf("%s: bound %v, want at least %v", c.name, f.Lower, c.least)
		}
	}
}

func TestClopperPearson(t *testing.T) {
	// closed forms: no success in n, all n of n
	for _, n := range []int{1, 10, 1000} {
		if got, want := clopperUpper(0, n, 0.01), 1-math.Pow(0.01, 1/float64(n)); math.Abs(got-want) > 1e-9 {
			t.Errorf("upper limit of 0 in %d: %v, want %v", n, got, want)
		}
		if got, want := clopperLower(n, n, 0.01), math.Pow(0.01, 1/float64(n)); math.Abs(got-want) > 1e-9 {
			t.Errorf("lower limit of %d in %d: %v, want %v", n, n, got, want)
		}
	}
	// binomial tails summed term by term
	for _, c := range []struct{ k, n int }{{1, 7}, {5, 40}, {39, 40}, {200, 1000}} {
		for _, alpha := range []float64{0.05, 1e-8} {
			p := clopperLower(c.k, c.n, alpha)
			var tail float64
			for i := c.k; i <= c.n; i++ {
				lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
				tail += math.Exp(lg(c.n) - lg(i) - lg(c.n-i) + float64(i)*math.Log(p) + float64(c.n-i)*math.Log1p(-p))
			}
			if math.Abs(tail/alpha-1) > 1e-6 {
				t.Errorf("lower limit of %d in %d at %v: tail %v", c.k, c.n, alpha, tail)
			}
		}
	}
	if clopperLower(0, 5, 0.01) != 0 || clopperUpper(5, 5, 0.01) != 1 {
		t.Error("limits at the ends are not 0 and 1")
	}
}

func TestAuditRefusesBadInput(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	c := []Case{known(1, 0, Laplace, func(st *privacy.Stream) float64 { return st.Laplace() }, 1)}
	for _, o := range []Options{{Trials: 10}, {Trials: -1}, {Confidence: 1}, {Confidence: math.NaN()}} {
		if _, err := Run(context.Background(), pool, "x", privacy.Proven, c, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := Cases("lloyd", privacy.Proven, Settings{}); err == nil {
		t.Error("lloyd is audited")
	}
	if _, err := Cases("balcan", privacy.Claimed, Settings{}); err == nil {
		t.Error("balcan's claimed calibration is audited")
	}
}
