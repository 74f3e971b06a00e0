package protocol

import (
	"math"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Mechanism is the kind of noise.
type Mechanism string

// The mechanisms.
const (
	Laplace  Mechanism = "laplace"
	Gaussian Mechanism = "gaussian"
)

// Noise describes the noise of one coordinate of a release, in the
// integer units of its grid.
type Noise struct {
	Mechanism Mechanism
	// Scale is Laplace's b or the standard deviation of the whole noise.
	Scale float64
	// Shares, if above 1, makes each draw a share: so many independent shares make
	// up the whole noise (PRIVACY C7).
	Shares int
	// Rounding is how a continuous draw becomes an integer. The zero value draws
	// from the discrete distribution, exactly.
	Rounding Rounding
}

// Rounding is how noise of a continuous distribution becomes an integer.
type Rounding uint8

// The roundings.
const (
	// Exact noise is drawn from the discrete distribution on the integers.
	Exact Rounding = iota
	// Nearest rounds to nearest, as the papers' theorems have it (FastLloyd A.1).
	Nearest
	// TowardZero truncates, as the authors' released code does.
	TowardZero
)

// Distribution is noise that can be drawn. It may be used by several roles at a
// time.
type Distribution struct {
	Noise
	sampler interface {
		Fill(st *privacy.Stream, dst []int64)
	}
}

// NewDistribution prepares noise. A replay, which may be nil, keeps what it
// prepared for later runs.
func NewDistribution(n Noise, replay *privacy.Replay) (*Distribution, error) {
	shares := max(n.Shares, 1)
	d := &Distribution{Noise: n}
	var err error
	switch {
	case n.Rounding != Exact:
		d.sampler = &continuous{n, shares}
	case n.Mechanism == Gaussian:
		d.sampler, err = replay.DiscreteGaussian(n.Scale / math.Sqrt(float64(shares)))
	case shares > 1:
		d.sampler, err = replay.LaplaceShare(n.Scale, shares)
	default:
		d.sampler, err = replay.DiscreteLaplace(n.Scale)
	}
	if err != nil {
		return nil, fault.Request("noise", err.Error(),
			"choose another epsilon, fewer iterations or another number of fraction bits")
	}
	return d, nil
}

// likelihood is the distribution of the whole noise as a replay needs it.
func (n Noise) likelihood() privacy.Likelihood {
	if n.Mechanism == Gaussian {
		return privacy.GaussianLikelihood(n.Scale)
	}
	return privacy.LaplaceLikelihood(n.Scale)
}

// continuous draws from a continuous distribution and rounds.
type continuous struct {
	Noise
	shares int
}

// Fill sets dst to independent draws. It allocates nothing.
func (c *continuous) Fill(st *privacy.Stream, dst []int64) {
	for i := range dst {
		x := c.draw(st)
		if c.Rounding == TowardZero {
			dst[i] = int64(x)
		} else {
			dst[i] = int64(math.RoundToEven(x))
		}
	}
}

func (c *continuous) draw(st *privacy.Stream) float64 {
	switch {
	case c.Mechanism == Gaussian:
		return c.Scale / math.Sqrt(float64(c.shares)) * st.Normal()
	case c.shares > 1:
		// Laplace is infinitely divisible: the difference of two Gamma(1/H)
		// variables is one of H shares (Thesis-H §7.3.3, after Goryczka et al.).
		shape := 1 / float64(c.shares)
		return c.Scale * (st.Gamma(shape) - st.Gamma(shape))
	}
	return c.Scale * st.Laplace()
}
