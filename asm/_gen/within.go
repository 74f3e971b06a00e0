package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// withinFile emits the marking of near centroids in the exact form.
func withinFile(s isa) {
	for d := 1; d < exactDims; d++ {
		within(s, d)
	}
}

// within emits the marking for d dimensions: four vectors in flight, then single
// panels.
func within(s isa, d int) {
	function(fmt.Sprintf("Within%d%s", d, s.name),
		"func(x *float32, panels int, c *float32, k int, limit *float32, masks *uint16)",
		"sets bit l of masks[p*k+a] if point l of panel p is within",
		fmt.Sprintf("limit[p*16+l] of centroid a, and clears it otherwise, for panels > 0 panels of %d", d),
		"dimensions at x and k > 0 centroids at c, by the chain t = x-c, s = fma(t, t, s).")
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64())
	c := Load(Param("c"), GP64())
	k := Load(Param("k"), GP64())
	limit := Load(Param("limit"), GP64())
	masks := Load(Param("masks"), GP64())
	group := 4 / s.parts
	body := func(tag string, np int) {
		nv := np * s.parts
		bound := s.vectors(nv)
		for v := range nv {
			VMOVUPS(Mem{Base: limit, Disp: s.bytes * v}, bound[v])
		}
		at := func(v, j int) Mem { // part v of the group, dimension j
			p, h := v/s.parts, v%s.parts
			return Mem{Base: x, Disp: (p*d+j)*64 + h*s.bytes}
		}
		kept := d
		if np > 1 {
			kept = min(d, 2)
		}
		if s == avx2 {
			kept = 0
		}
		xr := make([][]reg.VecVirtual, nv)
		for v := range xr {
			xr[v] = s.vectors(kept)
			for j := range kept {
				VMOVUPS(at(v, j), xr[v][j])
			}
		}
		out := make([]reg.GPVirtual, np)
		for p := range out {
			out[p] = GP64()
			if p == 0 {
				MOVQ(masks, out[p])
			} else {
				LEAQ(Mem{Base: out[p-1], Index: k, Scale: 2}, out[p])
			}
		}
		cp, left := GP64(), GP64()
		MOVQ(c, cp)
		MOVQ(k, left)
		sum := s.vectors(nv)
		value, t := s.vector(), s.vector()
		bits := GP32()
		count(tag+"_centroids", left, func() {
			for j := range d {
				VBROADCASTSS(Mem{Base: cp, Disp: 4 * j}, value)
				for v := range nv {
					if j < kept {
						VSUBPS(value, xr[v][j], t)
					} else {
						VSUBPS(at(v, j), value, t)
					}
					if j == 0 {
						VMULPS(t, t, sum[v])
					} else {
						VFMADD231PS(t, t, sum[v])
					}
				}
			}
			for v := range nv {
				p, h := v/s.parts, v%s.parts
				if s == avx512 {
					m := K()
					VCMPPS(Imm(2), bound[v], sum[v], m)
					KMOVW(m, Mem{Base: out[p]})
					continue
				}
				VCMPPS(Imm(2), bound[v], sum[v], t)
				VMOVMSKPS(t, bits)
				MOVB(bits.As8(), Mem{Base: out[p], Disp: h})
			}
			for p := range out {
				ADDQ(Imm(2), out[p])
			}
			ADDQ(Imm(uint64(4*d)), cp)
		})
		MOVQ(out[np-1], masks)
		ADDQ(U32(64*np), limit)
		ADDQ(U32(64*np*d), x)
		SUBQ(Imm(uint64(np)), panels)
	}
	Label("groups")
	CMPQ(panels, Imm(uint64(group)))
	JLT(LabelRef("rest"))
	body("group", group)
	JMP(LabelRef("groups"))
	Label("rest")
	TESTQ(panels, panels)
	JZ(LabelRef("end"))
	body("single", 1)
	JMP(LabelRef("rest"))
	Label("end")
	VZEROUPPER()
	RET()
}
