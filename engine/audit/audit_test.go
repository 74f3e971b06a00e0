package audit

import (
	"context"
	"math"
	"slices"
	"strings"
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

// expectations say what the quick form must find for every method and calibration, in so many trials.
// What is proven is consistent, and claims that THEOREMS.md refutes are caught: by T1 fastlloyd and
// csulloyd, by T3 the sketches, by T4 ckks, by T5 balcan-edler, by T6 (vii) the truncated noise of the
// released code. Other claims have sound sensitivities, or are refuted by less than an experiment shows.
var expectations = []struct {
	audit   Audit
	verdict Verdict
	trials  int
}{
	{Audit{"sulloyd", privacy.Proven}, Consistent, 2000}, {Audit{"sulloyd", privacy.Claimed}, Consistent, 2000},
	{Audit{"sulloyd", privacy.Published}, Violated, 80000},
	{Audit{"csulloyd", privacy.Proven}, Consistent, 2000}, {Audit{"csulloyd", privacy.Claimed}, Violated, 1500},
	{Audit{"csulloyd", privacy.Published}, Violated, 1500},
	{Audit{"fastlloyd", privacy.Proven}, Consistent, 2000}, {Audit{"fastlloyd", privacy.Claimed}, Violated, 1500},
	{Audit{"fastlloyd", privacy.Published}, Violated, 1500},
	{Audit{"relative", privacy.Proven}, Consistent, 2000}, {Audit{"relative", privacy.Claimed}, Consistent, 2000},
	{Audit{"relative", privacy.Published}, Consistent, 2000},
	{Audit{"hybrid", privacy.Proven}, Consistent, 2000},
	{Audit{"lsf", privacy.Proven}, Consistent, 2000},
	{Audit{"eugkm", privacy.Proven}, Consistent, 2000},
	{Audit{"evolve", privacy.Proven}, Consistent, 1000},
	{Audit{"balcan", privacy.Proven}, Consistent, 2000},
	{Audit{"balcan-edler", privacy.Claimed}, Violated, 9600},
	{Audit{"ind-lap", privacy.Proven}, Consistent, 2000}, {Audit{"ind-lap", privacy.Claimed}, Consistent, 2000},
	{Audit{"ldp-agg", privacy.Proven}, Consistent, 2000}, {Audit{"ldp-agg", privacy.Claimed}, Consistent, 2000},
	{Audit{"sketch-basic", privacy.Proven}, Consistent, 2000}, {Audit{"sketch-basic", privacy.Claimed}, Violated, 20000},
	{Audit{"sketch", privacy.Proven}, Consistent, 2000}, {Audit{"sketch", privacy.Claimed}, Violated, 80000},
	{Audit{"ckks", privacy.Proven}, Consistent, 2500}, {Audit{"ckks", privacy.Claimed}, Violated, 5000},
}

// telling are the cases that show most, where a violation takes many trials.
var telling = map[Audit]string{
	{"sulloyd", privacy.Published}: "lonely corner in 2 dimensions", {"sketch", privacy.Claimed}: "three parties",
}

// The quick form over every method.
func TestEveryMethodQuickly(t *testing.T) {
	seed := uint64(3)
	left := Audits()
	for _, x := range expectations {
		i := slices.Index(left, x.audit)
		if i < 0 {
			t.Errorf("%v is expected and not in the library", x.audit)
			continue
		}
		left = slices.Delete(left, i, i+1)
		cases, err := Cases(x.audit.Method, x.audit.Calibration, Settings{})
		if err != nil {
			t.Errorf("%v: %v", x.audit, err)
			continue
		}
		if x.audit.Method == "sketch-basic" {
			// its parties make and send the sketches of sketch: one audit speaks for both, and returns nothing
			same, err := Cases("sketch", x.audit.Calibration, Settings{})
			if err != nil {
				t.Errorf("%v: %v", x.audit, err)
			}
			for _, c := range cases {
				if !slices.ContainsFunc(same, func(s Case) bool { return s.About == c.About && s.Watched == c.Watched }) {
					t.Errorf("%v: %s is not a case of sketch", x.audit, c.Name)
				}
			}
			continue
		}
		if only := telling[x.audit]; only != "" {
			if cases, err = Choose(cases, []string{only}); err != nil {
				t.Fatal(err)
			}
		}
		r := audit(t, x.audit.Method, x.audit.Calibration, cases, Options{Trials: x.trials, Confidence: sure, Seed: &seed})
		if r.Verdict != x.verdict {
			t.Errorf("%v: %s, want %s: %+v", x.audit, r.Verdict, x.verdict, r.Cases)
		}
		for _, f := range r.Cases {
			if f.Trials < minTrials || f.Counted < f.Trials/2 || f.Watched == "" || f.Event == "" {
				t.Errorf("%v: %s: %d trials, %d counted, watched %q, event %q", x.audit, f.Case, f.Trials, f.Counted,
					f.Watched, f.Event)
			}
			if f.True != nil && f.Lower > *f.True {
				t.Errorf("%v: %s: epsilon at least %v, and the ledger's true one is %v", x.audit, f.Case, f.Lower, *f.True)
			}
			if x.audit.Method == "ckks" && x.verdict == Violated && strings.HasPrefix(f.Case, "linear") && !f.Violated {
				t.Errorf("ckks: %s is not caught", f.Case)
			}
		}
	}
	for _, a := range left {
		t.Errorf("%v is in the library and nothing is expected of it", a)
	}
}

// Both counterexamples of T1 are caught one by one, under the theorem's and the code's noise, and the
// ledger's true epsilon is not exceeded.
func TestCounterexamplesOfTheSizeConstraint(t *testing.T) {
	seed := uint64(4)
	for _, c := range []privacy.Calibration{privacy.Claimed, privacy.Published} {
		cases, err := Cases("fastlloyd", c, Settings{})
		if err != nil {
			t.Fatal(err)
		}
		cases, err = Choose(cases, []string{"doubled mean", "every cluster"})
		if err != nil || len(cases) != 2 {
			t.Fatal(cases, err)
		}
		for _, f := range audit(t, "fastlloyd", c, cases, Options{Trials: 5000, Confidence: sure, Seed: &seed}).Cases {
			if !f.Violated || f.True == nil || f.Lower > *f.True {
				t.Errorf("%s, %s: bound %v, ledger %v, true %v", c, f.Case, f.Lower, f.Epsilon, f.True)
			}
		}
	}
}

// With next to no noise the released centroids of the two counterexamples move as T1 says: (1, 1) to
// (0, 1); and by (.98, 1), (-.98, -.96), (.63, .64).
func TestCounterexamplesMoveAsProved(t *testing.T) {
	pool := engine.NewPool(1)
	defer pool.Close()
	rt := engine.NewRuntime(pool)
	st := privacy.NewStreams(new(uint64)).Stream(0, 0, "quiet")
	for _, c := range []struct {
		p    Pair
		want []float64
	}{{doubled(), []float64{1, 0}}, {everyCluster(), []float64{0.98, 1, -0.98, -0.96, 0.63, 0.64}}} {
		one, err := horizontalCase("fastlloyd", privacy.Claimed, Settings{Epsilon: 1e6}, c.p,
			setting{clients: 1, viewer: privacy.Outsider})
		if err != nil {
			t.Fatal(err)
		}
		var sides [2][]float64
		for side := range sides {
			if sides[side], err = one.Draw(context.Background(), rt, st, side == 1); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range c.want {
			if got := math.Abs(sides[1][i]-sides[0][i]) / (1 << gridBits); math.Abs(got-math.Abs(want)) > 1e-3 {
				t.Errorf("%s: coordinate %d moves by %v, want %v", c.p.Name, i, got, want)
			}
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
		if r := audit(t, m, privacy.Proven, cases,
			Options{Trials: 1000, Confidence: sure, Seed: &seed}); r.Verdict != Consistent {
			t.Errorf("%s: %+v", m, r)
		}
	}
	if _, err := Cases("sketch", privacy.Proven, Settings{Neighbours: privacy.ReplaceOne}); err == nil {
		t.Error("sketch has no proof for replace-one, and is audited for it")
	}
}

// known is a mechanism of known epsilon as a case that claims another.
func known(epsilon, delta float64, distribution Distribution, draw func(*privacy.Stream) float64, shift float64) Case {
	return Case{Name: "known", Epsilon: epsilon, Delta: delta, Distribution: distribution, Weight: 1,
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
	normal := func(st *privacy.Stream) float64 { return st.Normal() }
	gaussian := known(privacy.EpsilonOfMu(1, 1e-5, 0), 1e-5, gaussianNoise, normal, 1)
	for _, delta := range profileDeltas {
		gaussian.Profile = append(gaussian.Profile, Point{delta, privacy.EpsilonOfMu(1, delta, 0)})
	}
	for _, c := range []Case{known(1, 0, laplaceNoise, laplace, 1), gaussian} {
		accused := 0
		for i := range uint64(300) {
			if r := audit(t, "known", privacy.Proven, []Case{c},
				Options{Trials: 500, Confidence: 0.9, Seed: &i}); r.Verdict == Violated {
				accused++
			}
		}
		if accused > 61 {
			t.Errorf("%d of 300 audits accuse noise of its own epsilon at delta %v and 90%% confidence", accused, c.Delta)
		}
	}
}

// The auditor finds most of the epsilon of mechanisms whose epsilon is known, and with it noise that is too
// small: a claim 10% below the truth is refuted. Each bound stays below what is asked for with
// probability under 1e-6: it is that of 120,000 counted trials, in which frequencies near 1/2 and 1/5 have
// deviations of .0014 and .0012, and the least bound asked for is 6 of them off.
func TestAuditorPower(t *testing.T) {
	seed := uint64(6)
	laplace := func(st *privacy.Stream) float64 { return st.Laplace() }
	normal := func(st *privacy.Stream) float64 { return st.Normal() }
	discrete := func(b float64) func(*privacy.Stream) float64 {
		l, err := privacy.NewDiscreteLaplace(b)
		if err != nil {
			t.Fatal(err)
		}
		return func(st *privacy.Stream) float64 { return float64(l.Sample(st)) }
	}
	for _, c := range []struct {
		name  string
		c     Case
		least float64
	}{
		{"laplace", known(0.9, 0, laplaceNoise, laplace, 1), 0.92},
		{"laplace, learned", known(0.9, 0, learned, laplace, 1), 0.9},
		{"laplace, 10% too little noise", known(1, 0, laplaceNoise, laplace, 1.1), 1},
		{"discrete laplace, 10% too little noise", known(1, 0, laplaceNoise, discrete(10/1.1), 10), 1},
		{"discrete laplace, small scale", known(1, 0, laplaceNoise, discrete(1/1.15), 1), 1},
		// mu = 1: epsilon 1.9 at delta 0.0189
		{"gaussian", known(1, 0.02, gaussianNoise, normal, 1), 1},
	} {
		r := audit(t, c.name, privacy.Proven, []Case{c.c}, Options{Trials: 200000, Confidence: 0.999, Seed: &seed})
		if f := r.Cases[0]; f.Lower < c.least || r.Verdict != Violated {
			t.Errorf("%s: bound %v, want at least %v", c.name, f.Lower, c.least)
		}
	}
	// Noise that is 10% too small is caught at a larger delta too, where the profile says less.
	g := known(10, 1e-5, gaussianNoise, normal, 1.1) // epsilon 10 hides nothing at 1e-5
	mu1 := []Point{{1e-3, privacy.EpsilonOfMu(1, 1e-3, 0)}, {0.05, privacy.EpsilonOfMu(1, 0.05, 0)},
		{0.3, privacy.EpsilonOfMu(1, 0.3, 0)}}
	g.Profile = mu1
	if r := audit(t, "profile", privacy.Proven, []Case{g},
		Options{Trials: 200000, Confidence: 0.999, Seed: &seed}); r.Verdict != Violated || r.Cases[0].Profile == nil {
		t.Errorf("a profile of mu = 1 and noise of mu = 1.1: %+v", r.Cases[0])
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
	c := []Case{known(1, 0, laplaceNoise, func(st *privacy.Stream) float64 { return st.Laplace() }, 1)}
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
