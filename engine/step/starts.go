package step

import "math"

// Init is the choice of the first centroids.
type Init string

// The initialisations that look at no data.
const (
	Sphere Init = "sphere"
	Random Init = "random"
)

// Source yields uniform numbers of [0, 1), multiples of 2^-53; privacy streams are
// sources.
type Source interface{ Float64() float64 }

// sphereRetries is the number of rejected candidates in a row after which a radius
// counts as too large.
const sphereRetries = 100

// spherePrecision is how close the search comes to the largest radius, as a ratio;
// for more than sphereMany centres, where a packing takes seconds, sphereRough.
const (
	spherePrecision = 1.01
	sphereMany      = 4096
	sphereRough     = 1.2
)

// SpherePacking returns k centres of [-1,1]^d, row-major, that are at least a
// away from every face of the box and at least 2a away from each other, for the
// largest radius a at which they find their places, to a hundredth (FastLloyd
// §5.2.1, Thesis-H §4.2.2): by bisection from what halving finds. Centres depend on r
// alone, never on data, so they cost no budget.
func SpherePacking(k, d int, r Source) []float64 {
	centres, fits := halve(k, d, r)
	trial, precision := make([]float64, len(centres)), spherePrecision
	if k > sphereMany {
		precision = sphereRough
	}
	for high := min(2*fits, 1); high > precision*fits; {
		if a := math.Sqrt(fits * high); pack(trial, k, d, a, r) {
			fits, centres, trial = a, trial, centres
		} else {
			high = a
		}
	}
	return centres
}

// HalvedPacking is SpherePacking with the search of the published figures, which
// starts from radius 1 and halves it until k centres find their places. A finer search
// changes where those figures start from.
func HalvedPacking(k, d int, r Source) []float64 {
	centres, _ := halve(k, d, r)
	return centres
}

// halve returns the packing of the first power of 1/2 at which all centres find
// their places, and that radius.
func halve(k, d int, r Source) (centres []float64, a float64) {
	centres = make([]float64, k*d)
	for a = 1; !pack(centres, k, d, a, r); {
		a /= 2
	}
	return centres, a
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
		if clear(centres[:placed*d], c, apart) {
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

// clear tells whether no row of rows is nearer to c than the root of apart.
func clear(rows, c []float64, apart float64) bool {
	for ; len(rows) > 0; rows = rows[len(c):] {
		s := 0.0
		for h, x := range c {
			t := x - rows[h]
			s += float64(t * t)
		}
		if s < apart {
			return false
		}
	}
	return true
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
