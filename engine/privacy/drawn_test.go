package privacy

import (
	"errors"
	"math"
	"testing"
)

// The profile of drawn cells is the mean over how many trials succeed of the delta of two normal distributions so far
// apart, here by the trapezoidal rule over the density of their losses, for one release, and for two beside a Gaussian
// one.
func TestDrawnProfile(t *testing.T) {
	binomial := func(n int, p float64) (distribution []float64) {
		distribution = append(distribution, math.Pow(1-p, float64(n)))
		for b := range n {
			distribution = append(distribution, distribution[b]*float64(n-b)/float64(b+1)*p/(1-p))
		}
		return distribution
	}
	apart := func(mu, epsilon float64) (sum float64) { // E_P[(1 - e^(epsilon - L))_+], L ~ N(mu^2/2, mu^2)
		const steps = 20_000
		for i := range steps {
			z := -12 + 24*float64(i)/steps
			if l := mu*mu/2 + mu*z; l > epsilon {
				sum += (1 - math.Exp(epsilon-l)) * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * 24 / steps
			}
		}
		return sum
	}
	for _, d := range []Drawn{{Trials: 40, P: 0.05, Scale: 8}, {Trials: 6, P: 0.4, Scale: 3}} {
		distribution := binomial(d.Trials, d.P)
		for _, epsilon := range []float64{0.1, 0.5, 1.5} {
			var one, two float64
			for b, p := range distribution {
				one += p * apart(float64(b)/d.Scale, epsilon)
				for c, q := range distribution {
					if p*q > 1e-12 {
						two += p * q * apart(math.Sqrt(0.09+float64(b*b+c*c)/(d.Scale*d.Scale)), epsilon)
					}
				}
			}
			near(t, "one release", newDrawnProfile(0, d, 1).delta(epsilon), one, 1e-5*one+1e-11)
			near(t, "two and a Gaussian one", newDrawnProfile(0.3, d, 2).delta(epsilon), two, 1e-5*two+1e-11)
		}
	}
}

// The scale keeps the budget and hardly more, whatever the number of releases; totals of a ledger that has such
// releases beside Gaussian and pure ones add up, and a file has a price for them.
func TestDrawnScale(t *testing.T) {
	b := Budget{1, 1e-6}
	for _, c := range []struct {
		mu     float64
		d      Drawn
		rounds int
	}{{0, Drawn{Trials: 4096, P: 1. / 3000}, 1}, {0.2, Drawn{Trials: 1 << 16, P: 1. / 20000}, 1},
		{0.15, Drawn{Trials: 1 << 16, P: 1e-4}, 15}, {0.2, Drawn{Trials: 1 << 16, P: 1e-8}, 1}} {
		scale, err := DrawnScale(b, c.mu, c.d, c.rounds, 1e-9)
		if err != nil {
			t.Fatal(err)
		}
		l := &Ledger{Delta: b.Delta}
		for _, s := range []Spec{{Family: "gaussian", Scale: 1 / max(c.mu, 1e-9)},
			{Family: "drawn-gaussian", Scale: scale, Trials: c.d.Trials, P: c.d.P, Slack: 1e-9, Rounds: c.rounds}} {
			if err := l.Add(Entry{What: s.Family, Viewers: []string{Outsider}, Calibration: Proven, Cost: s}); err != nil {
				t.Fatal(err)
			}
		}
		slack := float64(c.rounds-1) * 1e-9 * (1 + math.E) // that the rounds have more than was given
		total := l.TotalFor(Outsider)
		if total.Unbounded || *total.Epsilon > 1*(1+1e-3+10*slack/b.Delta) || *total.Epsilon < 0.99 {
			t.Errorf("%+v: a total of %v", c, total.Epsilon)
		}
		c.d.Scale = scale
		pricesCover(t, l, newDrawnProfile(c.mu, c.d, c.rounds))
		if err := l.Add(Entry{What: "n", Viewers: []string{Outsider}, Calibration: Proven,
			Cost: Spec{Family: "discrete-laplace", Scale: 4}}); err != nil {
			t.Fatal(err)
		}
		if more := l.TotalFor(Outsider); more.Unbounded || math.Abs(*more.Epsilon-*total.Epsilon-0.25) > 1e-6 {
			t.Errorf("%+v: %v with a pure release of .25, %v without", c, more.Epsilon, total.Epsilon)
		}
		terms := Terms{Budget: Budget{4, 1e-5}, Composition: BasicComposition, Neighbours: AddRemove}
		if p, err := terms.Prices(l); err != nil || p[Outsider].Amount < *total.Epsilon {
			t.Errorf("%+v costs %v, %v", c, p, err)
		}
	}
	if _, err := DrawnScale(b, 1, Drawn{Trials: 10, P: 0.1}, 1, 0); !errors.Is(err, ErrBudget) {
		t.Errorf("a budget that is spent pays: %v", err)
	}
	for _, s := range []Spec{{Family: "drawn-gaussian", Scale: 1, P: 0.1}, {Family: "drawn-gaussian", Scale: 1, Trials: 3,
		P: 0.7}, {Family: "drawn-gaussian", Trials: 3, P: 0.1},
		{Family: "drawn-gaussian", Scale: 1, Trials: math.MaxInt32, P: 0.5}} {
		if _, err := s.Mechanism(); !errors.Is(err, ErrRange) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// pricesCover checks that what files of every currency charge for a ledger bounds its profile, with what they add
// to delta, and charge for no more than five times the scale.
func pricesCover(t *testing.T, l *Ledger, profile *drawnProfile) {
	t.Helper()
	mu, err := MuOf(Budget{1, 1e-6}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, composition := range []Composition{ZCDPComposition, GDPComposition, RDPComposition} {
		terms := Terms{Budget: Budget{4, 1e-5}, Composition: composition, Neighbours: AddRemove}
		prices, err := terms.Prices(l)
		if err != nil {
			t.Errorf("%s: %v", composition, err)
			continue
		}
		c := prices[Outsider]
		same := c.Amount / (mu * mu) // against a Gaussian release of the budget
		for _, epsilon := range []float64{0.25, 0.5, 1, 2, 3} {
			var bound float64
			switch composition {
			case ZCDPComposition:
				bound = (&ZCDPAccountant{rho: c.Amount}).Delta(epsilon)
				same = 2 * c.Amount / (mu * mu)
			case GDPComposition:
				bound = DeltaOfMu(math.Sqrt(c.Amount), epsilon)
			case RDPComposition:
				a := terms.order()
				bound = math.Exp((a-1)*(c.Amount-epsilon+math.Log1p(-1/a))) / a
				same = 2 * c.Amount / (a * mu * mu)
			}
			if is := profile.delta(epsilon); is > bound+c.Delta {
				t.Errorf("%s: at epsilon %v delta is %v, and %+v says %v", composition, epsilon, is, c, bound+c.Delta)
			}
		}
		if same > 25 || c.Delta > terms.limit().Delta/60+slackDelta(4, 16e-9) {
			t.Errorf("%s: %+v is %v times the budget's", composition, c, same)
		}
	}
}
