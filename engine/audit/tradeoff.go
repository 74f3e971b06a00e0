package audit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// GaussianBound is what trials prove of a claim to be a Gaussian mechanism, whose trade-off between the two errors of a
// test has one parameter (Dong, Roth and Su 2022; audited as Nasr et al. 2023 do): a test with so many errors of either
// kind contradicts every smaller mu, and with it every smaller epsilon at each delta. Where choices of pure epsilon are
// beside the noise, both parameters shrink together.
type GaussianBound struct {
	// Mu is claimed, Lower the bound on it, Epsilon that at the ledger's delta that Lower comes to; Pure is the epsilon
	// that is claimed of the choices.
	Mu      float64 `json:"mu"`
	Pure    float64 `json:"pure,omitempty"`
	Lower   float64 `json:"mu_lower_bound"`
	Epsilon float64 `json:"epsilon_lower_bound"`
	// Asymptotic is the epsilon that more trials would tend to, judged by how far the scores spread; 0 where they are no
	// log ratios.
	Asymptotic float64 `json:"epsilon_in_sight,omitempty"`
	// With and Without count scores at or above the threshold.
	With     int  `json:"with"`
	Without  int  `json:"without"`
	Violated bool `json:"violated"`
}

// mixed is a Gaussian mechanism of parameter mu beside pure ones, of which randomised responses are the worst
// (THEOREMS.md T7 v).
type mixed struct {
	mu   float64
	pure []privacy.Responses
}

// profile is nil where the responses have too many outcomes.
func (m mixed) profile() *privacy.Mixed { return privacy.NewMixed(m.mu, m.pure...) }

// epsilon is that of all pure ones.
func (m mixed) epsilon() (sum float64) {
	for _, r := range m.pure {
		sum += float64(r.Times) * r.Epsilon
	}
	return sum
}

// total is the epsilon at delta.
func (m mixed) total(delta float64) float64 {
	if len(m.pure) == 0 {
		return privacy.EpsilonOfMu(m.mu, delta, 0)
	}
	return m.profile().Epsilon(delta, 0)
}

// power is the largest probability that an event has on one side if it has x on the other.
func (m mixed) power(x float64) float64 {
	normal := distuv.UnitNormal
	if len(m.pure) == 0 {
		return normal.CDF(normal.Quantile(x) + m.mu)
	}
	responses := m.profile().Outcomes()
	at := func(t float64) (here, there float64) { // of losses beyond t
		for _, o := range responses {
			here += o.Chance * normal.Survival((t-o.Loss)/m.mu-m.mu/2)
			there += o.Chance * math.Exp(-o.Loss) * normal.Survival((t-o.Loss)/m.mu+m.mu/2)
		}
		return here, there
	}
	hi := m.epsilon() + 40*m.mu + m.mu*m.mu
	lo := -hi
	for range 80 {
		t := (lo + hi) / 2
		if _, there := at(t); there > x {
			lo = t
		} else {
			hi = t
		}
	}
	here, _ := at(lo)
	return here
}

// part is all parameters at a part of them.
func (m mixed) part(f float64) mixed {
	out := mixed{f * m.mu, slices.Clone(m.pure)}
	for i := range out.pure {
		out.pure[i].Epsilon *= f
	}
	return out
}

// claimed is the mechanism that spends epsilon at delta, if all that a viewer sees is Gaussian noise and choices of
// pure epsilon; else its mu is 0. The ledger composes Gaussian releases as one (T8), so it claims their whole
// trade-off.
func claimed(l *privacy.Ledger, viewer string, epsilon, delta float64) (m mixed) {
	for _, e := range l.Entries() {
		if e.Mechanism == "mask" || e.Kind != privacy.Release || !e.SeenBy(viewer) {
			continue // shows nothing
		}
		switch of, err := e.Cost.Mechanism(); {
		case e.Calibration != privacy.Proven: // papers claim epsilon and delta alone
			return mixed{}
		case e.Cost.Family == "gaussian" || e.Cost.Family == "discrete-gaussian":
		case err == nil && (e.Cost.Family == "pure" || e.Cost.Family == "exponential"):
			m.pure = append(m.pure, privacy.Responses{Epsilon: of.Pure(), Times: e.Cost.Times()})
		default:
			return mixed{}
		}
	}
	if m.profile() == nil {
		return mixed{}
	}
	lo, hi := 0.0, 1.0
	for (mixed{hi, m.pure}).total(delta) < epsilon {
		hi *= 2
	}
	for range 60 {
		if m.mu = (lo + hi) / 2; m.total(delta) < epsilon {
			lo = m.mu
		} else {
			hi = m.mu
		}
	}
	m.mu = hi
	return m
}

// proveGaussian bounds mu by one threshold, chosen on training scores, which are sorted like the counted ones.
func proveGaussian(c *Case, train, counted [2][]float64, alpha float64) *GaussianBound {
	claim := mixed{c.Mu, c.Pure}
	lower := func(without, with, n int) float64 {
		right, wrong := clopperLower(with, n, alpha/2), clopperUpper(without, n, alpha/2)
		switch {
		case right <= 0 || wrong >= 1 || right <= wrong:
			return 0 // all or none: nothing is known
		case len(c.Pure) == 0:
			return distuv.UnitNormal.Quantile(right) - distuv.UnitNormal.Quantile(wrong)
		}
		lo, hi := 0.0, 64.0
		for range 40 {
			if mid := (lo + hi) / 2; claim.part(mid).power(wrong) < right {
				lo = mid
			} else {
				hi = mid
			}
		}
		return lo * c.Mu
	}
	n := len(train[1])
	best, threshold := -1.0, 0.0
	for i := 1; i < 40; i++ { // far thresholds have few counts, and those with as many again say as much
		t := train[1][i*n/40]
		e := event{threshold: t, above: true}
		if v := lower(e.count(train[0]), e.count(train[1]), n); v > best {
			best, threshold = v, t
		}
	}
	e := event{threshold: threshold, above: true}
	b := &GaussianBound{Mu: c.Mu, Pure: claim.epsilon(), With: e.count(counted[1]), Without: e.count(counted[0])}
	b.Lower = lower(b.Without, b.With, len(counted[0]))
	b.Epsilon = claim.part(b.Lower / c.Mu).total(c.Delta)
	if c.Ratio || c.Distribution == gaussianNoise {
		b.Asymptotic = claim.part(spread(train[0]) / c.Mu).total(c.Delta)
	}
	b.Violated = b.Lower > b.Mu
	return b
}

// spread is half the distance between the quantiles of sorted scores that are one deviation of a normal distribution
// from its mean: where they are log ratios of the probabilities of an outcome of Gaussian noise, that is mu.
func spread(scores []float64) float64 {
	at := func(sd float64) float64 {
		return scores[min(int(distuv.UnitNormal.CDF(sd)*float64(len(scores))), len(scores)-1)]
	}
	return (at(1) - at(-1)) / 2
}
