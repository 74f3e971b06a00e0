package audit

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// GaussianBound is what trials prove of a claim to be a Gaussian mechanism, whose trade-off between the two errors of a
// test has one parameter (Dong, Roth and Su 2022; audited as Nasr et al. 2023 do): a test with so many errors of either
// kind contradicts every smaller mu, and with it every smaller epsilon at each delta.
type GaussianBound struct {
	// Mu is claimed, Lower the bound on it, Epsilon that at the ledger's delta that Lower comes to.
	Mu      float64 `json:"mu"`
	Lower   float64 `json:"mu_lower_bound"`
	Epsilon float64 `json:"epsilon_lower_bound"`
	// With and Without count scores at or above the threshold.
	With     int  `json:"with"`
	Without  int  `json:"without"`
	Violated bool `json:"violated"`
}

// claimedMu is the mu of a Gaussian mechanism that spends epsilon at delta, if all that a viewer sees is
// Gaussian noise; else 0. The ledger composes such releases as one (T8), so it claims their whole
// trade-off.
func claimedMu(l *privacy.Ledger, viewer string, epsilon, delta float64) float64 {
	for _, e := range l.Entries {
		if e.Mechanism == "mask" {
			continue // shows nothing
		}
		gaussian := e.Cost.Family == "gaussian" || e.Cost.Family == "discrete-gaussian"
		if e.Kind == privacy.Release && (!gaussian || e.Calibration != privacy.Proven) {
			return 0 // papers claim epsilon and delta alone
		}
	}
	lo, hi := 0.0, 1.0
	for privacy.EpsilonOfMu(hi, delta, 0) < epsilon {
		hi *= 2
	}
	for range 60 {
		if m := (lo + hi) / 2; privacy.EpsilonOfMu(m, delta, 0) < epsilon {
			lo = m
		} else {
			hi = m
		}
	}
	return hi
}

// proveGaussian bounds mu by one threshold, chosen on training scores, which are sorted like the counted ones.
func proveGaussian(c *Case, train, counted [2][]float64, alpha float64) *GaussianBound {
	lower := func(without, with, n int) float64 {
		quantile := distuv.UnitNormal.Quantile
		up := quantile(clopperLower(with, n, alpha/2)) - quantile(clopperUpper(without, n, alpha/2))
		if math.IsNaN(up) || math.IsInf(up, 0) {
			return 0 // all or none: nothing is known
		}
		return math.Max(0, up)
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
	b := &GaussianBound{Mu: c.Mu, With: e.count(counted[1]), Without: e.count(counted[0])}
	b.Lower = lower(b.Without, b.With, len(counted[0]))
	b.Epsilon = privacy.EpsilonOfMu(b.Lower, c.Delta, 0)
	b.Violated = b.Lower > b.Mu
	return b
}
