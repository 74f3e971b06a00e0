package step

import "math"

// SplitGaussian divides the budget of one Gaussian release of sums and counts:
// it returns the standard deviations of the sums (per coordinate, in the unit of
// r) and of the counts such that r^2/sigmaSum^2 + 1/sigmaCount^2 = muSquared.
// They minimise the mean squared error of sum/count to second order for
// clusters of about size records that move by about m (THEOREMS.md T2):
//
//	m_e^2 = m^2 + 3 d sigmaSum^2 / size^2, at most 3r, by fixed-point steps
//	sigmaCount^2 = (r sqrt(d) + m_e) / (muSquared m_e), at most
//	               max(size^2/36, 2/muSquared)
//	sigmaSum^2   = r^2 / (muSquared - 1/sigmaCount^2)
//
// The cap keeps the noisy count away from zero. m and size are public guesses.
func SplitGaussian(r, m, size float64, d int, muSquared float64) (sigmaSum, sigmaCount float64) {
	side := r * math.Sqrt(float64(d))
	most := max(size*size/36, 2/muSquared)
	e := m
	var sum2, count2 float64
	for range 4 {
		count2 = min((side+e)/(muSquared*e), most)
		sum2 = r * r / (muSquared - 1/count2)
		e = min(math.Sqrt(float64(m*m)+float64(3*float64(d)*sum2/(size*size))), 3*r)
	}
	return math.Sqrt(sum2), math.Sqrt(count2)
}
