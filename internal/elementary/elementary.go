// Package elementary has Exp and Log, which differ from math.Exp and math.Log in
// one respect: they return the same bits on every architecture. math has assembly
// versions on some, and the compiler may fuse x*y+z on others; here every product
// is rounded before it is added. Both are within one unit in the last place. Pow and
// Log2 are made of them. Squared lengths and distances keep the same rule.
package elementary

import "math"

const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// Log is the natural logarithm, portable to the bit. Log(0) = -Inf, Log(x < 0) = NaN.
func Log(x float64) float64 {
	// FreeBSD's e_log.c: x = 2^k f with f in [sqrt(1/2), sqrt(2)), s = f/(2+f), a polynomial in s^2.
	const (
		l1 = 6.666666666666735130e-01
		l2 = 3.999999999940941908e-01
		l3 = 2.857142874366239149e-01
		l4 = 2.222219843214978396e-01
		l5 = 1.818357216161805012e-01
		l6 = 1.531383769920937332e-01
		l7 = 1.479819860511658591e-01
	)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	f1, ki := math.Frexp(x)
	if f1 < math.Sqrt2/2 {
		f1 *= 2
		ki--
	}
	f := f1 - 1
	k := float64(ki)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := float64(s2 * (l1 + float64(s4*(l3+float64(s4*(l5+float64(s4*l7)))))))
	t2 := float64(s4 * (l2 + float64(s4*(l4+float64(s4*l6)))))
	r := t1 + t2
	hfsq := float64(float64(0.5*f) * f)
	return float64(k*ln2Hi) - ((hfsq - (float64(s*(hfsq+r)) + float64(k*ln2Lo))) - f)
}

// Exp is e^x, portable to the bit. It overflows to +Inf and underflows to 0 as math.Exp does.
func Exp(x float64) float64 {
	// FreeBSD's e_exp.c: x = k ln 2 + r, |r| <= ln(2)/2, a rational function of r.
	const (
		p1 = 1.66666666666666657415e-01
		p2 = -2.77777777770155933842e-03
		p3 = 6.61375632143793436117e-05
		p4 = -1.65339022054652515390e-06
		p5 = 4.13813679705723846039e-08
	)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case math.IsInf(x, -1), x < -745.2:
		return 0
	case x > 709.782712893384:
		return math.Inf(1)
	}
	half := 0.5
	if x < 0 {
		half = -0.5
	}
	k := int(float64(x*math.Log2E) + half)
	hi := x - float64(float64(k)*ln2Hi)
	lo := float64(float64(k) * ln2Lo)
	r := hi - lo
	t := float64(r * r)
	c := r - float64(t*(p1+float64(t*(p2+float64(t*(p3+float64(t*(p4+float64(t*p5)))))))))
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi)
	return math.Ldexp(y, k)
}

// Pow is x^y for x > 0, portable to the bit.
func Pow(x, y float64) float64 { return Exp(float64(y * Log(x))) }

// Log2 is the binary logarithm, portable to the bit.
func Log2(x float64) float64 { return Log(x) / math.Ln2 }
