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
	ratio := b / float64(uint64(1)<<t.shift)
	// Four scales; what lies beyond starts afresh there, as the law has no memory.
	t.cells = uint64(4*ratio) + 1
	t.scale = new(big.Int).SetUint64(one63 - (t.cells+3)*2*guard)
	a := t.scale.Uint64()
	certain := make([]uint64, t.cells+1)
	h := uint64(one63)
	for k := range certain {
		next := expNeg(t.exponent(0, uint64(k+1)<<t.shift))
		p := h - next // the weight of a cell relative to the sum of all, exp(-k w/b)(1 - exp(-w/b))
		if uint64(k) == t.cells {
			p = h // all the cells beyond
		}
		hi, lo := bits.Mul64(a, p)
		if c := hi<<1 | lo>>63; c > guard/2 {
			certain[k] = c - guard/2
		}
		h = next
	}
	t.sure = make([]uint32, 1)
	if s := expNeg(t.exponent(0, 1<<t.shift-1)) >> 31; s > guard {
		t.sure[0] = uint32(min(s-1, 1<<32-1))
	}
	t.finish(certain)
	return l, nil
}

// Scale returns b.
func (l *DiscreteLaplace) Scale() float64 { return l.b }

// Fill sets dst to independent samples.
func (l *DiscreteLaplace) Fill(st *Stream, dst []int64) {
	for i := range dst {
		dst[i] = l.Sample(st)
	}
}

// Sample returns one sample.
func (l *DiscreteLaplace) Sample(st *Stream) int64 {
	t := &l.t
	w := t.shift
	var offset uint64
	for {
		v := st.src.Uint64()
		item, edge := t.draw(v >> 1)
		k := uint64(item)
		if edge && k <= t.cells && !l.edge(st, k) || k > t.cells {
			offset = 0
			continue
		}
		if k == t.cells {
			offset += t.cells << w
			continue
		}
		z := offset + k<<w
		if w != 0 {
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
			z |= j
		}
		if z|(^v&1) == 0 { // minus zero
			offset = 0
			continue
		}
		s := -int64(v & 1)
		return (int64(z) ^ s) - s
	}
}

// edge decides a draw that landed in the guard units of an item.
func (l *DiscreteLaplace) edge(st *Stream, item uint64) bool {
	t := &l.t
	u := lazy{new(big.Int), 0}
	y := new(big.Int).SetUint64(item << t.shift)
	base := new(big.Int).SetUint64(t.weight[item])
	terms := []term{t.at(1, y)}
	if item < t.cells {
		terms = append(terms, t.at(-1, new(big.Int).SetUint64((item+1)<<t.shift)))
	}
	return u.below(st, base, big.NewInt(guard), t.scale, terms...)
}
