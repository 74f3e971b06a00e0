package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Dimensions of points that are ranked where they are.
const leastRanked, mostRanked = 5, 16

// rankFile emits the ranking of centroids by products of 16-bit integers that are made of the points as they are read.
func rankFile(s isa) {
	if s == avx2 {
		rankTiles()
		return
	}
	for d := leastRanked; d <= mostRanked; d++ {
		rank(s, d)
	}
	rankLong()
}

// ranking is a routine for points of d dimensions, with its arguments in registers.
type ranking struct {
	s isa
	d int

	x, c, k, labels, doubts reg.Register
	scale                   reg.VecVirtual
	high                    reg.OpmaskVirtual // the upper halves of words
	words32                 Mem               // of AVX2: room for the words of a panel
}

// words is the number of words of a point.
func (r *ranking) words() int { return (r.d + 1) / 2 }

// rank emits the routine for d dimensions.
func rank(s isa, d int) {
	r := &ranking{s: s, d: d}
	function(fmt.Sprintf("Rank%d%s", d, s.name),
		"func(x *float32, panels int, c *int32, k int, scale float32, band, low int32, labels, doubts *uint16)",
		fmt.Sprintf("ranks k > 0 centroids for each point of panels > 0 panels of %d dimensions at x. The", d),
		"coordinates times scale, rounded to the nearest integer, fit 16 bits. A centroid at c is a word, to which the",
		fmt.Sprintf("products of the coordinates with its integers of 16 bits, in the next %d words, are added:", r.words()),
		"a sum of less than 2^31. The label is the least sum and low, and a bit of doubts, 16 for each panel, says that",
		"the second least is at most the least plus band.")
	r.x = Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64())
	r.c = Load(Param("c"), GP64())
	r.k = Load(Param("k"), GP64())
	r.labels = Load(Param("labels"), GP64())
	r.doubts = Load(Param("doubts"), GP64())
	r.scale, r.high = s.vector(), K()
	VBROADCASTSS(NewParamAddr("scale", 32), r.scale)
	odd := GP32()
	MOVL(U32(0xaaaaaaaa), odd)
	KMOVD(odd, r.high)
	groups(panels, 2, r.body)
}

// body takes np panels.
func (r *ranking) body(tag string, np int) {
	s, words := r.s, r.words()
	x := make([][]reg.VecVirtual, np)
	sum, least, second := s.vectors(np), s.vectors(np), s.vectors(np)
	upper := s.vector()
	for v := range x {
		x[v] = s.vectors(words)
		for w := range x[v] {
			r.round(v, 2*w, x[v][w])
			if 2*w+1 < r.d {
				r.round(v, 2*w+1, upper)
				VPSLLD(Imm(16), upper, upper)
				VMOVDQU16(upper, r.high, x[v][w])
			}
		}
		VPTERNLOGD(Imm(0xff), least[v], least[v], least[v])
		VPSRLD(Imm(1), least[v], least[v])
		VMOVDQA32(least[v], second[v])
	}
	cp, left := GP64(), GP64()
	MOVQ(r.c, cp)
	MOVQ(r.k, left)
	count(tag+"_centroids", left, func() {
		for v := range x {
			VPBROADCASTD(Mem{Base: cp}, sum[v])
		}
		for w := range words {
			for v := range x {
				VPDPWSSD_BCST(Mem{Base: cp, Disp: 4 * (w + 1)}, x[v][w], sum[v])
			}
		}
		for v := range x {
			VPMAXSD(sum[v], least[v], upper)
			VPMINSD(sum[v], least[v], least[v])
			VPMINSD(upper, second[v], second[v])
		}
		ADDQ(Imm(uint64(4*(words+1))), cp)
	})
	for v := range x {
		near := K()
		bits := GP32()
		VPSUBD(least[v], second[v], second[v])
		VBROADCASTSS(NewParamAddr("band", 36), upper)
		VPCMPD(Imm(2), upper, second[v], near)
		KMOVW(near, bits)
		MOVW(bits.As16(), Mem{Base: r.doubts, Disp: 2 * v})
		VBROADCASTSS(NewParamAddr("low", 40), upper)
		VPANDD(upper, least[v], least[v])
		VPMOVDW(least[v], Mem{Base: r.labels, Disp: 32 * v})
	}
	ADDQ(Imm(uint64(2*np)), r.doubts)
	ADDQ(Imm(uint64(32*np)), r.labels)
	ADDQ(U32(uint32(64*np*r.d)), r.x)
}

// round leaves the integers of coordinate j of panel v in to.
func (r *ranking) round(v, j int, to reg.VecVirtual) {
	VMULPS(Mem{Base: r.x, Disp: 64 * (v*r.d + j)}, r.scale, to)
	VCVTPS2DQ_RN_SAE(to, to)
}

// longRanking is the routine for points of any number of dimensions, with its arguments in registers: their integers go
// to memory, and tiles of centroids are multiplied with those of four panels at a time. Sums are compared by their
// upper halves, those of two panels in a vector.
type longRanking struct {
	uppers  Mem // which words of two vectors the upper halves are
	numbers Mem // vectors of the numbers of a tile's centroids, as words
	stack   Mem // the least, the second least and the index of two panels each, and the number of a tile's first centroid

	x, stride, tripled, c, room reg.Register
	scale                       reg.VecVirtual
	high                        reg.OpmaskVirtual // the upper halves of words
}

const (
	longPanels = 4
	longTile   = 6
	longLast   = 4
)

// wordConstants are constants of 16 bits, two of words.
func wordConstants(name string, n int, word func(i int) int) Mem {
	words := make([]uint32, n/2)
	for i := range words {
		words[i] = uint32(word(2*i) | word(2*i+1)<<16)
	}
	return constants(name, words...)
}

func (r *longRanking) place(pair, i int) Mem { return r.stack.Offset(64 * (3*pair + i)) }
func (r *longRanking) counter() Mem          { return r.stack.Offset(64 * 3 * longPanels / 2) }

// rankLong emits the routine for any number of dimensions.
func rankLong() {
	uppers := wordConstants("rankUppersVNNI", 32, func(i int) int { return 2*i + 1 })
	numbers := wordConstants("rankNumbersVNNI", 32*longTile, func(i int) int { return i / 32 })
	framed("RankLongVNNI", "func(x *float32, groups, d int, c *int32, tiles, last int, scale float32, band int32, "+
		"room *int32, labels, doubts *uint16)",
		"ranks the centroids of tiles > 0 tiles for each point of groups > 0 groups of four panels of d > 0 dimensions",
		"at x. The coordinates times scale, rounded to the nearest integer, fit 16 bits. A tile at c is",
		"[1+(d+1)/2][6] words: those that the products of a point with the integers of 16 bits in the next ones are added",
		"to, modulo 2^32; one of [1+(d+1)/2][4] follows where last is not 0. The upper halves of the sums count: the label",
		"is the number of the first least, and a bit of doubts, 16 for each panel, says that the second least is at most",
		"the least plus band. room is for [(d+1)/2][4][16] words, which begin a cache line.")
	r := &longRanking{uppers: uppers, numbers: numbers, x: Load(Param("x"), GP64()), stride: GP64(), tripled: GP64(),
		c: GP64(), room: GP64(), scale: ZMM(), high: K()}
	groups := Load(Param("groups"), GP64()).(reg.GPVirtual)
	Load(Param("d"), r.stride.(reg.GPVirtual))
	SHLQ(Imm(6), r.stride)
	LEAQ(Mem{Base: r.stride, Index: r.stride, Scale: 2}, r.tripled)
	r.stack = AllocLocal(64*3*longPanels/2 + 8)
	VBROADCASTSS(NewParamAddr("scale", 48), r.scale)
	odd := GP32()
	MOVL(U32(0xaaaaaaaa), odd)
	KMOVD(odd, r.high)
	labels, doubts := Load(Param("labels"), GP64()), Load(Param("doubts"), GP64())
	count("groups", groups, func() {
		r.round()
		r.tiles()
		band := ZMM()
		VPBROADCASTW(Load(Param("band"), GP32()), band)
		for pair := range longPanels / 2 {
			second, index, near, bits := ZMM(), ZMM(), K(), GP32()
			VMOVDQU32(r.place(pair, 1), second)
			VMOVDQU32(r.place(pair, 2), index)
			VPSUBW(r.place(pair, 0), second, second)
			VPCMPUW(Imm(2), band, second, near)
			KMOVD(near, bits)
			MOVL(bits, Mem{Base: doubts, Disp: 4 * pair})
			VMOVDQU32(index, Mem{Base: labels, Disp: 64 * pair})
		}
		ADDQ(Imm(2*longPanels), doubts)
		ADDQ(U32(32*longPanels), labels)
		LEAQ(Mem{Base: r.x, Index: r.stride, Scale: 4}, r.x)
	})
	VZEROUPPER()
	RET()
}

// round writes the integers of a group to room.
func (r *longRanking) round() {
	at, left := GP64(), GP64()
	MOVQ(r.x, at)
	Load(Param("room"), r.room.(reg.GPVirtual))
	Load(Param("d"), left)
	integers := func(disp, v int, to reg.VecVirtual) {
		VMULPS(further(Mem{Base: at, Disp: disp}, v, r.stride, r.tripled), r.scale, to)
		VCVTPS2DQ_RN_SAE(to, to)
	}
	SHRQ(Imm(1), left)
	JZ(LabelRef("last"))
	count("pairs", left, func() {
		for v := range longPanels {
			low, upper := ZMM(), ZMM()
			integers(0, v, low)
			integers(64, v, upper)
			VPSLLD(Imm(16), upper, upper)
			VMOVDQU16(upper, r.high, low)
			VMOVDQU32(low, Mem{Base: r.room, Disp: 64 * v})
		}
		ADDQ(U32(128), at)
		ADDQ(U32(64*longPanels), r.room)
	})
	Label("last")
	d := Load(Param("d"), GP64())
	TESTQ(U32(1), d)
	JZ(LabelRef("rounded"))
	for v := range longPanels {
		low := ZMM()
		integers(0, v, low)
		VMOVDQU32(low, Mem{Base: r.room, Disp: 64 * v})
	}
	Label("rounded")
}

// tiles finds the least and the second least sums of a group.
func (r *longRanking) tiles() {
	start, none := ZMM(), ZMM()
	VPTERNLOGD(Imm(0xff), start, start, start)
	VPSRLW(Imm(1), start, start)
	avx512.zero(none)
	for pair := range longPanels / 2 {
		VMOVDQU32(start, r.place(pair, 0))
		VMOVDQU32(start, r.place(pair, 1))
		VMOVDQU32(none, r.place(pair, 2))
	}
	MOVL(U32(0), r.counter())
	Load(Param("c"), r.c.(reg.GPVirtual))
	// The next group is fetched by the first tiles, so that the memory has as much to do as the arithmetic.
	const fetching = 4 // tiles
	tiles, ahead, step := GP64(), GP64(), GP64()
	Load(Param("tiles"), tiles)
	LEAQ(Mem{Base: r.x, Index: r.stride, Scale: 4}, ahead)
	MOVQ(U32(128), step) // two lines for each word of four panels, which have two for each dimension: 4 d lines
	count("tiles", tiles, func() {
		r.tile("words", longTile, func() {
			PREFETCHT1(Mem{Base: ahead})
			PREFETCHT1(Mem{Base: ahead, Disp: 64})
			ADDQ(step, ahead)
		})
		ADDL(Imm(longTile), r.counter())
		CMPL(r.counter(), Imm(fetching*longTile))
		JLT(LabelRef("fetching"))
		XORQ(step, step)
		Label("fetching")
	})
	last := Load(Param("last"), GP64())
	TESTQ(last, last)
	JZ(LabelRef("ranked"))
	r.tile("last_words", longLast, func() {})
	Label("ranked")
}

// tile ranks the next n centroids; fetch is done for each word.
func (r *longRanking) tile(words string, n int, fetch func()) {
	sums := make([][]reg.VecVirtual, n)
	for q := range sums {
		sums[q] = avx512.vectors(longPanels)
		for _, sum := range sums[q] {
			VPBROADCASTD(Mem{Base: r.c, Disp: 4 * q}, sum)
		}
	}
	left := GP64()
	Load(Param("d"), left)
	INCQ(left)
	SHRQ(Imm(1), left)
	Load(Param("room"), r.room.(reg.GPVirtual))
	points, word := avx512.vectors(longPanels), ZMM()
	count(words, left, func() {
		ADDQ(Imm(uint64(4*n)), r.c)
		fetch()
		for v := range points {
			VMOVDQU32(Mem{Base: r.room, Disp: 64 * v}, points[v])
		}
		for q := range sums {
			VPBROADCASTD(Mem{Base: r.c, Disp: 4 * q}, word)
			for v := range points {
				VPDPWSSD(word, points[v], sums[q][v])
			}
		}
		ADDQ(U32(64*longPanels), r.room)
	})
	ADDQ(Imm(uint64(4*n)), r.c)
	r.offer(sums)
}

// offer takes the sums of a tile, by centroid and panel, into those on the stack.
func (r *longRanking) offer(sums [][]reg.VecVirtual) {
	first, uppers, nearer := ZMM(), ZMM(), K()
	VPBROADCASTW(r.counter(), first)
	VMOVDQU32(r.uppers, uppers)
	for pair := range longPanels / 2 {
		least, second, index := ZMM(), ZMM(), ZMM()
		VMOVDQU32(r.place(pair, 0), least)
		VMOVDQU32(r.place(pair, 1), second)
		VMOVDQU32(r.place(pair, 2), index)
		for q := range sums {
			sum, larger := sums[q][2*pair], sums[q][2*pair+1]
			VPERMT2W(larger, uppers, sum)
			VPCMPW(Imm(1), least, sum, nearer)
			VPADDW(r.numbers.Offset(64*q), first, nearer, index)
			VPMAXSW(sum, least, larger)
			VPMINSW(sum, least, least)
			VPMINSW(larger, second, second)
		}
		VMOVDQU32(least, r.place(pair, 0))
		VMOVDQU32(second, r.place(pair, 1))
		VMOVDQU32(index, r.place(pair, 2))
	}
}
