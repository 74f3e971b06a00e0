package lloyd

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/internal/fault"
)

// boxBound is B: coordinates lie in [-B, B].
const boxBound = 1.0

// addNoise works out the scale of every part and stage, the sensitivities that
// the ledger shows.
func (p *Plan) addNoise() error {
	if err := p.lookUp(); err != nil {
		return err
	}
	if p.job.Mechanism == protocol.Laplace {
		if p.job.Release == Centroid {
			p.laplaceOnCentroids()
		} else {
			p.laplaceOnSums()
		}
		return nil
	}
	mu, err := p.gaussianMu()
	if err != nil {
		return err
	}
	p.gaussian(mu)
	return nil
}

// noiseScale is the scale of one part in a round of a stage, in real units, with the
// sensitivity it answers.
type noiseScale struct {
	scale float64
	sensitivity
}

// set appends the scale of the next stage. Scales keep 24 significant bits,
// rounded up: the last bits of a calibration may differ between architectures
// and must not decide what is drawn.
func (p *part) set(scale float64, s sensitivity) {
	frac, exp := math.Frexp(scale)
	scale = math.Ldexp(math.Ceil(math.Ldexp(frac, 24)), exp-24)
	p.scales = append(p.scales, noiseScale{scale, s})
}

// lookUp finds the lines of the table of calibrations.
func (p *Plan) lookUp() error {
	j := p.job
	for i := range p.parts {
		part := &p.parts[i]
		rule, err := privacy.Lookup(string(j.Method), j.Calibration, part.name, j.Neighbours)
		if err != nil {
			return fault.Request("calibration", err.Error(), "choose another calibration")
		}
		part.rule = rule
	}
	return nil
}

// bound is the line of a part at the parameters of a stage.
func (p *Plan) bound(part *part, stage int) privacy.Bound {
	j := p.job
	s := privacy.Shape{D: p.d, K: p.k, Bound: boxBound, Lo: p.m * p.lo, Exclusivity: p.exclusivity, Unit: 1 / p.scale,
		Neighbours: j.Neighbours}
	if p.radius != nil {
		s.Radius = p.radius[stage]
	}
	if p.squaredRadius() {
		s.Radius *= s.Radius
	}
	return privacy.Bound{Rule: part.rule, Shape: s}
}

// change is the sensitivity of a part in the rounds of a stage in the norm of the mechanism.
func (p *Plan) change(part *part, stage int) sensitivity {
	norm := "L1"
	if p.job.Mechanism == protocol.Gaussian {
		norm = "L2"
	}
	return sensitivity{norm: norm, value: p.bound(part, stage).In(norm)}
}

// squaredRadius reports whether the run follows FastLloyd's released code under a
// radius rule: the code assigns within the first round's radius in every round,
// and calibrates round t to 2 eta^2 in place of the 2 eta of its Theorem 7.1.
func (p *Plan) squaredRadius() bool {
	return p.job.Calibration == privacy.Published && p.job.Method.Constrained() && p.job.Schedule != ""
}

// laplaceOnSums divides each round's epsilon between sums and counts, d shares
// to cbrt(4 d rho^2) (Thesis-H §6.2.3; Relative under Proven: 4 to 1), and
// scales each part by its L1 sensitivity.
func (p *Plan) laplaceOnSums() {
	j := p.job
	share := float64(p.d) / (float64(p.d) + countShare(p.d))
	if j.Method == Relative && j.Calibration == privacy.Proven {
		share = 0.8
	}
	round := j.Budget.Epsilon / float64(p.rounds)
	for at := range p.stages {
		sums, counts := p.change(&p.parts[0], at), p.change(&p.parts[1], at)
		p.parts[0].set(sums.value/(round*share), sums)
		p.parts[1].set(counts.value/(round*(1-share)), counts)
	}
}

// gaussian sets the scales that a Gaussian-DP parameter of mu for the whole run
// pays for.
func (p *Plan) gaussian(mu float64) {
	for i := range p.parts {
		p.parts[i].scales = p.parts[i].scales[:0]
	}
	mu /= math.Sqrt(float64(p.rounds))
	if p.job.Release == Centroid {
		for at := range p.stages {
			s := p.change(&p.parts[0], at)
			p.parts[0].set(s.value/mu, s)
		}
	} else {
		p.gaussianOnSums(mu * mu)
	}
	if p.job.Calibration == privacy.Proven {
		p.widenShares()
	}
}

// leastShare is the least deviation of a share of Gaussian noise, in units of its
// grid: the log ratio of a sum of shares to the whole is then below 10^-340 (THEOREMS.md
// T6 iv), which no digit of an epsilon shows, however large it is.
const leastShare = 9

// widenShares raises noise whose shares would be narrower than leastShare, for
// budgets so large that the noise is some units of the grid.
func (p *Plan) widenShares() {
	for i := range p.parts {
		part := &p.parts[i]
		for at, t := range p.stages {
			if shares := p.shares(t); shares > 1 {
				part.scales[at].scale = max(part.scales[at].scale, leastShare*math.Sqrt(float64(shares))*part.unit)
			}
		}
	}
}

// gaussianOnSums splits a round's mu^2 between sums and counts. The papers'
// calibration fixes the split as the later code does; the proven one minimises
// the error (THEOREMS.md T2).
func (p *Plan) gaussianOnSums(mu2 float64) {
	j := p.job
	side := math.Sqrt(float64(p.d))
	size := float64(p.n) / float64(p.k)
	for at := range p.stages {
		sums, counts := p.change(&p.parts[0], at), p.change(&p.parts[1], at)
		move := 2 * suRho * side * boxBound
		if j.Method == Relative {
			move = p.radius[at] / 4
		}
		var sigmaSum, sigmaCount float64
		switch {
		case j.Calibration != privacy.Proven:
			if j.Method == Relative {
				move = sums.value / 2
			}
			sigmaSum = math.Sqrt(sums.value * (sums.value*side + move) / (mu2 * side))
			sigmaCount = math.Sqrt((sums.value*side + move) / (mu2 * move))
		case j.Neighbours == privacy.ReplaceOne && !j.Method.Constrained():
			// Within one cluster the sums move by 2r and the counts stay, between
			// two the sums move by r each and the counts by 1: 4r^2/s^2 and
			// 2r^2/s^2 + 2/c^2 are both mu^2 for s = 2r/mu, c = 2/mu.
			sigmaSum, sigmaCount = sums.value/math.Sqrt(mu2), 2/math.Sqrt(mu2)
			counts.joint = true
		default:
			sigmaSum, sigmaCount = step.SplitGaussian(sums.value, move*counts.value, size/counts.value, p.d, mu2)
			sigmaCount *= counts.value
		}
		p.parts[0].set(sigmaSum, sums)
		p.parts[1].set(sigmaCount, counts)
	}
}

// laplaceOnCentroids scales the noise by the L1 sensitivity of the mean of the
// clients' means.
func (p *Plan) laplaceOnCentroids() {
	for at := range p.stages {
		s := p.change(&p.parts[0], at)
		p.parts[0].set(s.value*float64(p.rounds)/p.job.Budget.Epsilon, s)
	}
}

// gaussianMu is the Gaussian-DP parameter that the whole run may spend. The
// papers' calibration takes the continuous mechanism's (the analytic Gaussian).
// The proven one subtracts what ties of the flow solver, discretisation and
// shares cost, and takes zCDP instead where that gives more (THEOREMS.md T6, T8).
func (p *Plan) gaussianMu() (float64, error) {
	b := p.job.Budget
	if p.job.Calibration != privacy.Proven {
		mu, err := privacy.MuOf(b, 0)
		return mu, unpayable(err)
	}
	ties := p.tieDelta(p.rounds)
	if b = b.Less(ties, 0); b.Delta <= 0 {
		return 0, fault.Request("delta", fmt.Sprintf("is %.3g, and ties of the assignment take %.3g of it",
			p.job.Budget.Delta, ties), "raise it, or use a method without sizes")
	}
	mu, err := privacy.MuOf(b, 0)
	if err != nil {
		return 0, unpayable(err)
	}
	// The slacks fall as the noise grows, so those of the larger mu are bounds.
	p.gaussian(mu)
	slack, distance := 0.0, 0.0
	for i := range p.parts {
		part := &p.parts[i]
		for at, s := range part.scales {
			rounds := float64(p.until(at, p.rounds) - p.stages[at])
			slack += float64(rounds * privacy.GaussianSlack(s.scale/part.unit, part.length))
			distance += float64(rounds * p.shareDistance(part, at))
		}
	}
	if b = b.Less(0, distance); b.Delta < 0 {
		return 0, fault.Request("noise", "shares this small do not add up to discrete Gaussian noise",
			"use more fraction bits, a smaller epsilon or --noise local")
	}
	mu, err = privacy.DiscreteMu(b, slack)
	return mu, unpayable(err)
}

// shareDistance bounds the total variation distance of a round of a stage of a part from
// discrete Gaussian noise where it is the sum of shares (THEOREMS.md T6 iv).
func (p *Plan) shareDistance(part *part, stage int) float64 {
	shares := p.shares(p.stages[stage])
	if p.job.Mechanism != protocol.Gaussian || shares <= 1 {
		return 0
	}
	share := part.scales[stage].scale / part.unit / math.Sqrt(float64(shares))
	return float64(part.length) * privacy.SplitDistance(share, shares)
}

// tieDelta is what the tie-break of the flow solver adds to delta in so many rounds.
func (p *Plan) tieDelta(rounds int) float64 {
	if !p.job.Method.Constrained() || p.job.NonExclusive {
		return 0
	}
	return flow.TieDelta(p.n, p.k, rounds)
}

// unpayable turns an accountant's refusal into a wrong request.
func unpayable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Request("budget", err.Error(), "raise epsilon or delta, or use --mechanism laplace")
}
