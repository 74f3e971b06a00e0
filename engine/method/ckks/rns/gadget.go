package rns

import (
	"fmt"

	"github.com/cohort-engine/cohort/kernels/ntt"
)

// Gadget is a way to take polynomials apart into digits for key switching: digit
// d is the residues modulo a run of primes, first of them in the first digit and
// size in the others, and a key is modulo Q and some of the auxiliary primes.
type Gadget struct {
	c                      *Chain
	first, size, auxiliary int
	maxLevel               int
	levels                 []gadgetLevel
}

// gadgetLevel holds the constants at one level. Inputs are polynomials divided by
// R, as [Workspace.Product] leaves them.
type gadgetLevel struct {
	digits []run
	// shrink[k] is R (D/q_k)^-1 for the digit D of prime k.
	shrink []uint32
	// extend[j][d] are D/q_k modulo prime j for the primes k of digit d, and then -D.
	extend [][][]uint32
	// turns[d] counts how often the residues of digit d go round.
	turns []turns
	// lift[j] is P R modulo q_j.
	lift []uint32
	// drop divides by P and the level's prime, out by P alone.
	drop, out *division
}

// run is a digit's primes, from on.
type run struct{ from, count int }

// NewGadget prepares digits of first and then size primes up to level maxLevel,
// with the given number of auxiliary primes.
func (c *Chain) NewGadget(first, size, auxiliary, maxLevel int) *Gadget {
	if size < 1 || size >= maxTerms+1 || first < 1 || first > size || auxiliary < 1 || auxiliary > len(c.rings)-c.main {
		panic(fmt.Sprintf("rns: NewGadget: digits of %d and %d primes, %d auxiliary ones", first, size, auxiliary))
	}
	g := &Gadget{c: c, first: first, size: size, auxiliary: auxiliary, maxLevel: maxLevel}
	if n := g.Digits(maxLevel); n > MaxDigits {
		panic(fmt.Sprintf("rns: NewGadget: %d digits, want at most %d", n, MaxDigits))
	}
	for l := range maxLevel + 1 {
		g.levels = append(g.levels, g.newLevel(l))
	}
	return g
}

// Digits is the number of digits at a level.
func (g *Gadget) Digits(level int) int { return len(g.split(level)) }

// Auxiliary is the number of auxiliary primes.
func (g *Gadget) Auxiliary() int { return g.auxiliary }

// MaxLevel is the level of the keys.
func (g *Gadget) MaxLevel() int { return g.maxLevel }

// Own reports the primes q_from .. q_{from+count-1} of a digit at the highest level.
func (g *Gadget) Own(digit int) (from, count int) {
	r := g.split(g.maxLevel)[digit]
	return r.from, r.count
}

// split is the runs of primes at a level.
func (g *Gadget) split(level int) []run {
	var runs []run
	for from, count := 0, g.first; from <= level; from, count = from+count, g.size {
		runs = append(runs, run{from, min(count, level+1-from)})
	}
	return runs
}

// digit is that of prime j.
func (v *gadgetLevel) digit(j int) (d int) {
	for j >= v.digits[d].from+v.digits[d].count {
		d++
	}
	return d
}

// indices are the places in rings of the auxiliary primes.
func (g *Gadget) indices() []int {
	var is []int
	for i := range g.auxiliary {
		is = append(is, g.c.auxiliary(i))
	}
	return is
}

// rows are the places in rings of the primes that a key has at a level.
func (g *Gadget) rows(level int) []int {
	var is []int
	for j := range level + 1 {
		is = append(is, j)
	}
	return append(is, g.indices()...)
}

func (g *Gadget) newLevel(l int) gadgetLevel {
	c, aux := g.c, g.indices()
	v := gadgetLevel{digits: g.split(l), extend: make([][][]uint32, len(c.rings)), out: c.newDivision(aux, l+1)}
	if l > 0 {
		v.drop = c.newDivision(append(append([]int(nil), aux...), l), l)
	}
	for _, d := range v.digits {
		var primes []int
		for k := range d.count {
			primes = append(primes, d.from+k)
		}
		for k, i := range primes {
			r := c.rings[i]
			v.shrink = append(v.shrink, r.Constant(radix(r)*r.Invert(c.product(r, primes, k))))
		}
		for _, j := range g.rows(l) {
			r := c.rings[j]
			var row []uint32
			for k := range primes {
				row = append(row, r.Constant(c.product(r, primes, k)))
			}
			v.extend[j] = append(v.extend[j], append(row, r.Constant(uint64(r.Q())-c.product(r, primes, -1))))
		}
		v.turns = append(v.turns, c.newTurns(primes))
	}
	for j := range l + 1 {
		r := c.rings[j]
		v.lift = append(v.lift, r.Constant(c.product(r, aux, -1)*radix(r)))
	}
	return v
}

// Key is a switching key: for each prime the factors of all digits, in the form
// that meets a digit there.
type Key struct {
	g    *Gadget
	rows map[int]keyRow // by index in rings
}

// keyRow is a key modulo one prime: the factors of its first digits and, of more than go into one inner product, those
// of the rest.
type keyRow []*ntt.Key

// inner sets k0 and k1 to the inner products of digits with the row's factors, as [ntt.Prime.Inner] does.
func (row keyRow) inner(r *ntt.Ring, k0, k1 []uint32, digits [][]uint32, c0, c1 []uint32, lift uint32) {
	for _, key := range row {
		n := min(len(digits), ntt.MaxTerms)
		if n == 0 {
			return
		}
		r.Inner(k0, k1, digits[:n], key, c0, c1, lift)
		// The sum so far joins the next as R times itself over R.
		digits, c0, c1, lift = digits[n:], k0, k1, centred(radix(r), r.Q())
	}
}

// NewKey makes an empty key for the digits of the gadget's highest level.
func (g *Gadget) NewKey() *Key {
	k := &Key{g: g, rows: map[int]keyRow{}}
	for _, j := range g.rows(g.maxLevel) {
		for left := g.Digits(g.maxLevel); left > 0; left -= ntt.MaxTerms {
			k.rows[j] = append(k.rows[j], ntt.NewKey(g.c.n, min(left, ntt.MaxTerms)))
		}
	}
	return k
}

// Set stores the factors b and a of a digit: rows of residues modulo Q and then
// modulo the auxiliary primes, all times 2^64, as Lattigo keeps keys. It spoils b and a.
func (k *Key) Set(digit int, b, a Poly) {
	for i := range k.g.Rows() {
		k.SetRow(digit, i, b[i], a[i])
	}
}

// SetRow is Set for row i. Several workers may set different rows at once.
func (k *Key) SetRow(digit, i int, b, a []uint32) {
	j := k.g.c.place(k.g.maxLevel, i)
	own, r := k.g.split(k.g.maxLevel)[digit], k.g.c.rings[j]
	// A digit's own primes see it divided by R, the others in full: the factor
	// has R twice or once.
	if j < own.from || j >= own.from+own.count {
		r.Scale(b, b, 1)
		r.Scale(a, a, 1)
	}
	centre(b, r.Q())
	centre(a, r.Q())
	k.rows[j][digit/ntt.MaxTerms].Set(digit%ntt.MaxTerms, b, a)
}

// Rows is the number of rows of a digit of a key: of primes of ciphertexts and auxiliary ones.
func (g *Gadget) Rows() int { return g.maxLevel + 1 + g.auxiliary }

// AddRows adds to dst, rows of a key, those of another.
func (g *Gadget) AddRows(dst, other Poly) {
	for i, row := range dst {
		g.c.rings[g.c.place(g.maxLevel, i)].Add(row, row, other[i])
	}
}

// Encrypt sets dst to row i of the factor b of a digit, times 2^64, that goes with the factor a: -a s + e, plus P from
// modulo the digit's own primes. a is canonical residues times 2^64, the secrets s, modulo all primes, and from are
// such, e the coefficients of an error.
func (g *Gadget) Encrypt(digit, i int, dst, a []uint32, s, from Poly, e []int8) {
	j := g.c.place(g.maxLevel, i)
	own, r := g.split(g.maxLevel)[digit], g.c.rings[j]
	small(r, dst, e)
	minus := g.c.NewPoly(0)
	r.Scale(minus[0], s[j], ^uint32(0)) // -s R
	r.MultiplyAdd(dst, a, minus[0])
	g.c.Wipe(minus)
	if j >= own.from && j < own.from+own.count {
		r.ScaleAdd(dst, from[j], r.Constant(g.c.product(r, g.indices(), -1)))
	}
}

// small sets dst to the transform of small coefficients, times 2^64.
func small(r *ntt.Ring, dst []uint32, x []int8) {
	for t, v := range x {
		dst[t] = uint32(int32(v))
	}
	r.Forward(dst, dst)
	r.Scale(dst, dst, r.Constant(radix(r)*radix(r)))
}

// SmallRow sets dst to the transform of small coefficients modulo prime i, of those of ciphertexts and then the
// auxiliary ones, times 2^64, as Lattigo keeps keys.
func (c *Chain) SmallRow(i int, dst []uint32, x []int8) { small(c.rings[i], dst, x) }

// centre maps canonical words to (-q/2, q/2].
func centre(a []uint32, q uint32) {
	for i, x := range a {
		a[i] = x - q&-((q/2-x)>>31)
	}
}
