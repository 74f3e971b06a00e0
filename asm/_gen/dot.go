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
// slower (d from 16 to 784, k from 2 to 100) where caches hold the points.
const maxTile = 6

// wideTile is the width of the one tile that a few centroids of many dimensions are for AVX-512: points that no cache
// holds are then read once, all the time, where two tiles read them in the first one alone and wait for the memory
// there. The second-level cache gets what is two panels ahead, but no more than wideAhead bytes: 70,000 points of 784
// dimensions take .89 of the time.
const (
	wideTile  = 10
	wideAhead = 1 << 17
)

func dotFile(s isa) {
	infinity := constants("dotInfinity"+s.name, 0x7f800000)
	ones := constants("dotOnes"+s.name, 1, 1, 1, 1, 1, 1, 1, 1)
	numbers := constants("dotNumbers"+s.name, 0, 1, 2, 3, 4, 5)
	for w := 1; w <= maxTile; w++ {
		assignDot(s, w, infinity, ones, numbers)
	}
	if s == avx512 {
		wide := constants("dotNumbersWide"+s.name, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		assignDot(s, wideTile, infinity, ones, wide)
		assignDotSum(infinity, wide)
	}
	finishDot(s)
}

// dotForm is a routine of the dot form for tiles of w centroids, with its arguments in registers. The stack has best,
// index and next of each vector, and the number of the first centroid of the tile.
type dotForm struct {
	s                       isa
	w                       int
	infinity, ones, numbers Mem
	stack                   Mem

	ahead  reg.GPVirtual // what of the next group is fetched next, where a group is of four panels or paced, or how far on
	pacing reg.GPVirtual // by how much that moves on for two dimensions, where it is paced

	x, stride, labels, score, second reg.Register
}

// assignDot emits the dot form for tiles of w centroids followed by tiles of
// w-1. The minimum lives on the stack between tiles.
func assignDot(s isa, w int, infinity, ones, numbers Mem) {
	narrow := fmt.Sprintf(" and then narrow tiles [d][%d]", w-1)
	if w == wideTile {
		narrow = ", and narrow is 0"
	}
	framed(fmt.Sprintf("AssignDot%d%s", w, s.name),
		"func(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16, score, second *float32)",
		"writes the label of the smallest score |c|^2/2 - x.c of each point of",
		"panels > 0 panels of d > 0 dimensions at x, and the score and the second smallest",
		"score where score and second are not nil. The score is the chain",
		fmt.Sprintf("s = half, s = fma(-x, c, s). tiles holds wide > 0 tiles [d][%d] of centroids%s;", w, narrow),
		"half holds |c|^2/2 of each centroid.")
	f := &dotForm{s: s, w: w, infinity: infinity, ones: ones, numbers: numbers, x: Load(Param("x"), GP64())}
	panels := Load(Param("panels"), GP64())
	f.stride = Load(Param("d"), GP64())
	SHLQ(Imm(6), f.stride) // bytes of a panel
	f.labels = Load(Param("labels"), GP64())
	f.score = Load(Param("score"), GP64())
	f.second = Load(Param("second"), GP64())
	f.stack = AllocLocal(4*64*3 + 16)
	if f.paced(1) {
		f.pace()
	}
	// Few centroids leave room for four vectors of points, which hides the
	// latency of the chains.
	vectorsInFlight := 4
	if s == avx2 && w > 2 {
		vectorsInFlight = 2
	}
	if w == wideTile {
		vectorsInFlight = 2
	}
	groups(panels, vectorsInFlight/s.parts, f.group)
}

// place is that of the minimum of vector v, and counter that of the number of the first centroid.
func (f *dotForm) place(v int) Mem { return f.stack.Offset(3 * f.s.bytes * v) }
func (f *dotForm) counter() Mem    { return f.stack.Offset(4 * 64 * 3) }

// step is that of the bytes that ahead moves by for each dimension.
func (f *dotForm) step() Mem { return f.stack.Offset(4*64*3 + 8) }

// group takes np panels.
func (f *dotForm) group(tag string, np int) {
	s, nv := f.s, np*f.s.parts
	clear, inf := s.vector(), s.vector()
	s.zero(clear)
	VBROADCASTSS(f.infinity, inf)
	for v := range nv {
		VMOVUPS(inf, f.place(v))
		VMOVUPS(clear, f.place(v).Offset(s.bytes))
		VMOVUPS(inf, f.place(v).Offset(2*s.bytes))
	}
	MOVL(U32(0), f.counter())
	tp := Load(Param("tiles"), GP64())
	hp := Load(Param("half"), GP64())
	tripled := GP64()
	LEAQ(Mem{Base: f.stride, Index: f.stride, Scale: 2}, tripled)
	if np == 2 && f.w == wideTile {
		f.aheadOfWide(tripled)
	}
	if f.paced(np) {
		f.ahead = GP64()
		LEAQ(Mem{Base: f.x, Index: f.stride, Scale: 1}, f.ahead)
	}
	if np == 4 {
		f.ahead = GP64()
		LEAQ(Mem{Base: f.x, Index: f.stride, Scale: 4}, f.ahead)
		MOVQ(U32(128), f.step())
	}
	tiles := Load(Param("wide"), GP64())
	count(tag+"_wide", tiles.(reg.GPVirtual), func() { f.tile(tag+"_wide_tile", np, f.w, tp, hp, tripled) })
	if f.w > 1 && f.w != wideTile {
		tiles = Load(Param("narrow"), GP64())
		TESTQ(tiles, tiles)
		JZ(LabelRef(tag + "_found"))
		count(tag+"_narrow", tiles.(reg.GPVirtual), func() { f.tile(tag+"_narrow_tile", np, f.w-1, tp, hp, tripled) })
	}
	Label(tag + "_found")
	a := &argmin{s: s, index: s.vectors(nv), spare: s.vector()}
	for v := range nv {
		VMOVUPS(f.place(v).Offset(s.bytes), a.index[v])
	}
	for p := range np {
		a.storeLabels(p, Mem{Base: f.labels, Disp: 32 * p})
	}
	for i, out := range []reg.Register{f.score, f.second} {
		skip := fmt.Sprintf("%s_skip%d", tag, i)
		TESTQ(out, out)
		JZ(LabelRef(skip))
		for v := range nv {
			VMOVUPS(f.place(v).Offset(2*i*s.bytes), clear)
			VMOVUPS(clear, Mem{Base: out, Disp: s.bytes * v})
		}
		ADDQ(U32(64*np), out)
		Label(skip)
	}
	ADDQ(U32(32*np), f.labels)
	for range np {
		ADDQ(f.stride, f.x)
	}
}

// aheadOfWide sets how far ahead two panels are fetched: the first one, and in next the second.
func (f *dotForm) aheadOfWide(next reg.Register) {
	f.ahead = GP64()
	MOVQ(U32(wideAhead), f.ahead)
	LEAQ(Mem{Base: f.stride, Index: f.stride, Scale: 1}, next)
	CMPQ(next, f.ahead)
	CMOVQLT(next, f.ahead)
	LEAQ(Mem{Base: f.ahead, Index: f.stride, Scale: 1}, next)
}

// tile emits one tile of tw centroids; tp and hp point at it and move on.
func (f *dotForm) tile(tag string, np, tw int, tp, hp, tripled reg.Register) {
	s, nv := f.s, np*f.s.parts
	sums := make([][]reg.VecVirtual, tw)
	for q := range sums {
		sums[q] = s.vectors(nv)
		VBROADCASTSS(Mem{Base: hp, Disp: 4 * q}, sums[q][0])
		for v := 1; v < nv; v++ {
			VMOVAPS(sums[q][0], sums[q][v])
		}
	}
	xp, left := GP64(), GP64()
	MOVQ(f.x, xp)
	MOVQ(f.stride, left)
	SHRQ(Imm(6), left)
	xs := s.vectors(nv)
	value := s.vector()
	dims := func(n int) {
		for i := range n {
			for v := range nv {
				at := Mem{Base: xp, Disp: 64*i + v%s.parts*s.bytes}
				VMOVUPS(further(at, v/s.parts, f.stride, tripled), xs[v])
			}
			if i%2 == 0 {
				f.prefetch(np, xp, tripled)
			}
			for q := range tw {
				VBROADCASTSS(Mem{Base: tp, Disp: 4 * (tw*i + q)}, value)
				for v := range nv {
					VFNMADD231PS(value, xs[v], sums[q][v])
				}
			}
		}
		ADDQ(distance(64*n), xp)
		ADDQ(distance(4*tw*n), tp)
	}
	if f.paced(np) {
		f.unrolled(tag, left, dims)
	} else {
		count(tag+"_dims", left, func() { dims(1) })
	}
	ADDQ(Imm(uint64(4*tw)), hp)
	f.offer(tag, sums, value)
	ADDL(Imm(uint64(tw)), f.counter())
	if np == 4 {
		CMPL(f.counter(), Imm(uint64(f.w)))
		JLE(LabelRef(tag + "_fetching"))
		MOVQ(U32(0), f.step())
		Label(tag + "_fetching")
	}
}

// distance is the operand of an addition of so many bytes.
func distance(bytes int) Op {
	if bytes < 128 {
		return Imm(uint64(bytes))
	}
	return U32(uint32(bytes))
}

// unrolled takes left dimensions, four at a time after the rest, in a loop that begins a cache line, with one fetch for
// each line: so the arithmetic goes on while points come from memory. 70,000 points of 784 dimensions and 10 centroids
// take .81 of the time that one dimension at a time does, 100,000 of 100 and 64 take .87.
func (f *dotForm) unrolled(tag string, left reg.GPVirtual, dims func(n int)) {
	rest := GP64()
	MOVQ(left, rest)
	ANDQ(Imm(3), rest)
	JZ(LabelRef(tag + "_fours"))
	count(tag+"_rest", rest, func() { dims(1) })
	Label(tag + "_fours")
	SHRQ(Imm(2), left)
	JZ(LabelRef(tag + "_multiplied"))
	align()
	count(tag+"_dims", left, func() { dims(4) })
	Label(tag + "_multiplied")
}

// paced says whether all tiles fetch the next panel together: where there are few of them, one takes less time than the
// memory does. Up to three centroids are one tile.
func (f *dotForm) paced(np int) bool { return f.s == avx2 && np == 1 && f.w > 3 }

// pace sets the step of two dimensions for that.
func (f *dotForm) pace() {
	f.pacing = GP64()
	tiles := Load(Param("wide"), GP64())
	ADDQ(NewParamAddr("narrow", 48), tiles)
	LEAQ(Mem{Base: tiles, Disp: 127}, reg.RAX)
	XORQ(reg.RDX, reg.RDX)
	DIVQ(tiles)
	MOVQ(reg.RAX, f.pacing)
}

// prefetch fetches the next group of panels, one line per line read; only the first
// tile reads lines that are not in L1, but a prefetch is cheap. Of four panels the first two tiles fetch a half each,
// into the second-level cache, so that the memory has as much to do as the arithmetic all the time. What is paced goes
// there, too: a panel may be more than L1 holds, and what waits for a place there leaves none to what is read. 70,000
// points of 784 dimensions and 10 centroids take .56 of the time that they took by way of L1 (Zen 4).
func (f *dotForm) prefetch(np int, xp, tripled reg.Register) {
	if f.paced(np) {
		PREFETCHT1(Mem{Base: f.ahead})
		ADDQ(f.pacing, f.ahead)
		return
	}
	switch np {
	case 1:
		PREFETCHT0(Mem{Base: xp, Index: f.stride, Scale: 1})
	case 2:
		if f.w == wideTile {
			PREFETCHT1(Mem{Base: xp, Index: f.ahead, Scale: 1})
			PREFETCHT1(Mem{Base: xp, Index: tripled, Scale: 1})
			break
		}
		PREFETCHT0(Mem{Base: xp, Index: f.stride, Scale: 2})
		PREFETCHT0(Mem{Base: xp, Index: tripled, Scale: 1})
	default:
		PREFETCHT1(Mem{Base: f.ahead})
		PREFETCHT1(Mem{Base: f.ahead, Disp: 64})
		ADDQ(f.step(), f.ahead)
	}
}

// offer takes the scores of a tile, by centroid and vector, into the minima on the stack; spare is spoilt.
func (f *dotForm) offer(tag string, sums [][]reg.VecVirtual, spare reg.VecVirtual) {
	take := func(second bool) { offerHalves(sums, f.stack, f.counter(), f.numbers, second) }
	if f.s == avx2 {
		number := f.s.vector()
		a := &argmin{s: f.s, best: f.s.vectors(1), index: f.s.vectors(1), number: number, ones: f.ones, spare: spare}
		take = func(second bool) { f.oneByOne(a, sums, second) }
	}
	TESTQ(f.second, f.second)
	JNZ(LabelRef(tag + "_second"))
	take(false)
	JMP(LabelRef(tag + "_offered"))
	Label(tag + "_second")
	take(true)
	Label(tag + "_offered")
}

// oneByOne takes the scores of a tile into the minima on the stack by way of a.
func (f *dotForm) oneByOne(a *argmin, sums [][]reg.VecVirtual, second bool) {
	best, index := a.best[0], a.index[0]
	for v := range sums[0] {
		VMOVUPS(f.place(v), best)
		VMOVUPS(f.place(v).Offset(f.s.bytes), index)
		if second {
			a.next = []Op{f.place(v).Offset(2 * f.s.bytes)}
		}
		VPBROADCASTD(f.counter(), a.number)
		for q := range sums {
			a.take(0, sums[q][v])
			if q < len(sums)-1 {
				a.step()
			}
		}
		VMOVUPS(best, f.place(v))
		VMOVUPS(index, f.place(v).Offset(f.s.bytes))
	}
}

// offerHalves merges the scores of a tile into the minimum on the stack, and into the second smallest where that is
// asked for. Two chains, one for each half of the tile, start from scores instead of from the minimum so far: they are
// short, and do not wait for the tile before. A later centroid wins only if it is strictly nearer, in every merge. What
// loses in a merge is the second smallest, if no other is less.
func offerHalves(sums [][]reg.VecVirtual, stack, counter, numbers Mem, second bool) {
	first := ZMM()
	VPBROADCASTD(counter, first)
	half := (len(sums) + 1) / 2
	mask := []reg.OpmaskVirtual{K(), K()}
	index := avx512.vectors(2)
	for v := range sums[0] {
		place := stack.Offset(3 * 64 * v)
		var next [2]reg.VecVirtual // of chains, nil where nothing has lost
		lose := func(chain int, least, other reg.VecVirtual) {
			switch {
			case !second:
			case next[chain] == nil:
				next[chain] = ZMM()
				VMAXPS(other, least, next[chain])
			default:
				larger := ZMM()
				VMAXPS(other, least, larger)
				VMINPS(larger, next[chain], next[chain])
			}
		}
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
				lose(chain, least, sums[q][v])
				VMINPS(sums[q][v], least, least)
				VPADDD_BCST(numbers.Offset(4*q), first, mask[chain], index[chain])
			}
		}
		least := sums[0][v]
		if half < len(sums) {
			VCMPPS(Imm(1), least, sums[half][v], mask[0])
			lose(0, least, sums[half][v])
			VMINPS(sums[half][v], least, least)
			VMOVDQA32(index[1], mask[0], index[0])
			if next[1] != nil {
				VMINPS(next[1], next[0], next[0])
			}
		}
		VCMPPS(Imm(1), place, least, mask[0])
		if second {
			before := ZMM()
			VMOVUPS(place, before)
			lose(0, least, before)
			VMINPS(place.Offset(128), next[0], next[0])
			VMOVUPS(next[0], place.Offset(128))
		}
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
	}
	groups(panels, 8/s.parts, group)
}

// assignDotSum emits the dot form of one wide tile for two panels, while the two before go to slots.
func assignDotSum(infinity, numbers Mem) {
	framed("AssignDotSumAVX512", "func(x *float32, d int, tile, half *float32, labels *uint16, before *float32, "+
		"order *int8, passes int, bias float32, slots *int32)",
		"is AssignDot10AVX512 by one tile for the two panels of d > 0 dimensions at x, without scores, and adds the two",
		"panels at before to slots as SumSlotsAVX512 does, in 0 to 7 passes; those at order beyond add nothing.")
	f := &dotForm{s: avx512, w: wideTile, infinity: infinity, numbers: numbers, x: Load(Param("x"), GP64()),
		stride: Load(Param("d"), GP64()), labels: Load(Param("labels"), GP64())}
	SHLQ(Imm(6), f.stride)
	f.stack = AllocLocal(4*64*3 + 8)
	MOVL(U32(0), f.counter())
	second := GP64()
	f.aheadOfWide(second)
	tile, half := Load(Param("tile"), GP64()), Load(Param("half"), GP64())
	before := newSlotting(f.stride, NewParamAddr("bias", 64))
	sums := make([][]reg.VecVirtual, wideTile)
	for q := range sums {
		sums[q] = avx512.vectors(2)
		for _, sum := range sums[q] {
			VBROADCASTSS(Mem{Base: half, Disp: 4 * q}, sum)
		}
	}
	before.byPasses("multiplied", func(tag string, n int) {
		left, xs := GP64(), avx512.vectors(2)
		Load(Param("d"), left)
		count(tag, left, func() {
			for v := range xs {
				VMOVUPS(further(Mem{Base: f.x}, v, f.stride, nil), xs[v])
			}
			f.prefetch(2, f.x, second)
			for q := range sums {
				for v, sum := range sums[q] {
					VFNMADD231PS_BCST(Mem{Base: tile, Disp: 4 * q}, xs[v], sum)
				}
				before.put(q, wideTile, 1, n)
			}
			ADDQ(Imm(64), f.x)
			ADDQ(Imm(4*wideTile), tile)
			before.next(1, n)
		})
	})
	infinite := ZMM()
	VBROADCASTSS(infinity, infinite)
	for v := range 2 {
		VMOVUPS(infinite, f.place(v))
	}
	offerHalves(sums, f.stack, f.counter(), numbers, false)
	for v := range 2 {
		index := ZMM()
		VMOVDQU32(f.place(v).Offset(64), index)
		VPMOVDW(index, Mem{Base: f.labels, Disp: 32 * v})
	}
	VZEROUPPER()
	RET()
}
