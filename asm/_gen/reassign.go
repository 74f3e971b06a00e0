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
	staleKeys(s)
	staleByDistance(s)
}

// marks emits a loop over blocks of 32 points of which mark sets a bit each: part i, of as many points as a vector
// has, in a mask register, or in the signs of a vector.
func marks(s isa, blocks, masks reg.GPVirtual, mark func(i int) reg.Register, next func()) {
	bits, word := GP32(), GP32()
	lanes := s.bytes / 4
	count("loop", blocks, func() {
		XORL(word, word)
		for i := range 32 / lanes {
			if m := mark(i); s == avx512 {
				KMOVW(m, bits)
			} else {
				VMOVMSKPS(m, bits)
			}
			if i > 0 {
				SHLL(Imm(uint64(i*lanes)), bits)
			}
			ORL(bits, word)
		}
		MOVL(word, Mem{Base: masks})
		ADDQ(Imm(4), masks)
		next()
	})
	VZEROUPPER()
	RET()
}

// staleKeys emits the comparison of keys with limits by label.
func staleKeys(s isa) {
	function("StaleKeys"+s.name, "func(keys *float32, labels *uint16, limits *float32, blocks int, masks *uint32)",
		"sets bit i of masks[b] if key i of the b-th of blocks > 0 blocks of 32 keys is at most the",
		"limit of its label.")
	keys := Load(Param("keys"), GP64())
	labels := Load(Param("labels"), GP64())
	limits := Load(Param("limits"), GP64())
	blocks, masks := GP64(), GP64()
	Load(Param("blocks"), blocks)
	Load(Param("masks"), masks)
	index, limit, used := s.vector(), s.vector(), s.vector()
	mask := K()
	s.zero(limit)
	marks(s, blocks, masks, func(i int) reg.Register {
		VPMOVZXWD(Mem{Base: labels, Disp: i * s.bytes / 2}, index)
		if s == avx512 {
			KXNORW(mask, mask, mask)
			VGATHERDPS(Mem{Base: limits, Index: index, Scale: 4}, mask, limit)
			VCMPPS(Imm(0x1d), Mem{Base: keys, Disp: i * s.bytes}, limit, mask) // limit >= key
			return mask
		}
		VPCMPEQD(used, used, used)
		VGATHERDPS(used, Mem{Base: limits, Index: index, Scale: 4}, limit)
		VCMPPS(Imm(0x1d), Mem{Base: keys, Disp: i * s.bytes}, limit, index)
		return index
	}, func() {
		ADDQ(U32(128), keys)
		ADDQ(Imm(64), labels)
	})
}

// staleByDistance emits the test of keys against distances from more centroids.
func staleByDistance(s isa) {
	function("StaleByDistance"+s.name, "func(keys, far, squares *float32, blocks int, most, least, up, more float32, "+
		"masks *uint32)",
		"sets bit i of masks[b] for point i of the b-th of blocks > 0 blocks of 32 points unless, with t = key-most",
		"and f = t + max(t, far), f*f is at least least and f*f*up + more at most the square, all in float32.")
	keys := Load(Param("keys"), GP64())
	far := Load(Param("far"), GP64())
	squares := Load(Param("squares"), GP64())
	blocks, masks := GP64(), GP64()
	Load(Param("blocks"), blocks)
	constant := s.vectors(4)
	for i, c := range constant {
		VBROADCASTSS(NewParamAddr([]string{"most", "least", "up", "more"}[i], 32+4*i), c)
	}
	Load(Param("masks"), masks)
	t, f, below := s.vector(), s.vector(), s.vector()
	mask, other := K(), K()
	marks(s, blocks, masks, func(i int) reg.Register {
		at := i * s.bytes
		VMOVUPS(Mem{Base: keys, Disp: at}, t)
		VSUBPS(constant[0], t, t)
		VMAXPS(Mem{Base: far, Disp: at}, t, f)
		VADDPS(f, t, f)
		VMULPS(f, f, f)
		VMULPS(constant[2], f, t)
		VADDPS(constant[3], t, t)
		if s == avx512 {
			VCMPPS(Imm(0x11), constant[1], f, mask)                   // f*f < least
			VCMPPS(Imm(0x1e), Mem{Base: squares, Disp: at}, t, other) // more than the square
			KORW(mask, other, mask)
			return mask
		}
		VCMPPS(Imm(0x11), constant[1], f, below)
		VCMPPS(Imm(0x1e), Mem{Base: squares, Disp: at}, t, t)
		VORPS(t, below, below)
		return below
	}, func() {
		for _, p := range []reg.Register{keys, far, squares} {
			ADDQ(U32(128), p)
		}
	})
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
