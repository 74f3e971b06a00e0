package privacy

import (
	"math/big"
	"math/bits"
)

// DiscreteLaplace samples Pr[z] proportional to exp(-|z|/b) on the integers, exactly (T6). See
// NewDiscreteLaplace.
type DiscreteLaplace struct {
	b float64
	t cellTable
}

// NewDiscreteLaplace returns a sampler for the scale b, in grid units, in [2^-10, 2^48].
func NewDiscreteLaplace(b float64) (*DiscreteLaplace, error) {
	if err := checkScale("b", b); err != nil {
		return nil, err
	}
	l := &DiscreteLaplace{b: b}
	t := &l.t
	for float64(uint64(1)<<(t.shift+5)) <= b { // 16 w <= b < 32 w
		t.shift++
	}
	num, den := rational(b)
	t.setExponent(1, den, num)
	if t.shift == 0 {
		l.points()
		return l, nil
	}
	ratio := b / float64(uint64(1)<<t.shift)
	// Four scales; what lies beyond starts afresh there, as the distribution has no memory.
	t.cells = uint64(4*ratio) + 1
	t.scale = new(big.Int).SetUint64(one63 - (t.cells+3)*4*guard)
	certain := make([]uint64, t.cells+1)
	for k := range certain {
		certain[k] = l.surely(uint64(k), uint64(k) == t.cells)
	}
	t.sure = make([]uint32, 1)
	if s := expNeg(t.exponent(0, 1<<t.shift-1)) >> 31; s > guard {
		t.sure[0] = uint32(min(s-1, 1<<32-1))
	}
	t.finish(certain)
	return l, nil
}

// points sets up the table of the values -(cells-1)..cells-1, and of two items for what is beyond on
// either side. In units of r^0 the value z weighs r^|z| - r^(|z|+1), r = exp(-1/b), each side beyond
// r^cells, and all together 1 + r.
func (l *DiscreteLaplace) points() {
	t := &l.t
	t.cells = uint64(8*l.b) + 1 // eight scales: beyond them about once in 3000
	count := t.points()
	reserve := (count + 4) * 4 * guard
	// A (1 + r) <= 2^63 - reserve; the sum is halved to stay below 2^64
	half := (one63+expNeg(t.exponent(0, 1)))/2 + guard
	a, _ := bits.Div64((one63-reserve)>>2, (one63-reserve)<<62, half)
	t.scale = new(big.Int).SetUint64(a)
	certain := make([]uint64, count+2)
	for i := range count {
		certain[i] = l.surely(t.magnitude(i), false)
	}
	certain[count] = l.surely(t.cells, true)
	certain[count+1] = certain[count]
	t.finish(certain)
}

// surely is the part of the weight of cell (or magnitude) k that is certain: A (r^k - r^(k+1)), or A r^k
// for all from there on, less half the guard.
func (l *DiscreteLaplace) surely(k uint64, beyond bool) uint64 {
	t := &l.t
	p := expNeg(t.exponent(0, k<<t.shift))
	if !beyond {
		p -= min(p, expNeg(t.exponent(0, (k+1)<<t.shift)))
	}
	c := product63(t.scale.Uint64(), p)
	return c - min(c, guard/2)
}

// Fill sets dst to independent samples.
func (l *DiscreteLaplace) Fill(st *Stream, dst []int64) {
	if l.t.shift == 0 {
		l.t.fillPoints(st, dst, l.rarePoint)
		return
	}
	for i := range dst {
		dst[i] = l.spread(st)
	}
}

// Sample returns one sample.
func (l *DiscreteLaplace) Sample(st *Stream) int64 {
	var one [1]int64
	l.Fill(st, one[:])
	return one[0]
}

// rarePoint handles an item of the table of points that is not plainly a point.
func (l *DiscreteLaplace) rarePoint(st *Stream, item uint64, edge bool) (int64, bool) {
	t := &l.t
	count := t.points()
	switch {
	case item > count+1:
		return 0, false
	case item < count:
		return int64(item) - int64(t.cells-1), l.edge(st, item, t.magnitude(item), false)
	case edge && !l.edge(st, item, t.cells, true):
		return 0, false
	}
	// Beyond the table the distribution starts afresh: the excess is a sample that is not negative.
	z := int64(t.cells)
	for {
		x := l.Sample(st)
		if x < 0 {
			continue
		}
		if item == count {
			return -(z + x), true
		}
		return z + x, true
	}
}

// spread draws a sample by its cell.
func (l *DiscreteLaplace) spread(st *Stream) int64 {
	t := &l.t
	w := t.shift
	var offset uint64
	for {
		v := st.src.Uint64()
		item, edge := t.draw(v >> 1)
		k := uint64(item)
		if edge && k <= t.cells && !l.edge(st, k, k, k == t.cells) || k > t.cells {
			offset = 0
			continue
		}
		if k == t.cells {
			offset += t.cells << w
			continue
		}
		u := st.src.Uint64()
		j := u >> (64 - w)
		if w > 24 {
			u = st.src.Uint64()
		} else {
			u <<= w
		}
		if uint32(u>>32) >= t.sure[0] {
			if w <= 24 { // the low bits are not drawn yet
				u |= st.src.Uint64() >> (64 - w)
			}
			eh, el := t.exponent(0, j)
			if !keepSlow(st, u, eh, el, func() term { return t.at(1, new(big.Int).SetUint64(j)) }) {
				offset = 0
				continue
			}
		}
		z := offset + k<<w | j
		if z|(^v&1) == 0 { // minus zero
			offset = 0
			continue
		}
		s := -int64(v & 1)
		return (int64(z) ^ s) - s
	}
}

// edge decides a draw that landed in the guard units of an item, which stands for cell (or magnitude) k
// or for all from there on.
func (l *DiscreteLaplace) edge(st *Stream, item, k uint64, beyond bool) bool {
	t := &l.t
	u := lazy{new(big.Int), 0}
	base := new(big.Int).SetUint64(t.weight[item])
	terms := []term{t.at(1, new(big.Int).SetUint64(k<<t.shift))}
	if !beyond {
		terms = append(terms, t.at(-1, new(big.Int).SetUint64((k+1)<<t.shift)))
	}
	return u.below(st, base, big.NewInt(guard), t.scale, terms...)
}
