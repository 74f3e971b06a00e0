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

// projection is a routine for w rows of a matrix, with its arguments in registers.
type projection struct {
	s                                    isa
	w                                    int
	x, bytes, tile, out, stride, tripled reg.Register
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
	p := &projection{s: s, w: w, x: Load(Param("x"), GP64())}
	panels := Load(Param("panels"), GP64())
	p.bytes = Load(Param("d"), GP64())
	SHLQ(Imm(6), p.bytes) // of a panel
	p.tile = Load(Param("tile"), GP64())
	p.out = Load(Param("out"), GP64())
	p.stride = Load(Param("stride"), GP64())
	p.tripled = GP64()
	LEAQ(Mem{Base: p.bytes, Index: p.bytes, Scale: 2}, p.tripled)

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
	groups(panels, most, p.group)
}

// group takes np panels.
func (p *projection) group(tag string, np int) {
	s, nv := p.s, np*p.s.parts
	value := s.vector()
	s.zero(value)
	sums := make([][]reg.VecVirtual, p.w)
	for q := range sums {
		sums[q] = s.vectors(nv)
		for _, v := range sums[q] {
			VMOVAPS(value, v)
		}
	}
	xp, tp, left := GP64(), GP64(), GP64()
	MOVQ(p.x, xp)
	MOVQ(p.tile, tp)
	MOVQ(p.bytes, left)
	SHRQ(Imm(6), left)
	xs := s.vectors(nv)
	count(tag+"_dims", left, func() {
		for v := range nv {
			VMOVUPS(further(Mem{Base: xp, Disp: v % s.parts * s.bytes}, v/s.parts, p.bytes, p.tripled), xs[v])
		}
		PREFETCHT0(Mem{Base: xp, Index: p.bytes, Scale: uint8(np)})
		for q := range p.w {
			VBROADCASTSS(Mem{Base: tp, Disp: 4 * q}, value)
			for v := range nv {
				VFMADD231PS(value, xs[v], sums[q][v])
			}
		}
		ADDQ(Imm(64), xp)
		ADDQ(Imm(uint64(4*p.w)), tp)
	})
	for panel := range np {
		for q := range p.w {
			for part := range s.parts {
				VMOVUPS(sums[q][panel*s.parts+part], Mem{Base: p.out, Disp: 64*q + part*s.bytes})
			}
		}
		ADDQ(p.stride, p.out)
		ADDQ(p.bytes, p.x)
	}
}
