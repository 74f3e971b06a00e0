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

// twoNearest is a routine for d dimensions, with its arguments in registers.
type twoNearest struct {
	s                                           isa
	d                                           int
	infinity, ones                              Mem
	x, panels, c, k, weight, labels, cells, gap reg.Register
	low                                         reg.VecVirtual
}

// topTwo emits the kernel for d dimensions: four panels in flight, where there are 32 registers, then
// single panels. The index of a centroid takes the place of the low bits of its distance,
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
	r := &twoNearest{s: s, d: d, infinity: infinity, ones: ones, x: Load(Param("x"), GP64()),
		panels: Load(Param("panels"), GP64()), c: Load(Param("c"), GP64())}
	k := GP64()
	Load(Param("k"), k)
	r.k, r.weight, r.labels = k, Load(Param("weight"), GP64()), Load(Param("labels"), GP64())
	r.cells, r.gap = Load(Param("cells"), GP64()), Load(Param("gap"), GP64())
	r.low = s.vector()
	VBROADCASTSS(NewParamAddr("low", 40), r.low)
	panels := 1
	if s == avx512 {
		panels = 4
	}
	groups(r.panels, panels, r.body)
}

// body takes np panels.
func (r *twoNearest) body(tag string, np int) {
	s, nv := r.s, np*r.s.parts
	kept := 0
	if s == avx512 {
		kept = r.d
		if np > 1 {
			kept = min(r.d, 3) // more leave too few registers
		}
	}
	p := loadPoints(s, r.x, np, r.d, kept)
	cp, bp, left := GP64(), GP64(), GP64()
	MOVQ(r.c, cp)
	MOVQ(r.weight, bp)
	MOVQ(r.k, left)
	best, next, sum := s.vectors(nv), s.vectors(nv), s.vectors(nv)
	number, value, weight, t := s.vector(), s.vector(), s.vector(), s.vector()
	for v := range nv {
		VBROADCASTSS(r.infinity, best[v])
		VBROADCASTSS(r.infinity, next[v])
	}
	s.zero(number)
	one := s.vector()
	VPBROADCASTD(r.ones, one)
	count(tag+"_centroids", left, func() {
		VBROADCASTSS(Mem{Base: bp}, weight)
		for j := range r.d {
			VBROADCASTSS(Mem{Base: cp, Disp: 4 * j}, value)
			for v := range nv {
				if j == 0 {
					p.minus(v, j, value, sum[v])
					VFMADD213PS(weight, sum[v], sum[v])
					continue
				}
				p.minus(v, j, value, t)
				VFMADD231PS(t, t, sum[v])
			}
		}
		for v := range nv {
			if s == avx512 {
				VPTERNLOGD(Imm(0xba), number, r.low, sum[v]) // sum &^ low | number
			} else {
				VPANDN(sum[v], r.low, sum[v])
				VPOR(number, sum[v], sum[v])
			}
			VPMAXUD(best[v], sum[v], t) // bits of values that are not negative are in their order
			VPMINUD(t, next[v], next[v])
			VPMINUD(sum[v], best[v], best[v])
		}
		ADDQ(Imm(4), bp)
		ADDQ(Imm(uint64(4*r.d)), cp)
		VPADDD(one, number, number)
	})
	r.write(best, next, sum, [4]reg.VecVirtual{value, number, one, t})
	ADDQ(U32(32*np), r.labels)
	ADDQ(U32(64*np), r.cells)
	ADDQ(U32(64*np), r.gap)
	ADDQ(U32(64*np*r.d), r.x)
}

// write writes gaps, cells and labels; sum and spare are spoilt.
func (r *twoNearest) write(best, next, sum []reg.VecVirtual, spare [4]reg.VecVirtual) {
	s := r.s
	slack, window, width, t, square := spare[0], spare[1], spare[2], spare[3], s.vector()
	VBROADCASTSS(NewParamAddr("slack", 44), slack)
	VBROADCASTSS(NewParamAddr("window", 48), window)
	VMOVD(r.k.(reg.GPVirtual).As32(), width.AsX())
	VPBROADCASTD(width.AsX(), width)
	VPMULLD(width, width, square)
	for v := range best {
		VSUBPS(best[v], next[v], t)
		VFNMADD231PS(next[v], slack, t)
		VMOVUPS(t, Mem{Base: r.gap, Disp: s.bytes * v})
		label, runnerUp := best[v], next[v]
		if s == avx512 {
			VPANDD(r.low, label, label)
			VPANDD(r.low, runnerUp, runnerUp)
		} else {
			VPAND(r.low, label, label)
			VPAND(r.low, runnerUp, runnerUp)
		}
		VPMULLD(width, label, sum[v])
		VPADDD(runnerUp, sum[v], sum[v])
		VPADDD(square, label, runnerUp)
		if s == avx512 {
			near := K()
			VCMPPS(Imm(2), window, t, near)
			VMOVDQA32(sum[v], near, runnerUp)
			VMOVDQU32(runnerUp, Mem{Base: r.cells, Disp: s.bytes * v})
		} else {
			VCMPPS(Imm(2), window, t, t)
			VBLENDVPS(t, sum[v], runnerUp, runnerUp)
			VMOVDQU(runnerUp, Mem{Base: r.cells, Disp: s.bytes * v})
		}
	}
	labels := &argmin{s: s, index: best, spare: t}
	for p := range len(best) / s.parts {
		labels.storeLabels(p, Mem{Base: r.labels, Disp: 32 * p})
	}
}
