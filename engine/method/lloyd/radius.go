package lloyd

import "math"

// Schedule is the rule for a radius by iteration t = 0, 1, ...: R_t, within which
// a record contributes to its cluster of method relative, or eta_d of
// size-constrained assignment.
type Schedule string

// The radius schedules.
const (
	// Geometric is R_t = 2 sqrt(d) k^(-1/d) 0.8^t.
	Geometric Schedule = "geometric"
	// Sqrt is R_t = sqrt(d) / (2 sqrt(t+1)), in the plane FastLloyd's
	// eta_d = sqrt(B^2/2t) with t from 1 (equation 19).
	Sqrt Schedule = "sqrt"
	// LaterCode is the rule of FastLloyd's later code ("diagonal then fraction",
	// alpha = 0.8): R_0 = sqrt(d), then R_t = 0.8 sqrt(d) k^(-1/d).
	LaterCode Schedule = "later-code"
)

// Beyond says what becomes of a record of method relative that is further than
// R_t from its centroid.
type Beyond string

// The treatments. The sensitivity is R_t under both (THEOREMS.md T2).
const (
	// Clip cuts its offset to the length R_t: a far record still pulls.
	Clip Beyond = "clip"
	// Exclude leaves it out, of the count too, as FastLloyd's later code does.
	Exclude Beyond = "exclude"
)

// laterAlpha is the factor alpha of FastLloyd's later code.
const laterAlpha = 0.8

// radius returns R_t in units of the normalised box, at most its diagonal
// 2 sqrt(d). It uses square roots and products only, so that it is the same on
// every architecture.
func (s Schedule) radius(t, k, d int) float64 {
	side := math.Sqrt(float64(d))
	r := 0.0
	switch s {
	case Sqrt:
		r = side / (2 * math.Sqrt(float64(t+1)))
	case LaterCode:
		r = side
		if t > 0 {
			r = laterAlpha * side / root(float64(k), d)
		}
	default:
		r = 2 * side / root(float64(k), d)
		for range t {
			r *= 0.8
		}
	}
	return min(r, 2*side)
}

// root returns the n-th root of x > 0 by bisection: products and comparisons
// only, so the bits do not depend on the architecture.
func root(x float64, n int) float64 {
	lo, hi := min(x, 1), max(x, 1)
	for {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			return hi
		}
		p := 1.0
		for i := 0; i < n && p <= 1e300 && p > 0; i++ {
			p *= mid
		}
		if p < x {
			lo = mid
		} else {
			hi = mid
		}
	}
}
