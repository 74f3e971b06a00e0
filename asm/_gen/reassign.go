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
	if s == avx512 {
		staleFew()
	}
	staleByDistance(s)
	boundKeys(s)
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

// staleFew emits staleKeys for a table of 64 limits, which is kept in registers.
func staleFew() {
	s := avx512
	function("StaleFew"+s.name, "func(keys *float32, labels *uint16, limits *[64]float32, blocks int, masks *uint32)",
		"sets bit i of masks[b] if key i of the b-th of blocks > 0 blocks of 32 keys is at most the",
		"limit of its label.")
	keys := Load(Param("keys"), GP64())
	labels := Load(Param("labels"), GP64())
	limits := Load(Param("limits"), GP64())
	blocks, masks := GP64(), GP64()
	Load(Param("blocks"), blocks)
	Load(Param("masks"), masks)
	table := s.vectors(4)
	for i, v := range table {
		VMOVUPS(Mem{Base: limits, Disp: i * s.bytes}, v)
	}
	low, high, upper := s.vector(), s.vector(), s.vector()
	VPBROADCASTD(constants("staleFewUpper", 32), upper)
	mask := K()
	marks(s, blocks, masks, func(i int) reg.Register {
		VPMOVZXWD(Mem{Base: labels, Disp: i * s.bytes / 2}, low)
		VMOVDQA64(low, high)
		VPTESTMD(upper, low, mask)
		VPERMI2PS(table[1], table[0], low)
		VPERMI2PS(table[3], table[2], high)
		VBLENDMPS(high, low, mask, low)
		VCMPPS(Imm(0x1d), Mem{Base: keys, Disp: i * s.bytes}, low, mask) // limit >= key
		return mask
	}, func() {
		ADDQ(U32(128), keys)
		ADDQ(Imm(64), labels)
	})
}

// boundKeys emits what bounds of points keep of their two least squared distances.
func boundKeys(s isa) {
	function("BoundKeys"+s.name, "func(dist, second *float32, labels *uint16, moved *float64, off, error, most float64, "+
		"blocks int, keys, far *float32)",
		"sets, for each point of blocks > 0 blocks of 8, with n = sqrt(dist+off), f = sqrt(max(0, second-off))",
		"and m = moved[label], the slack s = min(f/2, f-n-error/f) (1-2^-30), key = (s+m+most) (1-2^-20), -1 where s",
		"is not above 0, and far = n-m + (n+m) 2^-20, in float64 with each operation rounded.")
	dist := Load(Param("dist"), GP64())
	second := Load(Param("second"), GP64())
	labels := Load(Param("labels"), GP64())
	moved := Load(Param("moved"), GP64())
	constant := s.vectors(7)
	for i, v := range constant {
		if i < 3 {
			VBROADCASTSD(NewParamAddr([]string{"off", "error", "most"}[i], 32+8*i), v)
			continue
		}
		bits := []uint64{0x3fe0000000000000, 0x3fefffffff800000, 0x3feffffe00000000, 0x3eb0000000000000}[i-3]
		VBROADCASTSD(wideConstant([]string{"keyHalf", "keySlack", "keyLess", "keyUp"}[i-3]+s.name, bits), v)
	}
	off, error, most, half, slack, less, up := constant[0], constant[1], constant[2], constant[3], constant[4],
		constant[5], constant[6]
	blocks := GP64()
	Load(Param("blocks"), blocks)
	keys := Load(Param("keys"), GP64())
	far := Load(Param("far"), GP64())
	near, next, t, u, way, none := s.vector(), s.vector(), s.vector(), s.vector(), s.vector(), s.vector()
	minus := s.vector()
	VBROADCASTSD(wideConstant("keyNone"+s.name, 0xbff0000000000000), minus)
	s.zero(none)
	mask := K()
	count("loop", blocks, func() {
		for i := range 64 / s.bytes {
			at := i * s.bytes / 2
			s.movedBy(Mem{Base: labels, Disp: at / 2}, moved, way, mask)
			VCVTPS2PD(Mem{Base: dist, Disp: at}, near)
			VADDPD(off, near, near)
			VSQRTPD(near, near)
			VCVTPS2PD(Mem{Base: second, Disp: at}, next)
			VSUBPD(off, next, next)
			VMAXPD(none, next, next)
			VSQRTPD(next, next)
			VDIVPD(next, error, t)
			VSUBPD(near, next, u)
			VSUBPD(t, u, u)
			VMULPD(half, next, t)
			VMINPD(u, t, u) // also of no number
			VMULPD(slack, u, u)
			VADDPD(way, u, t)
			VADDPD(most, t, t)
			VMULPD(less, t, t)
			if s == avx512 {
				VCMPPD(Imm(0x1e), none, u, mask) // above 0
				VBLENDMPD(t, minus, mask, t)
			} else {
				VCMPPD(Imm(0x1e), none, u, u)
				VBLENDVPD(u, t, minus, t)
			}
			s.narrow(t, Mem{Base: keys, Disp: at})
			VADDPD(way, near, t)
			VMULPD(up, t, t)
			VSUBPD(way, near, near)
			VADDPD(t, near, near)
			s.narrow(near, Mem{Base: far, Disp: at})
		}
		for _, p := range []reg.Register{dist, second, keys, far} {
			ADDQ(Imm(32), p)
		}
		ADDQ(Imm(16), labels)
	})
	VZEROUPPER()
	RET()
}

// movedBy looks up a float64 for each label.
func (s isa) movedBy(labels Mem, moved reg.Register, way reg.VecVirtual, mask reg.Register) {
	index := s.vector()
	s.zero(way)
	if s == avx512 {
		VPMOVZXWD(labels, index.AsY())
		KXNORW(mask, mask, mask)
		VGATHERDPD(Mem{Base: moved, Index: index.AsY(), Scale: 8}, mask, way)
		return
	}
	used := s.vector()
	VPMOVZXWD(labels, index.AsX())
	VPCMPEQD(used, used, used)
	VGATHERDPD(used, Mem{Base: moved, Index: index.AsX(), Scale: 8}, way)
}

// narrow writes float64 as float32.
func (s isa) narrow(v reg.VecVirtual, to Mem) {
	if s == avx512 {
		VCVTPD2PS(v, v.AsY())
		VMOVUPS(v.AsY(), to)
		return
	}
	VCVTPD2PSY(v, v.AsX())
	VMOVUPS(v.AsX(), to)
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
