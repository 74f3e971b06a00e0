package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// weightedChains is the number of chains of a weighted sum, and the number of points in
// a block: point i of a block belongs to chain i.
const weightedChains = 8

// weightedFile emits the sums of float64 rows by label.
func weightedFile(s isa) {
	if s == avx2 {
		addWeightedRow(s, 4)
		foldWeighted(s)
		for _, width := range []int{4, 8, 16, 24, 32} {
			addMembers(s, width)
		}
	}
	addWeightedRow(s, 8)
	addWeighted(s)
	weightedCosts(s)
}

// addRow adds the vectors of a row at from to those at to.
func addRow(s isa, from, to Mem, bytes int) {
	if s == avx512 && bytes < s.bytes {
		s = avx2
	}
	for at := 0; at < bytes; at += s.bytes {
		v := s.vector()
		VMOVUPD(from.Offset(at), v)
		VADDPD(to.Offset(at), v, v)
		VMOVUPD(v, to.Offset(at))
	}
}

// addWeightedRow emits the form for rows of a fixed width.
func addWeightedRow(s isa, width int) {
	row := 8 * width
	function(fmt.Sprintf("AddWeighted%d%s", width, s.name),
		"func(rows *float64, blocks int, labels *uint16, table *float64)",
		fmt.Sprintf("adds the rows [8][%d] of blocks > 0 blocks of 8 points to table [][8][%d]: row i of a", width, width),
		"block to the chain i of the row that its label names.")
	rows := Load(Param("rows"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	labels := Load(Param("labels"), GP64())
	table := Load(Param("table"), GP64())
	shift := uint64(8) // bytes of a row of the table
	if width == 8 {
		shift = 9
	}
	count("blocks", blocks, func() {
		for i := range weightedChains {
			l := GP64()
			MOVWLZX(Mem{Base: labels, Disp: 2 * i}, l.As32())
			SHLQ(Imm(shift), l)
			addRow(s, Mem{Base: rows, Disp: row * i}, Mem{Base: table, Index: l, Scale: 1, Disp: row * i}, row)
		}
		ADDQ(U32(uint32(row*weightedChains)), rows)
		ADDQ(Imm(2*weightedChains), labels)
	})
	VZEROUPPER()
	RET()
}

// addWeighted emits the form for rows of any width.
func addWeighted(s isa) {
	function("AddWeighted"+s.name,
		"func(rows *float64, blocks, width int, labels *uint16, table *float64, stride, chain int)",
		"adds the rows [8][width] of blocks > 0 blocks of 8 points to a table: row i of a block",
		"at label*stride + i*chain bytes. width > 0 is a multiple of 8.")
	rows := Load(Param("rows"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	width := Load(Param("width"), GP64())
	SHRQ(Imm(3), width)
	labels := Load(Param("labels"), GP64())
	table := Load(Param("table"), GP64())
	stride := Load(Param("stride"), GP64())
	chain := Load(Param("chain"), GP64())
	at, left, points := GP64(), GP64(), GP64()
	to := GP64()
	count("blocks", blocks, func() {
		MOVQ(table, at)
		MOVQ(U32(weightedChains), points)
		count("points", points, func() {
			MOVWLZX(Mem{Base: labels}, to.As32())
			IMULQ(stride, to)
			ADDQ(at, to)
			MOVQ(width, left)
			count("columns", left, func() {
				addRow(s, Mem{Base: rows}, Mem{Base: to}, 64)
				ADDQ(Imm(64), rows)
				ADDQ(Imm(64), to)
			})
			ADDQ(Imm(2), labels)
			ADDQ(chain, at)
		})
	})
	VZEROUPPER()
	RET()
}

// addMembers emits the sum of points by number, for rows of a fixed width. The row of the table stays in
// registers while the label does: a sum would wait for its own store.
func addMembers(s isa, width int) {
	row := 8 * width
	function(fmt.Sprintf("AddMembers%d%s", width, s.name),
		"func(rows *float64, which *uint32, n int, labels *uint16, table *float64)",
		fmt.Sprintf("adds the row [%d] of each of the n > 0 points that which names, in that order, to the", width),
		fmt.Sprintf("row [%d] of the table that the label of the point names.", width))
	rows, which := Load(Param("rows"), GP64()), Load(Param("which"), GP64())
	n := GP64()
	Load(Param("n"), n)
	labels, table := Load(Param("labels"), GP64()), Load(Param("table"), GP64())
	sums := s.vectors(row / s.bytes)
	from, label, to, next := GP64(), GP64(), GP64(), GP64()
	point := func() {
		MOVL(Mem{Base: which}, from.As32())
		MOVWLZX(Mem{Base: labels, Index: from, Scale: 2}, next.As32())
		IMUL3Q(U32(uint32(row)), from, from)
	}
	open := func() {
		MOVQ(next, label)
		IMUL3Q(U32(uint32(row)), next, to)
		ADDQ(table, to)
		for i, sum := range sums {
			VMOVUPD(Mem{Base: to, Disp: i * s.bytes}, sum)
		}
	}
	shut := func() {
		for i, sum := range sums {
			VMOVUPD(sum, Mem{Base: to, Disp: i * s.bytes})
		}
	}
	point()
	open()
	JMP(LabelRef("add"))
	Label("point")
	point()
	CMPQ(next, label)
	JEQ(LabelRef("add"))
	shut()
	open()
	Label("add")
	for i, sum := range sums {
		VADDPD(Mem{Base: rows, Index: from, Scale: 1, Disp: i * s.bytes}, sum, sum)
	}
	ADDQ(Imm(4), which)
	DECQ(n)
	JNZ(LabelRef("point"))
	shut()
	VZEROUPPER()
	RET()
}

// foldWeighted emits the sum of the chains.
func foldWeighted(s isa) {
	function("FoldWeighted"+s.name, "func(table *float64, clusters, width int)",
		"replaces the first chain of each of clusters > 0 rows of table [][8][width] by",
		"((0+1)+(2+3))+((4+5)+(6+7)) and the others by zero. width > 0 is a multiple of 4.")
	table := Load(Param("table"), GP64())
	clusters := GP64()
	Load(Param("clusters"), clusters)
	width := Load(Param("width"), GP64())
	SHRQ(Imm(2), width)
	chain, tripled, left := GP64(), GP64(), GP64()
	MOVQ(width, chain)
	SHLQ(Imm(5), chain) // bytes of a chain
	LEAQ(Mem{Base: chain, Index: chain, Scale: 2}, tripled)
	zero := s.vector()
	s.zero(zero)
	upper := GP64()
	count("clusters", clusters, func() {
		MOVQ(width, left)
		count("columns", left, func() {
			LEAQ(Mem{Base: table, Index: chain, Scale: 4}, upper)
			place := func(r int) Mem {
				m := Mem{Base: table}
				if r >= 4 {
					m.Base = upper
				}
				return further(m, r%4, chain, tripled)
			}
			var sums []reg.VecVirtual
			for r := 0; r < weightedChains; r += 2 {
				v := s.vector()
				VMOVUPD(place(r), v)
				VADDPD(place(r+1), v, v)
				sums = append(sums, v)
			}
			for r := 1; r < weightedChains; r++ {
				VMOVUPD(zero, place(r))
			}
			VADDPD(sums[1], sums[0], sums[0])
			VADDPD(sums[3], sums[2], sums[2])
			VADDPD(sums[2], sums[0], sums[0])
			VMOVUPD(sums[0], Mem{Base: table})
			ADDQ(Imm(32), table)
		})
		// The columns passed one chain; the row has seven more.
		LEAQ(Mem{Base: table, Index: chain, Scale: 4}, table)
		ADDQ(tripled, table)
	})
	VZEROUPPER()
	RET()
}

// weightedCosts emits the sum of weights times float32 values.
func weightedCosts(s isa) {
	function("WeightedCosts"+s.name, "func(weights *float64, dist *float32, blocks int, costs *float64)",
		"adds weights*dist, rounded, of blocks > 0 blocks of 8 points to the eight chains at",
		"costs: point i of a block to chain i.")
	weights := Load(Param("weights"), GP64())
	dist := Load(Param("dist"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	costs := Load(Param("costs"), GP64())
	sums := s.vectors(s.parts)
	for h, sum := range sums {
		VMOVUPD(Mem{Base: costs, Disp: h * s.bytes}, sum)
	}
	v := s.vector()
	count("loop", blocks, func() {
		for h, sum := range sums {
			VCVTPS2PD(Mem{Base: dist, Disp: h * s.bytes / 2}, v)
			VMULPD(Mem{Base: weights, Disp: h * s.bytes}, v, v)
			VADDPD(v, sum, sum)
		}
		ADDQ(Imm(64), weights)
		ADDQ(Imm(32), dist)
	})
	for h, sum := range sums {
		VMOVUPD(sum, Mem{Base: costs, Disp: h * s.bytes})
	}
	VZEROUPPER()
	RET()
}
