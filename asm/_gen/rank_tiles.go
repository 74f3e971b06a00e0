package main

import (
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileRanking is longRanking for AVX2, with its arguments in registers: a panel at a time, whose integers the
// first-level cache holds while the tiles pass by. A vector of upper halves has those of the first eight points of a
// panel in its even words, and of the others in its odd ones. Of each tile, as a row, and of each place in a tile, as
// a column, the least sum is kept, as where points are ranked from registers; where there are few tiles, the least and
// the second least of all.
type tileRanking struct {
	numbers Mem // vectors of words: what columns count, and the step of rows
	shift   Mem // 1.5*2^23: float32 numbers near it hold what was added, rounded, in their low bits

	x, panel, c, room, end reg.GPVirtual
	rows                   reg.GPVirtual // the end of those so far, which begin after the columns at end
	ahead, step            reg.GPVirtual

	index, decided reg.VecVirtual // numbers of the least sums, and a mask of the points that none other is near of
}

// fewTiles is the number of tiles up to which the rows and columns of a panel take longer than they spare.
const fewTiles = 2

// tilesAhead is how many bytes beyond the next panel points are fetched: panels of few dimensions take less time than
// the memory does.
const tilesAhead = 4096

// rankTiles emits the routine.
func rankTiles() {
	framed("RankLongAVX2", "func(x *float32, groups, d int, c *int32, tiles, last int, scale float32, band int32, "+
		"room *int32, labels, doubts *uint16)",
		"ranks the centroids of tiles > 0 tiles for each point of groups > 0 panels of d > 0 dimensions at x. The",
		"coordinates times scale, rounded to the nearest integer, fit 16 bits. A tile at c is [1+(d+1)/2][6] words: those",
		"that the products of a point with the integers of 16 bits in the next ones are added to, modulo 2^32; one of",
		"[1+(d+1)/2][4] follows where last is not 0. The upper halves of the sums count: the label is the number of the",
		"least but for a bit of doubts, 16 for each panel, which says that the second least is at most the least plus band.",
		"room is for [(d+1)/2][16] words, and then 48 and 8 for each tile, and begins a cache line.")
	r := &tileRanking{numbers: wordConstants("rankNumbersAVX2", 16*(longTile+1), func(i int) int { return i / 16 }),
		shift: constants("rankShiftAVX2", slices.Repeat([]uint32{0x4b400000}, 8)...),
		x:     GP64(), panel: GP64(), c: GP64(), room: GP64(), end: GP64(), rows: GP64(), ahead: GP64(), step: GP64(),
		index: YMM(), decided: YMM()}
	Load(Param("x"), r.x)
	Load(Param("d"), r.panel)
	SHLQ(Imm(6), r.panel)
	r.pace()
	groups := Load(Param("groups"), GP64()).(reg.GPVirtual)
	labels, doubts := Load(Param("labels"), GP64()), Load(Param("doubts"), GP64())
	count("groups", groups, func() {
		LEAQ(Mem{Base: r.x, Index: r.panel, Scale: 1, Disp: tilesAhead}, r.ahead)
		r.round()
		Load(Param("c"), r.c)
		tiles := Load(Param("tiles"), GP64()).(reg.GPVirtual)
		CMPQ(tiles, Imm(fewTiles))
		JLE(LabelRef("few"))
		r.many(tiles)
		JMP(LabelRef("found"))
		Label("few")
		r.few(tiles)
		Label("found")
		r.store(labels, doubts)
	})
	VZEROUPPER()
	RET()
}

// pace sets the bytes to fetch for two words of a tile such that all tiles together fetch a panel.
func (r *tileRanking) pace() {
	tiles, last := GP64(), GP64()
	Load(Param("tiles"), tiles)
	Load(Param("last"), last)
	ADDQ(last, tiles)
	MOVQ(U32(2*128), reg.RAX)
	XORQ(reg.RDX, reg.RDX)
	DIVQ(tiles)
	MOVQ(reg.RAX, r.step)
}

// round writes the integers of a panel to room, and passes it.
func (r *tileRanking) round() {
	left, d, scale, shift := GP64(), GP64(), YMM(), YMM()
	VBROADCASTSS(NewParamAddr("scale", 48), scale)
	VMOVUPS(r.shift, shift)
	Load(Param("room"), r.room)
	Load(Param("d"), d)
	MOVQ(d, left)
	integers := func(disp int, to reg.VecVirtual) {
		VMOVAPS(shift, to)
		VFMADD231PS(Mem{Base: r.x, Disp: disp}, scale, to)
	}
	SHRQ(Imm(1), left)
	JZ(LabelRef("odd"))
	count("pairs", left, func() {
		for v := range 2 {
			low, upper := YMM(), YMM()
			integers(32*v, low)
			integers(64+32*v, upper)
			VPSLLD(Imm(16), upper, upper)
			VPBLENDW(Imm(0xaa), upper, low, low)
			VMOVDQU(low, Mem{Base: r.room, Disp: 32 * v})
		}
		ADDQ(U32(128), r.x)
		ADDQ(Imm(64), r.room)
	})
	Label("odd")
	TESTQ(U32(1), d)
	JZ(LabelRef("rounded"))
	none := YMM()
	VPXOR(none, none, none)
	for v := range 2 {
		low := YMM()
		integers(32*v, low)
		VPBLENDW(Imm(0xaa), none, low, low)
		VMOVDQU(low, Mem{Base: r.room, Disp: 32 * v})
	}
	ADDQ(Imm(64), r.x)
	ADDQ(Imm(64), r.room)
	Label("rounded")
	MOVQ(r.room, r.end)
}

// tiles ranks the centroids of all tiles by offer.
func (r *tileRanking) tiles(name string, tiles reg.GPVirtual, offer func(sums [][]reg.VecVirtual)) {
	count(name, tiles, func() { r.tile(name+"_words", longTile, offer) })
	last := Load(Param("last"), GP64())
	TESTQ(last, last)
	JZ(LabelRef(name + "_ranked"))
	r.tile(name+"_last", longLast, offer)
	Label(name + "_ranked")
}

// many finds the least sums of rows and columns of a panel, and what they say.
func (r *tileRanking) many(tiles reg.GPVirtual) {
	start := YMM()
	VPCMPEQW(start, start, start)
	VPSRLW(Imm(1), start, start)
	for q := range longTile {
		VMOVDQU(start, r.least(q))
	}
	LEAQ(r.least(longTile), r.rows)
	r.tiles("tiles", tiles, r.offer)
	r.find()
}

// few finds the least and the second least sums of a panel.
func (r *tileRanking) few(tiles reg.GPVirtual) {
	start, none, first := YMM(), YMM(), GP32()
	VPCMPEQW(start, start, start)
	VPSRLW(Imm(1), start, start)
	VPXOR(none, none, none)
	least, second, number := r.least(0), r.least(1), r.least(2)
	VMOVDQU(start, least)
	VMOVDQU(start, second)
	VMOVDQU(none, number)
	XORL(first, first)
	r.tiles("some", tiles, func(sums [][]reg.VecVirtual) {
		low, next, index, at := YMM(), YMM(), YMM(), YMM()
		VMOVDQU(least, low)
		VMOVDQU(second, next)
		VMOVDQU(number, index)
		VMOVD(first, at.AsX())
		VPBROADCASTW(at.AsX(), at)
		for q := range sums {
			sum, other := r.uppers(sums[q])
			VPCMPGTW(sum, low, other)
			VPBLENDVB(other, at, index, index)
			VPMAXSW(sum, low, other)
			VPMINSW(sum, low, low)
			VPMINSW(other, next, next)
			if q < len(sums)-1 {
				VPADDW(r.numbers.Offset(32), at, at)
			}
		}
		VMOVDQU(low, least)
		VMOVDQU(next, second)
		VMOVDQU(index, number)
		ADDL(Imm(longTile), first)
	})
	apart, band := YMM(), YMM()
	VMOVD(Load(Param("band"), GP32()), band.AsX())
	VPBROADCASTW(band.AsX(), band)
	VMOVDQU(second, apart)
	VPSUBW(least, apart, apart)
	VPMINUW(band, apart, band)
	VPCMPEQW(band, apart, apart)
	VPCMPEQW(r.decided, r.decided, r.decided)
	VPXOR(apart, r.decided, r.decided)
	VMOVDQU(number, r.index)
}

// uppers leaves the upper halves of the sums of a panel and a centroid in the first vector.
func (r *tileRanking) uppers(sums []reg.VecVirtual) (sum, free reg.VecVirtual) {
	sum, free = sums[0], sums[1]
	VPSRLD(Imm(16), sum, sum)
	VPBLENDW(Imm(0xaa), free, sum, sum)
	return sum, free
}

// tile ranks the next n centroids, two words at a time, of which the first is left out where their number is odd.
func (r *tileRanking) tile(words string, n int, offer func(sums [][]reg.VecVirtual)) {
	sums := make([][]reg.VecVirtual, n)
	for q := range sums {
		sums[q] = avx2.vectors(2)
		VPBROADCASTD(Mem{Base: r.c, Disp: 4 * q}, sums[q][0])
		VMOVDQA(sums[q][0], sums[q][1])
	}
	ADDQ(Imm(uint64(4*n)), r.c)
	Load(Param("room"), r.room)
	points, word, product := avx2.vectors(2), YMM(), YMM()
	multiply := func(w int) {
		for v := range points {
			VMOVDQU(Mem{Base: r.room, Disp: 64*w + 32*v}, points[v])
		}
		for q := range sums {
			VPBROADCASTD(Mem{Base: r.c, Disp: 4 * (n*w + q)}, word)
			// An addition right after its product would hold up the other product.
			VPMADDWD(word, points[0], product)
			VPMADDWD(word, points[1], word)
			VPADDD(product, sums[q][0], sums[q][0])
			VPADDD(word, sums[q][1], sums[q][1])
		}
	}
	odd := GP64()
	MOVQ(r.end, odd)
	SUBQ(r.room, odd)
	TESTQ(U32(64), odd)
	JZ(LabelRef(words))
	SUBQ(Imm(64), r.room)
	SUBQ(Imm(uint64(4*n)), r.c)
	JMP(LabelRef(words + "_second"))
	align()
	Label(words)
	multiply(0)
	Label(words + "_second")
	multiply(1)
	PREFETCHT1(Mem{Base: r.ahead})
	PREFETCHT1(Mem{Base: r.ahead, Disp: 64})
	ADDQ(r.step, r.ahead)
	ADDQ(Imm(uint64(8*n)), r.c)
	ADDQ(U32(128), r.room)
	CMPQ(r.room, r.end)
	JNE(LabelRef(words))
	offer(sums)
}

// offer takes the sums of a tile, by centroid and vector, into its row and the columns.
func (r *tileRanking) offer(sums [][]reg.VecVirtual) {
	row := sums[0][0]
	for q := range sums {
		sum, column := r.uppers(sums[q])
		VPMINSW(r.least(q), sum, column)
		VMOVDQU(column, r.least(q))
		if q > 0 {
			VPMINSW(sum, row, row)
		}
	}
	VMOVDQU(row, Mem{Base: r.rows})
	ADDQ(Imm(32), r.rows)
}

// least is a place for least sums: of columns, and then of rows.
func (r *tileRanking) least(q int) Mem { return Mem{Base: r.end, Disp: 32 * q} }

// find takes the one row and the one column near the least.
func (r *tileRanking) find() {
	limit, total, number, column, far := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVDQU(r.least(0), limit)
	VMOVDQU(r.least(1), far)
	for q := 2; q < longTile; q += 2 {
		VPMINSW(r.least(q), limit, limit)
		VPMINSW(r.least(q+1), far, far)
	}
	VPMINSW(far, limit, limit)
	VMOVD(Load(Param("band"), GP32()), far.AsX())
	VPBROADCASTW(far.AsX(), far)
	VPADDSW(far, limit, limit)
	for _, v := range []reg.VecVirtual{total, number, r.index, column} {
		VPXOR(v, v, v)
	}
	step, at := YMM(), GP64()
	VMOVDQU(r.numbers.Offset(32*longTile), step)
	LEAQ(r.least(longTile), at)
	Label("rows")
	VMOVDQU(Mem{Base: at}, far)
	VPCMPGTW(limit, far, far)
	VPADDW(far, total, total) // less one for each that is far
	VPBLENDVB(far, r.index, number, r.index)
	VPADDW(step, number, number)
	ADDQ(Imm(32), at)
	CMPQ(at, r.rows)
	JNE(LabelRef("rows"))
	for q := range longTile {
		VMOVDQU(r.least(q), far)
		VPCMPGTW(limit, far, far)
		VPADDW(far, total, total)
		if q > 0 {
			VMOVDQU(r.numbers.Offset(32*q), number)
			VPBLENDVB(far, column, number, column)
		}
	}
	VPADDW(column, r.index, r.index)
	MOVQ(r.end, at)
	SUBQ(r.rows, at)
	SARQ(Imm(5), at)
	ADDQ(Imm(2), at) // all rows and columns but one of each
	VMOVD(at.As32(), far.AsX())
	VPBROADCASTW(far.AsX(), far)
	VPCMPEQW(total, far, r.decided)
}

// store writes the labels and doubts of a panel, and passes them.
func (r *tileRanking) store(labels, doubts reg.Register) {
	low, high, index, upper := GP32(), GP32(), r.index, YMM()
	VMOVMSKPS(r.decided, high) // the last eight points
	VPSLLD(Imm(16), r.decided, r.decided)
	VMOVMSKPS(r.decided, low)
	SHLL(Imm(8), high)
	ORL(high, low)
	NOTL(low)
	MOVW(low.As16(), Mem{Base: doubts})
	VPSRLD(Imm(16), index, upper)
	VPSLLD(Imm(16), index, index)
	VPSRLD(Imm(16), index, index)
	VPACKUSDW(upper, index, index)
	VPERMQ(Imm(0xd8), index, index)
	VMOVDQU(index, Mem{Base: labels})
	ADDQ(Imm(2), doubts)
	ADDQ(Imm(32), labels)
}
