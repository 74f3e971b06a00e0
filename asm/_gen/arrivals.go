package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// drawConstants are those of the logarithm in kernels/arrivals.go.
type drawConstants struct {
	one, middle               Mem   // 1, 1 - 2^-53
	shift, mantissa, sqrtHalf Mem   // bits: of 1 less those of sqrt(1/2), below the exponent, of sqrt(1/2)
	whole, exponent, two, ln2 Mem   // bits of 2^52; 2^52 + 1023, 2, ln 2
	coefficients              []Mem // from the highest power down
}

func newDrawConstants(s isa) drawConstants {
	const sqrtHalf = 0x3fe6a09e667f3bcd
	c := func(name string, bits uint64) Mem { return wideConstant("draw"+name+s.name, bits) }
	d := drawConstants{
		one: c("One", math.Float64bits(1)), middle: c("Middle", math.Float64bits(1-0x1p-53)),
		shift: c("Shift", math.Float64bits(1)-sqrtHalf), mantissa: c("Mantissa", 1<<52-1), sqrtHalf: c("SqrtHalf", sqrtHalf),
		whole: c("Whole", math.Float64bits(0x1p52)), exponent: c("Exponent", math.Float64bits(0x1p52+1023)),
		two: c("Two", math.Float64bits(2)), ln2: c("Ln2", math.Float64bits(math.Ln2)),
	}
	for i, x := range []float64{1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
		2.222219843214978396e-01,
		2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01} {
		d.coefficients = append(d.coefficients, c(fmt.Sprint("Coefficient", i), math.Float64bits(x)))
	}
	return d
}

// drawFile emits the kernel of the arrivals: wide groups of blocks in flight and,
// for the rest, groups of eight.
func drawFile(s isa) {
	function("Draw"+s.name, "func(schedule *[44]uint32, blocks *[2]uint64, n, registers int, scale float64, times "+
		"*float64, marks *uint32)",
		"encrypts n blocks under the AES-128 keys of schedule, n a positive multiple of 8.",
		"Of the halves x and y of a block, x adds scale ln((2 floor(x/2^12) + 1)/2^53) to its",
		"time and y gives its mark floor(y registers/2^64), registers < 2^32.")
	schedule := Mem{Base: Load(Param("schedule"), GP64())}
	blocks := Mem{Base: Load(Param("blocks"), GP64())}
	n := Load(Param("n"), GP64())
	registers := Load(Param("registers"), GP64())
	times := Mem{Base: Load(Param("times"), GP64())}
	marks := Mem{Base: Load(Param("marks"), GP64())}
	form := drawAVX512
	if s == avx2 {
		form = drawAVX2
	}
	encrypt, wide := form(schedule, blocks, registers, times, marks)
	group := func(size int) {
		encrypt(size)
		ADDQ(U32(16*size), blocks.Base)
		ADDQ(U32(8*size), times.Base)
		ADDQ(U32(4*size), marks.Base)
		SUBQ(Imm(uint64(size)), n)
	}
	if wide > 8 {
		Label("wide")
		CMPQ(n, Imm(uint64(wide)))
		JLT(LabelRef("eight"))
		group(wide)
		JMP(LabelRef("wide"))
	}
	Label("eight")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	group(8)
	JMP(LabelRef("eight"))
	Label("done")
	VZEROUPPER()
	RET()
}

func drawAVX512(schedule, blocks Mem, registers Op, times, marks Mem) (encrypt func(size int), wide int) {
	c := newDrawConstants(avx512)
	halves := []Mem{constants("drawLowAVX512", 0, 0, 2, 0, 4, 0, 6, 0, 8, 0, 10, 0, 12, 0, 14, 0),
		constants("drawHighAVX512", 1, 0, 3, 0, 5, 0, 7, 0, 9, 0, 11, 0, 13, 0, 15, 0)}
	keys := avx512.vectors(11)
	for r, k := range keys {
		VBROADCASTI32X4(schedule.Offset(16*r), k)
	}
	m, scale := avx512.vector(), avx512.vector()
	VPBROADCASTQ(registers, m)
	VBROADCASTSD(NewParamAddr("scale", 32), scale)
	x := avx512.vectors(8)
	// draw turns two vectors of blocks into eight logarithms and marks.
	draw := func(x0, x1 reg.VecVirtual, at int) {
		low, high := avx512.vector(), avx512.vector()
		VMOVDQU64(halves[0], low)
		VPERMI2Q(x1, x0, low)
		VMOVDQU64(halves[1], high)
		VPERMI2Q(x1, x0, high)
		VPSRLQ(Imm(12), low, low)
		VPORQ_BCST(c.one, low, low)
		VSUBPD_BCST(c.middle, low, low)
		VPADDQ_BCST(c.shift, low, low)
		k, z, p := avx512.vector(), avx512.vector(), avx512.vector()
		VPSRLQ(Imm(52), low, k)
		VPORQ_BCST(c.whole, k, k)
		VSUBPD_BCST(c.exponent, k, k)
		VPANDQ_BCST(c.mantissa, low, low)
		VPADDQ_BCST(c.sqrtHalf, low, low)
		VSUBPD_BCST(c.one, low, low)
		VADDPD_BCST(c.two, low, p)
		VDIVPD(p, low, low)
		VMULPD(low, low, z)
		VBROADCASTSD(c.coefficients[0], p)
		for _, a := range append(c.coefficients[1:], c.two) {
			VFMADD213PD_BCST(a, z, p)
		}
		VMULPD(p, low, low)
		VFMADD231PD_BCST(c.ln2, k, low)
		VFMADD213PD(times.Offset(8*at), scale, low)
		VMOVUPD(low, times.Offset(8*at))
		y := avx512.vector()
		VPMULUDQ(m, high, y)
		VPSRLQ(Imm(32), y, y)
		VPSRLQ(Imm(32), high, high)
		VPMULUDQ(m, high, high)
		VPADDQ(y, high, high)
		VPSRLQ(Imm(32), high, high)
		VPMOVQD(high, marks.Offset(4*at))
	}
	return func(size int) {
		for q := range size / 4 {
			VPXORQ(blocks.Offset(64*q), keys[0], x[q])
		}
		for r := 1; r < 10; r++ {
			for q := range size / 4 {
				VAESENC(keys[r], x[q], x[q])
			}
		}
		for q := range size / 4 {
			VAESENCLAST(keys[10], x[q], x[q])
		}
		for q := 0; q < size/4; q += 2 {
			draw(x[q], x[q+1], 4*q)
		}
	}, 32
}

func drawAVX2(schedule, blocks Mem, registers Op, times, marks Mem) (encrypt func(size int), wide int) {
	c := newDrawConstants(avx2)
	m, scale := avx2.vector(), avx2.vector()
	VBROADCASTSD(NewParamAddr("scale", 32), scale)
	VMOVQ(registers, m.AsX())
	VPBROADCASTQ(m.AsX(), m)
	// draw turns four blocks into four logarithms and marks.
	draw := func(x []reg.VecVirtual, at int) {
		a, b, low, high := avx2.vector(), avx2.vector(), avx2.vector(), avx2.vector()
		VINSERTI128(Imm(1), x[2], x[0].AsY(), a)
		VINSERTI128(Imm(1), x[3], x[1].AsY(), b)
		VPUNPCKLQDQ(b, a, low)
		VPUNPCKHQDQ(b, a, high)
		VPSRLQ(Imm(12), low, low)
		VPOR(c.one, low, low)
		VSUBPD(c.middle, low, low)
		VPADDQ(c.shift, low, low)
		k, z, p := avx2.vector(), a, b
		VPSRLQ(Imm(52), low, k)
		VPOR(c.whole, k, k)
		VSUBPD(c.exponent, k, k)
		VPAND(c.mantissa, low, low)
		VPADDQ(c.sqrtHalf, low, low)
		VSUBPD(c.one, low, low)
		VADDPD(c.two, low, p)
		VDIVPD(p, low, low)
		VMULPD(low, low, z)
		VMOVUPD(c.coefficients[0], p)
		for _, a := range append(c.coefficients[1:], c.two) {
			VFMADD213PD(a, z, p)
		}
		VMULPD(p, low, low)
		VFMADD231PD(c.ln2, k, low)
		VFMADD213PD(times.Offset(8*at), scale, low)
		VMOVUPD(low, times.Offset(8*at))
		y := k
		VPMULUDQ(m, high, y)
		VPSRLQ(Imm(32), y, y)
		VPSRLQ(Imm(32), high, high)
		VPMULUDQ(m, high, high)
		VPADDQ(y, high, high)
		VPSRLQ(Imm(32), high, high)
		VEXTRACTI128(Imm(1), high, y.AsX())
		VSHUFPS(Imm(0x88), y.AsX(), high.AsX(), high.AsX())
		VMOVUPS(high.AsX(), marks.Offset(4*at))
	}
	x := make([]reg.VecVirtual, 8)
	for q := range x {
		x[q] = XMM()
	}
	return func(size int) {
		key := XMM()
		VMOVDQU(schedule, key)
		for q := range x {
			VPXOR(blocks.Offset(16*q), key, x[q])
		}
		for r := 1; r < 10; r++ {
			VMOVDQU(schedule.Offset(16*r), key)
			for q := range x {
				VAESENC(key, x[q], x[q])
			}
		}
		VMOVDQU(schedule.Offset(160), key)
		for q := range x {
			VAESENCLAST(key, x[q], x[q])
		}
		draw(x[:4], 0)
		draw(x[4:], 4)
	}, 8
}
