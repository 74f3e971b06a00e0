package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func projectFile(s isa) {
	for w := 1; w <= maxTile; w++ {
		project(s, w)
	}
}

// project emits the products of points with w rows of a matrix. As many panels
// at once as the registers hold hide the latency of the chains and share the
// broadcast of a coefficient.
func project(s isa, w int) {
	function(fmt.Sprintf("Project%d%s", w, s.name),
		"func(x *float32, panels int, d int, tile *float32, out *float32, stride int)",
		"writes the products of the points of panels > 0 panels of d > 0",
		fmt.Sprintf("dimensions at x with the %d rows of tile, stored as [d][%d]: for each panel %d", w, w, w),
		"vectors of 16 at out, which then moves on by stride bytes. A product is the",
		"chain s = 0, s = fma(x, c, s).")
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64())
	bytes := Load(Param("d"), GP64())
	SHLQ(Imm(6), bytes) // of a panel
	tile := Load(Param("tile"), GP64())
	out := Load(Param("out"), GP64())
	stride := Load(Param("stride"), GP64())
	tripled := GP64()
	LEAQ(Mem{Base: bytes, Index: bytes, Scale: 2}, tripled)

	registers := 32
	if s == avx2 {
		registers = 16
	}
	most := 1
	for _, np := range []int{2, 4} {
		if (w+1)*np*s.parts < registers {
			most = np
		}
	}
	group := func(tag string, np int) {
		nv := np * s.parts
		value := s.vector()
		s.zero(value)
		sums := make([][]reg.VecVirtual, w)
		for q := range sums {
			sums[q] = s.vectors(nv)
			for _, v := range sums[q] {
				VMOVAPS(value, v)
			}
		}
		xp, tp, left := GP64(), GP64(), GP64()
		MOVQ(x, xp)
		MOVQ(tile, tp)
		MOVQ(bytes, left)
		SHRQ(Imm(6), left)
		xs := s.vectors(nv)
		count(tag+"_dims", left, func() {
			for v := range nv {
				m := Mem{Base: xp, Disp: v % s.parts * s.bytes}
				switch v / s.parts {
				case 1:
					m.Index, m.Scale = bytes, 1
				case 2:
					m.Index, m.Scale = bytes, 2
				case 3:
					m.Index, m.Scale = tripled, 1
				}
				VMOVUPS(m, xs[v])
			}
			PREFETCHT0(Mem{Base: xp, Index: bytes, Scale: uint8(np)})
			for q := range w {
				VBROADCASTSS(Mem{Base: tp, Disp: 4 * q}, value)
				for v := range nv {
					VFMADD231PS(value, xs[v], sums[q][v])
				}
			}
			ADDQ(Imm(64), xp)
			ADDQ(Imm(uint64(4*w)), tp)
		})
		for p := range np {
			for q := range w {
				for part := range s.parts {
					VMOVUPS(sums[q][p*s.parts+part], Mem{Base: out, Disp: 64*q + part*s.bytes})
				}
			}
			ADDQ(stride, out)
			ADDQ(bytes, x)
		}
		SUBQ(Imm(uint64(np)), panels)
	}
	if most > 1 {
		Label("groups")
		CMPQ(panels, Imm(uint64(most)))
		JLT(LabelRef("rest"))
		group("group", most)
		JMP(LabelRef("groups"))
	}
	Label("rest")
	TESTQ(panels, panels)
	JZ(LabelRef("end"))
	group("single", 1)
	JMP(LabelRef("rest"))
	Label("end")
	VZEROUPPER()
	RET()
}
