package privacy

import (
	"math"
	"math/big"
	"testing"
)

// precision of the exact computations, in bits: sums of thousands of terms lose some twenty of them.
const precision = 400

// bigExp is e^x by the power series of x / 2^k, squared k times.
func bigExp(x float64) *big.Float {
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(v) }
	k := max(0, math.Ilogb(math.Abs(x)+1)+8)
	y := number(math.Ldexp(x, -k))
	sum, term := number(1), number(1)
	for i := 1; i < 120; i++ {
		term.Quo(term.Mul(term, y), number(float64(i)))
		sum.Add(sum, term)
	}
	for range k {
		sum.Mul(sum, sum)
	}
	return sum
}

// exactDelta is delta at epsilon of n releases of a distribution of outcomes, which are given by loss and probability:
// the n-fold convolution of losses that are multiples of one unit, in 400 bits.
func exactDelta(unit float64, first int, p []*big.Float, n int, epsilon float64) float64 {
	sum := []*big.Float{new(big.Float).SetPrec(precision).SetInt64(1)}
	for range n {
		next := make([]*big.Float, len(sum)+len(p)-1)
		for i := range next {
			next[i] = new(big.Float).SetPrec(precision)
		}
		for i, a := range sum {
			for j, b := range p {
				if b.Sign() > 0 {
					next[i+j].Add(next[i+j], new(big.Float).SetPrec(precision).Mul(a, b))
				}
			}
		}
		sum = next
	}
	delta := new(big.Float).SetPrec(precision)
	for i, a := range sum {
		loss := float64(n*first+i) * unit // exact: units are powers of two
		if loss <= epsilon {
			continue
		}
		kept := new(big.Float).SetPrec(precision).SetInt64(1)
		kept.Sub(kept, bigExp(epsilon-loss))
		delta.Add(delta, kept.Mul(kept, a))
	}
	d, _ := delta.Float64()
	return d
}

// The rounding of the accountant, in its masses, its transforms and its sums, never takes its bounds past the exact
// delta, computed in 400 bits: of randomised response and of discrete Laplace noise, over a few and over hundreds of
// rounds, for deltas down to 1e-23.
func TestPLDEnclosesExactArithmetic(t *testing.T) {
	for _, c := range []struct {
		unit     float64
		steps    int // of sensitivity, in units of the scale: 1 is randomised response
		rounds   int
		epsilons []float64
	}{
		{1. / 8, 1, 1, []float64{0, 0.06, 0.12}}, {1. / 8, 1, 60, []float64{0, 1, 3, 5, 7.25}},
		{1. / 64, 1, 400, []float64{0, 0.5, 1.5, 3}},
		{1. / 16, 4, 30, []float64{0, 0.5, 2, 4, 6}}, {1. / 32, 3, 120, []float64{0.1, 1, 3}},
	} {
		// losses (steps - 2i) unit, i = 0 .. steps, of discrete Laplace noise of scale 1/unit moved by steps
		p := make([]*big.Float, 2*c.steps+1)
		for i := range p {
			p[i] = new(big.Float).SetPrec(precision)
		}
		one := new(big.Float).SetPrec(precision).SetInt64(1)
		r := bigExp(-c.unit)
		whole := new(big.Float).SetPrec(precision).Add(one, r)
		p[2*c.steps].Quo(one, whole)
		p[0].Quo(bigExp(-c.unit*float64(c.steps)), whole)
		inner := new(big.Float).SetPrec(precision).Sub(one, r)
		inner.Quo(inner, whole)
		for z := 1; z < c.steps; z++ {
			p[2*(c.steps-z)].Mul(inner, bigExp(-c.unit*float64(z)))
		}
		up, low := &PLDAccountant{}, &PLDAccountant{Optimistic: true}
		m := DiscreteLaplaceStep{B: 1 / c.unit, Step: c.steps}
		up.Compose(m, c.rounds)
		low.Compose(m, c.rounds)
		for _, e := range c.epsilons {
			want := exactDelta(c.unit, -c.steps, p, c.rounds, e)
			hi, lo := up.Delta(e), low.Delta(e)
			if !(lo <= want && want <= hi) {
				t.Errorf("%d rounds of %d steps of %v: delta(%v) is %.17g, not between %.17g and %.17g",
					c.rounds, c.steps, c.unit, e, want, lo, hi)
			}
		}
	}
}
