package lloyd

import "math"

// The papers' limits of the number of iterations: fewer than two are of no use
// and more than seven bring nothing (Thesis-H §6.2.4, after Su et al.).
const (
	minIterations = 2
	maxIterations = 7
)

// suRho is Su et al.'s average normalised coordinate of a centroid, by which the
// budget is split between sums and counts (Thesis-H §6.2.3).
const suRho = 0.225

// countShare returns cbrt(4 d rho^2), the share of the count beside a share of 1
// for each coordinate of the sum.
func countShare(d int) float64 { return root(4*float64(d)*suRho*suRho, 3) }

// clampIterations returns floor(x) within [2, 7].
func clampIterations(x float64) int {
	return int(max(minIterations, min(x, maxIterations)))
}

// iterationsSumCount is T = floor(epsilon / eps_m) within [2, 7] with
// eps_m = sqrt(500 E^2 k^3/n^2 (d + cbrt(4 d rho^2))^3) (Thesis-H §6.2.4).
func iterationsSumCount(epsilon float64, n, d, k, exclusivity int) int {
	s := float64(d) + countShare(d)
	kk := float64(k)
	m := math.Sqrt(500*kk*kk*kk*s*s*s) * float64(exclusivity) / float64(n)
	return clampIterations(epsilon / m)
}

// iterationsCentroid is T = floor(epsilon / eps_m) within [2, 7] with
// eps_m = sqrt(500 k d^3 (B E)^2 / eta_min^2), B = 1 (FastLloyd §5.4, Thesis-H
// §6.3.3). etaMin is the minimum size over all clients together.
func iterationsCentroid(epsilon float64, d, k, exclusivity, etaMin int) int {
	dd := float64(d)
	m := math.Sqrt(500*float64(k)*dd*dd*dd) * float64(exclusivity) / float64(max(etaMin, 1))
	return clampIterations(epsilon / m)
}

// iterationsLater is the rule of FastLloyd's later code for the Gaussian
// mechanism: the mean squared error of one update with the budget of the whole
// run stays at 0.004 / T. sigma is the analytic Gaussian's scale for sensitivity
// 1 and the whole budget.
func iterationsLater(sigma float64, n, d, k int) int {
	nn, kk := float64(n), float64(k)
	eta := LaterCode.radius(1, k, d)
	s := 1 + math.Sqrt(4*float64(d))
	return clampIterations(0.016 * nn * nn / (kk * kk * kk * eta * eta * s * s * sigma * sigma))
}
