package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fusedDims is the number of dimensions up to which the fused kernel exists.
const fusedDims = 8

func accumulateAVX512() {
	infinity := constants("fusedInfinity", 0x7f800000)
	ones := constants("fusedOnes", 1)
	for d := 1; d <= fusedDims; d++ {
		assignSub(avx512, d, fused, infinity, ones)
	}
	foldLanes()
	for d := 1; d <= 3; d++ {
		scatterNarrow(d)
	}
	scatterWide()
}

// addMasked adds the vectors of a group to the sums of their clusters: for each
// cluster, every dimension of every vector under the mask of its points.
func addMasked(tag string, d int, a *argmin, k reg.Register, sums, counts reg.Register, xr [][]reg.VecVirtual, at func(v, j int) Mem) {
	avx512.zero(a.number)
	cluster, sp, n := GP64(), GP64(), GP64()
	MOVQ(k, cluster)
	MOVQ(sums, sp)
	MOVQ(counts, n)
	masks := make([]reg.OpmaskVirtual, len(a.index))
	for v := range masks {
		masks[v] = K()
	}
	total, bits := GP64(), GP64()
	sum := avx512.vector()
	count(tag+"_clusters", cluster, func() {
		for v, index := range a.index {
			VPCMPEQD(index, a.number, masks[v])
		}
		for v := range masks {
			KMOVW(masks[v], bits.As32())
			if v == 0 {
				POPCNTL(bits.As32(), total.As32())
				continue
			}
			POPCNTL(bits.As32(), bits.As32())
			ADDQ(bits, total)
		}
		ADDQ(total, Mem{Base: n})
		for j := range d {
			place := Mem{Base: sp, Disp: 64 * j}
			VMOVUPS(place, sum)
			for v := range masks {
				if j < len(xr[v]) {
					VADDPS(xr[v][j], sum, masks[v], sum)
				} else {
					VADDPS(at(v, j), sum, masks[v], sum)
				}
			}
			VMOVUPS(sum, place)
		}
		a.step()
		ADDQ(U32(uint32(64*d)), sp)
		ADDQ(Imm(8), n)
	})
}

// foldLanes emits the sum over lanes of exact float32 sums.
func foldLanes() {
	function("FoldLanesAVX512", "func(lanes *float32, n int, scale float32, sums *int64)",
		"adds to each of n > 0 sums the sum of its 16 lanes times scale, and clears the",
		"lanes. Each lane times scale is an integer of at most 2^24.")
	lanes := Load(Param("lanes"), GP64())
	n := GP64()
	Load(Param("n"), n)
	sums := Load(Param("sums"), GP64())
	scale := ZMM()
	VBROADCASTSS(NewParamAddr("scale", 16), scale)
	v, zero, half := ZMM(), ZMM(), ZMM()
	avx512.zero(zero)
	sum := GP64()
	count("loop", n, func() {
		VMULPS(Mem{Base: lanes}, scale, v)
		VMOVUPS(zero, Mem{Base: lanes})
		VCVTTPS2DQ(v, v)
		VEXTRACTI64X4(Imm(1), v, half.AsY())
		VPADDD(half.AsY(), v.AsY(), v.AsY())
		VEXTRACTI32X4(Imm(1), v.AsY(), half.AsX())
		VPADDD(half.AsX(), v.AsX(), v.AsX())
		VPSHUFD(Imm(0b1110), v.AsX(), half.AsX())
		VPADDD(half.AsX(), v.AsX(), v.AsX())
		VPSHUFD(Imm(0b01), v.AsX(), half.AsX())
		VPADDD(half.AsX(), v.AsX(), v.AsX())
		VMOVD(v.AsX(), sum.As32())
		MOVLQSX(sum.As32(), sum)
		ADDQ(sum, Mem{Base: sums})
		ADDQ(Imm(64), lanes)
		ADDQ(Imm(8), sums)
	})
	VZEROUPPER()
	RET()
}

// scatterNarrow emits the accumulation of d <= 3 dimensions by label into rows
// of four int32: the coordinates, zeros, and the count.
func scatterNarrow(d int) {
	function(fmt.Sprintf("Scatter%dAVX512", d), "func(x *float32, panels int, labels *uint16, table *int32, rows int, bias float32)",
		fmt.Sprintf("adds each point of panels > 0 panels of %d dimensions at x to the row of table", d),
		"that its label names: the bits of x+bias in the first columns, 1 in the fourth,",
		"modulo 2^32. The table has four replicas of [rows][4]int32, one for each lane",
		"modulo 4, so that points of one cluster seldom wait for each other.")
	x := Load(Param("x"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	labels := Load(Param("labels"), GP64())
	table := Load(Param("table"), GP64())
	replica := GP64()
	Load(Param("rows"), replica)
	SHLQ(Imm(4), replica)
	bias := ZMM()
	VBROADCASTSS(NewParamAddr("bias", 40), bias)
	tables := []reg.GPVirtual{GP64(), GP64(), GP64(), GP64()}
	MOVQ(table, tables[0])
	for s := 1; s < 4; s++ {
		LEAQ(Mem{Base: tables[s-1], Index: replica, Scale: 1}, tables[s])
	}
	one, zero := ZMM(), ZMM()
	VPTERNLOGD(Imm(0xff), one, one, one)
	VPSRLD(Imm(31), one, one)
	avx512.zero(zero)
	stack := AllocLocal(256)

	count("panels", panels, func() {
		rows := []reg.VecVirtual{zero, zero, zero, one}
		for j := range d {
			rows[j] = ZMM()
			VADDPS(Mem{Base: x, Disp: 64 * j}, bias, rows[j])
			PREFETCHT0(Mem{Base: x, Disp: 64*j + 4096})
		}
		pairs := avx512.vectors(4)
		VUNPCKLPS(rows[1], rows[0], pairs[0])
		VUNPCKHPS(rows[1], rows[0], pairs[1])
		VUNPCKLPS(rows[3], rows[2], pairs[2])
		VUNPCKHPS(rows[3], rows[2], pairs[3])
		quad := ZMM()
		for s := range 4 {
			if s%2 == 0 {
				VUNPCKLPD(pairs[2+s/2], pairs[s/2], quad)
			} else {
				VUNPCKHPD(pairs[2+s/2], pairs[s/2], quad)
			}
			VMOVUPS(quad, stack.Offset(64*s))
		}
		row := XMM()
		for i := range 16 {
			l := GP64()
			MOVWLZX(Mem{Base: labels, Disp: 2 * i}, l.As32())
			SHLQ(Imm(4), l)
			place := Mem{Base: tables[i%4], Index: l, Scale: 1}
			VMOVDQU32(stack.Offset(64*(i%4)+16*(i/4)), row)
			VPADDD(place, row, row)
			VMOVDQU32(row, place)
		}
		ADDQ(U32(uint32(64*d)), x)
		ADDQ(Imm(32), labels)
	})
	VZEROUPPER()
	RET()
}

// transpose16 turns rows (dimension by dimension, 64 bytes each, from at) into
// points of 16 dimensions, after adding bias, and hands over the points in the
// order they get ready. Loads that insert halves save a third of the shuffles.
func transpose16(at func(row int) Mem, bias reg.VecVirtual, use func(point int, v reg.VecVirtual)) {
	for h := range 2 {
		quads := [2][]reg.VecVirtual{avx512.vectors(4), avx512.vectors(4)}
		for r := range 4 {
			low, high := ZMM(), ZMM()
			for i, v := range []reg.VecVirtual{low, high} {
				row := 8*i + r
				VMOVUPS(at(row).Offset(32*h), v.AsY())
				VINSERTF64X4(Imm(1), at(row+4).Offset(32*h), v, v)
				VADDPS(bias, v, v)
			}
			VSHUFF32X4(Imm(0x88), high, low, quads[0][r])
			VSHUFF32X4(Imm(0xdd), high, low, quads[1][r])
		}
		for q, a := range quads {
			t := avx512.vectors(4)
			VUNPCKLPS(a[1], a[0], t[0])
			VUNPCKHPS(a[1], a[0], t[1])
			VUNPCKLPS(a[3], a[2], t[2])
			VUNPCKHPS(a[3], a[2], t[3])
			for c := range 4 {
				v := ZMM()
				if c%2 == 0 {
					VUNPCKLPD(t[2+c/2], t[c/2], v)
				} else {
					VUNPCKHPD(t[2+c/2], t[c/2], v)
				}
				use(8*h+4*q+c, v)
			}
		}
	}
}

// scatterWide emits the accumulation by label into rows of whole vectors.
func scatterWide() {
	framed("ScatterAVX512", "func(x *float32, panels, d int, labels *uint16, table *int32, width int, bias float32, counts *int32)",
		"adds the bits of x+bias, modulo 2^32, of each point of panels > 0 panels of d > 0",
		"dimensions at x to the row of table [][width]int32 that its label names, and 1 to",
		"counts[label]; width = (d+15)/16*16. When d is at least 16, the last 16 columns of",
		"a row stand for the last 16 dimensions; columns past d of a narrower row receive",
		"bits of bias.")
	x := Load(Param("x"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	d := Load(Param("d"), GP64())
	labels := Load(Param("labels"), GP64())
	counts := GP64()
	bias := ZMM()
	VBROADCASTSS(NewParamAddr("bias", 48), bias)
	stack := AllocLocal(1024 + 16*8)
	offsets := func(i int) Mem { return stack.Offset(1024 + 8*i) }

	zero := ZMM()
	avx512.zero(zero)
	for i := range 16 {
		VMOVUPS(zero, stack.Offset(64*i))
	}
	count("panels", panels, func() {
		width := Load(Param("width"), GP64())
		Load(Param("counts"), counts)
		for i := range 16 { // byte offsets of the rows
			l := GP64()
			MOVWLZX(Mem{Base: labels, Disp: 2 * i}, l.As32())
			INCL(Mem{Base: counts, Index: l, Scale: 4})
			IMULQ(width, l)
			SHLQ(Imm(2), l)
			MOVQ(l, offsets(i))
		}
		ADDQ(Imm(32), labels)
		column, left, from, end := GP64(), GP64(), GP64(), GP64()
		Load(Param("table"), column)
		MOVQ(d, left)
		MOVQ(x, from)
		MOVQ(d, end)
		SHLQ(Imm(6), end)
		ADDQ(x, end)

		CMPQ(left, Imm(16))
		JGE(LabelRef("block"))
		// A short panel is copied to the stack, under which zeros lie.
		to := GP64()
		LEAQ(stack, to)
		copied := ZMM()
		count("copy", left, func() {
			VMOVUPS(Mem{Base: from}, copied)
			VMOVUPS(copied, Mem{Base: to})
			ADDQ(Imm(64), from)
			ADDQ(Imm(64), to)
		})
		LEAQ(stack, from)
		MOVQ(U32(16), left)

		Label("block")
		transpose16(func(row int) Mem { return Mem{Base: from, Disp: 64 * row} }, bias, func(point int, v reg.VecVirtual) {
			l := GP64()
			MOVQ(offsets(point), l)
			place := Mem{Base: column, Index: l, Scale: 1}
			VPADDD(place, v, v)
			VMOVDQU32(v, place)
		})
		ADDQ(Imm(64), column)
		ADDQ(U32(1024), from)
		SUBQ(Imm(16), left)
		JZ(LabelRef("next"))
		CMPQ(left, Imm(16))
		JGE(LabelRef("block"))
		MOVQ(end, from)
		SUBQ(U32(1024), from)
		MOVQ(U32(16), left)
		JMP(LabelRef("block"))

		Label("next")
		MOVQ(end, x)
	})
	VZEROUPPER()
	RET()
}
