package privacy

import (
	"errors"
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestPureAndZCDPClosedForms(t *testing.T) {
	var p PureAccountant
	p.Compose(Laplace{Scale: 4}, 3)
	p.Compose(RandomizedResponse{P: 0.5, Buckets: 2}, 1)
	near(t, "pure sum", p.Epsilon(0), 0.75+math.Log(3), 1e-12)
	if p.Delta(2) != 0 || p.Delta(1.8) != 1 {
		t.Error("pure delta is not a step")
	}
	simple := ZCDPAccountant{Simple: true}
	simple.Compose(Gaussian{Scale: 10}, 50) // rho = 1/4
	near(t, "simple conversion", simple.Epsilon(1e-5), 0.25+2*math.Sqrt(0.25*math.Log(1e5)), 1e-12)
	near(t, "simple back", simple.Delta(simple.Epsilon(1e-5)), 1e-5, 1e-12)
	tight := ZCDPAccountant{}
	tight.Compose(Gaussian{Scale: 10}, 50)
	// the infimum over orders by brute force
	best := math.Inf(1)
	for a := 1.0001; a < 500; a += 0.0005 {
		best = math.Min(best, 0.25*a+math.Log1p(-1/a)+(math.Log(1e5)-math.Log(a))/(a-1))
	}
	near(t, "tight conversion", tight.Epsilon(1e-5), best, 1e-7)
	near(t, "tight back", tight.Delta(tight.Epsilon(1e-5)), 1e-5, 1e-9)
}

func TestGaussianProfile(t *testing.T) {
	// published values of the analytic Gaussian mechanism: sigma for (epsilon, delta)
	for _, c := range []struct{ eps, delta, mu float64 }{{.5, 5e-5, .160}, {1, 5e-5, .298}, {2, 5e-5, .551},
		{4, 5e-5, 1.003}} {
		mu, err := MuOf(Budget{c.eps, c.delta}, 0)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "mu", mu, c.mu, 5e-4)
		near(t, "epsilon of mu", EpsilonOfMu(mu, c.delta, 0), c.eps, 1e-8)
	}
	if _, err := MuOf(Budget{1, 0}, 0); !errors.Is(err, ErrRange) {
		t.Errorf("delta 0: %v", err)
	}
	if _, err := MuOf(Budget{1, 1e-5}, 1e-5); !errors.Is(err, ErrRange) {
		t.Errorf("slack above delta: %v", err)
	}
	with, err := MuOf(Budget{1, 1e-5}, 1e-6)
	without, _ := MuOf(Budget{1, 1e-5}, 0)
	if err != nil || with >= without || EpsilonOfMu(with, 1e-5, 1e-6) > 1 {
		t.Errorf("slack: mu %v with, %v without, %v", with, without, err)
	}
}

// The discrete Gaussian's true distance to the rounded continuous one, summed over the integers, is below
// GaussianSlack and not far.
func TestGaussianSlackBoundsTheDistance(t *testing.T) {
	for _, sigma := range []float64{1, 1.5, 3, 10, 100} {
		var total, tv float64
		n := int(20 * sigma)
		for z := -n; z <= n; z++ {
			total += math.Exp(-float64(z*z) / (2 * sigma * sigma))
		}
		for z := -n; z <= n; z++ {
			x := float64(z)
			tv += math.Abs(math.Exp(-x*x/(2*sigma*sigma))/total-gaussMass((x-.5)/sigma, (x+.5)/sigma)) / 2
		}
		if s := GaussianSlack(sigma, 1); tv > s || s > 6*tv {
			t.Errorf("sigma %v: distance %v, bound %v", sigma, tv, s)
		}
	}
	if GaussianSlack(0.9, 3) != 1 || GaussianSlack(100, 10) != 10*GaussianSlack(100, 1) {
		t.Error("slack does not add up")
	}
}

// SplitDistance against the exact convolution of shares.
func TestSplitDistanceBoundsTheRatio(t *testing.T) {
	for _, c := range []struct {
		share float64
		m     int
	}{{0.7, 2}, {1, 2}, {1, 3}} {
		const n = 60
		distribution := func(s float64) []float64 {
			p := make([]float64, 2*n+1)
			var sum float64
			for i := range p {
				x := float64(i - n)
				p[i] = math.Exp(-x * x / (2 * s * s))
				sum += p[i]
			}
			for i := range p {
				p[i] /= sum
			}
			return p
		}
		sum := distribution(c.share)
		for range c.m - 1 {
			next := make([]float64, 2*n+1)
			one := distribution(c.share)
			for i, a := range sum {
				for j, b := range one {
					if k := i + j - n; k >= 0 && k <= 2*n {
						next[k] += a * b
					}
				}
			}
			sum = next
		}
		want := distribution(c.share * math.Sqrt(float64(c.m)))
		worst := 0.0
		for z := -8; z <= 8; z++ {
			worst = math.Max(worst, math.Abs(math.Log(sum[z+n]/want[z+n])))
		}
		if s := SplitDistance(c.share, c.m); worst > s {
			t.Errorf("share %v, %d of them: log ratio %v, bound %v", c.share, c.m, worst, s)
		}
	}
	// 5e-4 for two shares of deviation 1, 7e-17 of deviation 2
	if a, b := SplitDistance(1, 2), SplitDistance(2, 2); math.Abs(a/5.2e-4-1) > 0.01 || math.Abs(b/7.2e-17-1) > 0.01 ||
		SplitDistance(1, 1) != 0 {
		t.Errorf("slack of two shares: %v at deviation 1, %v at 2", a, b)
	}
}

func mechanisms() map[string]Mechanism {
	return map[string]Mechanism{
		"gaussian": Gaussian{Scale: 7}, "laplace": Laplace{Scale: 9},
		"pure": PureDP{Epsilon: 0.1}, "bounded": bounded{Epsilon: 0.2},
		"randomized response":    RandomizedResponse{P: 0.9, Buckets: 4},
		"discrete gaussian":      DiscreteGaussianStep{Sigma: 8, Step: 1},
		"discrete laplace":       DiscreteLaplaceStep{B: 9, Step: 1},
		"discrete laplace, long": DiscreteLaplaceStep{B: 90, Step: 10},
		"fm":                     FM{Gamma: 1, Phantoms: 40, Parties: 2, Cells: 3},
	}
}

// More rounds, a smaller delta, a smaller scale or one more release never cost less, for any accountant.
func TestMoreNeverCostsLess(t *testing.T) {
	for name, m := range mechanisms() {
		for _, acc := range []string{"pure", "zcdp-simple", "zcdp", "rdp", "gdp", "pld"} {
			epsilon := func(delta float64, rounds ...int) float64 {
				a, err := NewAccountant(acc)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rounds {
					a.Compose(m, r)
				}
				return a.Epsilon(delta)
			}
			last := 0.0
			for _, rounds := range []int{1, 2, 5, 17, 60} {
				e := epsilon(1e-6, rounds)
				if e < last*(1-2e-3) { // the numeric accountant is within 0.1%
					t.Errorf("%s by %s: %d rounds cost %v, fewer cost %v", name, acc, rounds, e, last)
				}
				last = math.Max(last, e)
			}
			if a, b := epsilon(1e-6, 5), epsilon(1e-8, 5); b < a*(1-1e-9) {
				t.Errorf("%s by %s: epsilon %v at 1e-6, %v at 1e-8", name, acc, a, b)
			}
			if a, b := epsilon(1e-6, 5, 6), epsilon(1e-6, 11); math.Abs(a-b) > 1e-9*a {
				t.Errorf("%s by %s: 5 and 6 rounds cost %v, 11 cost %v", name, acc, a, b)
			}
		}
	}
}

// Every currency of a mechanism bounds its exact loss distribution, one and many rounds.
func TestCurrenciesBoundTheLosses(t *testing.T) {
	for name, m := range mechanisms() {
		var orders []*Losses
		if l, ok := m.(lossy); ok {
			orders = l.Losses()
		} else {
			continue
		}
		for _, l := range orders {
			if l.cells != nil {
				continue // continuous: their divergences are closed forms themselves
			}
			for _, alpha := range []float64{1.1, 2, 5, 40} {
				clean := *l
				clean.infinite = 0
				exact := clean.renyi(alpha)
				if r := m.RDP(alpha); exact > r*(1+1e-9) {
					t.Errorf("%s: divergence of order %v is %v, RDP says %v", name, alpha, exact, r)
				}
				if r := m.Rho() * alpha; exact > r*(1+1e-9) {
					t.Errorf("%s: divergence of order %v is %v, zCDP says %v", name, alpha, exact, r)
				}
			}
		}
		low := &PLDAccountant{Optimistic: true}
		low.Compose(m, 20)
		least := low.Epsilon(1e-6)
		for _, acc := range []string{"pure", "zcdp-simple", "zcdp", "rdp", "gdp", "pld"} {
			a, _ := NewAccountant(acc)
			a.Compose(m, 20)
			if e := a.Epsilon(1e-6); e < least*(1-1e-9) {
				t.Errorf("%s by %s: epsilon %v is below the lower bound %v", name, acc, e, least)
			}
		}
	}
}

// One Laplace release: the profile is known, delta(e) = 1 - exp((e - t)/2) for e in [0, t].
func TestPLDOfOneLaplaceRelease(t *testing.T) {
	for _, scale := range []float64{0.5, 1, 10} {
		up, low := &PLDAccountant{}, &PLDAccountant{Optimistic: true}
		up.Compose(Laplace{Scale: scale}, 1)
		low.Compose(Laplace{Scale: scale}, 1)
		for _, delta := range []float64{1e-6, 1e-3, 0.1} {
			want := math.Max(0, 1/scale+2*math.Log1p(-delta))
			hi, lo := up.Epsilon(delta), low.Epsilon(delta)
			if hi < want || hi > want+2e-4 || lo > want || lo < want-2e-3 {
				t.Errorf("scale %v delta %v: %v to %v, want %v", scale, delta, lo, hi, want)
			}
		}
	}
}

// TestPLDOfOneLargeLoss has noise so small that the variance of the loss cancels to 0.
func TestPLDOfOneLargeLoss(t *testing.T) {
	for _, epsilon := range []float64{36, 40, 64} {
		up, low := &PLDAccountant{}, &PLDAccountant{Optimistic: true}
		up.Compose(DiscreteLaplaceStep{B: 1 / epsilon, Step: 1}, 1)
		low.Compose(DiscreteLaplaceStep{B: 1 / epsilon, Step: 1}, 1)
		if hi, lo := up.Epsilon(1e-6), low.Epsilon(1e-6); !(hi <= epsilon+1e-9 && hi > epsilon-1e-3 && lo >= 0 && lo <= hi) {
			t.Errorf("epsilon %v: %v to %v", epsilon, lo, hi)
		}
	}
}

func TestParallel(t *testing.T) {
	p := inParallel(Gaussian{Scale: 5}, Gaussian{Scale: 10}, Laplace{Scale: 20})
	near(t, "parallel rho", p.Rho(), 0.02, 1e-12)
	near(t, "parallel RDP", p.RDP(3), 0.06, 1e-12)
	if inParallel().Pure() != 0 {
		t.Error("nothing in parallel costs something")
	}
}

func TestCalibrateInvertsTheAccountant(t *testing.T) {
	for _, acc := range []string{"pure", "zcdp-simple", "zcdp", "rdp", "gdp", "pld"} {
		family := func(s float64) Mechanism { return Gaussian{Scale: s} }
		if acc == "pure" {
			family = func(s float64) Mechanism { return Laplace{Scale: s} }
		}
		for _, b := range []Budget{{1, 1e-5}, {0.1, 1e-6}} {
			scale, err := calibrate(acc, b, 7, family)
			if err != nil {
				t.Fatal(err)
			}
			at := func(s float64) float64 {
				a, _ := NewAccountant(acc)
				a.Compose(family(s), 7)
				return a.Epsilon(b.Delta)
			}
			if e := at(scale); e > b.Epsilon*(1+1e-7) {
				t.Errorf("%s %+v: scale %v overspends: %v", acc, b, scale, e)
			}
			if e := at(scale * (1 - 4e-6)); e <= b.Epsilon {
				t.Errorf("%s %+v: scale %v is not the least to 1e-6", acc, b, scale)
			}
		}
	}
	for _, b := range []Budget{{0, 0}, {math.NaN(), 0}, {1, 1}, {1, -1}, {math.Inf(1), 0}} {
		_, err := calibrate("pure", b, 1, func(s float64) Mechanism { return Laplace{Scale: s} })
		if !errors.Is(err, ErrRange) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	if _, err := calibrate("zcdp", Budget{1, 0}, 1,
		func(s float64) Mechanism { return Gaussian{Scale: s} }); !errors.Is(err, ErrBudget) {
		t.Errorf("Gaussian noise at delta 0: %v", err)
	}
	if _, err := calibrate("nosuch", Budget{1, 0}, 1,
		func(s float64) Mechanism { return Laplace{Scale: s} }); !errors.Is(err, ErrRange) {
		t.Errorf("unknown accountant: %v", err)
	}
	if _, err := calibrate("pure", Budget{1, 0}, 0,
		func(s float64) Mechanism { return Laplace{Scale: s} }); !errors.Is(err, ErrRange) {
		t.Errorf("no rounds: %v", err)
	}
}

// What DiscreteMu pays for, against the pld accountant on a grid: a run of releases of unequal scales, as
// a tree and rounds of refinement have, costs the whole budget, and the grid allows no less noise.
func TestDiscreteMuIsWhatThePLDAccountantPaysFor(t *testing.T) {
	weights := []float64{1, 1.3, 1.6, 2, 2.5, 3.2, 4, 8, 9}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for _, b := range []Budget{{0.1, 1e-6}, {1, 1e-5}, {4, 1e-5}} {
		mu, err := DiscreteMu(b, 1e-13)
		if err != nil {
			t.Fatal(err)
		}
		compose := func(scale float64) float64 {
			a := &PLDAccountant{}
			for _, w := range weights {
				a.Compose(Gaussian{Scale: scale / (mu * math.Sqrt(w/sum)), Discretised: 1e-14}, 1)
			}
			return a.Delta(b.Epsilon)
		}
		if d := compose(0.9999); d <= b.Delta {
			t.Errorf("%+v: the pld accountant allows less noise: delta %v", b, d)
		}
		if d := compose(1.001); d > b.Delta {
			t.Errorf("%+v: a thousandth more noise has delta %v", b, d)
		}
	}
}

// The exact losses of discrete noise calibrated by DiscreteMu are within the budget, by the profile and,
// where its slack would eat delta, by zCDP; and zCDP alone is what is paid there.
func TestDiscreteMuHoldsForTheExactLosses(t *testing.T) {
	const rounds = 10
	for _, c := range []struct {
		b    Budget
		zcdp bool
	}{
		{Budget{0.05, 1e-2}, false}, {Budget{0.1, 5e-2}, false}, {Budget{1, 1e-6}, true}, {Budget{30, 1e-6}, true},
	} {
		most, err := MuOf(c.b, 0)
		if err != nil {
			t.Fatal(err)
		}
		slack := GaussianSlack(math.Sqrt(rounds)/most, rounds)
		mu, err := DiscreteMu(c.b, slack)
		if err != nil {
			t.Fatal(err)
		}
		a := &PLDAccountant{}
		a.Compose(DiscreteGaussianStep{Sigma: math.Sqrt(rounds) / mu, Step: 1}, rounds)
		if e := a.Epsilon(c.b.Delta); e > c.b.Epsilon*(1+1e-6) {
			t.Errorf("%+v: the exact losses cost %v", c.b, e)
		}
		z := &ZCDPAccountant{}
		z.Compose(Gaussian{Scale: 1 / mu}, 1)
		if e := z.Epsilon(c.b.Delta); (math.Abs(e/c.b.Epsilon-1) < 1e-5) != c.zcdp {
			t.Errorf("%+v: epsilon %v by zCDP", c.b, e)
		}
	}
	if _, err := DiscreteMu(Budget{1, 0}, 0); !errors.Is(err, ErrRange) {
		t.Errorf("delta 0: %v", err)
	}
}
