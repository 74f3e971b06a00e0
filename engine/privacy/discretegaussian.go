package privacy

import (
	"math/big"
	"math/bits"
)

// DiscreteGaussian samples N_Z(0, sigma^2): Pr[z] proportional to exp(-z^2/(2 sigma^2)) on the
// integers, exactly (T6). See NewDiscreteGaussian.
type DiscreteGaussian struct {
	sigma float64
	t     cellTable
}

// NewDiscreteGaussian returns a sampler for the scale sigma, in grid units, in [2^-10, 2^48]. It costs
// some 20 microseconds and 13 kB; keep it for as long as the scale lasts.
func NewDiscreteGaussian(sigma float64) (*DiscreteGaussian, error) {
	if err := checkScale("sigma", sigma); err != nil {
		return nil, err
	}
	g := &DiscreteGaussian{sigma: sigma}
	t := &g.t
	for float64(uint64(1)<<(t.shift+5)) <= sigma { // 16 w <= sigma < 32 w
		t.shift++
	}
	num, den := rational(sigma) // exponent y^2 den^2 / (2 num^2)
	den2 := new(big.Int).Mul(den, den)
	num2 := new(big.Int).Mul(num, num)
	t.setExponent(2, den2, num2.Lsh(num2, 1))

	// Twelve standard deviations: beyond, all cells together weigh less than one unit.
	ratio := sigma / float64(uint64(1)<<t.shift)
	t.cells = uint64(12*ratio) + 2
	heights := t.heights()
	if t.shift != 0 {
		t.keepSurely()
	}
	var sum uint64 // of heights/64, to stay below 2^64
	for _, h := range heights {
		sum += h>>6 + 1
	}
	// A * sum of weights <= 2^63 less a reserve for guards, the tail and rounding
	reserve := (uint64(len(heights)) + 2) * 4 * guard
	a, _ := bits.Div64((one63-reserve)>>7, (one63-reserve)<<57, sum)
	t.scale = new(big.Int).SetUint64(a)
	certain := append(heights, 0) // in its room
	for k, h := range certain {
		c := product63(a, h)
		certain[k] = c - min(c, guard/2)
	}
	t.finish(certain) // the last item, of weight 0 + guard, is the tail
	return g, nil
}

// anchors is the number of cells from one whose height is computed to the next: those between come from it by
// products. In units of 2^-63, with an error of 10 in exp and one in a product, the ratio of a cell to the one before
// is off by 10 + 11i after i steps, and the height by 10 + 11(1 + .. + i): at most 318 for seven.
const anchors = 8

// heights are exp(-y^2/(2 sigma^2)) at the first points y of the cells, in units of 2^-63, with an error below a
// quarter of the guard; of points with their signs, if the table has points. There is room for one more.
func (t *cellTable) heights() []uint64 {
	w := uint64(1) << t.shift
	sided := t.cells - 1 // cells before those of y >= 0
	if t.shift != 0 {
		sided = 0
	}
	heights := make([]uint64, sided+t.cells, sided+t.cells+1)
	q := expNeg(t.exponent(bits.Mul64(w, 2*w)))
	var h, r uint64
	for k := range t.cells {
		if k%anchors == 0 {
			h, r = expNeg(t.gap(0, k*w)), expNeg(t.gap(k*w, w))
		} else {
			h, r = product63(h, r), product63(r, q)
		}
		heights[sided+k] = h
		if sided != 0 {
			heights[sided-k] = h
		}
	}
	return heights
}

// keepSurely sets the bounds below which a point of a cell is kept: the last point of a cell has the smallest ratio to
// the first, and the ratios of cells are in proportion. Products put them off by at most 11 units of 2^-63 a cell,
// of which a unit of the bounds has 2^31.
func (t *cellTable) keepSurely() {
	last := uint64(1)<<t.shift - 1
	s, q := expNeg(t.gap(0, last)), expNeg(t.exponent(bits.Mul64(last, 2<<t.shift)))
	t.sure = make([]uint32, t.cells)
	for k := range t.sure {
		t.sure[k] = uint32(max(s>>31, 1) - 1)
		s = product63(s, q)
	}
}

// gap is the exponent of base+j less that of base: (j^2 + 2 base j)/(2 sigma^2).
func (t *cellTable) gap(base, j uint64) (hi, lo uint64) {
	yh, yl := bits.Mul64(j, 2*base+j)
	return t.exponent(yh, yl)
}

// Fill sets dst to independent samples.
func (g *DiscreteGaussian) Fill(st *Stream, dst []int64) {
	if g.t.shift == 0 {
		g.t.fillPoints(st, dst, g.rarePoint)
		return
	}
	for i := range dst {
		dst[i] = g.spread(st)
	}
}

// Sample returns one sample.
func (g *DiscreteGaussian) Sample(st *Stream) int64 {
	var one [1]int64
	g.Fill(st, one[:])
	return one[0]
}

// spread draws a sample by its cell.
func (g *DiscreteGaussian) spread(st *Stream) int64 {
	t := &g.t
	w := t.shift
	for {
		v := st.src.Uint64()
		item, edge := t.draw(v >> 1)
		k := uint64(item)
		if edge || k >= t.cells {
			var ok bool
			if k, ok = g.rare(st, k); !ok {
				continue
			}
		}
		u := st.src.Uint64()
		j := u >> (64 - w)
		if w > 24 {
			u = st.src.Uint64()
		} else {
			u <<= w
		}
		if k >= t.cells || uint32(u>>32) >= t.sure[k] {
			if w <= 24 { // the low bits are not drawn yet
				u |= st.src.Uint64() >> (64 - w)
			}
			if !g.keep(st, k, j, u) {
				continue
			}
		}
		if k|j|(^v&1) == 0 {
			continue // minus zero
		}
		z := k<<w | j
		s := -int64(v & 1)
		return (int64(z) ^ s) - s
	}
}

// keep decides a point of cell k, place j, given 64 random bits.
func (g *DiscreteGaussian) keep(st *Stream, k, j, u uint64) bool {
	base := k << g.t.shift
	eh, el := g.t.gap(base, j)
	return keepSlow(st, u, eh, el, func() term {
		y := new(big.Int).SetUint64(2*base + j)
		y.Mul(y, new(big.Int).SetUint64(j))
		return term{1, y.Mul(y, g.t.num), g.t.den}
	})
}

// rarePoint handles an item of a table of points that is not plainly a point.
func (g *DiscreteGaussian) rarePoint(st *Stream, item uint64, edge bool) (int64, bool) {
	t := &g.t
	switch {
	case item < t.points():
		return int64(item) - int64(t.cells-1), g.edge(st, item, t.magnitude(item))
	case item == t.points():
		z, ok := g.tail(st, 2)
		if st.Uint64()>>63 != 0 {
			return -int64(z), ok
		}
		return int64(z), ok
	}
	return 0, false
}

// rare handles an item that is not plainly a cell: the guard units of a cell, the tail, or the
// remainder of the table. It returns the cell, or false to start again.
func (g *DiscreteGaussian) rare(st *Stream, item uint64) (uint64, bool) {
	switch {
	case item < g.t.cells:
		return item, g.edge(st, item, item<<g.t.shift)
	case item == g.t.cells:
		return g.tail(st, 1)
	}
	return 0, false
}

// edge decides a draw that landed in the guard units of an item of magnitude y.
func (g *DiscreteGaussian) edge(st *Stream, item, y uint64) bool {
	u := lazy{new(big.Int), 0}
	return u.below(st, new(big.Int).SetUint64(g.t.weight[item]), big.NewInt(guard), g.t.scale,
		g.t.at(1, new(big.Int).SetUint64(y)))
}

// tail proposes a cell beyond the table, or a magnitude that has that many sides, and decides it.
func (g *DiscreteGaussian) tail(st *Stream, sides int64) (uint64, bool) {
	t := &g.t
	// Cell cells+i with probability (3/4)^i / 4. The true weights A exp(-..) fall faster, by at least
	// exp(-12 w/sigma) <= exp(-12/32) < 3/4 each, from a first one below 2^64 exp(-72) < 2^-39.
	i := uint64(0)
	for st.Uint64()>>62 != 0 {
		i++
	}
	k := t.cells + i
	// keep with probability sides A exp(-..) / (guard (3/4)^i / 4)
	u := lazy{new(big.Int), 0}
	three := new(big.Int).Exp(big.NewInt(3), new(big.Int).SetUint64(i), nil)
	span := three.Mul(three, big.NewInt(guard))
	mul := new(big.Int).Lsh(t.scale, uint(2*(i+1)))
	mul.Mul(mul, big.NewInt(sides))
	y := new(big.Int).SetUint64(k)
	return k, u.below(st, new(big.Int), span, mul, t.at(1, y.Lsh(y, t.shift)))
}
