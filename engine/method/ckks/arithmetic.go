package ckks

import (
	"math"
	"math/bits"

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
	// column bounds what a record adds to the totals over what it adds in exact arithmetic: columns as encrypted,
	// products beside the block that counts, and the evaluation's constants, rounded.
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

// drowned tells whether noise of the deviation hides columns' roundings from whom centroids follow: whether a run's
// outputs diverge from those of one whose columns are encoded without roundings by no more than the bounds allow, 1,
// and each round's by so little that the divergence is finite.
func (a arithmetic) drowned(deviation float64) bool {
	shift := (2*a.fresh + a.once + 4*a.rest*a.rest) / (deviation * deviation)
	return 3*divergence*float64(a.rounds)*shift <= 1 && 16*divergence*(divergence-1)*shift <= 1
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

// scale is the least multiple, from `from` on, of noise whose least deviation is least records and in which a record
// moves the totals by at most moved, so that all rounds have the parameter mu; +Inf if there is none below 1e9 from.
func (a arithmetic) scale(moved, least, mu, from float64) float64 {
	enough := func(x float64) bool { return a.drowned(least*x) && a.mu(moved/x, least*x) <= mu }
	hi := from
	for ; !enough(hi); hi *= 2 {
		if !(hi < 1e9*from) {
			return math.Inf(1)
		}
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

// setting is what the bounds depend on.
type setting struct {
	p                       *parameters
	n, k, d, rounds         int
	encrypted               int  // columns
	holders                 int  // of shares of the key
	collective              bool // keys of the evaluation, made by the holders together
	public                  bool // columns encrypted under a public key
	lowScale, unit, failure float64
	log                     float64 // of the events at slots, in ciphertexts and rounds, over their probability
	keyLog                  float64 // of those of keys
	lay                     layout
	turns                   float64 // rotations on the way of a comparison
	secret, errors, product slots   // of the secret, of keys' errors, and of the error of the key for products
	relin, turn             slots   // weights of a rounding that is relinearised, or rotated
}

// slots bounds squares at the slots of a polynomial: the largest, their sum over the records, and their mean over all.
type slots struct{ most, sum, mean float64 }

func (a slots) plus(b slots, factor float64) slots {
	return slots{a.most + float64(factor*b.most), a.sum + float64(factor*b.sum), a.mean + float64(factor*b.mean)}
}

// secretVariance is the variance of a coefficient of a ternary secret, and a variance proxy; errorProxy one
// of a coefficient of an error polynomial, of deviation 3.2 and rounded.
const (
	secretVariance = 2.0 / 3
	errorProxy     = 4.2 * 4.2
)

// slotsOf bounds a polynomial whose coefficients are independent with variance proxy v.
func (s *setting) slotsOf(v float64) slots {
	n, t := float64(s.p.N()), s.keyLog
	sum := func(m float64) float64 { return float64(2*n*v) * (m + float64(2*math.Sqrt(m*t)) + 2*t) }
	return slots{most: 4 * n * v * t, sum: float64(float64(s.n/s.p.N())*sum(n)) + sum(float64(s.n%s.p.N())),
		mean: sum(n) / n}
}

// digits is the sum of the squares of a gadget's digits over its auxiliary primes, and over the level's prime
// where that is divided by, too; of the levels up to one that where it is largest.
func (s *setting) digits(g *rns.Gadget, level int, divided bool) (squares float64) {
	extra := logProduct(s.p.P()[:g.Auxiliary()])
	for l := 1; l <= min(level, g.MaxLevel()); l++ {
		below := extra
		if divided {
			below += math.Log2(float64(s.p.Q()[l]))
		}
		var sum float64
		for d := range g.Digits(l) {
			from, count := g.Own(d)
			sum += math.Exp2(2 * (logProduct(s.p.Q()[from:min(from+count, l+1)]) - below))
		}
		squares = max(squares, sum)
	}
	return squares
}

// prepare bounds keys: how a rounding of variance 1/4 at each coefficient weighs at the slots, c1's times the
// secret, with the digits' products with the errors of the keys.
func (s *setting) prepare() {
	k, slotsN := float64(s.k), float64(s.p.N())
	batches := math.Ceil(float64(s.n) / slotsN)
	s.lay = newLayout(s.n, s.p.N(), s.k, s.encrypted, s.public)
	s.turns = float64(bits.Len(uint(s.lay.blocks)) - 1)
	s.log = math.Log(64 * slotsN * batches * k * k * signStages * float64(s.rounds) / s.failure)
	s.keyLog = math.Log(1024 * slotsN / s.failure)
	s.secret = s.slotsOf(secretVariance * float64(s.holders))
	s.errors = s.slotsOf(errorProxy * float64(s.holders))
	s.product = s.errors
	if s.collective {
		// s e0 + u e1 + e2, u with the distribution of s: its square is at most three times the sum of theirs.
		s.product = slots{}.plus(s.errors, 6*s.secret.most+3)
	}
	ones := slots{1, float64(s.n), 1}
	s.relin = ones.plus(s.secret, 1).plus(s.product, s.digits(s.p.relin, s.p.MaxLevel(), true))
	s.turn = ones.plus(s.secret, 1).plus(s.errors, s.digits(s.p.rotation, s.p.MaxLevel(), false))
}

// variances are the variance proxies of roundings at a slot over their weight there, in units of the values:
// of the sign's stages and of the trees' nodes, at the depth where they are largest.
func (s *setting) variances() (stages [signStages]float64, node float64) {
	half := float64(s.p.N()) / 2
	logQ := s.p.logPrimes()
	for depth := range s.p.maxDepth() + 1 {
		plan := pairSign.plan(s.p, aggregateLevel, depth, 1)
		for i, x := range pairSign.scales(logQ, topLevel(depth, pairSign), plan.in) {
			stages[i] = max(stages[i], half*math.Exp2(-2*x))
		}
		node = max(node, half*math.Exp2(-2*min(plan.out, float64(s.p.Chain.LogLevel))))
	}
	return stages, node
}

// uniform is the variance proxy of a column's rounding at a slot over the given one of a comparison's input.
func (s *setting) uniform(input float64) float64 {
	return float64(s.p.N()) / 2 / (s.lay.freshScale(s.p) * s.lay.freshScale(s.p) * input)
}

// encryption is a variance proxy, at a slot, of the error of an encrypted column, in units of its scale: of the
// encoding's rounding, and of an error polynomial or, under a public key, of what is left of its product with a ternary
// one after the division by an auxiliary prime, and that division's roundings.
func (s *setting) encryption() float64 {
	n := float64(s.p.N())
	if !s.public {
		return float64(2*n*errorProxy) + n/2
	}
	prime := float64(s.p.P()[0])
	left := float64(2*n) * (float64(secretVariance*s.errors.most) + float64(errorProxy*(1+s.secret.most)))
	return left/(prime*prime) + n/2*(2+s.secret.most)
}

// spare bounds by how much the columns' encryption moves an input of a comparison, whatever the comparison: gains
// have the 1-norm 1, so that the largest error of a column at the slot counts.
func (s *setting) spare() float64 {
	of := math.Log(2*float64(max(s.encrypted, 1))) + s.log
	n := float64(s.p.N())
	return math.Sqrt(2*s.encryption()*of)/s.lay.freshScale(s.p) +
		math.Sqrt(n*s.log)/math.Exp2(float64(s.p.Chain.LogLevel-1))
}

// bound computes the bounds. They hold for comparisons whose inputs stay in the sign's domain, and are of no use where
// those of its values are infinite.
func (s *setting) bound() (a arithmetic, ok bool) {
	a = arithmetic{failure: s.failure, rounds: s.rounds}
	n, k, d, slotsN := float64(s.n), float64(s.k), float64(s.d), float64(s.p.N())
	batches, pairs := math.Ceil(n/slotsN), k*(k-1)/2
	variances, node := s.variances()
	sign := knownSign(variances, 2*s.log, float64(2*s.log)*s.relin.most)
	// Each factor of a product is off by at most swing, and a node of it by at most half of that.
	swing := max(sign.error+math.Sqrt(2*s.log*s.turns*node*s.turn.most), 2*math.Sqrt(2*s.log*node*s.relin.most))
	game := newGame(s.k, swing)

	// By how much the errors of encryption move a column's value, at most, in the totals.
	off := math.Sqrt(2*s.log*s.encryption()) / s.lowScale
	width := float64(1+d) * float64((1+off)*(1+off))
	// Roundings change the weights of later ones.
	turned := float64(game.grown*game.grown) * add(float64(sign.turn*add(game.factors*signStages*s.relin.most,
		4*s.log*s.relin.most*s.relin.most/s.relin.sum)), float64(game.factors*sign.inputTurn)*2*s.log)
	slope := min(game.squared(sign.steepest), add(game.squared(sign.variance), turned))
	nodes := float64(game.grown*game.grown*k*max(k-2, 0)) * node
	a.fresh = width * (float64((slope+nodes)*s.relin.sum) + float64(game.squared(profile{far: node})*s.turns*s.turn.sum) +
		float64(game.squared(sign.input)*n))
	a.once = float64((1+d)*game.grown*game.grown*max(k, game.sum*game.sum)*slotsN*batches*slotsN/2) /
		(s.lowScale * s.lowScale)

	// Second orders: sums of squares of their means and, in the tail, of their largest weight.
	largest := 4 * a.log() * game.grown // of both clusters of a comparison
	second := add(float64(game.linear(sign.bend)*s.relin.sum), largest*sign.bend.most*s.relin.most) +
		add(game.linear(sign.inputBend)*n, largest*sign.inputBend.most)

	// Slots without a record of their own have products of any comparisons, times the errors of encrypted columns.
	padded := float64(game.grown*k*(k-1)) * slotsN * batches
	a.fresh += float64(d*off*off*game.grown*padded) *
		(float64((sign.steepest.most+node)*s.relin.mean) + float64(s.turns*node*s.turn.mean) + sign.input.most)
	tail := largest / padded
	second += float64(off*padded) * (add(float64(sign.bend.most*s.relin.mean), tail*sign.bend.most*s.relin.most) +
		add(sign.inputBend.most, tail*sign.inputBend.most))

	a.fresh += s.aggregates()
	elements := slotsN * batches * (2 + rns.MaxDigits) * float64(pairs*(signStages+s.turns)+float64(k*k)+1)
	// Columns' roundings weigh as the input's, and those of a column meet in all comparisons of a slot.
	uniform := s.uniform(variances[0]) * (k - 1) * (float64(width*game.squared(sign.input)*n) +
		float64(d*off*off*game.grown*padded)*sign.input.most)
	a.rest = float64(math.Sqrt(width)*second) + float64(math.Sqrt(elements)*machine*(math.Sqrt(a.fresh)+math.Sqrt(a.once)+
		math.Sqrt(uniform)))
	a.column = (1 + off + s.elsewhere(game.grown)) * (1 + k*constants)
	return a, a.rest < float64(s.n)
}

// elsewhere bounds what a record adds to the sums from slots beside the one that counts, in the norm of a record in a
// corner: products of its comparisons in the wrong order, each at most grown, times errors of encrypted columns. They
// are in its own other slots and, turned past their end, in those of the record before.
func (s *setting) elsewhere(grown float64) float64 {
	beside, columns := 2*float64(s.lay.blocks-1), float64(s.encrypted)
	squares := float64(beside*columns) + 2*math.Sqrt(beside*columns*s.log) + 2*s.log
	return grown * math.Sqrt(beside*float64(s.k)*s.encryption()*squares/float64(s.d)) / s.lowScale
}

// game bounds what is left of clusters' products without one factor, when each factor may be off by a number: they
// are, but for a power, chances in a game of coins (THEOREMS.md T4).
type game struct {
	// grown is the power, sum bounds the sum of memberships, factors that over clusters and factors of what is left.
	grown, sum, factors, entropy float64
}

func newGame(k int, off float64) game {
	g := game{grown: math.Pow(1+2*off, float64(k)), sum: 1 + float64(k)*(signError+off)}
	g.factors = float64(k-1)*g.sum + float64(k)
	g.entropy = g.sum * math.Log(max(float64(k), 3))
	return g
}

// linear bounds the sum, over clusters and factors, of what is left times a function of the factor, squared that of
// its squares times the function.
func (g game) linear(x profile) float64 {
	return g.grown * (float64(x.far*g.factors) + float64(x.near*g.entropy))
}

func (g game) squared(x profile) float64 {
	return float64(g.grown*g.grown) * (float64(x.far*g.factors) + float64(x.near*g.sum))
}

// add is the square of the sum of two norms.
func add(a, b float64) float64 { return a + b + float64(2*math.Sqrt(a*b)) }

// machine bounds by how much the mean of a rounding is off, for want of bits in its randomness and in sums of
// residues over their primes, in units of half the coefficient's step.
const machine = 1.0 / (1 << 19)

// constants bounds by how much the evaluation's constants, rounded to integers at the ciphertexts' scales, move a
// comparison.
const constants = 1.0 / (1 << 18)

// aggregates is a variance proxy of what relinearisation and the change of rings add to the totals: coefficient 0 of
// what is rounded. What re-randomisation adds has nothing to do with records.
func (s *setting) aggregates() float64 {
	one := 2 * (1 + s.secret.mean)
	one += float64(s.digits(s.p.relin, aggregateLevel, false)*s.product.mean) +
		float64(s.digits(s.p.small, aggregateLevel, false)*s.errors.mean)
	return float64(s.k) * float64(1+s.d) * one / 2 / (s.unit * s.unit)
}
