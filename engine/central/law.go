package central

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
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

// law is how much budget a part of a run has and how it becomes noise: mu^2 for
// Gaussian noise, epsilon for Laplace noise. Both add up over releases.
type law struct {
	gaussian bool
	total    float64
	// pair says that the guarantee is for replacing a record, which removes one and
	// adds one: total is what a single record may cost.
	pair bool
}

// newLaw turns a budget into a law. Under replace-one the budget of a single
// record is half (group privacy of two records, THEOREMS.md T7, T8).
// coordinates bounds the number of noise values that one record can influence.
func newLaw(b privacy.Budget, laplace bool, neighbours privacy.Neighbours, coordinates int) (law, error) {
	l := law{gaussian: !laplace, total: b.Epsilon, pair: neighbours == privacy.ReplaceOne}
	if !laplace {
		slack := privacy.GaussianSlack(1<<(releaseBits-minScaleBits), coordinates)
		if l.pair {
			slack *= 2
		}
		mu, err := privacy.DiscreteMu(b, slack)
		if err != nil {
			return law{}, err
		}
		l.total = coarse(mu * mu)
	}
	if l.pair {
		if l.gaussian {
			l.total /= 4
		} else {
			l.total /= 2
		}
	}
	return l, nil
}

// share returns the law of a fraction of the budget.
func (l law) share(f float64) law {
	l.total *= f
	return l
}

// mu is the Gaussian-DP parameter of the law; for Laplace noise, which composes
// linearly, the mu that gives about the same noise when spread over five
// releases.
func (l law) mu() float64 {
	if l.gaussian {
		return math.Sqrt(l.total)
	}
	return l.total / math.Sqrt(10)
}

// scale is the noise scale (sigma or b) of a release, in data units.
func (l law) scale(b privacy.Bound) float64 {
	if l.gaussian {
		return max(b.L2()/math.Sqrt(l.total), minScale)
	}
	return max(b.L1()/l.total, minScale)
}

// spec is the cost of a release at a noise scale, of which one record influences
// so many coordinates.
func (l law) spec(scale float64, b privacy.Bound, coordinates int) privacy.Spec {
	if l.gaussian {
		return privacy.Spec{Family: "discrete-gaussian", Scale: scale / b.L2(), Slack: privacy.GaussianSlack(scale*(1<<releaseBits), coordinates)}
	}
	return privacy.Spec{Family: "discrete-laplace", Scale: scale / b.L1()}
}

// variance of noise of a scale.
func (l law) variance(scale float64) float64 {
	if l.gaussian {
		return scale * scale
	}
	return 2 * scale * scale
}

// noise is the mechanism that draws it.
func (l law) noise() protocol.Mechanism {
	if l.gaussian {
		return protocol.Gaussian
	}
	return protocol.Laplace
}

// mechanism is the name of the noise in the ledger.
func (l law) mechanism() string {
	if l.gaussian {
		return "discrete-gaussian"
	}
	return "discrete-laplace"
}

// entry is the ledger entry of a release.
func (l law) entry(what string, viewers []string, scale float64, b privacy.Bound, coordinates int) privacy.Entry {
	norm := "L1"
	if l.gaussian {
		norm = "L2"
	}
	e := b.Entry(what, l.mechanism(), norm)
	e.Viewers, e.Scale, e.Cost = viewers, scale, l.spec(scale, b, coordinates)
	return e
}
