package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// leastDotFile emits the least of many inner products with one vector.
func leastDotFile(s isa) {
	if s == avx512 {
		leastDotAVX512()
	} else {
		leastDotAVX2()
	}
}

// dots emits the chains of nv vectors at x into sum; load reads a vector.
func dots(tag string, stride, coef, d, x reg.Register, sum []reg.VecVirtual, value reg.VecVirtual,
	load func(at Mem, v int)) {
	cp, xp, left := GP64(), GP64(), GP64()
	MOVQ(coef, cp)
	MOVQ(x, xp)
	MOVQ(d, left)
	count(tag+"_dims", left, func() {
		VBROADCASTSD(Mem{Base: cp}, value)
		for v := range sum {
			load(Mem{Base: xp}, v)
		}
		ADDQ(Imm(8), cp)
		ADDQ(stride, xp)
	})
}

func leastDotAVX512() {
	s := avx512
	infinity := GLOBL("infinityLeastDotAVX512", RODATA|NOPTR)
	DATA(0, U64(0x7ff0000000000000))
	lanes := GLOBL("lanesLeastDotAVX512", RODATA|NOPTR)
	for i := range 8 {
		DATA(8*i, U64(uint64(i)))
	}
	eight := GLOBL("eightLeastDotAVX512", RODATA|NOPTR)
	DATA(0, U64(8))
	function("LeastDotAnyAVX512",
		"func(x *float64, stride, n int, coef *float64, d int) (least float64, at int)",
		"returns the least of n > 0 sums over c < d, d > 0, of",
		"coef[c]*x[c*stride+i], each a fused chain from 0 in the order of c, and the first i that has it.")
	x := Load(Param("x"), GP64())
	stride := GP64()
	Load(Param("stride"), stride)
	SHLQ(Imm(3), stride)
	n := GP64()
	Load(Param("n"), n)
	coef := Load(Param("coef"), GP64())
	d := Load(Param("d"), GP64())
	best, index, sum := s.vectors(2), s.vectors(2), s.vectors(2)
	number, step, value := s.vector(), s.vector(), s.vector()
	VPBROADCASTQ(eight, step)
	VMOVDQU64(lanes, number)
	for v := range best {
		VBROADCASTSD(infinity, best[v])
		VMOVDQA64(number, index[v])
	}
	less := []reg.OpmaskVirtual{K(), K()}
	take := func(v int) {
		VCMPPD(Imm(1), best[v], sum[v], less[v])
		VMINPD(best[v], sum[v], best[v])
		VMOVDQA64(number, less[v], index[v])
		VPADDQ(step, number, number)
	}
	Label("groups")
	CMPQ(n, Imm(16))
	JLT(LabelRef("rest"))
	for v := range sum {
		s.zero(sum[v])
	}
	dots("group", stride, coef, d, x, sum, value, func(at Mem, v int) {
		VFMADD231PD(at.Offset(64*v), value, sum[v])
	})
	take(0)
	take(1)
	ADDQ(Imm(128), x)
	SUBQ(Imm(16), n)
	JMP(LabelRef("groups"))
	Label("rest")
	TESTQ(n, n)
	JLE(LabelRef("reduce"))
	valid, ones, most := K(), GP64(), GP64()
	MOVQ(U64(8), most)
	CMPQ(n, most)
	CMOVQLT(n, most)
	MOVQ(U64(0xffffffffffffffff), ones)
	BZHIQ(most, ones, ones)
	KMOVB(ones.As32(), valid)
	s.zero(sum[0])
	t := s.vector()
	dots("single", stride, coef, d, x, sum[:1], value, func(at Mem, v int) {
		VMOVUPD_Z(at, valid, t)
		VFMADD231PD(t, value, sum[v])
	})
	VCMPPD(Imm(1), best[0], sum[0], valid, less[0])
	VMOVAPD(sum[0], less[0], best[0])
	VMOVDQA64(number, less[0], index[0])
	VPADDQ(step, number, number)
	ADDQ(Imm(64), x)
	SUBQ(Imm(8), n)
	JMP(LabelRef("rest"))
	Label("reduce")
	reduceLeast(best, index, sum[0], value, number, less)
	VZEROUPPER()
	RET()
}

// reduceLeast returns the least of all lanes and the first index that has it; spare, value and number are spoilt.
func reduceLeast(best, index []reg.VecVirtual, spare, value, number reg.VecVirtual, less []reg.OpmaskVirtual) {
	VMINPD(best[0], best[1], value)
	VEXTRACTF64X4(Imm(1), value, spare.AsY())
	VMINPD(spare.AsY(), value.AsY(), value.AsY())
	VEXTRACTF128(Imm(1), value.AsY(), spare.AsX())
	VMINPD(spare.AsX(), value.AsX(), value.AsX())
	VPERMILPD(Imm(1), value.AsX(), spare.AsX())
	VMINPD(spare.AsX(), value.AsX(), value.AsX())
	Store(value.AsX(), Return("least"))
	VBROADCASTSD(value.AsX(), value)
	avx512.zero(number)
	VPTERNLOGQ(Imm(0xff), number, number, number) // all ones: larger than any index
	places := avx512.vectors(2)
	for v := range best {
		VCMPPD(Imm(0), value, best[v], less[v])
		VMOVDQA64(number, places[v])
		VMOVDQA64(index[v], less[v], places[v])
	}
	VPMINUQ(places[0], places[1], places[0])
	VEXTRACTI64X4(Imm(1), places[0], places[1].AsY())
	VPMINUQ(places[1].AsY(), places[0].AsY(), places[0].AsY())
	VEXTRACTI128(Imm(1), places[0].AsY(), places[1].AsX())
	VPMINUQ(places[1].AsX(), places[0].AsX(), places[0].AsX())
	VPSHUFD(Imm(0b01001110), places[0].AsX(), places[1].AsX())
	VPMINUQ(places[1].AsX(), places[0].AsX(), places[0].AsX())
	at := GP64()
	VMOVQ(places[0].AsX(), at)
	Store(at, Return("at"))
}

func leastDotAVX2() {
	s := avx2
	infinity := GLOBL("infinityLeastDotAVX2", RODATA|NOPTR)
	DATA(0, U64(0x7ff0000000000000))
	lanes := GLOBL("lanesLeastDotAVX2", RODATA|NOPTR)
	for i := range 4 {
		DATA(8*i, U64(uint64(i)))
	}
	four := GLOBL("fourLeastDotAVX2", RODATA|NOPTR)
	DATA(0, U64(4))
	function("LeastDotAVX2",
		"func(x *float64, stride, blocks int, coef *float64, d int, least *float64, at *int64)",
		"writes the least, and the first index that has it, of the sums over c < d, d > 0, of",
		"coef[c]*x[c*stride+i], each a fused chain from 0 in the order of c, for the indices i that are",
		"equal to l modulo 8, i < 8*blocks, blocks > 0, to least[l] and at[l].")
	x := Load(Param("x"), GP64())
	stride := GP64()
	Load(Param("stride"), stride)
	SHLQ(Imm(3), stride)
	blocks := GP64()
	Load(Param("blocks"), blocks)
	coef := Load(Param("coef"), GP64())
	d := Load(Param("d"), GP64())
	best, index, sum := s.vectors(2), s.vectors(2), s.vectors(2)
	number, step, value, t := s.vector(), s.vector(), s.vector(), s.vector()
	VPBROADCASTQ(four, step)
	VMOVDQU(lanes, number)
	for v := range best {
		VBROADCASTSD(infinity, best[v])
		VMOVDQA(number, index[v])
		if v == 0 {
			VPADDQ(step, number, number)
		}
	}
	VMOVDQU(lanes, number)
	count("blocks", blocks, func() {
		for v := range sum {
			s.zero(sum[v])
		}
		dots("block", stride, coef, d, x, sum, value, func(at Mem, v int) {
			VFMADD231PD(at.Offset(32*v), value, sum[v])
		})
		for v := range sum {
			VCMPPD(Imm(1), best[v], sum[v], t)
			VMINPD(best[v], sum[v], best[v])
			VBLENDVPD(t, number, index[v], index[v])
			VPADDQ(step, number, number)
		}
		ADDQ(Imm(64), x)
	})
	least := Load(Param("least"), GP64())
	at := Load(Param("at"), GP64())
	for v := range best {
		VMOVUPD(best[v], Mem{Base: least, Disp: 32 * v})
		VMOVDQU(index[v], Mem{Base: at, Disp: 32 * v})
	}
	VZEROUPPER()
	RET()
}
