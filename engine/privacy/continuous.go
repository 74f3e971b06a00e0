package privacy

import (
	"math"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// The continuous samplers draw floating-point numbers. They serve data generators, projections and
// the papers' own figures under the claimed and published calibrations; the holes of floating-point
// noise are not covered by any theorem, so proven releases use the discrete samplers.

// Normal returns a standard normal by Marsaglia's polar method, the same bits on every architecture.
func (st *Stream) Normal() float64 {
	for {
		u := 2*st.Float64Open() - 1
		v := 2*st.Float64Open() - 1
		s := float64(u*u) + float64(v*v)
		if s < 1 && s > 0 {
			return float64(u * math.Sqrt(-2*elementary.Log(s)/s))
		}
	}
}

// Exponential returns an exponential variable of mean 1.
func (st *Stream) Exponential() float64 { return -elementary.Log(st.Float64Open()) }

// Laplace returns a Laplace variable of scale 1, of density exp(-|x|)/2.
func (st *Stream) Laplace() float64 {
	b := st.src.Uint64()
	x := -elementary.Log(float64(b>>12<<1|1) * 0x1p-53)
	if b&1 == 1 { // bit 0 is not among the 52 that made x
		return -x
	}
	return x
}

// Gamma returns a gamma variable of the given shape and scale 1 (Marsaglia and Tsang 2000, with
// their boost by U^(1/shape) below 1). The difference of two Gamma(1/M) shares, summed over M
// parties, is Laplace (Thesis-H, section 7.3). It panics if the shape is not positive.
func (st *Stream) Gamma(shape float64) float64 {
	if !(shape > 0) {
		panic("privacy: Stream.Gamma: shape must be positive")
	}
	boost := 1.0
	if shape < 1 {
		boost = elementary.Exp(elementary.Log(st.Float64Open()) / shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := st.Normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(float64(v*v) * v)
		if elementary.Log(st.Float64Open()) < float64(0.5*float64(x*x))+float64(d*(1-v+elementary.Log(v))) {
			return boost * float64(d*v)
		}
	}
}

// FillLaplace sets dst to independent Laplace variables of scale b.
func (st *Stream) FillLaplace(b float64, dst []float64) {
	for i := range dst {
		dst[i] = float64(b * st.Laplace())
	}
}
