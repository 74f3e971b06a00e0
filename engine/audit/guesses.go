package audit

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// family is a family of claims by one parameter, ordered by it: that of Gaussian mechanisms by mu, that of pure
// mechanisms by epsilon. least is the largest probability that an event has on one side of a pair where it has x on
// the other, inverted: the least on the other side for x on this one (the trade-off function f as 1 - f, inverted).
type family struct {
	name  string
	least func(parameter, x float64) float64
}

var (
	gaussianFamily = family{"mu", func(mu, x float64) float64 {
		return distuv.UnitNormal.CDF(distuv.UnitNormal.Quantile(x) - mu)
	}}
	pureFamily = family{"epsilon", func(epsilon, x float64) float64 {
		return math.Max(math.Exp(-epsilon)*x, 1-math.Exp(epsilon)*(1-x))
	}}
)

// possible tells whether a mechanism of the family may let a guesser of c of m bits be right v times or more with
// probability tail (THEOREMS.md T13). Each of the m records was put in or left out by a fair coin of its own.
func (f *family) possible(parameter float64, m, c, v int, tail float64) bool {
	if v == 0 || tail == 0 {
		return true
	}
	all := float64(c) / float64(m)
	right, wrong := float64(v)*tail/float64(m), float64(c-v)*tail/float64(m)
	for w := v; w > 0; w-- {
		if right >= 1 {
			return false
		}
		need := f.least(parameter, right)
		if more := need - wrong; more > 0 {
			right += more * float64(w-1) / float64(c-w+1)
			wrong = need
		}
		if right+need > all*(1+1e-12) {
			return false
		}
	}
	return true
}

// tails bounds, for each of some numbers of right guesses up to c, the probability of so many or more: at every
// multiple of step, and at 0.
func (f *family) tails(parameter float64, m, c, step int) []float64 {
	var out []float64
	for v := 0; v <= c; v += step {
		lo, hi := 0.0, 1.0
		if v == 0 || f.possible(parameter, m, c, v, 1) {
			lo = 1
		}
		for lo < 1 && hi-lo > 1e-3*hi && hi > 1e-12 {
			if mid := (lo + hi) / 2; f.possible(parameter, m, c, v, mid) {
				lo = mid
			} else {
				hi = mid
			}
		}
		out = append(out, hi)
	}
	for i := len(out) - 2; i >= 0; i-- {
		out[i] = math.Max(out[i], out[i+1]) // where the search ended a little short
	}
	return out
}

// tail bounds the probability that in independent runs, each with m records of which c are guessed, the right guesses
// are v or more in all. The number of one run is dominated by one that takes multiples of step alone, rounded up;
// those add up.
func (f *family) tail(parameter float64, m, c, runs, v int) float64 {
	step := max(1, c/64)
	at := f.tails(parameter, m, c, step)
	distribution := make([]float64, len(at)+1) // distribution[i] is the probability of i steps
	up := min(step-1, 1)
	for i, p := range at {
		next := 0.0
		if i+1 < len(at) {
			next = at[i+1]
		}
		distribution[i+up] += p - next
	}
	sum := []float64{1}
	for range runs {
		grown := make([]float64, len(sum)+len(distribution)-1)
		for i, p := range sum {
			for j, q := range distribution {
				grown[i+j] += p * q
			}
		}
		sum = grown
	}
	var p float64
	for i := v / step; i < len(sum); i++ {
		p += sum[i]
	}
	return p
}

// guessedAtLeast is the parameter below which every mechanism of the family is contradicted by v right guesses in all
// of runs runs, wrong with probability at most alpha.
func (f *family) guessedAtLeast(m, c, runs, v int, alpha float64) float64 {
	refuted := func(parameter float64) bool {
		if runs == 1 {
			return !f.possible(parameter, m, c, v, alpha)
		}
		return f.tail(parameter, m, c, runs, v) <= alpha
	}
	if !refuted(1e-6) {
		return 0
	}
	lo, hi := 0.0, 1.0
	for hi < 64 && refuted(hi) {
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1e-3*hi {
		if mid := (lo + hi) / 2; refuted(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
