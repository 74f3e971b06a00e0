package ckks

import (
	"fmt"
	"math"
	"slices"
)

// composite approximates the sign of t by a composition h(t) ~ sign(t)/2 of odd polynomials. Each is the minimax
// polynomial of 1 from the least value there of the one before, the first from undecided, to 1, and all but the last
// are divided by their maximum and by 1 + 2^-14: the best composition of their degrees (Lee, Lee, No and Kim 2021,
// Theorem 1). |h| <= 1/2, so that 1/2 + h and 1/2 - h lie in [0, 1].
type composite struct {
	polynomials []polynomial
	undecided   float64 // the largest |t| for which the approximation does not hold
	// peak bounds the last polynomial on [-1, 1] before it is divided by twice that; error bounds | h(t) - sign(t)/2 | on
	// undecided <= |t| <= 1.
	peak, error float64
}

// undecided and signError are those of the comparison by pairs, earlyUndecided is that of its outer polynomial alone.
const (
	undecided      = 1.0 / 16
	earlyUndecided = 0.247759171
	signError      = 0.00816982
)

// Of compositions of so many levels with such errors these take the fewest relinearisations: 9, 10 and 16. Memberships
// by pairs are products of values within [0, 1] and hardly moved by an error of .008. Ranks are sums of k comparisons
// with all their errors, and a point whose nearest centroids are within undecided of each other has little of either's
// indicator: beyond some clusters most points are such at 1/16.
var (
	pairSign = newComposite(undecided, 1.00823712, signError,
		[]float64{0.7970490170915163, -0.27426178849329097, 0.47715173624552454},
		[]float64{1.2652349850557782, -0.40086411554934565, 0.21690046258712695, -0.13203640160729263,
			0.08213647231077607, -0.04984822544243593, 0.028410118227410134, -0.018170406467873674})
	rankSign = newComposite(1.0/16, 1.00175602, 0.00175295,
		[]float64{0.8489950569369387, -0.2853555629507561, 0.1751628623175018, -0.4063591439060954},
		[]float64{1.2617422862313974, -0.3909366312274564, 0.20207223712308547, -0.11450118297822993,
			0.06429869637028808, -0.033857970416387315, 0.015790064311326523, -0.006363515642626013})
	sharpRankSign = newComposite(1.0/200, 1.00173913, 0.00173612,
		[]float64{0.6576690606459537, -0.22583940426101745, 0.1448325406740399, -0.5472171521713379},
		[]float64{0.8487196609582011, -0.2833682270673452, 0.1706198736064838, -0.12259936920377865,
			0.09625023650751213, -0.07988078928601455, 0.06906583552632728, -0.36584444590946613},
		[]float64{1.2617207692801962, -0.3908761607220463, 0.2019839973363752, -0.1144006129331178,
			0.06420170435002237, -0.0337773193189018, 0.015732925867878812, -0.006324433064811507})
)

// earlySign is the outer polynomial of pairSign alone, for first rounds whose centroids are far apart
// (run.comparisons): degree 15, 6 relinearisations in place of 9, three levels fewer, half of the time. What bounds
// roundings of pairSign bounds those of earlySign, and noise need not be planned for two signs: its input, at the scale
// and level that the inner polynomial's result has, takes all values that result takes in the domain, a rounding of
// less weight, and the same products follow (THEOREMS.md T4 b).
//
// Degrees between the two, 3 and 15 (.8 of the time, undecided up to .10) or 5 and 7 (.71, .14), would do for rounds of
// five to eight clusters, too. There they change the local optimum that a run ends in, by factors either way: in 80
// runs of five clusters the mean logarithm of losses rose by .05, with a standard error of .08. With two clusters
// earlySign changes the mean loss of ten rounds by less than 1e-5, none by more than 5e-4.
var earlySign = &composite{polynomials: pairSign.polynomials[1:], undecided: earlyUndecided, peak: pairSign.peak,
	error: signError}

func newComposite(undecided, peak, error float64, odd ...[]float64) *composite {
	s := &composite{undecided: undecided, peak: peak, error: error}
	for i, c := range odd {
		if i == len(odd)-1 {
			c = slices.Clone(c)
			for j := range c {
				c[j] /= 2 * peak
			}
		}
		s.polynomials = append(s.polynomials, newPolynomial(c))
	}
	return s
}

func (s *composite) String() string {
	text := ""
	for _, p := range s.polynomials {
		text += fmt.Sprint(p.odd)
	}
	return text
}

// depth is the number of levels that h takes.
func (s *composite) depth() (levels int) {
	for _, p := range s.polynomials {
		levels += p.depth()
	}
	return levels
}

// degree is that of h.
func (s *composite) degree() int {
	degree := 1
	for _, p := range s.polynomials {
		degree *= 2*len(p.odd) - 1
	}
	return degree
}

// stages is the number of roundings of an evaluation: its input's and one for each product.
func (s *composite) stages() int {
	stages := 1
	for _, p := range s.polynomials {
		stages += p.products()
	}
	return stages
}

// polynomial is an odd polynomial of degree 5, 7 or 15. It takes 3, 4 or 6 products, each with its relinearisation:
//
//	T2 = 2 T1^2 - 1,  u = 2 T1 T2 + r T1,  and from degree 7 on T4 = 2 T2^2 - 1
//	degree 5:   a T2 u + b T1
//	degree 7:   a T4 u + b T1 + c u
//	degree 15:  v = T4 u + b T1 + c u,  w = 2 T4^2 - 1 + s T4 + t,  a w v + f T1 + g u
//
// The factor a is never multiplied: the ciphertext's scale is divided by it.
type polynomial struct {
	odd                    []float64 // coefficients of T_1, T_3, ... in the Chebyshev basis
	r, a, b, c, s, t, f, g float64
}

func (p *polynomial) depth() int {
	if len(p.odd) == 8 {
		return 4
	}
	return 3
}

func (p *polynomial) products() int {
	if len(p.odd) == 8 {
		return 6
	}
	return len(p.odd)
}

// newPolynomial sets the constants. With u = T3 + rho T1, rho = r + 1, it uses 2 T_m T_n = T_{m+n} + T_{m-n}.
func newPolynomial(odd []float64) polynomial {
	switch c := odd; len(c) {
	case 3:
		return polynomial{odd: c, r: c[1]/c[2] - 1, a: 2 * c[2], b: c[0] - c[1] - c[2]}
	case 4:
		rho := c[2] / c[3]
		return polynomial{odd: c, r: rho - 1, a: 2 * c[3], b: c[0] - c[3] - float64((c[1]-c[2])*rho), c: c[1] - c[2]}
	}
	return fifteen(odd)
}

// fifteen makes any polynomial of degree 15 (preprocessed as in Knuth, The Art of Computer Programming 2, 4.6.4):
// 2 v = T7 + rho T5 + x T3 + y T1, and the coefficients of T13 down to T5, over that of T15, are rho, x + s,
// y + s rho, y + s x + 2t and x + s y + 2t rho.
func fifteen(c []float64) polynomial {
	last := c[7]
	c5, c7, c9, c11, rho := c[2]/last, c[3]/last, c[4]/last, c[5]/last, c[6]/last
	s := (c5 - c11 - float64(rho*(c7-c9))) / (float64(rho*rho) - float64(rho*c11) + c9 - 1)
	x, y := c11-s, c9-float64(s*rho)
	t := (c7 - y - float64(s*x)) / 2
	p := polynomial{odd: c, r: rho - 1, s: s, t: t, a: 4 * last}
	p.c = (x - rho) / 2
	p.b = (y-1)/2 - float64(p.c*rho)
	p.g = c[1] - float64(last*(rho+s+float64(s*y)+float64(2*t*x)))
	p.f = c[0] - float64(last*(1+float64(s*rho)+float64(s*x)+float64(2*t*y))) - float64(p.g*rho)
	return p
}

// scales are log2 of the scales of the products for an input at log2 scale in and level l; logQ[l] is log2 of the prime
// of level l.
func (p *polynomial) scales(logQ []float64, l int, in float64) []float64 {
	var x []float64
	next := func(y float64) float64 { x = append(x, y); return y }
	t2 := next(2*in - logQ[l])
	u := next(in + t2 - logQ[l-1])
	if len(p.odd) == 3 {
		next(t2 + u - math.Log2(math.Abs(p.a)) - logQ[l-2])
		return x
	}
	t4 := next(2*t2 - logQ[l-1])
	if len(p.odd) == 4 {
		next(t4 + u - math.Log2(math.Abs(p.a)) - logQ[l-2])
		return x
	}
	v, w := next(t4+u-logQ[l-2]), next(2*t4-logQ[l-2])
	next(w + v - math.Log2(math.Abs(p.a)) - logQ[l-3])
	return x
}

// scales are log2 of the scales of the stages of h for an input at log2 scale in and level l. They are linear in in,
// the last one of the slope of h's degree.
func (s *composite) scales(logQ []float64, l int, in float64) []float64 {
	x := []float64{in}
	for i := range s.polynomials {
		p := &s.polynomials[i]
		x = append(x, p.scales(logQ, l, x[len(x)-1])...)
		l -= p.depth()
	}
	return x
}

// signScales are the log2 scales of one sign evaluation that starts at level
// top with T1 at scale in.
type signScales struct{ in, out float64 }

// logPrimes are log2 of the primes of the levels.
func (p *parameters) logPrimes() []float64 {
	var logQ []float64
	for _, q := range p.Q() {
		logQ = append(logQ, math.Log2(float64(q)))
	}
	return logQ
}

// plan chooses the scale of the comparison's input so that a product tree of the given depth ends at level base with
// scale 2^LogLevel. Every factor of the tree is read at factor times the comparison's scale.
func (s *composite) plan(p *parameters, base, depth int, factor float64) signScales {
	logQ := p.logPrimes()
	out := float64(p.Chain.LogLevel)
	for l := base + 1; l <= base+depth; l++ {
		out = (out + logQ[l]) / 2
	}
	out -= math.Log2(factor)
	in := float64(p.Chain.LogLevel)
	scales := s.scales(logQ, base+depth+s.depth(), in)
	in += (out - scales[len(scales)-1]) / float64(s.degree())
	return signScales{in: in, out: out}
}
