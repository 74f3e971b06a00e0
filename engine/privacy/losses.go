package privacy

import (
	"math"
	"sort"
)

// Losses is a privacy-loss distribution: the distribution of L = log(P/Q) of the outcome of a mechanism under
// P, for one pair of neighbours with output distributions P and Q. A release composes by convolution (T9).
type Losses struct {
	atoms    []atom
	infinite float64 // P-mass of outcomes that Q never gives
	// cells, if not nil, is a continuous part: cells(a, b) gives the P- and Q-masses of the losses
	// in (a, b], all of it inside [lo, hi] but for the P-mass above and below.
	cells        func(a, b float64) (p, q float64)
	lo, hi       float64
	above, below float64
	mean, sd     float64
}

// atom is one value of the loss with its P-mass.
type atom struct{ loss, mass float64 }

// byLoss orders atoms: slices.SortFunc compiles a sort of its own for them, ten thousand bytes of every program.
type byLoss []atom

func (a byLoss) Len() int           { return len(a) }
func (a byLoss) Less(i, j int) bool { return a[i].loss < a[j].loss }
func (a byLoss) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// finish sorts the atoms and computes the moments.
func (l *Losses) finish() {
	sort.Sort(byLoss(l.atoms))
	var m, s float64
	for _, a := range l.atoms {
		m += a.mass * a.loss
		s += a.mass * a.loss * a.loss
	}
	if l.cells != nil {
		const n = 2000
		for i := range n {
			a := l.lo + (l.hi-l.lo)*float64(i)/n
			b := l.lo + (l.hi-l.lo)*float64(i+1)/n
			p, _ := l.cells(a, b)
			m += p * (a + b) / 2
			s += p * (a + b) / 2 * (a + b) / 2
		}
	}
	l.mean, l.sd = m, math.Sqrt(math.Max(s-m*m, 0))
}

// lossy is a mechanism whose loss distributions are known: one per order of the neighbours, or one
// alone if both are the same.
type lossy interface{ Losses() []*Losses }

// gaussLimit is how many standard deviations of a Gaussian loss are put on a grid; 3.7e-33 of its
// mass lies beyond on each side.
const gaussLimit = 12

// gaussMass is the standard normal mass of (a, b].
func gaussMass(a, b float64) float64 {
	if a > 0 {
		return (math.Erfc(a/math.Sqrt2) - math.Erfc(b/math.Sqrt2)) / 2
	}
	return (math.Erfc(-b/math.Sqrt2) - math.Erfc(-a/math.Sqrt2)) / 2
}

// Losses is the normal distribution of mean mu^2/2 and standard deviation mu, the same in both orders.
func (g Gaussian) Losses() []*Losses {
	mu := g.Mu()
	m := mu * mu / 2
	l := &Losses{
		cells: func(a, b float64) (p, q float64) {
			return gaussMass((a-m)/mu, (b-m)/mu), gaussMass((a+m)/mu, (b+m)/mu)
		},
		lo: m - gaussLimit*mu, hi: m + gaussLimit*mu,
		above: 4e-33, below: 4e-33,
		mean: m, sd: mu,
	}
	return []*Losses{l}
}

// Losses is that of a query of one coordinate, the same in both orders: atoms at both ends and an
// exponential part between.
func (l Laplace) Losses() []*Losses {
	t := 1 / l.Scale
	r := &Losses{
		atoms: []atom{{-t, math.Exp(-t) / 2}, {t, 0.5}},
		cells: func(a, b float64) (p, q float64) {
			// loss t - 2x at x in (0, t), densities e^-x/2 and e^(x-t)/2
			x1, x2 := (t-b)/2, (t-a)/2
			d := (b - a) / 2
			return -math.Exp(-x1) * math.Expm1(-d) / 2, -math.Exp(x2-t) * math.Expm1(-d) / 2
		},
		lo: -t, hi: t,
	}
	r.finish()
	return []*Losses{r}
}

// Losses is that of randomised response on one bit, the worst case of every mechanism of its epsilon.
func (p PureDP) Losses() []*Losses {
	e := p.Epsilon
	hi := 1 / (1 + math.Exp(-e))
	l := &Losses{atoms: []atom{{-e, math.Exp(-e) * hi}, {e, hi}}}
	l.finish()
	return []*Losses{l}
}

// RandomizedResponse answers one of Buckets values: the true one, or with probability P a uniform
// draw from all of them. Its neighbours replace the answering record.
type RandomizedResponse struct {
	unproved
	P       float64
	Buckets int
}

// probabilities of the true answer and of each other.
func (r RandomizedResponse) probabilities() (truth, other float64) {
	other = r.P / float64(r.Buckets)
	return 1 - r.P + other, other
}

// Pure is the log ratio of the two probabilities.
func (r RandomizedResponse) Pure() float64 {
	a, c := r.probabilities()
	return math.Log(a / c)
}

// Rho is pureRho of Pure.
func (r RandomizedResponse) Rho() float64 { return pureRho(r.Pure()) }

// RDP is exact.
func (r RandomizedResponse) RDP(alpha float64) float64 { return r.Losses()[0].renyi(alpha) }

// Losses is exact and the same in both orders.
func (r RandomizedResponse) Losses() []*Losses {
	a, c := r.probabilities()
	e := math.Log(a / c)
	l := &Losses{atoms: []atom{{-e, c}, {e, a}}}
	if r.Buckets > 2 {
		l.atoms = append(l.atoms, atom{0, float64(r.Buckets-2) * c})
	}
	l.finish()
	return []*Losses{l}
}

// renyi is the Renyi divergence of order alpha of a distribution of atoms.
func (l *Losses) renyi(alpha float64) float64 {
	if l.infinite > 0 {
		return math.Inf(1)
	}
	top := math.Inf(-1)
	for _, a := range l.atoms {
		if a.mass > 0 {
			top = math.Max(top, math.Log(a.mass)+(alpha-1)*a.loss)
		}
	}
	var s float64
	for _, a := range l.atoms {
		s += a.mass * math.Exp((alpha-1)*a.loss-top)
	}
	return math.Max(0, (top+math.Log(s))/(alpha-1))
}

// DiscreteGaussianStep is discrete Gaussian noise of scale Sigma on one integer whose sensitivity is
// Step, with its exact loss distribution.
type DiscreteGaussianStep struct {
	unproved
	Sigma float64
	Step  int
}

// Rho is Step^2/(2 Sigma^2), as for the continuous distribution (T6).
func (g DiscreteGaussianStep) Rho() float64 {
	x := float64(g.Step) / g.Sigma
	return x * x / 2
}

// RDP is alpha Rho.
func (g DiscreteGaussianStep) RDP(alpha float64) float64 { return alpha * g.Rho() }

// Mu is that of the continuous distribution, from which Slack is the distance.
func (g DiscreteGaussianStep) Mu() float64 { return float64(g.Step) / g.Sigma }

// Slack is GaussianSlack of one coordinate.
func (g DiscreteGaussianStep) Slack() float64 { return GaussianSlack(g.Sigma, 1) }

// manyAtoms is the scale, or step, above which a discrete distribution is not enumerated.
const manyAtoms = 20000

// Losses is exact but for rounding, the same in both orders. It has 28 Sigma atoms: above 20000 the
// PLD accountant uses the continuous distribution and Slack instead.
func (g DiscreteGaussianStep) Losses() []*Losses {
	n := int(math.Ceil(14*g.Sigma)) + 2
	d := float64(g.Step)
	l := &Losses{}
	var sum float64
	for z := -n; z <= n; z++ {
		x := float64(z)
		m := 1.0
		if z != 0 { // 0 has its mass where Sigma^2 underflows, too
			m = math.Exp(-x * x / (2 * g.Sigma * g.Sigma))
		}
		sum += m
		if m > 0 {
			l.atoms = append(l.atoms, atom{(d*d - 2*x*d) / (2 * g.Sigma * g.Sigma), m})
		}
	}
	for i := range l.atoms {
		l.atoms[i].mass /= sum
	}
	l.infinite = 1e-40 // beyond 14 sigma
	l.finish()
	return []*Losses{l}
}

// DiscreteLaplaceStep is discrete Laplace noise of scale B on one integer whose sensitivity is Step.
type DiscreteLaplaceStep struct {
	unproved
	B    float64
	Step int
}

// Pure is Step/B.
func (d DiscreteLaplaceStep) Pure() float64 { return float64(d.Step) / d.B }

// Rho is pureRho of Pure.
func (d DiscreteLaplaceStep) Rho() float64 { return pureRho(d.Pure()) }

// RDP is exact up to a Step of 20000, then that of any mechanism of its epsilon.
func (d DiscreteLaplaceStep) RDP(alpha float64) float64 { return d.Losses()[0].renyi(alpha) }

// Losses is exact up to a Step of 20000, then that of any mechanism of its epsilon; it is the same in
// both orders.
func (d DiscreteLaplaceStep) Losses() []*Losses {
	b, k := d.B, d.Step
	if k > manyAtoms {
		return PureDP{Epsilon: d.Pure()}.Losses()
	}
	// P(z) = (1-r)/(1+r) r^|z|, r = e^(-1/b); shifting by k: z <= 0 has loss k/b, z >= k has -k/b
	r := math.Exp(-1 / b)
	c := -math.Expm1(-1/b) / (1 + r)
	t := float64(k) / b
	l := &Losses{atoms: []atom{{t, 1 / (1 + r)}, {-t, math.Exp(-t) / (1 + r)}}}
	for z := 1; z < k; z++ {
		l.atoms = append(l.atoms, atom{float64(k-2*z) / b, c * math.Exp(-float64(z)/b)})
	}
	l.finish()
	return []*Losses{l}
}
