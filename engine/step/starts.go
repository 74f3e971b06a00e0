package step

import "math"

// Source yields uniform numbers of [0, 1), multiples of 2^-53; privacy streams are
// sources.
type Source interface{ Float64() float64 }

// sphereRetries is the number of rejected candidates in a row after which the
// radius is halved.
const sphereRetries = 100

// SpherePacking returns k centres of [-1,1]^d, row-major, that are at least a
// away from every face of the box and at least 2a away from each other
// (FastLloyd §5.2.1, Thesis-H §4.2.2). The radius a starts at 1 and is halved
// whenever 100 candidates in a row do not fit, which is the search that the
// published figures use; a finer search changes where those figures start from.
// Centres depend on r alone, never on data.
func SpherePacking(k, d int, r Source) []float64 {
	centres := make([]float64, k*d)
	for a := 1.0; ; a /= 2 {
		if pack(centres, k, d, a, r) {
			return centres
		}
	}
}

// pack draws k centres for radius a and reports whether all found a place.
func pack(centres []float64, k, d int, a float64, r Source) bool {
	apart := 4 * a * a
	placed, retries := 0, 0
	for placed < k {
		c := centres[placed*d : placed*d+d]
		for h := range c {
			c[h] = float64(r.Float64()*(2-2*a)) + (a - 1)
		}
		if nearestSquared(centres[:placed*d], c) >= apart {
			placed++
			retries = 0
			continue
		}
		if retries++; retries == sphereRetries {
			return false
		}
	}
	return true
}

// nearestSquared returns the squared distance of c to the nearest row of rows,
// infinity if there is none.
func nearestSquared(rows, c []float64) float64 {
	best := math.Inf(1)
	for ; len(rows) > 0; rows = rows[len(c):] {
		s := 0.0
		for h, x := range c {
			t := x - rows[h]
			s += float64(t * t)
		}
		best = min(best, s)
	}
	return best
}

// RandomCentres returns k independent uniform points of [-1,1]^d, row-major
// (Thesis-H §4.2.2, random initialisation in the domain).
func RandomCentres(k, d int, r Source) []float64 {
	centres := make([]float64, k*d)
	for i := range centres {
		centres[i] = 2*r.Float64() - 1
	}
	return centres
}
