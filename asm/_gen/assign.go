package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exactDims is the first number of dimensions with the dot form.
const exactDims = 16

func assignFile(s isa) {
	infinity := constants("infinity"+s.name, 0x7f800000)
	ones := constants("ones"+s.name, 1, 1, 1, 1, 1, 1, 1, 1)
	for d := 1; d < exactDims; d++ {
		assignSub(s, d, plain, infinity, ones)
		assignSub(s, d, withSecond, infinity, ones)
	}
}

// argmin holds the running minimum of the vectors in flight.
type argmin struct {
	s           isa
	best, index []reg.VecVirtual
	next        []Op           // the second smallest, in registers or in memory; nil when not kept
	number      reg.VecVirtual // the index of the current centroid in every lane
	ones        Mem
	mask        []reg.OpmaskVirtual
	spare       reg.VecVirtual
}

// newArgmin takes registers for m vectors; next only when second is set.
func newArgmin(s isa, m int, second bool, ones Mem) *argmin {
	a := &argmin{s: s, best: s.vectors(m), index: s.vectors(m), number: s.vector(), ones: ones, spare: s.vector()}
	if second {
		for range m {
			a.next = append(a.next, s.vector())
		}
	}
	if s == avx512 {
		a.mask = []reg.OpmaskVirtual{K(), K(), K(), K()}
	}
	return a
}

// step counts the current centroid up by one.
func (a *argmin) step() {
	if a.s == avx512 {
		VPADDD_BCST(a.ones, a.number, a.number)
	} else {
		VPADDD(a.ones, a.number, a.number)
	}
}

// take offers the distance v of vector q: strictly smaller wins, so that ties
// stay with the smaller index.
func (a *argmin) take(q int, v reg.VecVirtual) {
	if a.s == avx512 {
		k := a.mask[q%4]
		VCMPPS(Imm(1), a.best[q], v, k)
		a.takeSecond(q, v)
		VMINPS(a.best[q], v, a.best[q])
		VMOVDQA32(a.number, k, a.index[q])
		return
	}
	a.takeSecond(q, v)
	VCMPPS(Imm(1), a.best[q], v, a.spare)
	VMINPS(a.best[q], v, a.best[q])
	VBLENDVPS(a.spare, a.number, a.index[q], a.index[q])
}

// takeSecond keeps the larger of the minimum so far and v if it is the second
// smallest.
func (a *argmin) takeSecond(q int, v reg.VecVirtual) {
	if a.next == nil {
		return
	}
	VMAXPS(a.best[q], v, a.spare)
	if m, ok := a.next[q].(Mem); ok {
		VMINPS(m, a.spare, a.spare)
		VMOVUPS(a.spare, m)
	} else {
		VMINPS(a.spare, a.next[q], a.next[q])
	}
}

// storeLabels narrows the indices of panel q to uint16 at dst.
func (a *argmin) storeLabels(q int, dst Mem) {
	if a.s == avx512 {
		VPMOVDW(a.index[q], dst)
		return
	}
	lo, hi := a.index[2*q], a.index[2*q+1]
	VPACKUSDW(hi, lo, a.spare)
	VPERMQ(Imm(0b11011000), a.spare, a.spare)
	VMOVDQU(a.spare, dst)
}

// cut gives the points farther than the parameter r2 the index k.
func (a *argmin) cut() {
	if a.s == avx2 {
		r2, none := a.s.vector(), a.s.vector()
		VBROADCASTSS(NewParamAddr("r2", 32), r2)
		VPBROADCASTD(NewParamAddr("k", 24), none)
		for v := range a.index {
			VCMPPS(Imm(14), r2, a.best[v], a.spare)
			VBLENDVPS(a.spare, none, a.index[v], a.index[v])
		}
		return
	}
	for v := range a.index {
		far := a.mask[v%4]
		VCMPPS_BCST(Imm(14), NewParamAddr("r2", 32), a.best[v], far)
		VPBROADCASTD(NewParamAddr("k", 24), far, a.index[v])
	}
}

// The variants of the exact form.
const (
	plain      = iota // label and distance
	withSecond        // and the second smallest distance
	fused             // label, and the point added to its cluster
)

// assignSub emits the exact form for d dimensions: four vectors in flight, then
// single panels.
func assignSub(s isa, d int, variant int, infinity, ones Mem) {
	second := variant == withSecond
	name := fmt.Sprintf("AssignSub%d%s", d, s.name)
	signature := "func(x *float32, panels int, c *float32, k int, labels *uint16, dist *float32)"
	text := []string{
		fmt.Sprintf("centroids at c to each point of panels > 0 panels of %d dimensions at x, by the", d),
		"chain t = x-c, s = fma(t, t, s). dist may be nil.",
	}
	if second {
		name = fmt.Sprintf("AssignSecond%d%s", d, s.name)
		signature = "func(x *float32, panels int, c *float32, k int, labels *uint16, dist, second *float32)"
		text[1] = "chain t = x-c, s = fma(t, t, s), and the second smallest distance."
	}
	first := "writes the label and the squared distance of the nearest of k > 0"
	if variant == fused {
		name = fmt.Sprintf("AssignAdd%d%s", d, s.name)
		signature = "func(x *float32, panels int, c *float32, k int, r2 float32, labels *uint16, " +
			"lanes *float32, counts *int64)"
		first = "writes the label of the nearest of k > 0"
		text[1] = fmt.Sprintf("chain t = x-c, s = fma(t, t, s), and adds the point to lanes [k][%d][16] and counts", d)
		text = append(text, "[k]. A point with s > r2 is not added and has the label k. The sums of the lanes",
			"must stay exact. labels may be nil.")
	}
	function(name, signature, first, text...)
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64())
	c := Load(Param("c"), GP64())
	k := Load(Param("k"), GP64())
	labels := Load(Param("labels"), GP64())
	var dist, secondOut, lanes, counts reg.Register
	switch variant {
	case fused:
		lanes, counts = Load(Param("lanes"), GP64()), Load(Param("counts"), GP64())
	case withSecond:
		secondOut = Load(Param("second"), GP64())
		fallthrough
	default:
		dist = Load(Param("dist"), GP64())
	}

	group := 4 / s.parts
	switch {
	case second && s == avx2:
		group = 1
	case s == avx512 && d >= 6: // two panels fit the registers
		group = 2
	}
	body := func(tag string, np int) {
		nv := np * s.parts
		a := newArgmin(s, nv, second, ones)
		// Vectors of x that stay in registers; the others are read from L1 by the
		// subtraction, which then computes c-x: the square is the same. The
		// numbers are what the register allocator manages.
		kept := 0
		if s == avx512 {
			switch {
			case np == 1:
				kept = d
			case np == 2:
				kept = 9
			case second:
				kept = 2
			default:
				kept = 3
			}
		}
		kept = min(kept, d)
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
		cp, left := GP64(), GP64()
		MOVQ(c, cp)
		MOVQ(k, left)
		sum := s.vectors(nv)
		value, t := s.vector(), s.vector()
		chain := func(into []reg.VecVirtual) {
			for j := range d {
				VBROADCASTSS(Mem{Base: cp, Disp: 4 * j}, value)
				for v := range nv {
					if j < kept {
						VSUBPS(value, xr[v][j], t)
					} else {
						VSUBPS(at(v, j), value, t)
					}
					if j == 0 {
						VMULPS(t, t, into[v])
					} else {
						VFMADD231PS(t, t, into[v])
					}
				}
			}
		}
		for v := range nv {
			s.zero(a.index[v])
			if second {
				VBROADCASTSS(infinity, a.next[v])
			}
		}
		s.zero(a.number)
		chain(a.best)
		DECQ(left)
		JZ(LabelRef(tag + "_done"))
		count(tag+"_centroids", left, func() {
			ADDQ(Imm(uint64(4*d)), cp)
			a.step()
			chain(sum)
			for v := range nv {
				a.take(v, sum[v])
			}
		})
		Label(tag + "_done")
		if variant == fused {
			a.cut()
			addMasked(tag, d, a, k, lanes, counts, xr, at)
			TESTQ(labels, labels)
			JZ(LabelRef(tag + "_next"))
		}
		for p := range np {
			a.storeLabels(p, Mem{Base: labels, Disp: 32 * p})
		}
		ADDQ(U32(32*np), labels)
		if variant == fused {
			Label(tag + "_next")
			ADDQ(U32(64*np*d), x)
			SUBQ(Imm(uint64(np)), panels)
			return
		}
		if !second {
			TESTQ(dist, dist)
			JZ(LabelRef(tag + "_next"))
		}
		for v := range nv {
			VMOVUPS(a.best[v], Mem{Base: dist, Disp: s.bytes * v})
			if second {
				VMOVUPS(a.next[v], Mem{Base: secondOut, Disp: s.bytes * v})
			}
		}
		ADDQ(U32(64*np), dist)
		if second {
			ADDQ(U32(64*np), secondOut)
		}
		Label(tag + "_next")
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

// prefetchBytes is how far ahead of the current group the panels are fetched.
func prefetchBytes(d int) int { return 16384 }
