package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ringFile emits element-wise kernels over whole blocks of 64 bytes of dst.
func ringFile(s isa) {
	for _, r := range []struct {
		name, doc, element string
		op                 func(ops ...Op)
	}{
		{"AddUint64", "adds a to dst, modulo 2^64", "uint64", VPADDQ},
		{"SubUint64", "subtracts a from dst, modulo 2^64", "uint64", VPSUBQ},
		{"AddUint32", "adds a to dst, modulo 2^32", "uint32", VPADDD},
		{"SubUint32", "subtracts a from dst, modulo 2^32", "uint32", VPSUBD},
	} {
		function(r.name+s.name, "func(dst, a *"+r.element+", blocks int)", r.doc+",", "over blocks > 0 blocks of 64 bytes.")
		dst := Load(Param("dst"), GP64())
		a := Load(Param("a"), GP64())
		blocks := GP64()
		Load(Param("blocks"), blocks)
		v := s.vector()
		count("loop", blocks, func() {
			for h := range s.parts {
				VMOVDQUx(s, Mem{Base: dst, Disp: h * s.bytes}, v)
				r.op(Mem{Base: a, Disp: h * s.bytes}, v, v)
				VMOVDQUx(s, v, Mem{Base: dst, Disp: h * s.bytes})
			}
			ADDQ(Imm(64), dst)
			ADDQ(Imm(64), a)
		})
		VZEROUPPER()
		RET()
	}
	convert32(s, "ToFixed32", "truncated toward zero", VCVTTPS2DQ)
	convert32(s, "ToFixed32Nearest", "rounded to nearest even", VCVTPS2DQ)
	fromFixed(s, "FromFixed32", "uint32", "float32", VCVTDQ2PS, VMULPS, VBROADCASTSS)
	if s == avx512 {
		convert64(s, "ToFixed64", "truncated toward zero", func(v reg.VecVirtual) { VCVTTPD2QQ(v, v) })
		convert64(s, "ToFixed64Nearest", "rounded to nearest even", func(v reg.VecVirtual) { VCVTPD2QQ(v, v) })
		fromFixed(s, "FromFixed64", "uint64", "float64", VCVTQQ2PD, VMULPD, VBROADCASTSD)
		return
	}
	// AVX2 has no conversion between float64 and int64.
	halves := newHalfConversion()
	convert64(s, "ToFixed64", "truncated toward zero", func(v reg.VecVirtual) { halves.toInteger(v, 3) })
	convert64(s, "ToFixed64Nearest", "rounded to nearest even", func(v reg.VecVirtual) { halves.toInteger(v, 0) })
	fromFixed(s, "FromFixed64", "uint64", "float64", halves.toFloat, VMULPD, VBROADCASTSD)
}

// halfConversion holds the float64 constants that convert a 64-bit integer in two
// parts: adding a large power of two moves an integer to the low bits of a float64.
type halfConversion struct {
	power52, power51x3    Mem // 2^52, for [0, 2^52); 3*2^51, for signed integers
	down, up              Mem // 2^-32, 2^32
	power67x3, bothBiases Mem // 3*2^67, whose last bit is 2^16; that plus 2^52
}

func newHalfConversion() *halfConversion {
	quad := wideConstant
	return &halfConversion{
		power52: quad("power52", 0x4330000000000000), power51x3: quad("power51x3", 0x4338000000000000),
		down: quad("powerMinus32", 0x3df0000000000000), up: quad("power32", 0x41f0000000000000),
		power67x3: quad("power67x3", 0x4438000000000000), bothBiases: quad("bothBiases", 0x4438001000000000),
	}
}

// toInteger rounds v, below 2^63 in magnitude, by the given mode and converts it:
// v = high 2^32 + low with integers -2^31 <= high < 2^31 and 0 <= low < 2^32,
// all exact.
func (c *halfConversion) toInteger(v reg.VecVirtual, mode uint64) {
	high, t := YMM(), YMM()
	VROUNDPD(Imm(mode), v, v)
	VMULPD(c.down, v, high)
	VROUNDPD(Imm(1), high, high)
	VMULPD(c.up, high, t)
	VSUBPD(t, v, v)
	VADDPD(c.power52, v, v)
	VADDPD(c.power51x3, high, high)
	VPSLLQ(Imm(32), high, high)
	VPBLENDD(Imm(0b10101010), high, v, v)
}

// toFloat converts the signed integers of the first operand, a place in memory,
// with one rounding: the upper 16 bits and the lower 48 are exact by themselves.
func (c *halfConversion) toFloat(ops ...Op) {
	from, v := ops[0], ops[1]
	high, zero := YMM(), YMM()
	VMOVDQU(from, v)
	VPXOR(zero, zero, zero)
	VPSRAD(Imm(16), v, high)
	VPBLENDW(Imm(0x33), zero, high, high)
	VPADDQ(c.power67x3, high, high)
	VSUBPD(c.bothBiases, high, high)
	VPBLENDW(Imm(0x88), c.power52, v, v)
	VADDPD(high, v, v)
}

// VMOVDQUx is the unaligned integer move of the instruction set.
func VMOVDQUx(s isa, from, to Op) {
	if s == avx512 {
		VMOVDQU64(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

// convert32 emits a conversion of scaled float32 with saturation at the largest
// float32 that converts.
func convert32(s isa, name, how string, op func(ops ...Op)) {
	function(name+s.name, "func(dst *uint32, src *float32, blocks int, scale float32)",
		"writes src*scale "+how+", saturating at 2^31-128 in magnitude, over", "blocks > 0 blocks of 64 bytes.")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	scale, high, low, v := s.vector(), s.vector(), s.vector(), s.vector()
	VBROADCASTSS(NewParamAddr("scale", 24), scale)
	bits := GP32()
	MOVL(U32(0x4effffff), bits)
	VMOVD(bits, high.AsX())
	VPBROADCASTD(high.AsX(), high)
	MOVL(U32(0xceffffff), bits)
	VMOVD(bits, low.AsX())
	VPBROADCASTD(low.AsX(), low)
	count("loop", blocks, func() {
		for h := range s.parts {
			VMULPS(Mem{Base: src, Disp: h * s.bytes}, scale, v)
			VMAXPS(low, v, v)
			VMINPS(high, v, v)
			op(v, v)
			VMOVDQUx(s, v, Mem{Base: dst, Disp: h * s.bytes})
		}
		ADDQ(Imm(64), dst)
		ADDQ(Imm(64), src)
	})
	VZEROUPPER()
	RET()
}

// convert64 is convert32 for float64.
func convert64(s isa, name, how string, op func(v reg.VecVirtual)) {
	function(name+s.name, "func(dst *uint64, src *float64, blocks int, scale float64)",
		"writes src*scale "+how+", saturating at 2^63-1024 in magnitude, over", "blocks > 0 blocks of 64 bytes.")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	scale, high, low, v := s.vector(), s.vector(), s.vector(), s.vector()
	VBROADCASTSD(NewParamAddr("scale", 24), scale)
	bits := GP64()
	for _, limit := range []struct {
		v    reg.VecVirtual
		bits uint64
	}{{high, 0x43dfffffffffffff}, {low, 0xc3dfffffffffffff}} {
		MOVQ(U64(limit.bits), bits)
		VMOVQ(bits, limit.v.AsX())
		VPBROADCASTQ(limit.v.AsX(), limit.v)
	}
	count("loop", blocks, func() {
		for h := range s.parts {
			VMULPD(Mem{Base: src, Disp: h * s.bytes}, scale, v)
			VMAXPD(low, v, v)
			VMINPD(high, v, v)
			op(v)
			VMOVDQUx(s, v, Mem{Base: dst, Disp: h * s.bytes})
		}
		ADDQ(Imm(64), dst)
		ADDQ(Imm(64), src)
	})
	VZEROUPPER()
	RET()
}

// fromFixed emits the conversion of signed integers to scaled floats.
func fromFixed(s isa, name, from, to string, op, scaleOp, broadcast func(ops ...Op)) {
	function(name+s.name, "func(dst *"+to+", src *"+from+", blocks int, scale "+to+")",
		"writes src, read as a signed number, times scale, over blocks > 0 blocks of", "64 bytes.")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	scale, v := s.vector(), s.vector()
	broadcast(NewParamAddr("scale", 24), scale)
	count("loop", blocks, func() {
		for h := range s.parts {
			op(Mem{Base: src, Disp: h * s.bytes}, v)
			scaleOp(scale, v, v)
			VMOVDQUx(s, v, Mem{Base: dst, Disp: h * s.bytes})
		}
		ADDQ(Imm(64), dst)
		ADDQ(Imm(64), src)
	})
	VZEROUPPER()
	RET()
}
