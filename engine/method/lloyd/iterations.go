package lloyd

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// The papers' limits of the number of iterations: fewer than two are of no use
// and more than seven bring nothing (Thesis-H §6.2.4, after Su et al.).
const (
	minIterations = 2
	maxIterations = 7
)

// suRho is Su et al.'s average normalised coordinate of a centroid, by which the
// budget is split between sums and counts (Thesis-H §6.2.3).
const suRho = 0.225

// countShare returns cbrt(4 d rho^2), the share of the count beside a share of 1
// for each coordinate of the sum.
func countShare(d int) float64 { return root(4*float64(d)*suRho*suRho, 3) }

// clampIterations returns floor(x) within [2, 7].
func clampIterations(x float64) int {
	return int(max(minIterations, min(x, maxIterations)))
}

// iterationsSumCount is T = floor(epsilon / eps_m) within [2, 7] with
// eps_m = sqrt(500 E^2 k^3/n^2 (d + cbrt(4 d rho^2))^3) (Thesis-H §6.2.4).
func iterationsSumCount(epsilon float64, n, d, k, exclusivity int) int {
	s := float64(d) + countShare(d)
	kk := float64(k)
	m := math.Sqrt(500*kk*kk*kk*s*s*s) * float64(exclusivity) / float64(n)
	return clampIterations(epsilon / m)
}

// iterationsCentroid is T = floor(epsilon / eps_m) within [2, 7] with
// eps_m = sqrt(500 k d^3 (B E)^2 / eta_min^2), B = 1 (FastLloyd §5.4, Thesis-H
// §6.3.3). etaMin is the minimum size over all clients together.
func iterationsCentroid(epsilon float64, d, k, exclusivity, etaMin int) int {
	dd := float64(d)
	m := math.Sqrt(500*float64(k)*dd*dd*dd) * float64(exclusivity) / float64(max(etaMin, 1))
	return clampIterations(epsilon / m)
}

// iterationsLater is the rule of FastLloyd's later code for the Gaussian
// mechanism: the mean squared error of one update with the budget of the whole
// run stays at 0.004 / T. sigma is the analytic Gaussian's scale for sensitivity
// 1 and the whole budget.
func iterationsLater(sigma float64, n, d, k int) int {
	nn, kk := float64(n), float64(k)
	eta := LaterCode.radius(1, k, d)
	s := 1 + math.Sqrt(4*float64(d))
	return clampIterations(0.016 * nn * nn / (kk * kk * kk * eta * eta * s * s * sigma * sigma))
}

// roundsFromNoise is the rule of constrained methods under the proven calibration:
// the T of 1 to 7 at which, by the noise that the plan itself adds,
//
//	v(T) + k^(-2/d)/6 2^-T
//
// is least, for each coordinate. v(T) is the variance of the noise in a centroid of
// the last round, which T rounds on one budget multiply by T (Gaussian) or T^2
// (Laplace); the other term is what Lloyd's iterations still have to win from starts
// that are spread over the box, where cells of a volume 2^d/k have mean squared
// distances of about k^(-2/d)/3, and about half of the rest in each round. All of it
// is public; a proven noise is 2k times the claimed one, which the papers' rules take.
func (p *Plan) roundsFromNoise() error {
	p.rounds = 1
	p.setStages()
	p.cutParts()
	if err := p.addNoise(); err != nil {
		return err
	}
	once := p.centroidVariance()
	left := root(1/(float64(p.k)*float64(p.k)), p.d) / 6
	best := math.Inf(1)
	for t := 1; t <= maxIterations; t++ {
		v := once * float64(t)
		if p.job.Mechanism == protocol.Laplace {
			v *= float64(t)
		}
		if loss := v + float64(left*math.Ldexp(1, -t)); loss < best {
			p.rounds, best = t, loss
		}
	}
	return nil
}

// centroidVariance is the variance of the noise in a coordinate of a centroid of
// average size after the last round.
func (p *Plan) centroidVariance() float64 {
	variance := func(part *part) float64 {
		v := part.scales[len(p.stages)-1].scale
		v *= v
		if p.job.Mechanism == protocol.Laplace {
			v *= 2
		}
		if p.alone() {
			return v
		}
		return float64(v * p.drawers(p.rounds-1).Excess())
	}
	v := variance(&p.parts[0])
	if len(p.parts) == 1 {
		return v
	}
	size, typical := float64(p.n)/float64(p.k), 2*suRho*boxBound
	if p.job.Method == Relative {
		typical = p.radius[len(p.stages)-1] / 4 / math.Sqrt(float64(p.d))
	}
	return (v + float64(typical*typical*variance(&p.parts[1]))) / (size * size)
}

// doubt says in the result's headline when a coordinate's noise is wider than a quarter
// of the box, and when the sizes of clusters leave records out.
func (p *Plan) doubt() {
	say := func(format string, args ...any) { p.Doubts = append(p.Doubts, fmt.Sprintf(format, args...)) }
	if share := math.Sqrt(p.centroidVariance()) / (2 * boxBound); share > 0.25 {
		say("this answer is mostly noise, whose standard deviation is %.0f%% of the box in each coordinate: "+
			"hybrid would spend the same budget better; more records or a larger epsilon would help", 100*share)
	}
	if p.Unassigned > 0 {
		other := "choose a method without sizes"
		if p.m > 1 && p.job.ClientShares == nil {
			other = "say what share of the records each client has with --client-shares"
		}
		say("%d of %s (%.0f%%) find no place within the sizes of clusters and count for nothing: "+
			"raise --eta-max-alpha, or %s", p.Unassigned, fault.Count(p.n, "record"),
			100*float64(p.Unassigned)/float64(p.n), other)
	}
}
