package ckks

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// noisePlan is the Gaussian noise of every round, in records: standard
// deviation of the noise on counts and on sums (features are in [-1, 1]).
type noisePlan struct {
	count, sum float64
	// keyHolder tells whether those who decrypt add noise, too.
	keyHolder bool
	// shares is the number of parties that draw noise, of which any needed make up
	// that of the deviations above (PRIVACY C4, C7).
	shares, needed int
	// spec is a round as the calibration sees it, true as it is where that
	// differs.
	spec     privacy.Spec
	trueSpec *privacy.Spec
	// bound is the line of the table of calibrations that a round has, at this noise.
	bound privacy.Bound
	// proved bounds what roundings of ciphertexts add to the totals under Proven.
	proved *arithmetic
}

// jointBound is a line of the table for the joint release of k counts and k d
// sums with noise of these deviations, its sensitivity in units of the noise.
func jointBound(c privacy.Calibration, release string, s privacy.Shape) privacy.Bound {
	b, err := privacy.At("ckks", c, release, s)
	if err != nil {
		panic("he: " + err.Error()) // the table lacks what the method does
	}
	return b
}

// decrypted is what the table of calibrations calls a round's totals.
const decrypted = "decrypted counts and sums"

func (n noisePlan) active() bool { return n.count > 0 }

// surplus is the variance of all shares together, in that of the noise needed.
func (n noisePlan) surplus() float64 { return float64(max(n.shares, 1)) / float64(max(n.needed, 1)) }

// share sets who draws the noise of a round: the computing party alone under the
// paper's calibration, else it and every one of the holders online, so that the
// shares of all but colluders of them make up the noise.
func (n *noisePlan) share(holders, colluders int) error {
	n.shares, n.needed = 1, 1
	if !n.active() || !n.keyHolder {
		return nil
	}
	n.shares = 1 + holders
	n.needed = n.shares - colluders
	if n.needed < 1 {
		return fault.Range("colluders", colluders, fmt.Sprintf("fewer than the %d parties that draw noise", n.shares))
	}
	return nil
}

// error bounds the 2-norm of what approximate arithmetic adds to a round's totals, in records; 0 where no bound is
// proved.
func (n noisePlan) error() float64 {
	if n.proved == nil {
		return 0
	}
	return n.proved.most()
}

// schemeDistance bounds by how much what is decrypted in all rounds can differ, in total
// variation, from what a scheme without error would decrypt, for a reader who does not
// know the noise: errors of 2-norm E in each of T rounds under noise of deviation s shift
// it by sqrt(T) E/s standard deviations (THEOREMS.md T4, T8). 1 where there is no such
// noise, or no such E.
func (n noisePlan) schemeDistance(rounds int) float64 {
	if !n.active() || n.proved == nil {
		return 1
	}
	shift := math.Sqrt(float64(rounds)) * n.error() / min(n.count, n.sum)
	return min(1, math.Erf(shift/(2*math.Sqrt2))+n.proved.failure)
}

// planNoise calibrates the noise of `rounds` joint releases of k counts and
// k d sums.
//
// Under Proven (THEOREMS.md T4) a round has, in noise units, the sensitivity of
// the table of calibrations; T rounds cost sqrt(T) times it, as one Gaussian
// mechanism (T8).
//
// Under Claimed (CKKS-V, section 3) each count has sensitivity 1 and each sum
// 1, a query gets an equal part of (epsilon, delta) by simple or advanced
// composition, whichever is larger, and only Alice adds noise.
//
// bound bounds what roundings add, if the noise is at most so large and they may fail with such a probability; nil
// for arithmetic in the clear, which adds nothing.
func planNoise(cal privacy.Calibration, nb privacy.Neighbours, b privacy.Budget, rounds, n, k, d int,
	bound func(noise, failure float64) (arithmetic, bool)) (noisePlan, error) {
	switch cal {
	case privacy.Proven:
		p, err := provenNoise(nb, b, rounds, n, k, d, nil)
		if err != nil || bound == nil {
			return p, err
		}
		for most := 2 * max(p.count, p.sum); most < math.MaxFloat32; most *= 2 {
			a, ok := bound(most, roundingFailure*b.Delta)
			if !ok {
				break
			}
			if p, err = provenNoise(nb, b, rounds, n, k, d, &a); err != nil || max(p.count, p.sum) <= most {
				return p, err
			}
		}
		return noisePlan{}, noNoise(k)
	case privacy.Claimed:
		return claimedNoise(nb, b, rounds, d)
	default:
		return noisePlan{}, fault.Request("calibration",
			fmt.Sprintf("%q does not exist for ckks: the authors' code is not public", cal), "use proven or claimed")
	}
}

// noNoise refuses a run for whose roundings nothing is proved that noise outweighs.
func noNoise(k int) error {
	return fault.Request("ckks noise",
		fmt.Sprintf("no bound of what roundings of ciphertexts add to the totals of %d clusters is of use", k),
		"use fewer clusters or key holders, or --calibration claimed")
}

func provenNoise(nb privacy.Neighbours, b privacy.Budget, rounds, n, k, d int, proved *arithmetic) (noisePlan, error) {
	// The noise is an integer in units of the aggregate, of which a record is
	// worth at least 2^28; its deviation is at least half a record (below).
	slack := privacy.GaussianSlack(1<<27, k*(1+d))
	if proved != nil {
		b.Delta -= proved.failure
	}
	mu, err := privacy.DiscreteMu(b, slack*float64(rounds))
	if err != nil {
		return noisePlan{}, fault.Request("ckks budget", err.Error(), "give a larger delta")
	}
	perRound := mu / math.Sqrt(float64(rounds))
	share := sumShare(perRound, n, k, d)
	// Solve D = overlap sqrt(...) and what is proved of roundings for the scale, the split fixed.
	f := float64(d)
	var unit noisePlan
	if nb == privacy.ReplaceOne {
		// 2/c^2 + 2d/s^2 = 1 with the share of the sums at most 1/2: the other
		// term is then no larger.
		share = min(share, 0.5)
		unit = noisePlan{count: math.Sqrt(2 / (1 - share)), sum: math.Sqrt(2 * f / share)}
	} else {
		unit = noisePlan{count: 1 / math.Sqrt(1-share), sum: math.Sqrt(f / share)}
	}
	shape := privacy.Shape{D: d, K: k, Bound: 1, CountScale: unit.count, SumScale: unit.sum, Overlap: overlap(k),
		Neighbours: nb}
	least, moved := min(unit.count, unit.sum), jointBound(privacy.Proven, decrypted, shape).L2()
	scale := max(minDeviation/least, moved/perRound)
	if proved != nil {
		if scale = proved.scale(moved, least, mu, scale); math.IsInf(scale, 1) {
			return noisePlan{}, noNoise(k)
		}
		// What the bound adds to the sensitivity, as the table counts it.
		shape.Error = (proved.mu(moved/scale, least*scale)/math.Sqrt(float64(rounds))*scale - moved) * least / 2
	}
	p := noisePlan{count: unit.count * scale, sum: unit.sum * scale, keyHolder: true, proved: proved}
	shape.CountScale, shape.SumScale = p.count, p.sum
	p.bound = jointBound(privacy.Proven, decrypted, shape)
	p.spec = privacy.Spec{Family: "discrete-gaussian", Scale: 1 / perRound, Slack: slack, Rounds: rounds}
	if proved != nil {
		p.spec.Failure = proved.failure
	}
	return p, nil
}

// minDeviation is the least noise, in records: budgets so large that they ask
// for less get this much.
const minDeviation = 0.5

// sumShare is the part of a round's squared sensitivity that goes to the sums:
// it minimises the error of the quotient sum/count to first order, for a
// centroid at a typical distance from the origin, with the correction for
// small counts (THEOREMS.md T2). Public values only.
func sumShare(perRound float64, n, k, d int) float64 {
	const typical = 0.5 // of the largest possible norm sqrt(d)
	r := math.Sqrt(float64(d))
	c := float64(n) / float64(k)
	m := typical * r
	share := 0.5
	for range 4 {
		sigma := r / (perRound * math.Sqrt(share))
		eff := math.Sqrt(m*m + 3*float64(d)*sigma*sigma/(c*c))
		share = float64(d) / (float64(d) + eff)
	}
	return min(max(share, 0.2), 0.9)
}

func claimedNoise(nb privacy.Neighbours, b privacy.Budget, rounds, d int) (noisePlan, error) {
	if b.Delta <= 0 {
		return noisePlan{}, fault.Request("delta", "is 0 and the Gaussian mechanism needs one", "give a --delta such as 1e-5")
	}
	t := float64(rounds)
	sigma := func(eps, delta float64) float64 { return math.Sqrt(2*math.Log(1.25/delta)) / eps }
	best := sigma(b.Epsilon/t, b.Delta/t)
	if eps := advancedShare(b, rounds); eps > 0 {
		best = min(best, sigma(eps, b.Delta/(2*t)))
	}
	p := noisePlan{count: best, sum: best}
	p.spec = privacy.Spec{Family: "gaussian", Scale: best, Rounds: rounds}
	p.bound = jointBound(privacy.Claimed, decrypted, privacy.Shape{D: d, Bound: 1, Neighbours: nb})
	joint := jointBound(privacy.Proven, decrypted,
		privacy.Shape{D: d, Bound: 1, CountScale: 1, SumScale: 1, Neighbours: nb})
	p.trueSpec = &privacy.Spec{Family: "gaussian", Scale: best / joint.L2(), Rounds: rounds}
	return p, nil
}

// advancedShare is the per-round epsilon that advanced composition gives for
// half of delta: sqrt(2 T ln(2/delta)) e + T e (e^e - 1) = epsilon.
func advancedShare(b privacy.Budget, rounds int) float64 {
	t := float64(rounds)
	lo, hi := 0.0, b.Epsilon
	for range 100 {
		e := (lo + hi) / 2
		if math.Sqrt(2*t*math.Log(2/b.Delta))*e+t*e*math.Expm1(e) > b.Epsilon {
			hi = e
		} else {
			lo = e
		}
	}
	return lo
}
