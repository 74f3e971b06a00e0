package privacy

import (
	"fmt"
	"math"
)

// Drawn is Gaussian noise on a query of which one record changes as many parts as succeed of Trials independent trials,
// each with probability P at most: trials that everybody sees and that no record decides. Scale is the deviation of
// the noise over the L2 norm of what one part changes. If b succeed the release is b/Scale-GDP (T16).
// All trials may succeed, so the currencies of one number have no bound that is of use: its profile says more
// (DrawnProfile).
type Drawn struct {
	unproved
	Trials   int
	P, Scale float64
	// Discretised is the slack of discrete Gaussian noise.
	Discretised float64
}

// Slack is Discretised.
func (d Drawn) Slack() float64 { return d.Discretised }

func (d Drawn) validate() error {
	switch {
	case d.Trials < 1:
		return fmt.Errorf("drawn-gaussian: trials is %d: %w: must be at least 1", d.Trials, ErrRange)
	case !(d.P > 0 && d.P <= 0.5):
		return fmt.Errorf("drawn-gaussian: p is %v: %w: must be in (0, .5]", d.P, ErrRange)
	case d.mean() > mostDrawn:
		return fmt.Errorf("drawn-gaussian: trials are %d: %w: at most %d may succeed on average", d.Trials, ErrRange,
			mostDrawn)
	}
	return nil
}

// mean is that of the number of successes.
func (d Drawn) mean() float64 { return float64(d.Trials) * d.P }

const (
	// mostDrawn bounds the mean number of successes, whose distribution is computed, of all releases together.
	mostDrawn = 1 << 16
	// drawnRest is the probability of more successes that a profile counts as a failure of its own.
	drawnRest = 1e-18
	// drawnPoints bounds the grid of sums of squares.
	drawnPoints = 1 << 13
)

// successes is the binomial distribution of the trials that succeed, and what is left of it beyond.
func (d Drawn) successes() (distribution []float64, rest float64) {
	n := float64(d.Trials)
	for b := 0.0; ; b++ {
		p := binomial(n, b, math.Log(d.P), math.Log1p(-d.P))
		distribution = append(distribution, p)
		if b == n {
			return distribution, 0
		}
		// beyond b each is less than the one before by this factor at least
		ratio := (n - b) / (b + 1) * d.P / (1 - d.P)
		if ratio < 0.5 && p*ratio/(1-ratio) < drawnRest {
			return distribution, p * ratio / (1 - ratio)
		}
	}
}

// most is the least number of successes that is exceeded with a probability of at most tail, and that probability.
func (d Drawn) most(tail float64) (b int, beyond float64) {
	distribution, beyond := d.successes()
	for b = len(distribution) - 1; b > 1 && beyond+distribution[b] <= tail; b-- {
		beyond += distribution[b]
	}
	return b, beyond
}

// bounded is a ledger's line of Drawn releases as Gaussian ones of the most successes that are exceeded with a
// probability of at most tail in all rounds together, and a failure of that probability (T16 iv). Others stay as
// they are.
func (s Spec) bounded(tail float64) Spec {
	m, err := s.Mechanism()
	d, ok := m.(Drawn)
	if err != nil || !ok {
		return s
	}
	rounds := float64(s.Times())
	b, beyond := d.most(tail / rounds)
	return Spec{Family: "discrete-gaussian", Scale: s.Scale / float64(b), Slack: s.Slack, Rounds: s.Rounds,
		Failure: s.Failure + rounds*beyond*(1+1e-9), Distance: s.Distance,
		Group: s.Group} // the distribution is computed to that
}

// drawnProfile is the privacy profile of some releases that are Drawn alike, beside Gaussian ones of parameter mu in
// all: the mean of the Gaussian profiles of sqrt(mu^2 + sum b_i^2/Scale^2) over the numbers of successes b_i (T16).
type drawnProfile struct {
	mu2, step    float64
	distribution []float64 // of the sum of squares, in steps, rounded up
	rest         float64
}

// newDrawnProfile makes the profile of rounds releases d.
func newDrawnProfile(mu float64, d Drawn, rounds int) *drawnProfile {
	one, rest := d.successes()
	most := (len(one) - 1) * (len(one) - 1)
	width := 1 + rounds*most/drawnPoints
	distribution := []float64{1}
	for range rounds {
		next := make([]float64, len(distribution)+(most+width-1)/width)
		for i, p := range distribution {
			for b, q := range one {
				next[i+(b*b+width-1)/width] += p * q
			}
		}
		distribution = next
	}
	return &drawnProfile{mu2: mu * mu, step: float64(width) / (d.Scale * d.Scale), distribution: distribution,
		rest: float64(rounds) * rest}
}

// delta is the least delta at epsilon.
func (p *drawnProfile) delta(epsilon float64) float64 {
	sum := p.rest
	for i, q := range p.distribution {
		if q > 0 {
			sum += q * DeltaOfMu(math.Sqrt(p.mu2+float64(i)*p.step), epsilon)
		}
	}
	return math.Min(1, sum*(1+1e-9)) // the distribution is computed to that
}

// epsilon is the least epsilon at delta, of distributions within a total variation distance of slack; +Inf if there is
// none below 2^10.
func (p *drawnProfile) epsilon(delta, slack float64) float64 {
	return profileEpsilon(p.delta, delta, slack)
}

// DrawnScale is the least Scale, to a part in 2^20, at which rounds releases like d, beside Gaussian ones of
// parameter mu in all, keep a budget; d's own is not looked at. slack is the distance of all of them from continuous
// noise.
func DrawnScale(b Budget, mu float64, d Drawn, rounds int, slack float64) (float64, error) {
	left := b.Delta - slackDelta(b.Epsilon, slack)
	if !(DeltaOfMu(mu, b.Epsilon) < left) {
		return 0, fmt.Errorf("the budget has nothing left beside mu %v: %w: spend less on that", mu, ErrBudget)
	}
	d.Scale = 1
	p := newDrawnProfile(mu, d, rounds)
	if p.rest >= left {
		return 0, fmt.Errorf("delta is %v: %w: it is too small for drawn cells", b.Delta, ErrRange)
	}
	unit := p.step
	ok := func(scale float64) bool {
		p.step = unit / (scale * scale)
		return p.delta(b.Epsilon) <= left
	}
	hi := 1.0
	for ; !ok(hi); hi *= 2 {
		if hi > 0x1p60 {
			return 0, fmt.Errorf("the budget has too little left beside mu %v: %w: spend less on that", mu, ErrBudget)
		}
	}
	lo := hi / 2
	for ok(lo) && lo > 0x1p-20 {
		hi, lo = lo, lo/2
	}
	_, least := bisect(ok, lo, hi, 0x1p-20)
	return least, nil
}
