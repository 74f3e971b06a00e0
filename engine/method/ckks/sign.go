package ckks

import "math"

// The sign of t is approximated by a composition of two odd polynomials of
// degrees 7 and 15, minimax on 2^-4 <= |t| <= 1, in the Chebyshev basis
// (coefficients of T_1, T_3, ...). They are the output of Lattigo's
// minimax.GenMinimaxCompositePolynomial(192, 4, 14, []int{7, 15}, bignum.Sign).
var (
	inner = [4]float64{0.83858951769580126, -0.27090597964753477, 0.16929243878126354, -0.40870778907555044}
	outer = [8]float64{1.2619178825398767, -0.39142947799934341, 0.20279326398541916, -0.11532313764695679,
		0.065094276942399679, -0.034524012865141278, 0.016265142204262607, -0.006690532901271023}
)

// alphaBits is log2(1/t) for the smallest |t| on which the approximation holds.
const alphaBits = 4

// outerPeak bounds |outer(x)| on [-1, 1]. Divided by twice it the composition
// is an h with |h| <= 1/2, so that 1/2 + h and 1/2 - h lie in [0, 1].
const outerPeak = 1.00190342

// signError bounds | h(t) - sign(t)/2 | on 2^-4 <= |t| <= 1.
const signError = 0.00402001

// signPlan holds the real constants with which the two polynomials are
// evaluated in 4 + 7 products and 4 + 6 relinearisations:
//
//	T2 = 2 T1^2 - 1,  T4 = 2 T2^2 - 1,  T8 = 2 T4^2 - 1,  u = 2 T1 T2 + r T1 = T3 + (r+1) T1
//	degree 7:  p = a T4 u + b T1 + c u
//	degree 15: q = a T4 u + b T1 + c u,  p = T8 q + T4 (d T1 + e u) + f T1 + g u
//
// The factor a is never multiplied: the ciphertext's scale is divided by it.
type signPlan struct {
	r, a, b, c, d, e, f, g float64
}

// splitSeven writes a polynomial of degree 7 in terms of T4, T1 and u, using
// 2 T4 T1 = T5 + T3 and 2 T4 T3 = T7 + T1.
func splitSeven(c [4]float64) signPlan {
	rho := c[2] / c[3]
	return signPlan{r: rho - 1, a: 2 * c[3], b: c[0] - c[3] - (c[1]-c[2])*rho, c: c[1] - c[2]}
}

// splitFifteen writes a polynomial of degree 15 with 2 T8 T_k = T_{8+k} + T_{8-k}.
func splitFifteen(c [8]float64) signPlan {
	high := splitSeven([4]float64{2 * c[4], 2 * c[5], 2 * c[6], 2 * c[7]})
	rho := high.r + 1
	low := [4]float64{c[0] - c[7], c[1] - c[6], c[2] - c[5], c[3] - c[4]}
	high.d = 2*low[2] - 2*low[3]*rho
	high.e = 2 * low[3]
	high.f = low[0] - low[3] - (low[1]-low[2])*rho
	high.g = low[1] - low[2]
	return high
}

// innerPlan and outerPlan evaluate the composition h.
var (
	innerPlan = splitSeven(inner)
	outerPlan = splitFifteen(scaled(outer, 1/(2*outerPeak)))
)

func scaled(c [8]float64, f float64) [8]float64 {
	for i := range c {
		c[i] *= f
	}
	return c
}

// signScales are the log2 scales of one sign evaluation that starts at level
// top with T1 at scale in.
type signScales struct{ in, out float64 }

// signOutput is log2 of the scale of h for an input at log2 scale in and level
// top; logQ[l] is log2 of the prime of level l. It is linear in in, of slope 105.
func signOutput(logQ []float64, top int, in float64) float64 {
	mid := sevenOutput(logQ, top, in, innerPlan.a)
	l := top - 3
	s2 := 2*mid - logQ[l]
	s4 := 2*s2 - logQ[l-1]
	s8 := 2*s4 - logQ[l-2]
	return s8 + sevenOutput(logQ, l, mid, outerPlan.a) - logQ[l-3]
}

// sevenOutput is log2 of the scale of a T4 u + ... at level l, two rescalings
// below T1 and one more for the product.
func sevenOutput(logQ []float64, l int, in, a float64) float64 {
	s2 := 2*in - logQ[l]
	su := in + s2 - logQ[l-1]
	s4 := 2*s2 - logQ[l-1]
	return s4 + su - math.Log2(math.Abs(a)) - logQ[l-2]
}

// planScales chooses the scale of the comparison's input so that a product
// tree of the given depth ends at level base with scale 2^LogLevel. Every factor
// of the tree is read at factor times the comparison's scale.
func planScales(p *parameters, base, depth int, factor float64) signScales {
	q := p.Q()
	logQ := make([]float64, len(q))
	for i := range q {
		logQ[i] = math.Log2(float64(q[i]))
	}
	out := float64(p.Chain.LogLevel)
	for l := base + 1; l <= base+depth; l++ {
		out = (out + logQ[l]) / 2
	}
	out -= math.Log2(factor)
	in := float64(p.Chain.LogLevel)
	const slope = 7 * 15
	in += (out - signOutput(logQ, base+depth+signDepth, in)) / slope
	return signScales{in: in, out: out}
}
