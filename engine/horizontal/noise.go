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
	// honest > 1 makes the law a share: honest independent shares add up to the
	// whole noise.
	honest int
	// toward makes the noise of a continuous law truncate toward zero, as the
	// released code does, instead of rounding to nearest.
	toward bool

	laplace  *privacy.DiscreteLaplace
	gaussian *privacy.DiscreteGaussian
}

// newLaw returns the law of scale in integer units. exact asks for a discrete
// law; the continuous ones serve the papers' calibrations.
func newLaw(m Mechanism, scale float64, honest int, exact, toward bool) (*law, error) {
	l := &law{mechanism: m, scale: scale, honest: honest, toward: toward}
	if m == Gaussian {
		l.scale = scale / math.Sqrt(float64(honest))
	}
	if !exact {
		return l, nil
	}
	var err error
	switch {
	case m == Gaussian:
		l.gaussian, err = privacy.NewDiscreteGaussian(l.scale)
	case honest > 1:
		return nil, fault.Request("noise", "split has no exact discrete Laplace shares", "use --mechanism gaussian or --noise local")
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
	case l.honest > 1:
		// Laplace is infinitely divisible: the difference of two Gamma(1/H)
		// variables is one of H shares (Thesis-H §7.3.3, after Goryczka et al.).
		shape := 1 / float64(l.honest)
		return l.scale * (st.Gamma(shape) - st.Gamma(shape))
	}
	return l.scale * st.Laplace()
}
