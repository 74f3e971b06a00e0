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

// exact is a routine of the exact form, with its arguments in registers.
type exact struct {
	s              isa
	d, variant     int
	infinity, ones Mem

	x, panels, c, k, labels     reg.Register
	dist, second, lanes, counts reg.Register // nil where the variant has none
}

// assignSub emits the exact form for d dimensions: four vectors in flight, then
// single panels.
func assignSub(s isa, d int, variant int, infinity, ones Mem) {
	e := &exact{s: s, d: d, variant: variant, infinity: infinity, ones: ones}
	e.declare()
	group := 4 / s.parts
	switch {
	case variant == withSecond && s == avx2:
		group = 1
	case s == avx512 && d >= 6: // two panels fit the registers
		group = 2
	}
	groups(e.panels, group, e.body)
}

// declare begins the routine and loads its arguments.
func (e *exact) declare() {
	name := fmt.Sprintf("AssignSub%d%s", e.d, e.s.name)
	signature := "func(x *float32, panels int, c *float32, k int, labels *uint16, dist *float32)"
	first := "writes the label and the squared distance of the nearest of k > 0"
	text := []string{
		fmt.Sprintf("centroids at c to each point of panels > 0 panels of %d dimensions at x, by the", e.d),
		"chain t = x-c, s = fma(t, t, s). dist may be nil.",
	}
	switch e.variant {
	case withSecond:
		name = fmt.Sprintf("AssignSecond%d%s", e.d, e.s.name)
		signature = "func(x *float32, panels int, c *float32, k int, labels *uint16, dist, second *float32)"
		text[1] = "chain t = x-c, s = fma(t, t, s), and the second smallest distance."
	case fused:
		name = fmt.Sprintf("AssignAdd%d%s", e.d, e.s.name)
		signature = "func(x *float32, panels int, c *float32, k int, r2 float32, labels *uint16, " +
			"lanes *float32, counts *int64)"
		first = "writes the label of the nearest of k > 0"
		text[1] = fmt.Sprintf("chain t = x-c, s = fma(t, t, s), and adds the point to lanes [k][%d][16] and counts", e.d)
		text = append(text, "[k]. A point with s > r2 is not added and has the label k. The sums of the lanes",
			"must stay exact. labels may be nil.")
	}
	function(name, signature, first, text...)
	for _, p := range []struct {
		name string
		to   *reg.Register
	}{{"x", &e.x}, {"panels", &e.panels}, {"c", &e.c}, {"k", &e.k}, {"labels", &e.labels}} {
		*p.to = Load(Param(p.name), GP64())
	}
	switch e.variant {
	case fused:
		e.lanes, e.counts = Load(Param("lanes"), GP64()), Load(Param("counts"), GP64())
	case withSecond:
		e.second = Load(Param("second"), GP64())
		fallthrough
	default:
		e.dist = Load(Param("dist"), GP64())
	}
}

// body takes np panels.
func (e *exact) body(tag string, np int) {
	s, nv := e.s, np*e.s.parts
	a := newArgmin(s, nv, e.variant == withSecond, e.ones)
	// The numbers are what the register allocator manages.
	kept := 0
	if s == avx512 {
		switch {
		case np == 1:
			kept = e.d
		case np == 2:
			kept = 9
		case e.variant == withSecond:
			kept = 2
		default:
			kept = 3
		}
	}
	p := loadPoints(s, e.x, np, e.d, min(kept, e.d))
	e.nearest(tag, a, p)
	if e.variant == fused {
		a.cut()
		addMasked(tag, a, p, e.k, e.lanes, e.counts)
		TESTQ(e.labels, e.labels)
		JZ(LabelRef(tag + "_next"))
	}
	for panel := range np {
		a.storeLabels(panel, Mem{Base: e.labels, Disp: 32 * panel})
	}
	ADDQ(U32(32*np), e.labels)
	if e.variant != fused {
		e.storeDistances(tag, a, np)
	}
	Label(tag + "_next")
	ADDQ(U32(64*np*e.d), e.x)
}

// nearest finds the nearest centroid of each point.
func (e *exact) nearest(tag string, a *argmin, p *points) {
	s := e.s
	cp, left := GP64(), GP64()
	MOVQ(e.c, cp)
	MOVQ(e.k, left)
	sum := s.vectors(len(a.best))
	value, t := s.vector(), s.vector()
	chain := func(into []reg.VecVirtual) {
		for j := range e.d {
			VBROADCASTSS(Mem{Base: cp, Disp: 4 * j}, value)
			for v := range into {
				p.minus(v, j, value, t)
				if j == 0 {
					VMULPS(t, t, into[v])
				} else {
					VFMADD231PS(t, t, into[v])
				}
			}
		}
	}
	for v := range a.index {
		s.zero(a.index[v])
		if a.next != nil {
			VBROADCASTSS(e.infinity, a.next[v])
		}
	}
	s.zero(a.number)
	chain(a.best)
	DECQ(left)
	JZ(LabelRef(tag + "_done"))
	count(tag+"_centroids", left, func() {
		ADDQ(Imm(uint64(4*e.d)), cp)
		a.step()
		chain(sum)
		for v := range sum {
			a.take(v, sum[v])
		}
	})
	Label(tag + "_done")
}

// storeDistances writes the smallest distances, and the second smallest.
func (e *exact) storeDistances(tag string, a *argmin, np int) {
	if a.next == nil {
		TESTQ(e.dist, e.dist)
		JZ(LabelRef(tag + "_next"))
	}
	for v := range a.best {
		VMOVUPS(a.best[v], Mem{Base: e.dist, Disp: e.s.bytes * v})
		if a.next != nil {
			VMOVUPS(a.next[v], Mem{Base: e.second, Disp: e.s.bytes * v})
		}
	}
	ADDQ(U32(64*np), e.dist)
	if a.next != nil {
		ADDQ(U32(64*np), e.second)
	}
}

// prefetchBytes is how far ahead of the current group the panels are fetched.
const prefetchBytes = 16384
