package privacy

import (
	"math"
)

// Mechanism is what one release costs, in every currency in which a bound is proved for it.
// A method returns +Inf where there is none. All bounds hold for both orders of the neighbours.
type Mechanism interface {
	// Pure is the epsilon of pure differential privacy.
	Pure() float64
	// Rho is the zCDP parameter.
	Rho() float64
	// RDP bounds the Renyi divergence of order alpha > 1.
	RDP(alpha float64) float64
	// Mu is the parameter of Gaussian differential privacy, up to Slack.
	Mu() float64
	// Slack bounds the total variation distance between the release and the one that Mu and the
	// loss distribution describe (T6); 0 for most mechanisms. It adds (1+e^epsilon) Slack to delta
	// where one of those two is used.
	Slack() float64
}

// unproved is what a mechanism has in currencies in which nothing is proved for it, and no slack.
type unproved struct{}

// Pure is +Inf.
func (unproved) Pure() float64 { return math.Inf(1) }

// Rho is +Inf.
func (unproved) Rho() float64 { return math.Inf(1) }

// RDP is +Inf.
func (unproved) RDP(float64) float64 { return math.Inf(1) }

// Mu is +Inf.
func (unproved) Mu() float64 { return math.Inf(1) }

// Slack is 0.
func (unproved) Slack() float64 { return 0 }

// Gaussian is noise of standard deviation sigma on a query of L2 sensitivity D, Scale = sigma/D.
// Several coordinates with scales of their own have 1/Scale^2 = sum D_j^2/sigma_j^2 (T2). The loss is unbounded.
type Gaussian struct {
	unproved
	Scale float64
	// Discretised is the slack of discrete Gaussian noise (GaussianSlack), 0 for the continuous one.
	// Pure, Rho and RDP need none: the discrete distribution obeys the same bounds (T6).
	Discretised float64
}

// Rho is 1/(2 Scale^2).
func (g Gaussian) Rho() float64 { return 0.5 / (g.Scale * g.Scale) }

// RDP is alpha/(2 Scale^2).
func (g Gaussian) RDP(alpha float64) float64 { return alpha * g.Rho() }

// Mu is 1/Scale.
func (g Gaussian) Mu() float64 { return 1 / g.Scale }

// Slack is Discretised.
func (g Gaussian) Slack() float64 { return g.Discretised }

// GaussianSlack bounds the total variation distance between n coordinates of discrete Gaussian
// noise of scale sigma (grid units) and as many of continuous Gaussian noise rounded to integers,
// the latter being a post-processing of the Gaussian mechanism (T6): per coordinate
// 0.0607/sigma^2 + 1.1 exp(-2 pi^2 sigma^2). Count coordinates over all rounds.
// sigma must be at least 1; below, the bound is 1.
func GaussianSlack(sigma float64, n int) float64 {
	if !(sigma >= 1) {
		return math.Min(1, float64(n))
	}
	return math.Min(1, float64(n)*(0.0607/(sigma*sigma)+1.1*math.Exp(-2*math.Pi*math.Pi*sigma*sigma)))
}

// SplitDistance bounds the total variation distance, per coordinate, between the sum of m discrete Gaussian shares of
// scale share and a discrete Gaussian of scale share sqrt(m): the log ratio is at most ten times the sum over j < m of
// exp(-2 pi^2 share^2 j/(j+1)), and the distance no larger (T6 iv).
func SplitDistance(share float64, m int) float64 {
	var s float64
	for j := 1; j < m; j++ {
		s += math.Exp(-2 * math.Pi * math.Pi * share * share * float64(j) / float64(j+1))
	}
	return math.Min(10*s, 1)
}

// Laplace is noise of scale b on a query of L1 sensitivity D, Scale = b/D. The bounds hold for any
// number of coordinates that share the sensitivity (T7).
type Laplace struct {
	unproved
	Scale float64
}

// Pure is 1/Scale.
func (l Laplace) Pure() float64 { return 1 / l.Scale }

// Rho is pureRho(1/Scale).
func (l Laplace) Rho() float64 { return pureRho(1 / l.Scale) }

// RDP is the divergence of one coordinate, which is the worst case as it is convex in the shift and
// 0 at 0 (Mironov 2017, Table II; T7).
func (l Laplace) RDP(alpha float64) float64 {
	t := 1 / l.Scale
	// log( a/(2a-1) e^{(a-1)t} + (a-1)/(2a-1) e^{-at} ) / (a-1)
	x := math.Log(alpha/(2*alpha-1)) + (alpha-1)*t
	y := math.Log((alpha-1)/(2*alpha-1)) - alpha*t
	return math.Min((x+math.Log1p(math.Exp(y-x)))/(alpha-1), t)
}

// PureDP is any mechanism of which only a pure epsilon is known.
type PureDP struct {
	unproved
	Epsilon float64
}

// Pure is Epsilon.
func (p PureDP) Pure() float64 { return p.Epsilon }

// Rho is pureRho(Epsilon).
func (p PureDP) Rho() float64 { return pureRho(p.Epsilon) }

// RDP is the divergence of randomised response on one bit, the worst case among all mechanisms of
// that epsilon (T7).
func (p PureDP) RDP(alpha float64) float64 {
	e := p.Epsilon
	if e > 600 {
		return e
	}
	// log( (e^{a e} + e^{(1-a) e}) / (1 + e^e) ) / (a-1)
	x := alpha*e - math.Log1p(math.Exp(e))
	y := (1-alpha)*e - math.Log1p(math.Exp(e))
	return math.Min((x+math.Log1p(math.Exp(y-x)))/(alpha-1), e)
}

// Mu is that of the Gaussian mechanism whose trade-off curve the mechanism's lies above:
// 2 Phi^-1(e^epsilon/(1+e^epsilon)), +Inf for a large epsilon (T8).
func (p PureDP) Mu() float64 { return roundUp(2 * math.Sqrt2 * math.Erfinv(math.Tanh(p.Epsilon/2))) }

// pureRho is the zCDP parameter of an epsilon-DP mechanism: epsilon^2/2 (Bun and Steinke 2016,
// Proposition 3.3), and epsilon, as no Renyi divergence exceeds it (T7).
func pureRho(epsilon float64) float64 { return math.Min(epsilon*epsilon/2, epsilon) }

// zero gives nothing away.
type zero struct{}

func (zero) Pure() float64       { return 0 }
func (zero) Rho() float64        { return 0 }
func (zero) RDP(float64) float64 { return 0 }
func (zero) Mu() float64         { return 0 }
func (zero) Slack() float64      { return 0 }

// parallel is the worst of several mechanisms, currency by currency.
type parallel []Mechanism

// inParallel is the cost of releases made from disjoint sets of records: under add-remove neighbours
// only one of them sees the record that differs, so the cost is that of the dearest (T7). Under
// replace-one two may change; compose instead.
func inParallel(ms ...Mechanism) Mechanism {
	if len(ms) == 0 {
		return zero{}
	}
	return parallel(ms)
}

func (p parallel) worst(f func(Mechanism) float64) float64 {
	w := math.Inf(-1)
	for _, m := range p {
		w = math.Max(w, f(m))
	}
	return w
}

func (p parallel) Pure() float64 { return p.worst(Mechanism.Pure) }
func (p parallel) Rho() float64  { return p.worst(Mechanism.Rho) }
func (p parallel) RDP(alpha float64) float64 {
	return p.worst(func(m Mechanism) float64 { return m.RDP(alpha) })
}
func (p parallel) Mu() float64    { return p.worst(Mechanism.Mu) }
func (p parallel) Slack() float64 { return p.worst(Mechanism.Slack) }
