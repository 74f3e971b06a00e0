package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// topTwoFile emits the two nearest centroids under additively weighted distances.
func topTwoFile(s isa) {
	infinity := constants("infinityTopTwo"+s.name, 0x7f800000)
	ones := constants("onesTopTwo"+s.name, 1)
	for d := 1; d < exactDims; d++ {
		topTwo(s, d, infinity, ones)
	}
}

// topTwo emits the kernel for d dimensions: two panels in flight, then single
// panels. The index of a centroid takes the place of the low bits of its distance,
// so that minima carry it along.
func topTwo(s isa, d int, infinity, ones Mem) {
	function(fmt.Sprintf("TopTwo%d%s", d, s.name),
		"func(x *float32, panels int, c *float32, k int, weight *float32, low uint32, slack, window float32, labels "+
			"*uint16, cells *uint32, gap *float32)",
		"finds the least and the second least of k > 0 values for each",
		fmt.Sprintf("point of panels > 0 panels of %d dimensions at x: the chain s = weight, t = x-c,", d),
		"s = fma(t, t, s), its bits low replaced by the index of the centroid. It writes the index",
		"of the least, gap = fma(-slack, second, second-least), and label*k+second where the gap is",
		"at most window, else k*k+label. Weights are not negative.")
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64())
	c := Load(Param("c"), GP64())
	k := GP64()
	Load(Param("k"), k)
	weight := Load(Param("weight"), GP64())
	labels := Load(Param("labels"), GP64())
	cells := Load(Param("cells"), GP64())
	gap := Load(Param("gap"), GP64())
	low := s.vector()
	VBROADCASTSS(NewParamAddr("low", 40), low)
	group := 2
	if s == avx2 {
		group = 1
	}
	body := func(tag string, np int) {
		nv := np * s.parts
		kept := 0 // vectors of x that stay in registers
		if s == avx512 {
			kept = min(d, 8)
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
		MOVQ(weight, bp)
		MOVQ(k, left)
		best, next, sum := s.vectors(nv), s.vectors(nv), s.vectors(nv)
		number, value, t := s.vector(), s.vector(), s.vector()
		for v := range nv {
			VBROADCASTSS(infinity, best[v])
			VBROADCASTSS(infinity, next[v])
		}
		s.zero(number)
		one := s.vector()
		VPBROADCASTD(ones, one)
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
				if s == avx512 {
					VPTERNLOGD(Imm(0xba), number, low, sum[v]) // sum &^ low | number
				} else {
					VPANDN(sum[v], low, sum[v])
					VPOR(number, sum[v], sum[v])
				}
				VMAXPS(best[v], sum[v], t)
				VMINPS(t, next[v], next[v])
				VMINPS(sum[v], best[v], best[v])
			}
			ADDQ(Imm(4), bp)
			ADDQ(Imm(uint64(4*d)), cp)
			VPADDD(one, number, number)
		})
		slack, window, width, square := value, number, one, s.vector()
		VBROADCASTSS(NewParamAddr("slack", 44), slack)
		VBROADCASTSS(NewParamAddr("window", 48), window)
		VMOVD(k.As32(), width.AsX())
		VPBROADCASTD(width.AsX(), width)
		VPMULLD(width, width, square)
		for v := range nv {
			VSUBPS(best[v], next[v], t)
			VFNMADD231PS(next[v], slack, t)
			VMOVUPS(t, Mem{Base: gap, Disp: s.bytes * v})
			label, runnerUp := best[v], next[v]
			if s == avx512 {
				VPANDD(low, label, label)
				VPANDD(low, runnerUp, runnerUp)
			} else {
				VPAND(low, label, label)
				VPAND(low, runnerUp, runnerUp)
			}
			VPMULLD(width, label, sum[v])
			VPADDD(runnerUp, sum[v], sum[v])
			VPADDD(square, label, runnerUp)
			if s == avx512 {
				near := K()
				VCMPPS(Imm(2), window, t, near)
				VMOVDQA32(sum[v], near, runnerUp)
				VMOVDQU32(runnerUp, Mem{Base: cells, Disp: s.bytes * v})
			} else {
				VCMPPS(Imm(2), window, t, t)
				VBLENDVPS(t, sum[v], runnerUp, runnerUp)
				VMOVDQU(runnerUp, Mem{Base: cells, Disp: s.bytes * v})
			}
		}
		for p := range np {
			if s == avx512 {
				VPMOVDW(best[p], Mem{Base: labels, Disp: 32 * p})
				continue
			}
			VPACKUSDW(best[2*p+1], best[2*p], t)
			VPERMQ(Imm(0b11011000), t, t)
			VMOVDQU(t, Mem{Base: labels, Disp: 32 * p})
		}
		ADDQ(U32(32*np), labels)
		ADDQ(U32(64*np), cells)
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
