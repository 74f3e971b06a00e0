package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantiseFile emits what reads records.
func quantiseFile(s isa) {
	quantise(s, "Quantise", "float64")
	quantise(s, "QuantiseNarrow", "float32")
	ranges(s, "Ranges", "float64")
	ranges(s, "RangesNarrow", "float32")
}

// quantise emits the affine map of columns of a type to the grid.
func quantise(s isa, name, kind string) {
	g := gridMap{one: wideConstant(name+"One"+s.name, 0x3ff0000000000000),
		minus: wideConstant(name+"Minus"+s.name, 0xbff0000000000000)}
	function(name+s.name, "func(dst *float32, src *"+kind+", periods int, lo, hi, width *float64, vectors int, "+
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
	g.scale = s.vector()
	VBROADCASTSD(NewParamAddr("scale", 56), g.scale)
	// Dividing by a power of two is multiplying by its inverse, in float32 too.
	inverse, ones := YMM(), YMM()
	VBROADCASTSD(NewParamAddr("scale", 56), inverse)
	VMOVUPD(g.one, ones)
	VDIVPD(inverse, ones, inverse)
	VCVTPD2PSY(inverse, inverse.AsX())
	VBROADCASTSS(inverse.AsX(), inverse)
	g.inverse = inverse
	outside, bits := GP64(), GP64()
	XORQ(outside, outside)
	at := GP64()
	count("periods", periods, func() {
		XORQ(at, at)
		Label("vectors")
		for h := range s.parts {
			place := func(base reg.Register) Mem { return Mem{Base: base, Index: at, Scale: 1, Disp: h * s.bytes} }
			v, low, high, t := s.vector(), s.vector(), s.vector(), s.vector()
			if kind == "float32" {
				VCVTPS2PD(Mem{Base: src, Disp: h * s.bytes / 2}, v)
			} else {
				VMOVUPD(Mem{Base: src, Disp: h * s.bytes}, v)
			}
			VMOVUPD(place(lo), low)
			VMOVUPD(place(hi), high)
			VSUBPD(low, v, t)
			if s == avx512 {
				g.avx512(v, low, high, t, place(width), bits)
				VMOVUPS(t.AsY(), Mem{Base: dst, Disp: 0})
			} else {
				g.avx2(v, low, high, t, place(width), bits)
				VMOVUPS(t.AsX(), Mem{Base: dst, Disp: 16 * h})
			}
			POPCNTL(bits.As32(), bits.As32())
			ADDQ(bits, outside)
		}
		ADDQ(Imm(32), dst)
		if kind == "float32" {
			ADDQ(Imm(32), src)
		} else {
			ADDQ(Imm(64), src)
		}
		ADDQ(Imm(64), at)
		CMPQ(at, vectors)
		JLT(LabelRef("vectors"))
	})
	Store(outside, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// gridMap has what the map of a vector needs: 1, -1, and the scale with its inverse.
type gridMap struct {
	one, minus     Mem
	scale, inverse reg.VecVirtual
}

// avx512 maps v, of which t holds the part above low, to the lower half of t, and sets bits where it is outside.
func (g *gridMap) avx512(v, low, high, t reg.VecVirtual, width Mem, bits reg.GPVirtual) {
	below, above := K(), K()
	VCMPPD(Imm(9), low, v, below)     // v < lo, or NaN
	VCMPPD(Imm(0x1e), high, v, above) // v > hi
	VSUBPD(v, high, high)
	VSUBPD(high, t, t)
	VDIVPD(width, t, t)
	VBLENDMPD_BCST(g.minus, t, below, t)
	VBLENDMPD_BCST(g.one, t, above, t)
	KORW(below, above, below)
	KMOVW(below, bits.As32())
	VMULPD(g.scale, t, t)
	VCVTTPD2DQ(t, t.AsY())
	VCVTDQ2PS(t.AsY(), t.AsY())
	VMULPS(g.inverse, t.AsY(), t.AsY())
}

// avx2 is avx512 for vectors of half the size.
func (g *gridMap) avx2(v, low, high, t reg.VecVirtual, width Mem, bits reg.GPVirtual) {
	below, above := YMM(), YMM()
	VCMPPD(Imm(9), low, v, below)
	VCMPPD(Imm(0x1e), high, v, above)
	VSUBPD(v, high, high)
	VSUBPD(high, t, t)
	VDIVPD(width, t, t)
	VBLENDVPD(below, g.minus, t, t)
	VBLENDVPD(above, g.one, t, t)
	VORPD(below, above, below)
	VMOVMSKPD(below, bits.As32())
	VMULPD(g.scale, t, t)
	VCVTTPD2DQY(t, t.AsX())
	VCVTDQ2PS(t.AsX(), t.AsX())
	VMULPS(g.inverse.AsX(), t.AsX(), t.AsX())
}

// ranges emits the search for the least and the greatest values of columns.
func ranges(s isa, name, kind string) {
	function(name+s.name, "func(lo, hi, src *"+kind+", periods, vectors int) int",
		"lowers lo and raises hi, which hold a period of vectors > 0 times 64 bytes, to the values of",
		"periods > 0 periods. It returns 0 if all are finite; else lo and hi mean nothing.")
	lo := Load(Param("lo"), GP64())
	hi := Load(Param("hi"), GP64())
	src := Load(Param("src"), GP64())
	periods, size := GP64(), GP64()
	Load(Param("periods"), periods)
	Load(Param("vectors"), size)
	SHLQ(Imm(6), size)
	least, greatest, multiply := VMINPD, VMAXPD, VFMADD231PD
	if kind == "float32" {
		least, greatest, multiply = VMINPS, VMAXPS, VFMADD231PS
	}
	// Zero times a value is zero, unless it is not finite.
	zero, wrong := s.vector(), s.vectors(s.parts)
	s.zero(zero)
	for _, w := range wrong {
		s.zero(w)
	}
	at := GP64()
	count("periods", periods, func() {
		XORQ(at, at)
		Label("vectors")
		for h := range s.parts {
			v, low, high := s.vector(), s.vector(), s.vector()
			low0 := Mem{Base: lo, Index: at, Scale: 1, Disp: h * s.bytes}
			high0 := Mem{Base: hi, Index: at, Scale: 1, Disp: h * s.bytes}
			VMOVUPD(Mem{Base: src, Index: at, Scale: 1, Disp: h * s.bytes}, v)
			least(low0, v, low)
			greatest(high0, v, high)
			multiply(zero, v, wrong[h])
			VMOVUPD(low, low0)
			VMOVUPD(high, high0)
		}
		ADDQ(Imm(64), at)
		CMPQ(at, size)
		JLT(LabelRef("vectors"))
		ADDQ(at, src)
	})
	bits := GP64()
	if s == avx512 {
		unordered := K()
		if kind == "float32" {
			VCMPPS(Imm(3), wrong[0], wrong[0], unordered)
		} else {
			VCMPPD(Imm(3), wrong[0], wrong[0], unordered)
		}
		KMOVW(unordered, bits.As32())
	} else {
		VORPD(wrong[0], wrong[1], wrong[0])
		if kind == "float32" {
			VCMPPS(Imm(3), wrong[0], wrong[0], wrong[0])
		} else {
			VCMPPD(Imm(3), wrong[0], wrong[0], wrong[0])
		}
		VMOVMSKPS(wrong[0], bits.As32())
	}
	Store(bits, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
