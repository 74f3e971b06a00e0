package ckks

import (
	"math"
	"runtime"
	"sync"
)

// signStages are the roundings of one evaluation of the pairs' sign: its input's, those of T2, u and the result of the
// inner polynomial, and those of T2, u, T4, v, w and the result of the outer one.
const signStages = 10

// interval is a closed interval of reals. Operations round outwards.
type interval struct{ lo, hi float64 }

func exactly(x float64) interval { return interval{x, x} }

// outwards widens an interval whose ends are rounded to the nearest, so that it has the exact ends in it.
func outwards(lo, hi float64) interval {
	return interval{float64(lo) - above(lo), float64(hi) + above(hi)} // the ends are rounded before, not fused
}

// above is at least half the distance of x from its neighbours, and moves x by at least that when added to it.
func above(x float64) float64 {
	if x < 0 { // cheaper than math.Abs
		x = -x
	}
	return x*0x1p-52 + 0x1p-1000
}

func (a interval) plus(b interval) interval { return outwards(a.lo+b.lo, a.hi+b.hi) }

// times is the least and the largest of the four products of ends, which follow from the signs: most of a bound's time
// goes into them.
func (a interval) times(b interval) interval {
	switch {
	case b.lo >= 0 && a.lo >= 0:
		return outwards(a.lo*b.lo, a.hi*b.hi)
	case b.lo >= 0 && a.hi <= 0:
		return outwards(a.lo*b.hi, a.hi*b.lo)
	case b.lo >= 0:
		return outwards(a.lo*b.hi, a.hi*b.hi)
	case b.hi <= 0 && a.lo >= 0:
		return outwards(a.hi*b.lo, a.lo*b.hi)
	case b.hi <= 0 && a.hi <= 0:
		return outwards(a.hi*b.hi, a.lo*b.lo)
	case b.hi <= 0:
		return outwards(a.hi*b.lo, a.lo*b.lo)
	case a.lo >= 0:
		return outwards(a.hi*b.lo, a.hi*b.hi)
	case a.hi <= 0:
		return outwards(a.lo*b.hi, a.lo*b.lo)
	}
	return outwards(min(a.lo*b.hi, a.hi*b.lo), max(a.lo*b.lo, a.hi*b.hi))
}

func (a interval) scaled(f float64) interval {
	if f < 0 {
		a.lo, a.hi = a.hi, a.lo
	}
	return outwards(a.lo*f, a.hi*f)
}

func (a interval) widened(by float64) interval { return outwards(a.lo-by, a.hi+by) }

func (a interval) magnitude() float64 { return max(-a.lo, a.hi) }

// upwards makes a sum of up to a thousand products of numbers that are not negative an upper bound.
func upwards(x float64) float64 { return x * (1 + 0x1p-40) }

// jet is a value of the sign's evaluation for inputs in an interval: exact, near it, as roundings leave it, and
// its derivatives by the roundings so far: exact, and near, where all values are near.
type jet struct {
	exact, near  interval
	first, slope [signStages]interval             // exact, and near
	bend         [signStages][signStages]interval // near, by roundings j <= i
	stages       int                              // derivatives by later ones are 0
	bends        int                              // and second ones by these
}

// affine is f a + c.
func (a *jet) affine(c *signCell, f, by float64) *jet {
	out := c.jet(a.stages)
	out.exact = a.exact.scaled(f).plus(exactly(by))
	out.bends = a.bends
	for i := range out.stages {
		out.first[i], out.slope[i] = a.first[i].scaled(f), a.slope[i].scaled(f)
	}
	for i := range out.bends {
		for j := range i + 1 {
			out.bend[i][j] = a.bend[i][j].scaled(f)
		}
	}
	return out
}

// plus is a + g b.
func (a *jet) plus(c *signCell, b *jet, g float64) *jet {
	out := c.jet(max(a.stages, b.stages))
	out.exact = a.exact.plus(b.exact.scaled(g))
	out.bends = max(a.bends, b.bends)
	for i := range b.stages {
		out.first[i] = a.first[i].plus(b.first[i].scaled(g))
		out.slope[i] = a.slope[i].plus(b.slope[i].scaled(g))
	}
	for i := b.stages; i < a.stages; i++ {
		out.first[i], out.slope[i] = a.first[i], a.slope[i]
	}
	for i := range b.bends {
		for j := range i + 1 {
			out.bend[i][j] = a.bend[i][j].plus(b.bend[i][j].scaled(g))
		}
	}
	for i := b.bends; i < a.bends; i++ {
		out.bend[i] = a.bend[i]
	}
	return out
}

// times is the product.
func (a *jet) times(c *signCell, b *jet) *jet {
	if a == b {
		return a.squared(c)
	}
	if a.stages < b.stages {
		a, b = b, a
	}
	out := c.jet(a.stages)
	out.exact, out.bends = a.exact.times(b.exact), a.stages
	for i := range b.stages {
		out.first[i] = a.exact.times(b.first[i]).plus(b.exact.times(a.first[i]))
		out.slope[i] = a.near.times(b.slope[i]).plus(b.near.times(a.slope[i]))
	}
	for i := b.stages; i < a.stages; i++ {
		out.first[i], out.slope[i] = b.exact.times(a.first[i]), b.near.times(a.slope[i])
	}
	for i := range a.stages {
		for j := range min(i+1, b.stages) {
			x := a.slope[i].times(b.slope[j])
			if i < b.stages {
				x = x.plus(a.slope[j].times(b.slope[i]))
			}
			if i < b.bends {
				x = x.plus(a.near.times(b.bend[i][j]))
			}
			out.bend[i][j] = x
		}
	}
	for i := range a.bends {
		for j := range i + 1 {
			out.bend[i][j] = out.bend[i][j].plus(b.near.times(a.bend[i][j]))
		}
	}
	return out
}

// squared is the product of a with itself.
func (a *jet) squared(c *signCell) *jet {
	out := c.jet(a.stages)
	out.exact, out.bends = a.exact.times(a.exact), a.stages
	out.exact.lo = max(out.exact.lo, 0)
	exact, near := a.exact.scaled(2), a.near.scaled(2)
	for i := range a.stages {
		out.first[i], out.slope[i] = exact.times(a.first[i]), near.times(a.slope[i])
		for j := range i + 1 {
			out.bend[i][j] = a.slope[i].times(a.slope[j]).scaled(2)
		}
	}
	for i := range a.bends {
		for j := range i + 1 {
			out.bend[i][j] = out.bend[i][j].plus(near.times(a.bend[i][j]))
		}
	}
	return out
}

// rounded gives the value a rounding: the next one.
func (a *jet) rounded(c *signCell) *jet {
	a.first[c.next], a.slope[c.next], a.stages = exactly(1), exactly(1), c.next+1
	c.next++
	a.near = a.exact.widened(a.off(c.most))
	return a
}

// off bounds by how much roundings with squares at most those given move a value.
func (a *jet) off(most *[signStages]float64) float64 {
	var first, second float64
	for i := range a.stages {
		s := a.slope[i].magnitude()
		first += float64(s * s * most[i])
		second += float64(a.bend[i][i].magnitude() * most[i])
	}
	return upwards(math.Sqrt(first) + second/2)
}

// signCell evaluates the sign on an interval of inputs.
type signCell struct {
	most  *[signStages]float64
	next  int
	jets  [40]jet // that have been made, which the next interval takes again
	taken int
}

// jet is a new one.
func (c *signCell) jet(stages int) *jet {
	j := &c.jets[c.taken]
	c.taken++
	*j = jet{stages: stages}
	return j
}

func (c *signCell) halfSign(t interval) *jet {
	c.next, c.taken = 0, 0
	in := c.jet(0)
	in.exact = t
	in.rounded(c)
	t2 := c.double(in).rounded(c)
	inner := &pairSign.polynomials[0]
	u := c.third(in, t2, inner.r)
	return c.outer(t2.times(c, u).affine(c, inner.a, 0).plus(c, in, inner.b).rounded(c))
}

// outer evaluates the outer polynomial, with the roundings from the next one on: earlySign, if that is the inner one's.
func (c *signCell) outer(t *jet) *jet {
	p := &pairSign.polynomials[1]
	t2 := c.double(t).rounded(c)
	u := c.third(t, t2, p.r)
	t4 := c.double(t2).rounded(c)
	v := t4.times(c, u).plus(c, t, p.b).plus(c, u, p.c).rounded(c)
	w := c.double(t4).affine(c, 1, p.t).plus(c, t4, p.s).rounded(c)
	return w.times(c, v).affine(c, p.a, 0).plus(c, t, p.f).plus(c, u, p.g).rounded(c)
}

// double is 2 x^2 - 1, not rounded.
func (c *signCell) double(x *jet) *jet { return x.times(c, x).affine(c, 2, -1) }

// third is 2 T1 T2 + r T1.
func (c *signCell) third(t1, t2 *jet, r float64) *jet {
	return t1.times(c, t2).affine(c, 2, 0).plus(c, t1, r).rounded(c)
}

// profile bounds a function of a comparison's input: by far + near f (1 - f), f being the comparison's value, and
// by most.
type profile struct{ far, near, most float64 }

// signBound is what roundings do to a comparison.
type signBound struct {
	error float64 // at most
	// variance is the proxy of the first order in roundings of weight 1, steepest that where values are near instead of
	// exact, bend half the mean of the second; input
	// and inputBend the same of the input's roundings. turn is by how much the first order's proxy changes with
	// roundings of squares one, inputTurn with one of the input's: squares of the second derivatives' norms.
	variance, bend, input, inputBend, steepest profile
	turn, inputTurn                            float64
}

// signCells is the number of intervals that [0, 1] is cut into, of which inputs reach as many as inputCells: they
// stay with what the columns' encryption moves them by. The sign is odd.
const (
	signCells  = 2048
	inputCells = signCells * (1 - inputSpare)
)

// signBounds are those of the last few settings: they are public and take milliseconds.
var signBounds struct {
	mu    sync.Mutex
	known [8]knownBound
	next  int
}

// knownBound is a bound and the setting that it is for.
type knownBound struct {
	variances       [signStages]float64
	inputMost, most float64
	bound           signBound
}

// knownSign is boundSign, or what it found for the same numbers before.
func knownSign(variances [signStages]float64, inputMost, most float64) signBound {
	s := &signBounds
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range min(s.next, len(s.known)) {
		if k := &s.known[i]; k.variances == variances && k.inputMost == inputMost && k.most == most {
			return k.bound
		}
	}
	k := &s.known[s.next%len(s.known)]
	k.variances, k.inputMost, k.most, k.bound = variances, inputMost, most, boundSign(variances, inputMost, most)
	s.next++
	return k.bound
}

// boundSign bounds what roundings with the given variance proxies at a slot do to a comparison: each is at most the
// root of its proxy times inputMost, for the input's, or most.
func boundSign(variances [signStages]float64, inputMost, most float64) signBound {
	var squares [signStages]float64
	for i, v := range variances {
		squares[i] = v * most
	}
	squares[0] = variances[0] * inputMost
	values, spans := make([]cellBound, inputCells), make([]float64, inputCells)
	parts := make([]signBound, runtime.GOMAXPROCS(0)) // what cells have at most
	var wait sync.WaitGroup
	for i := range parts {
		wait.Go(func() {
			cell := &signCell{most: &squares}
			for n := i; n < len(values); n += len(parts) {
				spans[n] = parts[i].widen(cell, n, &values[n], &variances)
			}
		})
	}
	wait.Wait()
	out := parts[0]
	for _, p := range parts[1:] {
		out.error, out.turn = max(out.error, p.error), max(out.turn, p.turn)
		out.inputTurn = max(out.inputTurn, p.inputTurn)
	}
	for kind, p := range []*profile{&out.variance, &out.bend, &out.input, &out.inputBend, &out.steepest} {
		decided := int(math.Ceil(signCells * undecided))
		for _, v := range values[decided:] {
			p.far = max(p.far, v[kind])
		}
		p.most = p.far
		for n, v := range values[:decided] {
			p.most = max(p.most, v[kind])
			if spans[n] > 0 {
				p.near = max(p.near, upwards((v[kind]-p.far)/spans[n]))
			} else {
				p.far = max(p.far, v[kind])
			}
		}
	}
	return out
}

// cellBound are the values of a cell that profiles of a signBound bound.
type cellBound [5]float64

// widen bounds cell n, too. It returns a lower bound of f (1 - f) for the comparison's value f there.
func (b *signBound) widen(cell *signCell, n int, v *cellBound, variances *[signStages]float64) (span float64) {
	h := cell.halfSign(interval{float64(n) / signCells, float64(n+1) / signCells})
	b.error = max(b.error, h.off(cell.most))
	turn, inputTurn := 0.0, 0.0
	for i, vi := range variances {
		s, bend := h.first[i].magnitude(), h.bend[i][i].magnitude()
		first, second := &v[0], &v[1]
		if i == 0 {
			first, second = &v[2], &v[3]
		}
		*first += float64(s * s * vi)
		if i > 0 {
			near := h.slope[i].magnitude()
			v[4] += float64(near * near * vi)
		}
		*second += float64(bend*vi) / 2
		for j := range i {
			x := h.bend[i][j].magnitude()
			x = float64(x * x * vi * variances[j])
			if j == 0 {
				inputTurn += x
			} else {
				turn += x
			}
		}
	}
	b.turn, b.inputTurn = max(b.turn, upwards(turn)), max(b.inputTurn, upwards(inputTurn))
	for i := range v {
		v[i] = upwards(v[i])
	}
	far := min(h.exact.magnitude(), 0.5)
	return 0.25 - float64(far*far) - 0x1p-50
}
