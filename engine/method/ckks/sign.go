package ckks

import "math"

// The sign of t is approximated by a composition of two odd polynomials of degrees 5 and 15 in the Chebyshev basis
// (coefficients of T_1, T_3, ...). The inner one is the minimax polynomial of 1 on [undecided, 1], divided by its
// maximum and by 1 + 2^-14, the outer one that from the inner one's least value there to 1: the best composition of its
// degrees (Lee, Lee, No and Kim 2021, Theorem 1). Of compositions of seven levels with such an error it takes the
// fewest relinearisations.
var (
	inner = [3]float64{0.7970490170915163, -0.27426178849329097, 0.47715173624552454}
	outer = [8]float64{1.2652349850557782, -0.40086411554934565, 0.21690046258712695, -0.13203640160729263,
		0.08213647231077607, -0.04984822544243593, 0.028410118227410134, -0.018170406467873674}
)

// undecided is the largest |t| for which the approximation does not hold.
const undecided = 1.0 / 16

// outerPeak bounds |outer(x)| on [-1, 1]. Divided by twice it the composition
// is an h with |h| <= 1/2, so that 1/2 + h and 1/2 - h lie in [0, 1].
const outerPeak = 1.00823712

// signError bounds | h(t) - sign(t)/2 | on undecided <= |t| <= 1.
const signError = 0.00816982

// The two polynomials take 3 + 6 products, each with its relinearisation:
//
//	inner:  T2 = 2 T1^2 - 1,  u = 2 T1 T2 + r T1,  a T2 u + b T1
//	outer:  T2 and u so,  T4 = 2 T2^2 - 1,  v = T4 u + b T1 + c u,  w = 2 T4^2 - 1 + s T4 + t,  a w v + f T1 + g u
//
// The factors a are never multiplied: the ciphertext's scale is divided by them. The outer one's constants make any
// polynomial of degree 15 (preprocessed as in Knuth, The Art of Computer Programming 2, 4.6.4).
type (
	innerConstants struct{ r, a, b float64 }
	outerConstants struct{ r, b, c, s, t, a, f, g float64 }
)

// splitFive uses 2 T2 T3 = T5 + T1 and 2 T2 T1 = T3 + T1, with u = T3 + (r + 1) T1.
func splitFive(c [3]float64) innerConstants {
	return innerConstants{r: c[1]/c[2] - 1, a: 2 * c[2], b: c[0] - c[1] - c[2]}
}

// splitFifteen uses 2 T_m T_n = T_{m+n} + T_{m-n}. With rho = r + 1, 2 v = T7 + rho T5 + x T3 + y T1, and the
// coefficients of T13 down to T5, over that of T15, are rho, x + s, y + s rho, y + s x + 2t and x + s y + 2t rho.
func splitFifteen(c [8]float64) outerConstants {
	last := c[7]
	c5, c7, c9, c11, rho := c[2]/last, c[3]/last, c[4]/last, c[5]/last, c[6]/last
	s := (c5 - c11 - float64(rho*(c7-c9))) / (float64(rho*rho) - float64(rho*c11) + c9 - 1)
	x, y := c11-s, c9-float64(s*rho)
	t := (c7 - y - float64(s*x)) / 2
	o := outerConstants{r: rho - 1, s: s, t: t, a: 4 * last}
	o.c = (x - rho) / 2
	o.b = (y-1)/2 - float64(o.c*rho)
	o.g = c[1] - float64(last*(rho+s+float64(s*y)+float64(2*t*x)))
	o.f = c[0] - float64(last*(1+float64(s*rho)+float64(s*x)+float64(2*t*y))) - float64(o.g*rho)
	return o
}

// innerPart and outerPart evaluate the composition h.
var (
	innerPart = splitFive(inner)
	outerPart = splitFifteen(scaled(outer, 1/(2*outerPeak)))
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

// stageScales are log2 of the scales of the stages of h for an input at log2 scale in and level top; logQ[l] is log2 of
// the prime of level l. They are linear in in, the last one of slope 75.
func stageScales(logQ []float64, top int, in float64) (x [signStages]float64) {
	l := top
	x[0] = in
	x[1] = 2*in - logQ[l]
	x[2] = in + x[1] - logQ[l-1]
	x[3] = x[1] + x[2] - math.Log2(math.Abs(innerPart.a)) - logQ[l-2]
	l -= 3
	x[4] = 2*x[3] - logQ[l]
	x[5], x[6] = x[3]+x[4]-logQ[l-1], 2*x[4]-logQ[l-1]
	x[7], x[8] = x[6]+x[5]-logQ[l-2], 2*x[6]-logQ[l-2]
	x[9] = x[8] + x[7] - math.Log2(math.Abs(outerPart.a)) - logQ[l-3]
	return x
}

// logPrimes are log2 of the primes of the levels.
func (p *parameters) logPrimes() []float64 {
	var logQ []float64
	for _, q := range p.Q() {
		logQ = append(logQ, math.Log2(float64(q)))
	}
	return logQ
}

// planScales chooses the scale of the comparison's input so that a product
// tree of the given depth ends at level base with scale 2^LogLevel. Every factor
// of the tree is read at factor times the comparison's scale.
func planScales(p *parameters, base, depth int, factor float64) signScales {
	logQ := p.logPrimes()
	out := float64(p.Chain.LogLevel)
	for l := base + 1; l <= base+depth; l++ {
		out = (out + logQ[l]) / 2
	}
	out -= math.Log2(factor)
	in := float64(p.Chain.LogLevel)
	const slope = 5 * 15
	in += (out - stageScales(logQ, base+depth+signDepth, in)[signStages-1]) / slope
	return signScales{in: in, out: out}
}
