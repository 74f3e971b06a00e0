package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantise emits the affine map of columns to the grid.
func quantise(s isa) {
	one := wideConstant("quantiseOne"+s.name, 0x3ff0000000000000)
	minus := wideConstant("quantiseMinus"+s.name, 0xbff0000000000000)
	function("Quantise"+s.name, "func(dst *float32, src *float64, periods int, lo, hi, width *float64, vectors int, "+
		"scale float64) int",
		"maps the values of periods > 0 periods of vectors > 0 groups of 8: v to",
		"((v-lo)-(hi-v))/width, or -1 below lo (and for NaN) and 1 above hi, times scale, truncated toward",
		"zero, over scale. It returns the number of values below and above. scale is a power",
		"of two of at most 2^22; lo, hi and width hold a period.")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	periods := GP64()
	Load(Param("periods"), periods)
	lo := Load(Param("lo"), GP64())
	hi := Load(Param("hi"), GP64())
	width := Load(Param("width"), GP64())
	vectors := Load(Param("vectors"), GP64())
	SHLQ(Imm(6), vectors) // bytes of a period
	scale := s.vector()
	VBROADCASTSD(NewParamAddr("scale", 56), scale)
	// Dividing by a power of two is multiplying by its inverse, in float32 too.
	inverse, ones := YMM(), YMM()
	VBROADCASTSD(NewParamAddr("scale", 56), inverse)
	VMOVUPD(one, ones)
	VDIVPD(inverse, ones, inverse)
	VCVTPD2PSY(inverse, inverse.AsX())
	VBROADCASTSS(inverse.AsX(), inverse)
	outside, bits := GP64(), GP64()
	XORQ(outside, outside)
	at := GP64()
	count("periods", periods, func() {
		XORQ(at, at)
		Label("vectors")
		for h := range s.parts {
			place := func(base reg.Register) Mem { return Mem{Base: base, Index: at, Scale: 1, Disp: h * s.bytes} }
			v, low, high, t := s.vector(), s.vector(), s.vector(), s.vector()
			VMOVUPD(place(src), v)
			VMOVUPD(place(lo), low)
			VMOVUPD(place(hi), high)
			VSUBPD(low, v, t)
			if s == avx512 {
				below, above := K(), K()
				VCMPPD(Imm(9), low, v, below)     // v < lo, or NaN
				VCMPPD(Imm(0x1e), high, v, above) // v > hi
				VSUBPD(v, high, high)
				VSUBPD(high, t, t)
				VDIVPD(place(width), t, t)
				VBLENDMPD_BCST(minus, t, below, t)
				VBLENDMPD_BCST(one, t, above, t)
				KORW(below, above, below)
				KMOVW(below, bits.As32())
				VMULPD(scale, t, t)
				VCVTTPD2DQ(t, t.AsY())
				VCVTDQ2PS(t.AsY(), t.AsY())
				VMULPS(inverse, t.AsY(), t.AsY())
				VMOVUPS(t.AsY(), Mem{Base: dst, Disp: 0})
			} else {
				below, above := YMM(), YMM()
				VCMPPD(Imm(9), low, v, below)
				VCMPPD(Imm(0x1e), high, v, above)
				VSUBPD(v, high, high)
				VSUBPD(high, t, t)
				VDIVPD(place(width), t, t)
				VBLENDVPD(below, minus, t, t)
				VBLENDVPD(above, one, t, t)
				VORPD(below, above, below)
				VMOVMSKPD(below, bits.As32())
				VMULPD(scale, t, t)
				VCVTTPD2DQY(t, t.AsX())
				VCVTDQ2PS(t.AsX(), t.AsX())
				VMULPS(inverse.AsX(), t.AsX(), t.AsX())
				VMOVUPS(t.AsX(), Mem{Base: dst, Disp: 16 * h})
			}
			POPCNTL(bits.As32(), bits.As32())
			ADDQ(bits, outside)
		}
		ADDQ(Imm(32), dst)
		ADDQ(Imm(64), at)
		CMPQ(at, vectors)
		JLT(LabelRef("vectors"))
		ADDQ(at, src)
	})
	Store(outside, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
