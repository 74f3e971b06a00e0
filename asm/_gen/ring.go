package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
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
		convert64("ToFixed64", "truncated toward zero", VCVTTPD2QQ)
		convert64("ToFixed64Nearest", "rounded to nearest even", VCVTPD2QQ)
		fromFixed(s, "FromFixed64", "uint64", "float64", VCVTQQ2PD, VMULPD, VBROADCASTSD)
	}
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

// convert64 is convert32 for float64, which only AVX-512 converts.
func convert64(name, how string, op func(ops ...Op)) {
	s := avx512
	function(name+s.name, "func(dst *uint64, src *float64, blocks int, scale float64)",
		"writes src*scale "+how+", saturating at 2^63-1024 in magnitude, over", "blocks > 0 blocks of 64 bytes.")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	scale, high, low, v := s.vector(), s.vector(), s.vector(), s.vector()
	VBROADCASTSD(NewParamAddr("scale", 24), scale)
	bits := GP64()
	MOVQ(U64(0x43dfffffffffffff), bits)
	VPBROADCASTQ(bits, high)
	MOVQ(U64(0xc3dfffffffffffff), bits)
	VPBROADCASTQ(bits, low)
	count("loop", blocks, func() {
		VMULPD(Mem{Base: src}, scale, v)
		VMAXPD(low, v, v)
		VMINPD(high, v, v)
		op(v, v)
		VMOVDQU64(v, Mem{Base: dst})
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
