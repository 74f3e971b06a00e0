package privacy

import (
	"fmt"
	"math"
	"sort"
)

// Accountant adds up adaptively composed releases and answers with an upper bound on the guarantee
// of all of them together.
type Accountant interface {
	// Name is the word that --accountant and reports use.
	Name() string
	// Compose adds rounds releases of m.
	Compose(m Mechanism, rounds int)
	// Epsilon is the smallest epsilon the accountant can prove at delta, +Inf if none.
	Epsilon(delta float64) float64
	// Delta is the smallest delta the accountant can prove at epsilon, 1 if none.
	Delta(epsilon float64) float64
}

// NewAccountant returns an empty accountant by name: pure, zcdp-simple, zcdp, rdp, gdp or pld.
func NewAccountant(name string) (Accountant, error) {
	switch name {
	case "pure":
		return &PureAccountant{}, nil
	case "zcdp-simple":
		return &ZCDPAccountant{Simple: true}, nil
	case "zcdp":
		return &ZCDPAccountant{}, nil
	case "rdp":
		return newRDPAccountant(), nil
	case "gdp":
		return &GDPAccountant{}, nil
	case "pld":
		return &PLDAccountant{}, nil
	}
	return nil, fmt.Errorf("accountant is %q: %w: must be pure, zcdp-simple, zcdp, rdp, gdp or pld", name, ErrRange)
}

// PureAccountant adds epsilons (T7).
type PureAccountant struct{ epsilon float64 }

// Name is "pure".
func (a *PureAccountant) Name() string { return "pure" }

// Compose adds rounds epsilons of m.
func (a *PureAccountant) Compose(m Mechanism, rounds int) { a.epsilon += times(rounds, m.Pure()) }

// Epsilon is the sum, whatever delta.
func (a *PureAccountant) Epsilon(float64) float64 { return a.epsilon }

// Delta is 0 from the sum on and 1 below it.
func (a *PureAccountant) Delta(epsilon float64) float64 {
	if epsilon >= a.epsilon {
		return 0
	}
	return 1
}

// times is n*x with 0*Inf = 0, rounded up.
func times(n int, x float64) float64 {
	if n == 0 || x == 0 {
		return 0
	}
	return math.Nextafter(float64(n)*x, math.Inf(1))
}

// ZCDPAccountant adds rho and converts at the end (T7): simply, rho + 2 sqrt(rho ln(1/delta)), or
// tightly, by Canonne, Kamath and Steinke 2020, Corollary 13.
type ZCDPAccountant struct {
	// Simple chooses the simple conversion.
	Simple bool
	rho    float64
}

// Name is "zcdp" or "zcdp-simple".
func (a *ZCDPAccountant) Name() string {
	if a.Simple {
		return "zcdp-simple"
	}
	return "zcdp"
}

// Compose adds rounds rhos of m.
func (a *ZCDPAccountant) Compose(m Mechanism, rounds int) { a.rho += times(rounds, m.Rho()) }

// Epsilon converts at delta; it is +Inf at delta 0 unless nothing was composed.
func (a *ZCDPAccountant) Epsilon(delta float64) float64 {
	switch {
	case a.rho == 0 || delta >= 1:
		return 0
	case delta <= 0 || math.IsInf(a.rho, 1):
		return math.Inf(1)
	case a.Simple:
		return a.rho + 2*math.Sqrt(a.rho*math.Log(1/delta))
	}
	eps := minimise(func(t float64) float64 {
		alpha := 1 + math.Exp(t)
		return renyiEpsilon(alpha, a.rho*alpha, delta)
	}, -12, 30)
	return math.Max(eps, 0)
}

// Delta converts at epsilon.
func (a *ZCDPAccountant) Delta(epsilon float64) float64 {
	switch {
	case a.rho == 0:
		return 0
	case math.IsInf(a.rho, 1):
		return 1
	case a.Simple:
		if epsilon <= a.rho {
			return 1
		}
		return math.Exp(-(epsilon - a.rho) * (epsilon - a.rho) / (4 * a.rho))
	}
	d := minimise(func(t float64) float64 {
		alpha := 1 + math.Exp(t)
		return renyiLogDelta(alpha, a.rho*alpha, epsilon)
	}, -12, 30)
	return math.Min(1, math.Exp(d))
}

// renyiLogDelta is the log delta at epsilon of a mechanism of Renyi divergence r at order alpha:
// (alpha-1)(r - epsilon + log(1-1/alpha)) - log alpha (Canonne, Kamath and Steinke 2020, Prop. 12).
func renyiLogDelta(alpha, r, epsilon float64) float64 {
	return (alpha-1)*(r-epsilon+math.Log1p(-1/alpha)) - math.Log(alpha)
}

// renyiEpsilon solves renyiLogDelta = log delta for epsilon.
func renyiEpsilon(alpha, r, delta float64) float64 {
	return r + math.Log1p(-1/alpha) - (math.Log(delta)+math.Log(alpha))/(alpha-1)
}

// minimise looks for the least value of f on [lo, hi]: a scan, then golden section around the best.
// Every value of f it meets is a valid bound, so missing the minimum costs tightness only.
func minimise(f func(float64) float64, lo, hi float64) float64 {
	const n = 84
	best, at := math.Inf(1), lo
	for i := range n + 1 {
		x := lo + (hi-lo)*float64(i)/n
		if y := f(x); y < best {
			best, at = y, x
		}
	}
	step := (hi - lo) / n
	least, _ := goldenSection(f, at-step, at+step, 2*step*0x1p-41)
	return min(best, least)
}

// goldenSection looks for the least value of f on [lo, hi] and where it is, to a width. A value that is no number, or
// infinite, is none.
func goldenSection(f func(float64) float64, lo, hi, width float64) (least, at float64) {
	const g = 0.6180339887498949
	c, d := hi-g*(hi-lo), lo+g*(hi-lo)
	fc, fd := f(c), f(d)
	for hi-lo > width {
		if fc < fd || math.IsNaN(fd) || math.IsInf(fd, 1) {
			hi, d, fd = d, c, fc
			c = hi - g*(hi-lo)
			fc = f(c)
		} else {
			lo, c, fc = c, d, fd
			d = lo + g*(hi-lo)
			fd = f(d)
		}
	}
	if fc < fd {
		return fc, c
	}
	return fd, d
}

// RDPAccountant adds Renyi divergences over a fixed grid of orders and converts each by the tight
// conversion (T7).
type RDPAccountant struct {
	orders []float64
	total  []float64
}

// newRDPAccountant returns an accountant over orders from 1.01 to 100000, in steps of about 2%.
func newRDPAccountant() *RDPAccountant {
	a := &RDPAccountant{}
	for t := 0.01; t < 1e5; t *= 1.02 {
		a.orders = append(a.orders, 1+t)
	}
	a.total = make([]float64, len(a.orders))
	return a
}

// Name is "rdp".
func (a *RDPAccountant) Name() string { return "rdp" }

// Compose adds rounds times the divergences of m.
func (a *RDPAccountant) Compose(m Mechanism, rounds int) {
	for i, o := range a.orders {
		a.total[i] += times(rounds, m.RDP(o))
	}
}

// Epsilon is the best conversion over the orders.
func (a *RDPAccountant) Epsilon(delta float64) float64 {
	if delta >= 1 {
		return 0
	}
	if delta <= 0 { // the divergence of infinite order is not on the grid
		if a.empty() {
			return 0
		}
		return math.Inf(1)
	}
	best := math.Inf(1)
	for i, o := range a.orders {
		best = math.Min(best, renyiEpsilon(o, a.total[i], delta))
	}
	if a.empty() {
		return 0
	}
	return math.Max(best, 0)
}

// Delta is the best conversion over the orders.
func (a *RDPAccountant) Delta(epsilon float64) float64 {
	if a.empty() {
		return 0
	}
	best := 0.0
	for i, o := range a.orders {
		if d := renyiLogDelta(o, a.total[i], epsilon); !math.IsNaN(d) {
			best = math.Min(best, d)
		}
	}
	return math.Exp(best)
}

func (a *RDPAccountant) empty() bool {
	return sort.SearchFloat64s(a.total, math.SmallestNonzeroFloat64) == len(a.total)
}

// GDPAccountant adds mu^2 and converts by the exact privacy profile of the Gaussian mechanism
// (T8), with the slack of discretisation.
type GDPAccountant struct {
	mu2, slack float64
}

// Name is "gdp".
func (a *GDPAccountant) Name() string { return "gdp" }

// Compose adds rounds mu^2 of m.
func (a *GDPAccountant) Compose(m Mechanism, rounds int) {
	mu := m.Mu()
	a.mu2 += times(rounds, mu*mu)
	a.slack += times(rounds, m.Slack())
}

// Epsilon inverts the profile at delta.
func (a *GDPAccountant) Epsilon(delta float64) float64 {
	return EpsilonOfMu(math.Sqrt(a.mu2), delta, a.slack)
}

// Delta is the profile at epsilon.
func (a *GDPAccountant) Delta(epsilon float64) float64 {
	return math.Min(1, DeltaOfMu(math.Sqrt(a.mu2), epsilon)+slackDelta(epsilon, a.slack))
}
