package privacy

import (
	"math"
	"testing"
)

// The profile of noise beside pure releases lies between those of the pld accountant, which knows nothing of normal
// losses, is that of the noise where the others give nothing away, and that of randomised responses without noise.
func TestMixedProfile(t *testing.T) {
	for _, c := range []struct {
		mu   float64
		pure []Responses
	}{{0.3, []Responses{{0.05, 2}}}, {0.25, []Responses{{0.02, 1}, {0.4, 3}}}, {0.05, []Responses{{0.3, 9}}}} {
		m := NewMixed(c.mu, c.pure...)
		above, below := &PLDAccountant{}, &PLDAccountant{Optimistic: true}
		sum := 0.0
		for _, a := range []*PLDAccountant{above, below} {
			a.Compose(Gaussian{Scale: 1 / c.mu}, 1)
			for _, r := range c.pure {
				a.Compose(PureDP{Epsilon: r.Epsilon}, r.Times)
				sum += float64(r.Times) * r.Epsilon / 2
			}
		}
		for _, epsilon := range []float64{0.01, 1} {
			lo, hi, got := below.Delta(epsilon), above.Delta(epsilon), m.delta(epsilon)
			if !(got >= lo*(1-1e-9) && got <= hi*(1+1e-9)) {
				t.Errorf("%+v: delta %v at epsilon %v, the pld accountant says %v to %v", c, got, epsilon, lo, hi)
			}
			if alone := DeltaOfMu(c.mu, epsilon); got <= alone {
				t.Errorf("%+v: delta %v at epsilon %v, of the noise alone %v", c, got, epsilon, alone)
			}
		}
		const delta, slack = 1e-6, 1e-10
		epsilon := m.Epsilon(delta, slack)
		if apart := EpsilonOfMu(c.mu, delta, slack) + sum; epsilon >= apart {
			t.Errorf("%+v: epsilon %v together, %v apart", c, epsilon, apart)
		}
		if !m.Within(Budget{epsilon * (1 + 1e-9), delta}, slack) || m.Within(Budget{epsilon * (1 - 1e-9), delta}, slack) {
			t.Errorf("%+v: epsilon %v at delta %v is not the least", c, epsilon, delta)
		}
	}
	if got, want := NewMixed(0.4, Responses{1e-12, 2}).delta(1), DeltaOfMu(0.4, 1); math.Abs(got-want) > 1e-9*want {
		t.Errorf("beside nothing: delta %v, want %v", got, want)
	}
	// one response of epsilon e loses e with probability e^e/(1+e^e)
	want := (math.E - math.Exp(0.25)) / (1 + math.E)
	if got := NewMixed(0, Responses{1, 1}).delta(0.25); math.Abs(got-want) > 1e-9 {
		t.Errorf("one response: delta %v, want %v", got, want)
	}
	if NewMixed(1, Responses{1, mostOutcomes}) != nil {
		t.Error("a profile of too many outcomes is made")
	}
}
