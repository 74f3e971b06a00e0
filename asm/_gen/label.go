package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// labelFile emits the kernels that read labels.
func labelFile(s isa) {
	maxLabel(s)
	cutLabels(s)
	labelDistances(s, false)
	labelDistances(s, true)
	cutOffsets(s, false)
	cutOffsets(s, true)
}

// maxLabel emits the largest label.
func maxLabel(s isa) {
	function("MaxLabel"+s.name, "func(labels *uint16, blocks int) uint16",
		"returns the largest of blocks > 0 blocks of 32 labels.")
	labels := Load(Param("labels"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	most := s.vector()
	s.zero(most)
	count("loop", blocks, func() {
		for h := range s.parts {
			VPMAXUW(Mem{Base: labels, Disp: h * s.bytes}, most, most)
		}
		ADDQ(Imm(64), labels)
	})
	half := s.vector()
	if s == avx512 {
		VEXTRACTI64X4(Imm(1), most, half.AsY())
		VPMAXUW(half.AsY(), most.AsY(), most.AsY())
		VEXTRACTI32X4(Imm(1), most.AsY(), half.AsX())
	} else {
		VEXTRACTI128(Imm(1), most, half.AsX())
	}
	VPMAXUW(half.AsX(), most.AsX(), most.AsX())
	for bytes := uint64(8); bytes >= 2; bytes /= 2 {
		VPSRLDQ(Imm(bytes), most.AsX(), half.AsX())
		VPMAXUW(half.AsX(), most.AsX(), most.AsX())
	}
	result := GP32()
	VMOVD(most.AsX(), result)
	Store(result.As16(), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// cutLabels emits the replacement of labels of far points.
func cutLabels(s isa) {
	function("CutLabels"+s.name, "func(labels *uint16, dist *float32, panels int, r2 float32, none int)",
		"sets labels to none where dist > r2, for panels > 0 groups of 16.")
	labels := Load(Param("labels"), GP64())
	dist := Load(Param("dist"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	r2, none := s.vector(), s.vector()
	VBROADCASTSS(NewParamAddr("r2", 24), r2)
	VPBROADCASTD(NewParamAddr("none", 32), none)
	old, far, low := s.vector(), s.vector(), YMM()
	_ = far
	if s == avx512 {
		mask := K()
		count("loop", panels, func() {
			VCMPPS(Imm(0x1e), r2, loaded(s, Mem{Base: dist}, old), mask) // greater than
			VPMOVZXWD(Mem{Base: labels}, old)
			VMOVDQA32(none, mask, old)
			VPMOVDW(old, Mem{Base: labels})
			ADDQ(Imm(64), dist)
			ADDQ(Imm(32), labels)
		})
	} else {
		count("loop", panels, func() {
			parts := s.vectors(2)
			for h, v := range parts {
				VCMPPS(Imm(0x1e), r2, loaded(s, Mem{Base: dist, Disp: 32 * h}, old), far)
				VPMOVZXWD(Mem{Base: labels, Disp: 16 * h}, v)
				VPBLENDVB(far, none, v, v)
			}
			VPACKUSDW(parts[1], parts[0], low)
			VPERMQ(Imm(0b11011000), low, low)
			VMOVDQU(low, Mem{Base: labels})
			ADDQ(Imm(64), dist)
			ADDQ(Imm(32), labels)
		})
	}
	VZEROUPPER()
	RET()
}

// loaded moves m to v and returns v.
func loaded(s isa, m Mem, v Op) Op {
	VMOVUPS(m, v)
	return v
}

// centres gives the coordinates of the centroids that the labels of panels name: of up to 16 centroids by a
// permutation of columns [d][16], of more by a gather from rows [][d].
type centres struct {
	s       isa
	few     bool
	k       reg.VecVirtual
	stride  reg.VecVirtual // coordinates of a row, of many
	column  reg.GPVirtual
	index   []reg.VecVirtual // by vector
	valid   []reg.OpmaskVirtual
	inside  []reg.VecVirtual // the same where there are no mask registers
	columns []reg.VecVirtual // of the dimension in hand
}

// newCentres loads what does not depend on labels. The parameters d and k lie at these offsets.
func newCentres(s isa, few bool, d, k int) *centres {
	c := &centres{s: s, few: few, k: s.vector(), column: GP64()}
	VPBROADCASTD(NewParamAddr("k", k), c.k)
	if !few {
		c.stride = s.vector()
		VPBROADCASTD(NewParamAddr("d", d), c.stride)
	}
	return c
}

// begin reads the labels of so many panels and goes to dimension 0 of the centroids at base.
func (c *centres) begin(labels reg.Register, panels int, base reg.Register) {
	s := c.s
	c.index, c.valid, c.inside = s.vectors(panels*s.parts), nil, nil
	for v, index := range c.index {
		VPMOVZXWD(Mem{Base: labels, Disp: 2 * s.bytes / 4 * v}, index)
		switch {
		case s == avx512:
			c.valid = append(c.valid, K())
			VPCMPUD(Imm(1), c.k, index, c.valid[v])
		case !c.few:
			c.inside = append(c.inside, s.vector())
			VPCMPGTD(index, c.k, c.inside[v])
		default: // bit 3, by which half of the columns it is, becomes the sign
			high := s.vector()
			VPSLLD(Imm(28), index, high)
			VPOR(high, index, index)
		}
		if !c.few {
			VPMULLD(c.stride, index, index)
		}
	}
	MOVQ(base, c.column)
}

// next loads what all vectors need of a dimension.
func (c *centres) next() {
	if !c.few {
		return
	}
	c.columns = c.s.vectors(c.s.parts)
	for h, v := range c.columns {
		VMOVUPS(Mem{Base: c.column, Disp: c.s.bytes * h}, v)
	}
}

// less sets value to the dimension of the centroids of vector v less that of the points; where the label is k or more
// it is any number.
func (c *centres) less(v int, points Mem, value reg.VecVirtual) {
	switch s := c.s; {
	case c.few && s == avx512:
		VPERMPS(c.columns[0], c.index[v], value)
	case c.few:
		other := s.vector()
		VPERMPS(c.columns[0], c.index[v], value)
		VPERMPS(c.columns[1], c.index[v], other)
		VBLENDVPS(c.index[v], other, value, value)
	case s == avx512:
		used := K()
		KMOVW(c.valid[v], used)
		s.zero(value)
		VGATHERDPS(Mem{Base: c.column, Index: c.index[v], Scale: 4}, used, value)
	default:
		mask := s.vector()
		VMOVDQA(c.inside[v], mask)
		s.zero(value)
		VGATHERDPS(mask, Mem{Base: c.column, Index: c.index[v], Scale: 4}, value)
	}
	VSUBPS(points, value, value)
}

// advance goes to the next dimension.
func (c *centres) advance() {
	if c.few {
		ADDQ(Imm(64), c.column)
	} else {
		ADDQ(Imm(4), c.column)
	}
}

// labelDistances emits the exact distance of each point to the centroid of its
// label.
func labelDistances(s isa, few bool) {
	name, of, most := "LabelDistances", "to the row of c [k][d] that its label names,", 1
	if few {
		// Chains of as many panels wait for their own sums.
		name, of, most = "LabelDistancesFew", "to the column of c [d][16] that its label names, k <= 16,", 4/s.parts
	}
	function(name+s.name, "func(x *float32, panels, d int, c *float32, k int, labels *uint16, dist *float32)",
		"writes the squared distance, by the chain t = x-c, s = fma(t, t, s), of each point",
		"of panels > 0 panels of d > 0 dimensions "+of,
		"and +Inf where the label is k or more. k*d is below 2^31.")
	x, panels := Load(Param("x"), GP64()), Load(Param("panels"), GP64())
	base, labels, dist := Load(Param("c"), GP64()), Load(Param("labels"), GP64()), Load(Param("dist"), GP64())
	d := Load(Param("d"), GP64())
	c, inf, left := newCentres(s, few, 16, 32), s.vector(), GP64()
	bits := GP32()
	MOVL(U32(0x7f800000), bits)
	VMOVD(bits, inf.AsX())
	VPBROADCASTD(inf.AsX(), inf)
	var apart, tripled reg.GPVirtual
	if most > 1 {
		apart, tripled = GP64(), GP64()
		MOVQ(d, apart)
		SHLQ(Imm(6), apart)
		LEAQ(Mem{Base: apart, Index: apart, Scale: 2}, tripled)
	}
	groups(panels, most, func(tag string, size int) {
		c.begin(labels, size, base)
		sums := s.vectors(size * s.parts)
		for _, sum := range sums {
			s.zero(sum)
		}
		MOVQ(d, left)
		count(tag+"_dims", left, func() {
			c.next()
			for v, sum := range sums {
				t := s.vector()
				c.less(v, further(Mem{Base: x, Disp: v % s.parts * s.bytes}, v/s.parts, apart, tripled), t)
				VFMADD231PS(t, t, sum)
			}
			ADDQ(Imm(64), x)
			c.advance()
		})
		if size > 1 {
			ADDQ(apart, x)
			if size == 4 {
				LEAQ(Mem{Base: x, Index: apart, Scale: 2}, x)
			}
		}
		for v, sum := range sums {
			if s == avx512 {
				KNOTW(c.valid[v], c.valid[v])
				VMOVDQA32(inf, c.valid[v], sum)
			} else {
				inside := s.vector()
				VPMOVZXWD(Mem{Base: labels, Disp: 2 * s.bytes / 4 * v}, inside)
				VPCMPGTD(inside, c.k, inside)
				VBLENDVPS(inside, sum, inf, sum)
			}
			VMOVUPS(sum, Mem{Base: dist, Disp: s.bytes * v})
		}
		ADDQ(Imm(uint64(32*size)), labels)
		ADDQ(U32(uint32(64*size)), dist)
	})
}

// cutOffsets emits the offsets of points from the centroids of their labels, times a factor.
func cutOffsets(s isa, few bool) {
	name, of := "CutOffsets", "the row of c [k][d]"
	if few {
		name, of = "CutOffsetsFew", "the column of c [d][16], k <= 16,"
	}
	function(name+s.name,
		"func(x *float32, panels, d int, c *float32, k int, labels *uint16, factor *float32, unit float32, out *float32)",
		"writes panels of the offsets (x-c)*factor, truncated toward zero and times unit, of the points",
		"of panels > 0 panels of d > 0 dimensions from "+of+" that their labels name;",
		"where a label is k or more, it writes any numbers. k*d is below 2^31.")
	x, base := Load(Param("x"), GP64()), Load(Param("c"), GP64())
	labels, factor := Load(Param("labels"), GP64()), Load(Param("factor"), GP64())
	out, panels, d, left, unit := Load(Param("out"), GP64()), GP64(), GP64(), GP64(), s.vector()
	Load(Param("panels"), panels)
	Load(Param("d"), d)
	VBROADCASTSS(NewParamAddr("unit", 56), unit)
	c, factors := newCentres(s, few, 16, 32), s.vectors(s.parts)
	count("panels", panels, func() {
		c.begin(labels, 1, base)
		for h, f := range factors {
			s.zero(f)
			VSUBPS(Mem{Base: factor, Disp: s.bytes * h}, f, f) // for the centroid less the point
		}
		MOVQ(d, left)
		count("dims", left, func() {
			c.next()
			for h, f := range factors {
				t := s.vector()
				c.less(h, Mem{Base: x, Disp: s.bytes * h}, t)
				VMULPS(f, t, t)
				VCVTTPS2DQ(t, t)
				VCVTDQ2PS(t, t)
				VMULPS(unit, t, t)
				VMOVUPS(t, Mem{Base: out, Disp: s.bytes * h})
			}
			ADDQ(Imm(64), x)
			ADDQ(Imm(64), out)
			c.advance()
		})
		ADDQ(Imm(32), labels)
		ADDQ(Imm(64), factor)
	})
	VZEROUPPER()
	RET()
}
