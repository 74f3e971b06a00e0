package ckks

import (
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
)

// arithmetic bounds what the roundings of ciphertexts add to a round's totals, in records (THEOREMS.md
// T4): all of it follows from the plan's public values and from the distributions of roundings, keys and errors.
type arithmetic struct {
	// fresh is the trace of a variance proxy of what a round's roundings add, in their first order; once that
	// of the roundings of encoded columns, which all rounds share.
	fresh, once float64
	// rest bounds the 2-norm of what is left: second orders, the aggregates' own errors, the machine's.
	rest float64
	// column bounds a column's values, as encrypted.
	column float64
	// failure is the probability, over the whole run, that a bound does not hold.
	failure float64
	rounds  int
}

// roundingFailure is the part of delta that goes to bounds of roundings that do not hold.
const roundingFailure = 1e-2

// divergence is the order of that by which a bound for centroids that do not depend on the columns' roundings
// becomes one for the run's.
const divergence = 10

// log is that of the events that are looked at once a run or round over their probability.
func (a arithmetic) log() float64 {
	return math.Log(8*float64(a.rounds)/a.failure)*divergence/(divergence-1) + 1
}

// told bounds the divergence between a run's outputs and those of one whose columns are encoded without roundings. The
// bounds allow for 1.
func (a arithmetic) told(deviation float64) float64 {
	shift := 2*a.fresh + a.once + 4*a.rest*a.rest
	return float64(3*divergence*float64(a.rounds)*shift) / (deviation * deviation)
}

// tail turns the root of a trace of variance proxies into a bound of the 2-norm.
func (a arithmetic) tail() float64 {
	t := a.log()
	return math.Sqrt(1 + 2*math.Sqrt(t) + 2*t)
}

// most bounds the 2-norm of a round's error.
func (a arithmetic) most() float64 {
	return a.rest + float64(a.tail()*(2*math.Sqrt(a.fresh)+math.Sqrt(a.once)))
}

// mu is the parameter of Gaussian differential privacy of all rounds: in each a record moves the totals by
// at most moved, in deviations of the noise, the least of which is deviation records.
func (a arithmetic) mu(moved, deviation float64) float64 {
	t, rounds := math.Log(8/a.failure), float64(a.rounds)
	moved *= a.column
	v := 2 * a.fresh / (deviation * deviation)
	squares := math.Inf(1) // Chernoff's bound of the sum over rounds, at the best of many parameters
	for x := 1e-6; x < 1; x *= 1.1 {
		at := x / (8 * v)
		squares = min(squares, float64(rounds*(float64(moved*moved*(1+x/(2*(1-x))))-math.Log1p(-x)/(4*at)))+t/at)
	}
	fixed := float64(2*a.rest) + float64(a.tail()*math.Sqrt(2*a.once))
	return math.Sqrt(squares) + float64(math.Sqrt(rounds)*fixed)/deviation
}

// scale is the least multiple, from one on, of noise whose least deviation is least records and in which a record moves
// the totals by at most moved, so that all rounds have the parameter mu.
func (a arithmetic) scale(moved, least, mu, from float64) float64 {
	enough := func(x float64) bool { return a.mu(moved/x, least*x) <= mu }
	hi := from
	for !enough(hi) && hi < 1e9 {
		hi *= 2
	}
	for lo := from; hi-lo > 1e-9*hi; {
		if x := (lo + hi) / 2; enough(x) {
			hi = x
		} else {
			lo = x
		}
	}
	return hi
}

// setting is what the bounds depend on: the party that holds the key encrypts columns with it.
type setting struct {
	p                       *parameters
	n, k, d, rounds         int
	encrypted               int // columns
	lowScale, unit, failure float64
	log                     float64 // of the events at slots, in ciphertexts and rounds, over their probability
	turns, blocks           float64 // rotations on the way of a comparison, comparisons side by side
	secret, errors          slots
	relin, turn             slots // weights of a rounding that is relinearised, or rotated
}

// slots bounds squares at the slots of a polynomial: the largest, and their sum over the records.
type slots struct{ most, sum float64 }

func (a slots) plus(b slots, factor float64) slots {
	return slots{a.most + float64(factor*b.most), a.sum + float64(factor*b.sum)}
}

// secretVariance is the variance of a coefficient of a ternary secret, and a variance proxy; errorProxy one
// of a coefficient of an error polynomial, of deviation 3.2 and rounded, and errorMost its largest magnitude.
const (
	secretVariance = 2.0 / 3
	errorProxy     = 4.2 * 4.2
	errorMost      = 20
)

// slotsOf bounds a polynomial whose coefficients are independent with variance proxy v.
func (s *setting) slotsOf(v float64) slots {
	n, t := float64(s.p.N()), s.log
	sum := func(m float64) float64 { return float64(2*n*v) * (m + float64(2*math.Sqrt(m*t)) + 2*t) }
	return slots{most: 4 * n * v * t, sum: float64(float64(s.n/s.p.N())*sum(n)) + sum(float64(s.n%s.p.N()))}
}

// digits is the sum of a gadget's digits, and of their squares, over its auxiliary primes, and over the level's prime
// where that is divided by, too; of the levels up to one that where it is largest.
func (s *setting) digits(g *rns.Gadget, level int, divided bool) (squares, sum float64) {
	extra := logProduct(s.p.P()[:g.Auxiliary()])
	for l := 1; l <= min(level, g.MaxLevel()); l++ {
		below := extra
		if divided {
			below += math.Log2(float64(s.p.Q()[l]))
		}
		var two, one float64
		for d := range g.Digits(l) {
			from, count := g.Own(d)
			x := math.Exp2(logProduct(s.p.Q()[from:min(from+count, l+1)]) - below)
			two, one = two+float64(x*x), one+x
		}
		squares, sum = max(squares, two), max(sum, one)
	}
	return squares, sum
}

// prepare bounds keys: how a rounding of variance 1/4 at each coefficient weighs at the slots, c1's times the
// secret, with the digits' products with the errors of the keys.
func (s *setting) prepare() {
	k, slotsN := float64(s.k), float64(s.p.N())
	batches := math.Ceil(float64(s.n) / slotsN)
	s.blocks = 1
	if batches == 1 {
		s.blocks = max(1, math.Floor(min(slotsN/float64(s.n), k*(k-1)/4+1)))
	}
	s.turns = math.Ceil(math.Log2(s.blocks))
	s.log = math.Log(64 * slotsN * batches * k * k * signStages * float64(s.rounds) / s.failure)
	s.secret, s.errors = s.slotsOf(secretVariance), s.slotsOf(errorProxy)
	ones := slots{1, float64(s.n)}
	s.relin = ones.plus(s.secret, 1)
	squares, _ := s.digits(s.p.rotation, s.p.MaxLevel(), false)
	s.turn = ones.plus(s.secret, 1).plus(s.errors, squares)
}

// scales are those of the sign's stages, in bits, for trees of a depth, and of the trees' nodes the least.
func (s *setting) scales(depth int) (stages [signStages]float64, node float64) {
	var logQ []float64
	for _, q := range s.p.Q() {
		logQ = append(logQ, math.Log2(float64(q)))
	}
	plan := planScales(s.p, aggregateLevel, depth, 1)
	l := topLevel(depth)
	seven := func(in float64, l int, a float64) (t2, u, t4, out float64) {
		t2 = 2*in - logQ[l]
		u, t4 = in+t2-logQ[l-1], 2*t2-logQ[l-1]
		return t2, u, t4, t4 + u - math.Log2(math.Abs(a)) - logQ[l-2]
	}
	x := &stages
	x[0] = plan.in
	x[1], x[2], x[3], x[4] = seven(x[0], l, innerPlan.a)
	x[5], x[6], x[7], x[8] = seven(x[4], l-3, outerPlan.a)
	x[9] = 2*x[7] - logQ[l-5]
	x[10], x[11] = x[9]+x[8]-x[7], x[9]+x[8]-logQ[l-6]
	return stages, min(plan.out, float64(s.p.Chain.LogLevel))
}

// variances are the variance proxies of roundings at a slot over their weight there, in units of the values:
// of the sign's stages and of the trees' nodes, at the depth where they are largest.
func (s *setting) variances() (stages [signStages]float64, node float64) {
	half := float64(s.p.N()) / 2
	for depth := range s.p.maxDepth() + 1 {
		scales, last := s.scales(depth)
		for i, x := range scales {
			stages[i] = max(stages[i], half*math.Exp2(-2*x))
		}
		node = max(node, half*math.Exp2(-2*last))
	}
	// The sum of columns times integers: their roundings, and that of the part in the clear.
	stages[0] += half * s.blocks / (s.freshScale() * s.freshScale())
	return stages, node
}

// freshScale is the scale of encrypted columns.
func (s *setting) freshScale() float64 {
	return freshScale(s.p, columns{encrypted: slices.Repeat([]bool{true}, s.encrypted)})
}

// bound computes the bounds. They hold for comparisons whose inputs stay in the sign's domain, and are of no use where
// those of its values are infinite.
func (s *setting) bound() (a arithmetic, ok bool) {
	s.prepare()
	a = arithmetic{failure: s.failure, rounds: s.rounds}
	n, k, d, slotsN := float64(s.n), float64(s.k), float64(s.d), float64(s.p.N())
	batches, pairs := math.Ceil(n/slotsN), k*(k-1)/2
	variances, node := s.variances()
	sign := boundSign(variances, 2*s.log, float64(2*s.log)*s.relin.most)
	swing := sign.error + math.Sqrt(2*s.log*s.turns*node*s.turn.most)

	// What is left of a cluster's product without one factor, summed over factors and clusters, is at most factors;
	// squared and weighted by the factor's f(1-f), at most soft. spill is what the other factors' errors add to the
	// sum of squares, on average over records.
	soft := 1 + k*signError
	factors := float64((k-1)*soft) + k
	spill := float64(k*(k-1)*max(k-2, 0)*max(k-2, 0)) * math.Pow(1+swing, 2*max(k-3, 0)) * 4 * sign.variance.most *
		s.relin.most * (1 + float64(2*s.log*s.relin.most)/s.relin.sum)
	squared := func(x profile) float64 { return add(float64(x.far*factors)+float64(x.near*soft), x.most*spill) }
	entropy := soft * math.Log(max(k, 3))
	plain := func(x profile) float64 {
		return float64(x.far*factors) + float64(x.near*entropy) + x.most*math.Sqrt(float64(k*(k-1)*spill))
	}
	nodes := add(float64(max(k-2, 0)*soft)+k*float64(treeDepth(s.k-1)), spill)

	// By how much the errors of encryption move a column's value, at most: in the totals, and in comparisons.
	off := math.Sqrt(2 * s.log * (s.errors.most/(2*s.log) + slotsN/2))
	if off*math.Sqrt(s.blocks)/s.freshScale() > inputSpare {
		return arithmetic{}, false
	}
	off /= s.lowScale
	width := float64(1+d) * float64((1+off)*(1+off)) * (1 + slotsN*batches*float64(off*off)/n)
	// Roundings change the weights of later ones: twelve squares a record, of up to three times their mean.
	turned := float64(sign.turn*signStages*2*s.relin.most)*(1+2*s.log*s.relin.most/s.relin.sum) + 2*s.log*sign.inputTurn
	slope := min(squared(sign.steepest), add(squared(sign.variance), turned*add(factors, spill)))
	a.fresh = width * (float64((slope+float64(nodes*node))*s.relin.sum) +
		float64(squared(profile{far: node, most: node})*s.turns*s.turn.sum))
	a.once = float64(width*squared(sign.input)*n) +
		float64((1+d)*soft*soft*slotsN*batches*slotsN/2)/(s.lowScale*s.lowScale)

	// Second orders: a sum of squares is at most twice its mean and 4 t times its largest weight.
	second := float64(2*plain(sign.bend)*s.relin.sum) + float64(2*plain(sign.inputBend)*n) +
		float64(8*a.log()*math.Pow(1+swing, max(k-2, 0))*(float64(sign.bend.most*s.relin.most)+sign.inputBend.most))
	// Digits of relinearisation, of up to five residues, meet the errors of their key as they may.
	_, switched := s.digits(s.p.relin, s.p.MaxLevel(), true)
	switched *= 5 * math.Sqrt(s.errors.most*2) * slotsN * math.Sqrt(signStages*sign.steepest.most/(slotsN/2)*n)
	a.rest = math.Sqrt(width)*(second+float64(k*(k-1)*switched*(1+swing))) + s.aggregates() +
		float64(math.Sqrt(pairs*signStages*slotsN)*machine*(math.Sqrt(a.fresh)+math.Sqrt(a.once)))
	a.column = 1 + off
	return a, a.rest < float64(s.n)
}

// add is the square of the sum of two norms.
func add(a, b float64) float64 { return a + b + float64(2*math.Sqrt(a*b)) }

// machine bounds by how much the mean of a rounding is off, for want of bits in its randomness and in sums of
// residues over their primes, in units of the coefficient, times four.
const machine = 1.0 / (1 << 18)

// aggregates bounds the 2-norm of what relinearisation, re-randomisation and the change of rings add to the
// totals: coefficient 0 of products of which nothing but the size is used.
func (s *setting) aggregates() float64 {
	n := 2 * float64(s.p.N())
	_, relin := s.digits(s.p.relin, aggregateLevel, false)
	_, small := s.digits(s.p.small, aggregateLevel, false)
	most := 2*(1+n) + errorMost*(1+2*n) + float64(n*errorMost*(relin+small))
	return math.Sqrt(float64(s.k)*float64(1+s.d)) * most / s.unit
}
