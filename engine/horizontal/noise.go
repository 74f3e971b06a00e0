package horizontal

import (
	"math"

	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// law is the distribution of the noise of one coordinate, in the integer units
// of its release: grid units for sums and centroids, records for counts.
type law struct {
	mechanism Mechanism
	scale     float64 // Laplace's b or the standard deviation
	// needed > 1 makes the law a share: needed independent shares add up to the
	// whole noise.
	needed int
	// toward makes the noise of a continuous law truncate toward zero, as the
	// released code does, instead of rounding to nearest.
	toward bool

	laplace  *privacy.DiscreteLaplace
	share    *privacy.LaplaceShare
	gaussian *privacy.DiscreteGaussian
}

// newLaw returns the law of scale in integer units. exact asks for a discrete
// law; the continuous ones serve the papers' calibrations.
func newLaw(m Mechanism, scale float64, needed int, exact, toward bool) (*law, error) {
	l := &law{mechanism: m, scale: scale, needed: needed, toward: toward}
	if m == Gaussian {
		l.scale = scale / math.Sqrt(float64(needed))
	}
	if !exact {
		return l, nil
	}
	var err error
	switch {
	case m == Gaussian:
		l.gaussian, err = privacy.NewDiscreteGaussian(l.scale)
	case needed > 1:
		l.share, err = privacy.NewLaplaceShare(l.scale, needed)
	default:
		l.laplace, err = privacy.NewDiscreteLaplace(l.scale)
	}
	if err != nil {
		return nil, fault.Request("noise", err.Error(), "choose another epsilon, fewer iterations or another number of fraction bits")
	}
	return l, nil
}

// fill sets dst to independent draws. It allocates nothing.
func (l *law) fill(st *privacy.Stream, dst []int64) {
	switch {
	case l.gaussian != nil:
		l.gaussian.Fill(st, dst)
	case l.laplace != nil:
		l.laplace.Fill(st, dst)
	case l.share != nil:
		l.share.Fill(st, dst)
	default:
		for i := range dst {
			x := l.continuous(st)
			if l.toward {
				dst[i] = int64(x)
			} else {
				dst[i] = int64(math.RoundToEven(x))
			}
		}
	}
}

func (l *law) continuous(st *privacy.Stream) float64 {
	switch {
	case l.mechanism == Gaussian:
		return l.scale * st.Normal()
	case l.needed > 1:
		// Laplace is infinitely divisible: the difference of two Gamma(1/t)
		// variables is one of t shares (Thesis-H §7.3.3, after Goryczka et al.).
		shape := 1 / float64(l.needed)
		return l.scale * (st.Gamma(shape) - st.Gamma(shape))
	}
	return l.scale * st.Laplace()
}
