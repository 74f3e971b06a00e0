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
	// bob tells whether those who decrypt add noise, too.
	bob bool
	// shares is the number of parties that draw noise, of which any needed make up
	// that of the deviations above (PRIVACY C4, C7).
	shares, needed int
	// spec is a round as the calibration sees it, true as it is where that
	// differs.
	spec     privacy.Spec
	trueSpec *privacy.Spec
	// bound is the line of the table of calibrations that a round has, at this noise.
	bound privacy.Bound
	// proved bounds what roundings of ciphertexts add to the totals; nil where that is assumed.
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
	if !n.active() || !n.bob {
		return nil
	}
	n.shares = 1 + holders
	n.needed = n.shares - colluders
	if n.needed < 1 {
		return fault.Range("colluders", colluders, fmt.Sprintf("fewer than the %d parties that draw noise", n.shares))
	}
	return nil
}

// assumedError is the 2-norm of what approximate arithmetic is assumed to add to a round's k (1 + d) totals, in
// records, where no bound is proved: with more clusters, more parties or comparison by rank. It is that of roundings
// that add up as independent ones do (THEOREMS.md T4), with room to spare in TestTotalsMatchTheSoftFormula.
func assumedError(n, k, d int) float64 {
	return errorPerRecord * math.Sqrt(float64(n)*float64(k)*float64(1+d))
}

// error bounds the 2-norm of what approximate arithmetic adds to a round's totals, in records.
func (n noisePlan) error(records, k, d int) float64 {
	if n.proved != nil {
		return n.proved.most()
	}
	return assumedError(records, k, d)
}

// errorPerRecord is the part of one record in the assumed error: roundings of the
// ciphertexts, which mix all slots. The larger error that the encryption of a
// column leaves in a record's own comparison is not in it: it moves that
// record's memberships, for which the sensitivity holds whatever they are.
const errorPerRecord = 1.0 / 8192

// schemeDistance bounds by how much what is decrypted in all rounds can differ, in total
// variation, from what a scheme without error would decrypt, for a reader who does not
// know the noise: errors of 2-norm E in each of T rounds under noise of deviation s shift
// it by sqrt(T) E/s standard deviations (THEOREMS.md T4, T8). 1 where there is no such
// noise.
func (n noisePlan) schemeDistance(rounds, records, k, d int) float64 {
	if !n.active() {
		return 1
	}
	shift := math.Sqrt(float64(rounds)) * n.error(records, k, d) / min(n.count, n.sum)
	distance := math.Erf(shift / (2 * math.Sqrt2))
	if n.proved != nil {
		distance += n.proved.failure
	}
	return min(1, distance)
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
// bound, if not nil, bounds what roundings add, if the noise is at most so large and they may fail with such a
// probability; it is taken where it holds and asks for no more than dearest times the noise of the assumed one, or for
// noise on counts that is slight beside a cluster of average size.
func planNoise(cal privacy.Calibration, nb privacy.Neighbours, b privacy.Budget, rounds, n, k, d int,
	bound func(noise, failure float64) (arithmetic, bool)) (noisePlan, error) {
	switch cal {
	case privacy.Proven:
		p, err := provenNoise(nb, b, rounds, n, k, d, nil)
		if err != nil || bound == nil {
			return p, err
		}
		most := max(dearest, slight*float64(n)/float64(k)/p.count)
		if a, ok := bound(most*max(p.count, p.sum), roundingFailure*b.Delta); ok {
			if proved, err := provenNoise(nb, b, rounds, n, k, d, &a); err == nil && proved.count <= most*p.count {
				return proved, nil
			}
		}
		return p, nil
	case privacy.Claimed:
		return claimedNoise(nb, b, rounds, d)
	default:
		return noisePlan{}, fault.Request("calibration",
			fmt.Sprintf("%q does not exist for ckks: the authors' code is not public", cal), "use proven or claimed")
	}
}

// dearest is the most that a proof may cost, in noise, unless that is slight, a hundredth of a cluster.
const (
	dearest = 2
	slight  = 0.01
)

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
	// Solve D = overlap sqrt(...) + 2 E/sigma, or what is proved, for the scale, the split fixed.
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
	least := min(unit.count, unit.sum)
	scale := minDeviation / least
	if proved == nil {
		shape.Error = assumedError(n, k, d)
		scale = max(scale, jointBound(privacy.Proven, decrypted, shape).L2()/perRound)
	} else {
		moved := jointBound(privacy.Proven, decrypted, shape).L2()
		scale = proved.scale(moved, least, mu, scale)
		// What the bound adds to the sensitivity, as the table counts it.
		shape.Error = (proved.mu(moved/scale, least*scale)/math.Sqrt(float64(rounds))*scale - moved) * least / 2
		if !(shape.Error < math.Inf(1) && proved.told(least*scale) <= 1) {
			return noisePlan{}, fault.Failed("ckks noise", "no noise outweighs the bound of roundings", "", nil)
		}
	}
	p := noisePlan{count: unit.count * scale, sum: unit.sum * scale, bob: true, proved: proved}
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
