package privacy

import (
	"fmt"
	"math/big"
	"math/bits"
	"sort"
)

// LaplaceShare samples a share of discrete Laplace noise, exactly: any t independent shares add up to
// DiscreteLaplace of the same scale b (T6 viii). A share is the difference of two negative binomials NB(1/t, p),
// p = exp(-1/b), that is a compound Poisson variable: jumps of k and -k, k >= 1, come at the rate p^k/(t k) each.
//
// The jumps are thinned from a process of larger, rational rates. Magnitudes are split into cells, four an
// octave, and a cell has the rate of its first point throughout, rounded up to a multiple of 2^-48. The
// number of proposed jumps is then Poisson of a rational rate, drawn from an alias table as the discrete
// samplers do; a jump's cell is drawn by integers, its place uniformly, and it is kept with the ratio of
// the rates, a rational number times exp of one, decided in 63 bits or, where those do not suffice, in as
// many as it takes.
type LaplaceShare struct {
	b      float64
	shares int
	t      cellTable // the number of proposals, and the exponent k/b
	rate   *big.Int  // of all proposals, in units of 2^-rateBits
	cells  []jumpCell
	upTo   []uint64 // sums of the cells' rates, in order; the tail's unit is the last
}

// rateBits is the grid of the rates of proposals, reach how many scales the cells cover.
const (
	rateBits   = 48
	shareReach = 45
)

// jumpCell is the magnitudes first..first+2^shift-1.
type jumpCell struct {
	first uint64
	shift uint
	rate  uint64 // of proposals, in units of 2^-rateBits, at least what the first point's rate makes of all of it
	exact uint64 // that over rate, in units of 2^-63, rounded down
	sure  uint32 // keep when the top 32 bits are below
}

// newLaplaceShare returns a sampler of one of t shares of discrete Laplace noise of scale b, in grid units, in
// [2^-10, 2^48]. It costs about a millisecond; keep it for as long as the scale lasts.
func newLaplaceShare(b float64, t int) (*LaplaceShare, error) {
	if err := checkScale("b", b); err != nil {
		return nil, err
	}
	if t < 1 || t > 1<<20 {
		return nil, fmt.Errorf("shares is %d: %w: must be 1 to 2^20", t, ErrRange)
	}
	l := &LaplaceShare{b: b, shares: t}
	num, den := rational(b)
	l.t.setExponent(1, den, num)
	first, shift := uint64(1), uint(0)
	var total uint64
	for first < 8 || float64(first) < shareReach*b {
		if first >= 8 && first&(first-1) == 0 { // an octave begins
			shift = uint(bits.Len64(first)) - 3
		}
		c := l.cell(first, shift)
		total += c.rate
		l.cells, l.upTo = append(l.cells, c), append(l.upTo, total)
		first += 1 << shift
	}
	// The tail begins there, at a rate of one unit: at most 2/t sum of p^k/k < 2^-64 is needed.
	total++
	l.upTo = append(l.upTo, total)
	l.rate = new(big.Int).SetUint64(total)
	l.numberTable()
	return l, nil
}

// proposed returns what a point of magnitude k has of the rate 2 p^k/(t k), as mul/div times the term, when
// 2^shift times it is to be compared with units of 2^-rateBits.
func (l *LaplaceShare) proposed(k uint64, shift uint) (mul, div *big.Int, x term) {
	mul = new(big.Int).Lsh(big.NewInt(2), rateBits+shift)
	div = new(big.Int).SetUint64(k)
	return mul, div.Mul(div, big.NewInt(int64(l.shares))), l.t.at(1, new(big.Int).SetUint64(k))
}

func (l *LaplaceShare) cell(first uint64, shift uint) jumpCell {
	const prec = 160
	c := jumpCell{first: first, shift: shift}
	mul, div, x := l.proposed(first, shift)
	lo, hi := x.bounds(prec)
	hi.Mul(hi, mul)
	hi.Div(hi, new(big.Int).Lsh(div, prec))
	c.rate = hi.Uint64() + 1
	lo.Mul(lo, mul)
	lo.Lsh(lo, 63)
	div.Mul(div, new(big.Int).SetUint64(c.rate))
	c.exact = lo.Div(lo, div.Lsh(div, prec)).Uint64()
	if s := l.ratio(&c, first+1<<shift-1) >> 31; s > guard {
		c.sure = uint32(s - 1)
	}
	return c
}

// ratio is the rate of k over what is proposed for it, in units of 2^-63, with an error below half a guard:
// the first point's, times first/k, times exp of the difference.
func (l *LaplaceShare) ratio(c *jumpCell, k uint64) uint64 {
	over, _ := bits.Div64(c.first>>1, c.first<<63, k)
	return product63(product63(c.exact, over), expNeg(l.t.exponent(0, k-c.first)))
}

// numberTable sets up the distribution of the number of proposals, Poisson of the rate: item n is n, the last one
// all numbers beyond.
func (l *LaplaceShare) numberTable() {
	const prec = 160
	t := &l.t
	zero, _ := term{1, l.rate, new(big.Int).Lsh(big.NewInt(1), rateBits)}.bounds(prec)
	chance := zero // of n, in units of 2^-prec
	var certain []uint64
	// beyond 2 rate + 2 the chances fall by more than half, and those that are left count for less than a unit in all
	least := new(big.Int).Rsh(l.rate, rateBits-1).Uint64() + 2
	weights := []*big.Int{}
	for n := uint64(0); n < least || chance.BitLen() > prec-66; n++ {
		weights = append(weights, new(big.Int).Set(chance))
		chance.Mul(chance, l.rate)
		chance.Rsh(chance, rateBits)
		chance.Div(chance, new(big.Int).SetUint64(n+1))
	}
	reserve := uint64(len(weights)+3) * 4 * guard
	t.scale = new(big.Int).SetUint64(one63 - reserve)
	for _, w := range weights {
		w.Mul(w, t.scale)
		x := w.Rsh(w, prec).Uint64()
		certain = append(certain, x-min(x, guard/2))
	}
	t.finish(append(certain, 0))
}

// Fill sets dst to independent samples.
func (l *LaplaceShare) Fill(st *Stream, dst []int64) {
	for i := range dst {
		dst[i] = l.sample(st)
	}
}

// sample returns one sample.
func (l *LaplaceShare) sample(st *Stream) int64 {
	var z int64
	for range l.number(st) {
		v := st.Uint64n(l.upTo[len(l.upTo)-1])
		i := sort.Search(len(l.upTo), func(i int) bool { return l.upTo[i] > v })
		place := st.src.Uint64()
		var k uint64
		if i == len(l.cells) {
			k = l.tail(st, place>>1)
		} else {
			k = l.jump(st, &l.cells[i], place>>1)
		}
		s := -int64(place & 1)
		z += (int64(k) ^ s) - s
	}
	return z
}

// jump returns the magnitude at a place of a cell, or 0 if it is not kept.
func (l *LaplaceShare) jump(st *Stream, c *jumpCell, place uint64) uint64 {
	k := c.first + place&(1<<c.shift-1)
	u := st.src.Uint64()
	if uint32(u>>32) < c.sure {
		return k
	}
	a, r := u>>1, l.ratio(c, k)
	switch {
	case a+guard < r:
		return k
	case a > r+guard:
		return 0
	}
	mul, div, x := l.proposed(k, c.shift)
	lz := lazy{new(big.Int).SetUint64(u), 64}
	if lz.below(st, new(big.Int), div.Mul(div, new(big.Int).SetUint64(c.rate)), mul, x) {
		return k
	}
	return 0
}

// tail returns a magnitude beyond the cells, or 0 if it is not kept: intervals of at least b points, the
// i-th proposed with probability 2^-(i+1), which falls more slowly than the rates.
func (l *LaplaceShare) tail(st *Stream, place uint64) uint64 {
	shift, i := l.tailShift(), uint64(0)
	for st.Uint64()>>63 != 0 {
		i++
	}
	last := &l.cells[len(l.cells)-1]
	k := last.first + 1<<last.shift + i<<shift + place&(1<<shift-1)
	mul, div, x := l.proposed(k, shift)
	lz := lazy{new(big.Int), 0}
	if lz.below(st, new(big.Int), div, mul.Lsh(mul, uint(i+1)), x) {
		return k
	}
	return 0
}

// tailShift is log2 of the width of the tail's intervals.
func (l *LaplaceShare) tailShift() uint {
	shift := uint(0)
	for float64(uint64(1)<<shift) < l.b {
		shift++
	}
	return shift
}

// number draws the number of proposals.
func (l *LaplaceShare) number(st *Stream) uint64 {
	t := &l.t
	beyond := uint64(len(t.weight) - 1)
	for {
		item, edge := t.draw(st.src.Uint64() >> 1)
		n := uint64(item)
		switch {
		case n > beyond || n < beyond && edge && !l.numberEdge(st, n):
			continue
		case n < beyond:
			return n
		}
		i := uint64(0)
		for st.Uint64()>>63 != 0 {
			i++
		}
		// kept with the chance of beyond+i over guard 2^-(i+1)
		mul, div, x := l.chance(beyond + i)
		lz := lazy{new(big.Int), 0}
		if lz.below(st, new(big.Int), div.Mul(div, big.NewInt(guard)), mul.Lsh(mul, uint(i+1)), x) {
			return beyond + i
		}
	}
}

// chance is that of n proposals times the table's scale, as mul/div times the term: rate^n/n! exp(-rate).
func (l *LaplaceShare) chance(n uint64) (mul, div *big.Int, x term) {
	mul = new(big.Int).Exp(l.rate, new(big.Int).SetUint64(n), nil)
	mul.Mul(mul, l.t.scale)
	div = new(big.Int).MulRange(1, int64(n))
	div.Lsh(div, uint(n)*rateBits)
	return mul, div, term{1, l.rate, new(big.Int).Lsh(big.NewInt(1), rateBits)}
}

// numberEdge decides a draw that landed in the guard units of n.
func (l *LaplaceShare) numberEdge(st *Stream, n uint64) bool {
	mul, div, x := l.chance(n)
	lz := lazy{new(big.Int), 0}
	base := new(big.Int).SetUint64(l.t.weight[n])
	return lz.below(st, base.Mul(base, div), new(big.Int).Mul(div, big.NewInt(guard)), mul, x)
}
