package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// cellsFile emits the numbers of records' cells.
func cellsFile(s isa) {
	labelCells(s)
	gridCells(s)
}

// spread copies a parameter of 32 bits to all lanes.
func (s isa) spread(name string, v reg.VecVirtual) {
	VMOVD(Load(Param(name), GP32()), v.AsX())
	VPBROADCASTD(v.AsX(), v)
}

// labelCells emits a column of labels.
func labelCells(s isa) {
	function("LabelCells"+s.name, "func(cells *uint32, labels *uint16, blocks int, times uint32)",
		"multiplies the cells of blocks > 0 blocks of 16 records and adds their labels.")
	cells := Load(Param("cells"), GP64())
	labels := Load(Param("labels"), GP64())
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	times := s.vector()
	s.spread("times", times)
	count("blocks", blocks, func() {
		for h := range s.parts {
			cell, label := s.vector(), s.vector()
			at := Mem{Base: cells, Disp: h * s.bytes}
			VPMOVZXWD(Mem{Base: labels, Disp: h * s.bytes / 2}, label)
			VPMULLD(at, times, cell)
			VPADDD(label, cell, cell)
			VMOVDQUx(s, cell, at)
		}
		ADDQ(Imm(64), cells)
		ADDQ(Imm(32), labels)
	})
	VZEROUPPER()
	RET()
}

// gridCells emits the cells of panels of points. Float64 has room for a coordinate of the
// fixed-point grid times a side.
func gridCells(s isa) {
	one := wideConstant("gridOne"+s.name, 0x3ff0000000000000)
	function("GridCells"+s.name, "func(cells *uint32, x *float32, panels, d int, half float64, side, last uint32)",
		"numbers the cells of the points of panels > 0 panels of d > 0 dimensions at x: by",
		"dimension, cell times side plus min((x+1) half, last).")
	cells := Load(Param("cells"), GP64())
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64()).(reg.GPVirtual)
	d := Load(Param("d"), GP64())
	left := GP64()
	half, ones, side, last := s.vector(), s.vector(), s.vector(), s.vector()
	VBROADCASTSD(NewParamAddr("half", 32), half)
	VBROADCASTSD(one, ones)
	s.spread("side", side)
	s.spread("last", last)
	cell := s.vectors(s.parts)
	count("panels", panels, func() {
		for _, c := range cell {
			s.zero(c)
		}
		MOVQ(d, left)
		count("dimensions", left, func() {
			for h, c := range cell {
				low, high := s.vector(), s.vector()
				for i, v := range []reg.VecVirtual{low, high} {
					VCVTPS2PD(Mem{Base: x, Disp: h*s.bytes + i*s.bytes/2}, v)
					VADDPD(ones, v, v)
					VMULPD(half, v, v)
				}
				if s == avx512 {
					VCVTTPD2DQ(low, low.AsY())
					VCVTTPD2DQ(high, high.AsY())
					VINSERTI64X4(Imm(1), high.AsY(), low, low)
				} else {
					VCVTTPD2DQY(low, low.AsX())
					VCVTTPD2DQY(high, high.AsX())
					VINSERTI128(Imm(1), high.AsX(), low, low)
				}
				VPMINSD(last, low, low)
				VPMULLD(side, c, c)
				VPADDD(low, c, c)
			}
			ADDQ(Imm(64), x)
		})
		for h, c := range cell {
			VMOVDQUx(s, c, Mem{Base: cells, Disp: h * s.bytes})
		}
		ADDQ(Imm(64), cells)
	})
	VZEROUPPER()
	RET()
}
