package staged

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// releaseBits is the grid of everything released: sums and counts enter as
// multiples of 2^-releaseBits, finer than the records' own grid, and get
// discrete noise of accordingly larger scale, at least 2^-minScaleBits in data
// units. Discrete Gaussian noise is then so close to continuous noise rounded to
// the grid (THEOREMS.md T6) that the exact profile of the Gaussian mechanism
// (T8) may be used for the whole run at the price of a slack far below delta.
const (
	releaseBits  = 30
	minScaleBits = 10
)

// minScale is the least noise scale of a release, in data units.
const minScale = 1.0 / (1 << minScaleBits)

// Share is how much budget a part of a run has and how it becomes noise: mu^2 for
// Gaussian noise, epsilon for Laplace noise. Both add up over releases.
type Share struct {
	Gaussian bool
	Total    float64
	// pair says that the guarantee is for replacing a record, which removes one and
	// adds one: Total is what a single record may cost.
	pair bool
	// shares make up the noise of a release, 0 for one draw; excess is the variance that
	// all draws have together in units of what the share asks for.
	shares int
	excess float64
	// budget is what the whole keeps, with slack for discrete Gaussian noise.
	budget privacy.Budget
	slack  float64
}

// newShare is the whole of a budget. Under replace-one the budget of a single
// record is half (group privacy of two records, THEOREMS.md T7, T8).
// coordinates bounds the number of noise values that one record can influence.
func newShare(b privacy.Budget, laplace bool, neighbours privacy.Neighbours, coordinates, shares int,
	excess float64) (Share, error) {
	s := Share{Gaussian: !laplace, Total: b.Epsilon, pair: neighbours == privacy.ReplaceOne,
		shares: shares, excess: excess, budget: b}
	if !laplace {
		s.slack = privacy.GaussianSlack(1<<(releaseBits-minScaleBits), coordinates)
		distance := s.distance(minScale, coordinates)
		if s.pair {
			s.slack *= 2
			distance *= 2
		}
		s.budget = b.Less(0, distance)
		mu, err := privacy.DiscreteMu(s.budget, s.slack)
		if err != nil {
			return Share{}, err
		}
		s.Total = coarse(mu * mu)
	}
	if s.pair {
		if s.Gaussian {
			s.Total /= 4
		} else {
			s.Total /= 2
		}
	}
	return s, nil
}

// Part is a fraction of the share.
func (s Share) Part(f float64) Share {
	s.Total *= f
	return s
}

// Beside is the whole of a budget of which choices take a part, so many of equal worth. A choice has an epsilon that is
// worth less than the Gaussian noise that it takes the place of (Pure); the whole is so much larger that both together
// spend the budget, by their exact profile (THEOREMS.md T9).
func (s Share) Beside(part float64, choices int) Share {
	if !s.Gaussian {
		return s
	}
	fits := func(total float64) bool {
		whole := s
		whole.Total = total
		mu, epsilon := whole.Part(1-part).Mu(), whole.Part(part/float64(choices)).Pure()
		if s.pair {
			mu, epsilon = 2*mu, 2*epsilon
		}
		both := privacy.NewMixed(mu, privacy.Responses{Epsilon: epsilon, Times: choices})
		return both != nil && both.Within(s.budget, s.slack)
	}
	lo, hi := s.Total, s.Total/(1-part)
	for range 40 {
		if total := (lo + hi) / 2; fits(total) {
			lo = total
		} else {
			hi = total
		}
	}
	s.Total = coarse(lo)
	return s
}

// Mu is the Gaussian-DP parameter of the share; for Laplace noise, which composes
// linearly, the mu that gives about the same noise when spread over five
// releases.
func (s Share) Mu() float64 {
	if s.Gaussian {
		return math.Sqrt(s.Total)
	}
	return s.Total / math.Sqrt(10)
}

// scale is the noise scale (sigma or b) of a release, in data units.
func (s Share) scale(b privacy.Bound) float64 {
	if s.Gaussian {
		return max(b.L2()/math.Sqrt(s.Total), minScale)
	}
	return max(b.L1()/s.Total, minScale)
}

// spec is the cost of a release at a noise scale, of which one record influences
// so many coordinates.
func (s Share) spec(scale float64, b privacy.Bound, coordinates int) privacy.Spec {
	if s.Gaussian {
		return privacy.Spec{Family: "discrete-gaussian", Scale: scale / b.L2(),
			Slack: privacy.GaussianSlack(scale*(1<<releaseBits), coordinates), Distance: s.distance(scale, coordinates)}
	}
	return privacy.Spec{Family: "discrete-laplace", Scale: scale / b.L1()}
}

// distance bounds the total variation distance of Gaussian noise in shares from
// noise drawn at once, over coordinates (THEOREMS.md T6 iv).
func (s Share) distance(scale float64, coordinates int) float64 {
	if !s.Gaussian || s.shares <= 1 {
		return 0
	}
	return float64(coordinates) * privacy.SplitDistance(scale*(1<<releaseBits)/math.Sqrt(float64(s.shares)), s.shares)
}

// spread is the excess, of one draw where none was set.
func (s Share) spread() float64 { return max(s.excess, 1) }

// Variance is what all draws of noise of a scale have together.
func (s Share) Variance(scale float64) float64 {
	if s.Gaussian {
		return float64(s.spread() * scale * scale)
	}
	return float64(2 * s.spread() * scale * scale)
}

// noise is the mechanism that draws it.
func (s Share) noise() protocol.Mechanism {
	if s.Gaussian {
		return protocol.Gaussian
	}
	return protocol.Laplace
}

// mechanism is the name of the noise in the ledger.
func (s Share) mechanism() string {
	if s.Gaussian {
		return "discrete-gaussian"
	}
	return "discrete-laplace"
}

// entry is the ledger entry of a release.
func (s Share) entry(what string, viewers []string, scale float64, b privacy.Bound, coordinates int) privacy.Entry {
	norm := "L1"
	if s.Gaussian {
		norm = "L2"
	}
	e := b.Entry(what, s.mechanism(), norm)
	e.Viewers, e.Scale, e.Cost = viewers, scale, s.spec(scale, b, coordinates)
	return e
}

// growth is the exponent by which the budget of a level grows: mu^2 by 2^(l/3)
// for Gaussian noise. Minimising the same weighted sum of variances with
// budgets that add up linearly gives 2^(2l/9) for the epsilon of Laplace noise.
func (s Share) growth(level int) float64 {
	if s.Gaussian {
		return elementary.Pow(2, float64(level)/3)
	}
	return elementary.Pow(2, 2*float64(level)/9)
}

// Pure is the epsilon of a pure mechanism that the whole share pays for: with
// Gaussian accounting, one whose trade-off curve lies above that of the Gaussian
// mechanism (THEOREMS.md T8).
func (s Share) Pure() float64 {
	if !s.Gaussian {
		return s.Total
	}
	curve := math.Erf(math.Sqrt(s.Total) / (2 * math.Sqrt2))
	return coarse(2 * math.Atanh(min(curve, 1-0x1p-53))) // at most 37, which is as good as no noise
}

// coarse drops the last 20 of the 52 bits of x > 0, in which libraries differ.
func coarse(x float64) float64 {
	return math.Float64frombits(math.Float64bits(x) &^ (1<<20 - 1))
}
