package privacy

import (
	"fmt"
	"math"
)

// DeltaOfMu is the exact privacy profile of a Gaussian mechanism of sensitivity over noise mu
// (Balle and Wang 2018; T8): Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu); 1 for a mu that is no ratio,
// negative or NaN, as for one without bound.
func DeltaOfMu(mu, epsilon float64) float64 {
	switch {
	case mu == 0:
		return 0
	case !(mu > 0) || math.IsInf(mu, 1):
		return 1
	}
	a := mu/2 - epsilon/mu
	b := -mu/2 - epsilon/mu
	// e^epsilon Phi(b) = phi(a) Mills(-b), as e^epsilon phi(b) = phi(a): no overflow and little
	// cancellation.
	if a > 8 {
		return 1
	}
	return math.Max(0, phi(a)*(mills(-a)-mills(-b)))
}

// slackDelta is what a total variation distance of slack adds to delta (T6).
func slackDelta(epsilon, slack float64) float64 {
	if slack == 0 {
		return 0 // even where e^epsilon overflows
	}
	return (1 + math.Exp(epsilon)) * slack
}

func phi(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

// mills is (1 - Phi(x))/phi(x).
func mills(x float64) float64 {
	if x < 12 {
		return math.Erfc(x/math.Sqrt2) / 2 / phi(x)
	}
	// Laplace's continued fraction, converged to 1e-16 for x >= 12 with 30 terms
	f := x
	for i := 30; i >= 1; i-- {
		f = x + float64(i)/f
	}
	return 1 / f
}

// EpsilonOfMu is the least epsilon >= 0 with DeltaOfMu(mu, epsilon) + (1+e^epsilon) slack <= delta,
// +Inf if there is none.
func EpsilonOfMu(mu, delta, slack float64) float64 {
	ok := func(e float64) bool { return DeltaOfMu(mu, e)+slackDelta(e, slack) <= delta }
	if mu == 0 && slack == 0 || delta >= 1 || ok(0) {
		return 0
	}
	if !(delta > 0) || !(mu >= 0) || math.IsInf(mu, 1) {
		return math.Inf(1)
	}
	// without slack this always suffices: delta <= exp(-(epsilon/mu - mu/2)^2/2)
	hi := mu * (mu/2 + math.Sqrt(2*math.Log(1/delta)) + 1)
	if slack > 0 { // the slack term grows with epsilon: look for any point that will do
		e, n := hi/256, 256
		for ; n > 0 && !ok(e); n-- {
			e += hi / 256
		}
		if n == 0 {
			return math.Inf(1)
		}
		hi = e
	}
	_, least := bisect(ok, 0, hi, 1e-12)
	return least
}

// MuOf is the Gaussian-DP parameter that a budget pays for: the largest mu with
// DeltaOfMu(mu, epsilon) + (1+e^epsilon) slack <= delta. Gaussian releases with sensitivity over noise
// D_i fit the budget together if sum D_i^2 <= mu^2 (T8). slack is the sum of GaussianSlack over all
// of them, 0 for none. It fails if delta is 0 or does not exceed the slack's part.
func MuOf(b Budget, slack float64) (float64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	left := b.Delta - slackDelta(b.Epsilon, slack)
	if left <= 0 {
		return 0, fmt.Errorf("delta is %v: %w: Gaussian noise needs a delta above %.3g", b.Delta, ErrRange, b.Delta-left)
	}
	hi := 1.0
	for DeltaOfMu(hi, b.Epsilon) <= left {
		hi *= 2
	}
	most, _ := bisect(func(mu float64) bool { return DeltaOfMu(mu, b.Epsilon) > left }, 0, hi, 1e-13)
	return most * (1 - 1e-11), nil // the profile is computed to a relative 1e-11 at worst
}

// DiscreteMu is the root of the sum of D_i^2/sigma_i^2 that a budget pays for over all discrete Gaussian
// releases of a run, N_Z(0, sigma_i^2) per coordinate. It is the largest by two accountants. By zCDP, which
// the discrete distribution obeys as it is (T6, T7); and by the distribution of their losses: those of continuous
// Gaussian releases are normal, and so is their convolution, so that the pld accountant needs no grid and answers
// by the exact profile (T8, T9), to which the distance of the discrete distributions, slack in all, is added
// (T6). The latter gives more unless (1+e^epsilon) slack is a good part of delta.
func DiscreteMu(b Budget, slack float64) (float64, error) {
	most, err := MuOf(b, 0)
	if err != nil {
		return 0, err
	}
	mu, err := MuOf(b, slack)
	if err == nil && mu > 0.99*most {
		return mu, nil // zCDP is never that near
	}
	scale, err := calibrate("zcdp", b, 1, func(scale float64) Mechanism { return Gaussian{Scale: scale} })
	if err != nil {
		return 0, err
	}
	return math.Max(mu, 1/scale), nil
}

// bisect narrows [lo, hi] to a part of hi: ok holds at hi and above, not at lo and below, and neither end is asked
// about.
func bisect(ok func(float64) bool, lo, hi, part float64) (below, above float64) {
	for hi-lo > part*hi {
		m := lo + (hi-lo)/2
		if m <= lo || m >= hi {
			break
		}
		if ok(m) {
			hi = m
		} else {
			lo = m
		}
	}
	return lo, hi
}
