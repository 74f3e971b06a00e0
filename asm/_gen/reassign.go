package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// reassignFile emits the kernels that carry an assignment from round to round.
func reassignFile(s isa) {
	changedLabels(s)
	distanceBounds(s)
}

// changedLabels emits the comparison of two sets of labels.
func changedLabels(s isa) {
	function("ChangedLabels"+s.name, "func(before, now *uint16, blocks int, masks *uint32)",
		"sets bit i of masks[b] if label i of the b-th of blocks > 0 blocks of 32 labels",
		"differs.")
	before := Load(Param("before"), GP64())
	now := Load(Param("now"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	masks := Load(Param("masks"), GP64())
	v := s.vector()
	if s == avx512 {
		mask := K()
		count("loop", blocks, func() {
			VPCMPW(Imm(4), Mem{Base: now}, loaded(s, Mem{Base: before}, v).(reg.Register), mask) // not equal
			KMOVD(mask, Mem{Base: masks})
			ADDQ(Imm(64), before)
			ADDQ(Imm(64), now)
			ADDQ(Imm(4), masks)
		})
	} else {
		high, bits := s.vector(), GP32()
		count("loop", blocks, func() {
			VMOVDQU(Mem{Base: before}, v)
			VPCMPEQW(Mem{Base: now}, v, v)
			VMOVDQU(Mem{Base: before, Disp: 32}, high)
			VPCMPEQW(Mem{Base: now, Disp: 32}, high, high)
			VPACKSSWB(high, v, v)
			VPERMQ(Imm(0b11011000), v, v)
			VPMOVMSKB(v, bits)
			NOTL(bits)
			MOVL(bits, Mem{Base: masks})
			ADDQ(Imm(64), before)
			ADDQ(Imm(64), now)
			ADDQ(Imm(4), masks)
		})
	}
	VZEROUPPER()
	RET()
}

// boundPoints is the number of points of a block of distanceBounds.
const boundPoints = 128

// distanceBounds emits extremes of the two smallest distances.
func distanceBounds(s isa) {
	function("DistanceBounds"+s.name, "func(dist, second *float32, blocks int, bounds *[4]float32)",
		"writes, for each of blocks > 0 blocks of 128 points, the smallest second-dist, the",
		"largest second and the largest dist, none of them NaN, to bounds[0..2].")
	dist := Load(Param("dist"), GP64())
	second := Load(Param("second"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	bounds := Load(Param("bounds"), GP64())
	least, most, far := s.vector(), s.vector(), s.vector()
	x, y, half := s.vector(), s.vector(), s.vector()
	across := func(op func(...Op), v reg.VecVirtual, to int) {
		if s == avx512 {
			VEXTRACTF64X4(Imm(1), v, half.AsY())
			op(half.AsY(), v.AsY(), v.AsY())
		}
		VEXTRACTF128(Imm(1), v.AsY(), half.AsX())
		op(half.AsX(), v.AsX(), v.AsX())
		VPSHUFD(Imm(0b1110), v.AsX(), half.AsX())
		op(half.AsX(), v.AsX(), v.AsX())
		VPSHUFD(Imm(0b01), v.AsX(), half.AsX())
		op(half.AsX(), v.AsX(), v.AsX())
		VMOVSS(v.AsX(), Mem{Base: bounds, Disp: 4 * to})
	}
	count("loop", blocks, func() {
		for i := 0; i < 4*boundPoints; i += s.bytes {
			VMOVUPS(Mem{Base: second, Disp: i}, y)
			if i == 0 {
				VMOVUPS(Mem{Base: dist}, far)
				VSUBPS(far, y, least)
				VMOVAPS(y, most)
				continue
			}
			VMOVUPS(Mem{Base: dist, Disp: i}, x)
			VMAXPS(x, far, far)
			VMAXPS(y, most, most)
			VSUBPS(x, y, x)
			VMINPS(x, least, least)
		}
		across(VMINPS, least, 0)
		across(VMAXPS, most, 1)
		across(VMAXPS, far, 2)
		ADDQ(U32(4*boundPoints), dist)
		ADDQ(U32(4*boundPoints), second)
		ADDQ(Imm(16), bounds)
	})
	VZEROUPPER()
	RET()
}
