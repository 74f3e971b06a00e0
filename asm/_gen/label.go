package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// labelFile emits the kernels that read labels.
func labelFile(s isa) {
	maxLabel(s)
	cutLabels(s)
	labelDistances(s)
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

// labelDistances emits the exact distance of each point to the centroid of its
// label.
func labelDistances(s isa) {
	function("LabelDistances"+s.name, "func(x *float32, panels, d int, c *float32, k int, labels *uint16, dist *float32)",
		"writes the squared distance, by the chain t = x-c, s = fma(t, t, s), of each point",
		"of panels > 0 panels of d > 0 dimensions to the row of c [k][d] that its label names,",
		"and +Inf where the label is k or more. k*d is below 2^31.")
	x := Load(Param("x"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	d := GP64()
	Load(Param("d"), d)
	c := Load(Param("c"), GP64())
	labels := Load(Param("labels"), GP64())
	dist := Load(Param("dist"), GP64())
	stride, k, inf := s.vector(), s.vector(), s.vector()
	VPBROADCASTD(NewParamAddr("d", 16), stride)
	VPBROADCASTD(NewParamAddr("k", 32), k)
	bits := GP32()
	MOVL(U32(0x7f800000), bits)
	VMOVD(bits, inf.AsX())
	VPBROADCASTD(inf.AsX(), inf)
	left, column := GP64(), GP64()
	index, inside, sums := s.vectors(s.parts), s.vectors(s.parts), s.vectors(s.parts)
	value, mask := s.vector(), s.vector()
	valid, used := K(), K()
	count("panels", panels, func() {
		for h := range s.parts {
			VPMOVZXWD(Mem{Base: labels, Disp: 16 * h}, index[h])
			if s == avx512 {
				VPCMPUD(Imm(1), k, index[h], valid)
			} else {
				VPCMPGTD(index[h], k, inside[h])
			}
			VPMULLD(stride, index[h], index[h])
			s.zero(sums[h])
			if s == avx512 {
				s.zero(value)
			}
		}
		MOVQ(d, left)
		MOVQ(c, column)
		count("dims", left, func() {
			for h := range s.parts {
				if s == avx512 {
					KMOVW(valid, used)
					VGATHERDPS(Mem{Base: column, Index: index[h], Scale: 4}, used, value)
				} else {
					VMOVDQA(inside[h], mask)
					s.zero(value)
					VGATHERDPS(mask, Mem{Base: column, Index: index[h], Scale: 4}, value)
				}
				VSUBPS(Mem{Base: x, Disp: h * s.bytes}, value, value)
				VFMADD231PS(value, value, sums[h])
			}
			ADDQ(Imm(64), x)
			ADDQ(Imm(4), column)
		})
		for h := range s.parts {
			if s == avx512 {
				KNOTW(valid, used)
				VMOVDQA32(inf, used, sums[h])
			} else {
				VBLENDVPS(inside[h], sums[h], inf, sums[h])
			}
			VMOVUPS(sums[h], Mem{Base: dist, Disp: h * s.bytes})
		}
		ADDQ(Imm(32), labels)
		ADDQ(Imm(64), dist)
	})
	VZEROUPPER()
	RET()
}
