package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rivalsFile emits the two nearest centroids under biased distances.
func rivalsFile(s isa) {
	infinity := constants("infinityRivals"+s.name, 0x7f800000)
	ones := constants("onesRivals"+s.name, 1, 1, 1, 1, 1, 1, 1, 1)
	for d := 1; d < exactDims; d++ {
		rivals(s, d, infinity, ones)
	}
}

// rivals emits the kernel for d dimensions: two panels in flight, then single
// panels.
func rivals(s isa, d int, infinity, ones Mem) {
	function(fmt.Sprintf("Rivals%d%s", d, s.name),
		"func(x *float32, panels int, c *float32, k int, bias *float32, slack float32, labels, rivals *uint16, gap *float32)",
		"writes the labels of the least and of the second least of k > 0",
		fmt.Sprintf("biased distances of each point of panels > 0 panels of %d dimensions at x, by the chain", d),
		"s = bias, t = x-c, s = fma(t, t, s), and gap = fma(-slack, second, second-least).")
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64())
	c := Load(Param("c"), GP64())
	k := Load(Param("k"), GP64())
	bias := Load(Param("bias"), GP64())
	labels := Load(Param("labels"), GP64())
	others := Load(Param("rivals"), GP64())
	gap := Load(Param("gap"), GP64())
	group := 2
	if s == avx2 {
		group = 1
	}
	body := func(tag string, np int) {
		nv := np * s.parts
		a := newArgmin(s, nv, true, ones)
		rival := s.vectors(nv)
		kept := 0 // vectors of x that stay in registers
		if s == avx512 {
			kept = min(d, 6)
			if np == 1 {
				kept = d
			}
		}
		at := func(v, j int) Mem { // part v of the group, dimension j
			p, h := v/s.parts, v%s.parts
			return Mem{Base: x, Disp: (p*d+j)*64 + h*s.bytes}
		}
		xr := make([][]reg.VecVirtual, nv)
		for v := range xr {
			xr[v] = s.vectors(kept)
			for j := range kept {
				VMOVUPS(at(v, j), xr[v][j])
			}
		}
		if np > 1 {
			for line := range np * d {
				PREFETCHT0(Mem{Base: x, Disp: 64*line + prefetchBytes(d)})
			}
		}
		cp, bp, left := GP64(), GP64(), GP64()
		MOVQ(c, cp)
		MOVQ(bias, bp)
		MOVQ(k, left)
		value, t := s.vector(), s.vector()
		for v := range nv {
			s.zero(a.index[v])
			s.zero(rival[v])
			VBROADCASTSS(infinity, a.best[v])
			VBROADCASTSS(infinity, a.next[v])
		}
		s.zero(a.number)
		sum := s.vectors(nv)
		count(tag+"_centroids", left, func() {
			for v := range nv {
				VBROADCASTSS(Mem{Base: bp}, sum[v])
			}
			for j := range d {
				VBROADCASTSS(Mem{Base: cp, Disp: 4 * j}, value)
				for v := range nv {
					if j < kept {
						VSUBPS(value, xr[v][j], t)
					} else {
						VSUBPS(at(v, j), value, t)
					}
					VFMADD231PS(t, t, sum[v])
				}
			}
			for v := range nv {
				a.takeRival(v, sum[v], rival[v], t)
			}
			ADDQ(Imm(4), bp)
			ADDQ(Imm(uint64(4*d)), cp)
			a.step()
		})
		slack := value
		VBROADCASTSS(NewParamAddr("slack", 40), slack)
		for v := range nv {
			next := a.next[v].(reg.VecVirtual)
			VSUBPS(a.best[v], next, t)
			VFNMADD231PS(next, slack, t)
			VMOVUPS(t, Mem{Base: gap, Disp: s.bytes * v})
		}
		for p := range np {
			a.storeLabels(p, Mem{Base: labels, Disp: 32 * p})
		}
		a.index = rival
		for p := range np {
			a.storeLabels(p, Mem{Base: others, Disp: 32 * p})
		}
		ADDQ(U32(32*np), labels)
		ADDQ(U32(32*np), others)
		ADDQ(U32(64*np), gap)
		ADDQ(U32(64*np*d), x)
		SUBQ(Imm(uint64(np)), panels)
	}
	if group > 1 {
		Label("groups")
		CMPQ(panels, Imm(uint64(group)))
		JLT(LabelRef("rest"))
		body("group", group)
		JMP(LabelRef("groups"))
	}
	Label("rest")
	TESTQ(panels, panels)
	JZ(LabelRef("end"))
	body("single", 1)
	JMP(LabelRef("rest"))
	Label("end")
	VZEROUPPER()
	RET()
}

// takeRival is take that also keeps the label of the second smallest: the
// smallest so far where v is smaller still, the current one where v lies between.
func (a *argmin) takeRival(q int, v, rival, t reg.VecVirtual) {
	next := a.next[q].(reg.VecVirtual)
	if a.s == avx512 {
		least, second := a.mask[2*(q%2)], a.mask[2*(q%2)+1]
		VCMPPS(Imm(1), next, v, second)
		VCMPPS(Imm(1), a.best[q], v, least)
		VMAXPS(a.best[q], v, t)
		VMINPS(t, next, next)
		VMINPS(a.best[q], v, a.best[q])
		VMOVDQA32(a.number, second, rival)
		VMOVDQA32(a.index[q], least, rival)
		VMOVDQA32(a.number, least, a.index[q])
		return
	}
	VCMPPS(Imm(1), next, v, t)
	VBLENDVPS(t, a.number, rival, rival)
	VMAXPS(a.best[q], v, t)
	VMINPS(t, next, next)
	VCMPPS(Imm(1), a.best[q], v, t)
	VMINPS(a.best[q], v, a.best[q])
	VBLENDVPS(t, a.index[q], rival, rival)
	VBLENDVPS(t, a.number, a.index[q], a.index[q])
}
