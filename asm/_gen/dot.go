package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// maxTile is the widest tile of centroids. With it the sums of a tile and the points
// fill the registers of AVX2 (two vectors of points) and of AVX-512 (four). Wider tiles
// of AVX-512, up to 12 with two vectors of points, are nowhere 3 % faster and up to 5 %
// slower (d from 16 to 784, k from 2 to 100).
const maxTile = 6

func dotFile(s isa) {
	infinity := constants("dotInfinity"+s.name, 0x7f800000)
	ones := constants("dotOnes"+s.name, 1, 1, 1, 1, 1, 1, 1, 1)
	numbers := constants("dotNumbers"+s.name, 0, 1, 2, 3, 4, 5)
	for w := 1; w <= maxTile; w++ {
		assignDot(s, w, infinity, ones, numbers)
	}
	finishDot(s)
}

// assignDot emits the dot form for tiles of w centroids followed by tiles of
// w-1. The minimum lives on the stack between tiles.
func assignDot(s isa, w int, infinity, ones, numbers Mem) {
	framed(fmt.Sprintf("AssignDot%d%s", w, s.name),
		"func(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16, score, second *float32)",
		"writes the label of the smallest score |c|^2/2 - x.c of each point of",
		"panels > 0 panels of d > 0 dimensions at x, and the score and the second smallest",
		"score where score and second are not nil. The score is the chain",
		fmt.Sprintf("s = half, s = fma(-x, c, s). tiles holds wide > 0 tiles [d][%d] of centroids and then", w),
		fmt.Sprintf("narrow tiles [d][%d]; half holds |c|^2/2 of each centroid.", w-1))
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64())
	stride := Load(Param("d"), GP64())
	SHLQ(Imm(6), stride) // bytes of a panel
	labels := Load(Param("labels"), GP64())
	score := Load(Param("score"), GP64())
	second := Load(Param("second"), GP64())
	stack := AllocLocal(4*64*3 + 8)

	// Few centroids leave room for four vectors of points, which hides the
	// latency of the chains.
	vectorsInFlight := 4
	if s == avx2 && w > 2 {
		vectorsInFlight = 2
	}

	// tile emits one tile of tw centroids; tp and hp point at it and move on.
	tile := func(tag string, np, tw int, tp, hp reg.GPVirtual, tripled reg.GPVirtual) {
		nv := np * s.parts
		sums := make([][]reg.VecVirtual, tw)
		for q := range sums {
			sums[q] = s.vectors(nv)
			VBROADCASTSS(Mem{Base: hp, Disp: 4 * q}, sums[q][0])
			for v := 1; v < nv; v++ {
				VMOVAPS(sums[q][0], sums[q][v])
			}
		}
		xp, left := GP64(), GP64()
		MOVQ(x, xp)
		MOVQ(stride, left)
		SHRQ(Imm(6), left)
		xs := s.vectors(nv)
		value := s.vector()
		count(tag+"_dims", left, func() {
			for v := range nv {
				m := Mem{Base: xp, Disp: v % s.parts * s.bytes}
				switch v / s.parts {
				case 1:
					m.Index, m.Scale = stride, 1
				case 2:
					m.Index, m.Scale = stride, 2
				case 3:
					m.Index, m.Scale = tripled, 1
				}
				VMOVUPS(m, xs[v])
			}
			// The next group of panels, one line per line read; only the first
			// tile reads lines that are not in L1, but a prefetch is cheap.
			for p := range np {
				m := Mem{Base: xp, Index: stride, Scale: 4}
				switch {
				case np == 2 && p == 0:
					m.Scale = 2
				case np == 2:
					m = Mem{Base: xp, Index: tripled, Scale: 1}
				case np == 1:
					m.Scale = 1
				case p > 0:
					continue
				}
				PREFETCHT0(m)
			}
			for q := range tw {
				VBROADCASTSS(Mem{Base: tp, Disp: 4 * q}, value)
				for v := range nv {
					VFNMADD231PS(value, xs[v], sums[q][v])
				}
			}
			ADDQ(Imm(64), xp)
			ADDQ(Imm(uint64(4*tw)), tp)
		})
		ADDQ(Imm(uint64(4*tw)), hp)
		// Offer the scores: stack holds best, index and next of each vector and
		// the number of the first centroid of the tile.
		number := s.vector()
		counter := stack.Offset(4 * 64 * 3)
		best, index := s.vector(), s.vector()
		a := &argmin{s: s, best: []reg.VecVirtual{best}, index: []reg.VecVirtual{index}, number: number, ones: ones,
			spare: value}
		if s == avx512 {
			a.mask = []reg.OpmaskVirtual{K()}
		}
		offer := func(second bool) {
			for v := range nv {
				place := stack.Offset(3 * s.bytes * v)
				VMOVUPS(place, best)
				VMOVUPS(place.Offset(s.bytes), index)
				if second {
					a.next = []Op{place.Offset(2 * s.bytes)}
				}
				VPBROADCASTD(counter, number)
				for q := range tw {
					a.take(0, sums[q][v])
					if q < tw-1 {
						a.step()
					}
				}
				VMOVUPS(best, place)
				VMOVUPS(index, place.Offset(s.bytes))
			}
		}
		TESTQ(second, second)
		JNZ(LabelRef(tag + "_second"))
		if s == avx512 {
			offerHalves(sums, stack, counter, numbers)
		} else {
			offer(false)
		}
		JMP(LabelRef(tag + "_offered"))
		Label(tag + "_second")
		offer(true)
		Label(tag + "_offered")
		ADDL(Imm(uint64(tw)), counter)
	}

	group := func(tag string, np int) {
		nv := np * s.parts
		clear, inf := s.vector(), s.vector()
		s.zero(clear)
		VBROADCASTSS(infinity, inf)
		for v := range nv {
			place := stack.Offset(3 * s.bytes * v)
			VMOVUPS(inf, place)
			VMOVUPS(clear, place.Offset(s.bytes))
			VMOVUPS(inf, place.Offset(2*s.bytes))
		}
		MOVL(U32(0), stack.Offset(4*64*3))
		tp := Load(Param("tiles"), GP64())
		hp := Load(Param("half"), GP64())
		tripled := GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, tripled)
		tiles := Load(Param("wide"), GP64())
		count(tag+"_wide", tiles.(reg.GPVirtual), func() {
			tile(tag+"_wide_tile", np, w, tp.(reg.GPVirtual), hp.(reg.GPVirtual), tripled)
		})
		if w > 1 {
			tiles = Load(Param("narrow"), GP64())
			TESTQ(tiles, tiles)
			JZ(LabelRef(tag + "_found"))
			count(tag+"_narrow", tiles.(reg.GPVirtual), func() {
				tile(tag+"_narrow_tile", np, w-1, tp.(reg.GPVirtual), hp.(reg.GPVirtual), tripled)
			})
		}
		Label(tag + "_found")
		a := &argmin{s: s, index: s.vectors(nv), spare: s.vector()}
		for v := range nv {
			VMOVUPS(stack.Offset(3*s.bytes*v+s.bytes), a.index[v])
		}
		for p := range np {
			a.storeLabels(p, Mem{Base: labels, Disp: 32 * p})
		}
		for i, out := range []reg.Register{score, second} {
			skip := fmt.Sprintf("%s_skip%d", tag, i)
			TESTQ(out, out)
			JZ(LabelRef(skip))
			for v := range nv {
				VMOVUPS(stack.Offset(3*s.bytes*v+2*i*s.bytes), clear)
				VMOVUPS(clear, Mem{Base: out, Disp: s.bytes * v})
			}
			ADDQ(U32(64*np), out)
			Label(skip)
		}
		ADDQ(U32(32*np), labels)
		for range np {
			ADDQ(stride, x)
		}
		SUBQ(Imm(uint64(np)), panels)
	}
	most := vectorsInFlight
	if s == avx2 {
		most = max(1, vectorsInFlight/2)
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

// offerHalves merges the scores of a tile into the minimum on the stack. Two
// chains, one for each half of the tile, start from scores instead of from the
// minimum so far: they are short, and do not wait for the tile before. A later
// centroid wins only if it is strictly nearer, in every merge.
func offerHalves(sums [][]reg.VecVirtual, stack, counter, numbers Mem) {
	first := ZMM()
	VPBROADCASTD(counter, first)
	half := (len(sums) + 1) / 2
	mask := []reg.OpmaskVirtual{K(), K()}
	index := avx512.vectors(2)
	for v := range sums[0] {
		place := stack.Offset(3 * 64 * v)
		VMOVDQA32(first, index[0])
		if half < len(sums) {
			VPADDD_BCST(numbers.Offset(4*half), first, index[1])
		}
		for i := 1; i < half; i++ {
			for chain := range 2 {
				q := chain*half + i
				if q >= len(sums) {
					continue
				}
				least := sums[chain*half][v]
				VCMPPS(Imm(1), least, sums[q][v], mask[chain])
				VMINPS(sums[q][v], least, least)
				VPADDD_BCST(numbers.Offset(4*q), first, mask[chain], index[chain])
			}
		}
		least := sums[0][v]
		if half < len(sums) {
			VCMPPS(Imm(1), least, sums[half][v], mask[0])
			VMINPS(sums[half][v], least, least)
			VMOVDQA32(index[1], mask[0], index[0])
		}
		VCMPPS(Imm(1), place, least, mask[0])
		VMINPS(place, least, least)
		VMOVDQU32(index[0], mask[0], place.Offset(64))
		VMOVUPS(least, place)
	}
}

// finishDot emits the step from scores to squared distances.
func finishDot(s isa) {
	function("FinishDot"+s.name, "func(x *float32, panels int, d int, dist, second *float32)",
		"replaces the scores of panels > 0 panels of d > 0 dimensions at x by",
		"squared distances max(0, |x|^2 + 2 score), in dist and, when not nil, second.",
		"|x|^2 is the chain s = fma(x, x, s).")
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64())
	stride := Load(Param("d"), GP64())
	SHLQ(Imm(6), stride)
	dist := Load(Param("dist"), GP64())
	second := Load(Param("second"), GP64())
	group := func(tag string, np int) {
		nv := np * s.parts
		sums := s.vectors(nv)
		for _, v := range sums {
			s.zero(v)
		}
		left := GP64()
		MOVQ(stride, left)
		SHRQ(Imm(6), left)
		at := make([]reg.GPVirtual, np)
		for p := range at {
			at[p] = GP64()
			MOVQ(x, at[p])
			ADDQ(stride, x)
		}
		v := s.vector()
		count(tag+"_dims", left, func() {
			for i, sum := range sums {
				VMOVUPS(Mem{Base: at[i/s.parts], Disp: i % s.parts * s.bytes}, v)
				VFMADD231PS(v, v, sum)
			}
			for _, p := range at {
				ADDQ(Imm(64), p)
			}
		})
		zero := s.vector()
		s.zero(zero)
		for i, out := range []reg.Register{dist, second} {
			skip := fmt.Sprintf("%s_skip%d", tag, i)
			if i == 1 {
				TESTQ(out, out)
				JZ(LabelRef(skip))
			}
			for j, sum := range sums {
				m := Mem{Base: out, Disp: s.bytes * j}
				VMOVUPS(m, v)
				VADDPS(v, v, v)
				VADDPS(sum, v, v)
				VMAXPS(zero, v, v)
				VMOVUPS(v, m)
			}
			ADDQ(U32(64*np), out)
			if i == 1 {
				Label(skip)
			}
		}
		SUBQ(Imm(uint64(np)), panels)
	}
	most := 8 / s.parts
	Label("groups")
	CMPQ(panels, Imm(uint64(most)))
	JLT(LabelRef("rest"))
	group("group", most)
	JMP(LabelRef("groups"))
	Label("rest")
	TESTQ(panels, panels)
	JZ(LabelRef("end"))
	group("single", 1)
	JMP(LabelRef("rest"))
	Label("end")
	VZEROUPPER()
	RET()
}
