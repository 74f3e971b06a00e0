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
	numbers Mem // vectors of words: what columns count
	shift   Mem // 1.5*2^23: float32 numbers near it hold what was added, rounded, in their low bits

	x, panel, c, room, end reg.GPVirtual
	rows                   reg.GPVirtual // the end of those so far, which begin after the columns at end
	ahead, step            reg.GPVirtual
	pairs                  Mem // less the bytes that pairs of words take in a tile of crossTile centroids

	index, decided reg.VecVirtual // numbers of the least sums, and a mask of the points that none other is near of
}

// fewTiles is the number of tiles up to which the rows and columns of a panel take longer than they spare.
const fewTiles = 2

// tilesAhead is how many bytes beyond the next panel points are fetched: panels of few dimensions take less time than
// the memory does.
const tilesAhead = 4096

// manyTile and manyLast are the numbers of centroids of a tile, and of the last one, whose words are multiplied one by
// one: as many as registers hold the sums of. Crosswise they are crossTile and crossTile/2.
const manyTile, manyLast = 6, 4

// rankTiles emits the routine.
func rankTiles() {
	framed("RankTilesAVX2", "func(x *float32, groups, d int, c *int32, size, tiles, last int, scale float32, band int32, "+
		"room *int32, labels, doubts *uint16)",
		"ranks the centroids of tiles > 0 tiles for each point of groups > 0 panels of d > 0 dimensions at x. The",
		"coordinates times scale, rounded to the nearest integer, fit 16 bits. A tile at c is [1+(d+1)/2][size] words: those",
		"that the products of a point with the integers of 16 bits in the next ones are added to, modulo 2^32; another",
		"one follows where last is not 0. It is of 4 where size is 6, and of 2 where size is 4: then d > 2, tiles > 2, and",
		"words of each two are multiplied crosswise. The upper halves of the sums count: the label is the number of the",
		"least but for a bit of doubts, 16 for each panel, which says that the second least is at most the least plus band.",
		"room is for [(d+1)/2][16] words, and then 48 and 8 for each tile, and begins a cache line.")
	r := &tileRanking{numbers: wordConstants("rankNumbersAVX2", 16*manyTile, func(i int) int { return i / 16 }),
		shift: constants("rankShiftAVX2", slices.Repeat([]uint32{0x4b400000}, 8)...),
		x:     GP64(), panel: GP64(), c: GP64(), room: GP64(), end: GP64(), rows: GP64(), ahead: GP64(), step: GP64(),
		pairs: AllocLocal(8), index: YMM(), decided: YMM()}
	Load(Param("x"), r.x)
	Load(Param("d"), r.panel)
	pairs := GP64()
	MOVQ(r.panel, pairs)
	INCQ(pairs)
	SHRQ(Imm(2), pairs)
	SHLQ(Imm(5), pairs)
	NEGQ(pairs)
	MOVQ(pairs, r.pairs)
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
		r.ifCrosswise("crosswise")
		r.start()
		r.tiles("tiles", tiles, manyTile, manyLast, r.multiply, r.offer)
		JMP(LabelRef("find"))
		Label("crosswise")
		r.start()
		Load(Param("room"), r.room)
		whole := GP64()
		MOVQ(r.pairs, whole)
		SHLQ(Imm(2), whole)
		SUBQ(whole, r.room)
		r.tiles("cross", tiles, crossTile, crossTile/2, r.multiplyCrosswise, r.offer)
		Label("find")
		r.find()
		JMP(LabelRef("found"))
		Label("few")
		r.few(tiles)
		Label("found")
		r.store(labels, doubts)
	})
	VZEROUPPER()
	RET()
}

// ifCrosswise goes to label where words are multiplied crosswise.
func (r *tileRanking) ifCrosswise(label string) {
	CMPQ(NewParamAddr("size", 32), Imm(crossTile))
	JE(LabelRef(label))
}

// pace sets the bytes to fetch for two words of a tile such that all tiles together fetch a panel.
func (r *tileRanking) pace() {
	tiles, last := GP64(), GP64()
	Load(Param("tiles"), tiles)
	Load(Param("last"), last)
	ADDQ(last, tiles)
	r.ifCrosswise("paced")
	JMP(LabelRef("divided"))
	Label("paced")
	line := GP64() // of points, for each two words of a tile
	MOVQ(U32(2*128/64), line)
	CMPQ(tiles, Imm(8))
	JG(LabelRef("divided"))
	CMPQ(tiles, line)
	CMOVQGT(line, tiles)
	Label("divided")
	MOVQ(U32(2*128), reg.RAX)
	XORQ(reg.RDX, reg.RDX)
	DIVQ(tiles)
	MOVQ(reg.RAX, r.step)
}

// round writes the integers of a panel to room, and passes it.
func (r *tileRanking) round() {
	left, d, scale, shift := GP64(), GP64(), YMM(), YMM()
	VBROADCASTSS(NewParamAddr("scale", 56), scale)
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

// tiles ranks the centroids of all tiles by offer, whose products multiply adds.
func (r *tileRanking) tiles(name string, tiles reg.GPVirtual, size, last int,
	multiply func(words string, sums [][]reg.VecVirtual), offer func(sums [][]reg.VecVirtual)) {
	count(name, tiles, func() { r.tile(name+"_words", size, multiply, offer) })
	other := Load(Param("last"), GP64())
	TESTQ(other, other)
	JZ(LabelRef(name + "_ranked"))
	r.tile(name+"_last", last, multiply, offer)
	Label(name + "_ranked")
}

// start is before the first tile of rows and columns.
func (r *tileRanking) start() {
	start := YMM()
	VPCMPEQW(start, start, start)
	VPSRLW(Imm(1), start, start)
	for q := range manyTile {
		VMOVDQU(start, r.least(q))
	}
	LEAQ(r.least(manyTile), r.rows)
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
	r.tiles("some", tiles, manyTile, manyLast, r.multiply, func(sums [][]reg.VecVirtual) {
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
		ADDL(Imm(manyTile), first)
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

// tile ranks the next n centroids.
func (r *tileRanking) tile(words string, n int, multiply func(words string, sums [][]reg.VecVirtual),
	offer func(sums [][]reg.VecVirtual)) {
	sums := make([][]reg.VecVirtual, n)
	for q := range sums {
		sums[q] = avx2.vectors(2)
		VPBROADCASTD(Mem{Base: r.c, Disp: 4 * q}, sums[q][0])
		VMOVDQA(sums[q][0], sums[q][1])
	}
	multiply(words, sums)
	offer(sums)
}

// fetch fetches what a tile's share of two words is of the points ahead.
func (r *tileRanking) fetch() {
	PREFETCHT1(Mem{Base: r.ahead})
	PREFETCHT1(Mem{Base: r.ahead, Disp: 64})
	ADDQ(r.step, r.ahead)
}

// multiply adds the products of a tile two words at a time, of which the first is left out where their number is odd.
func (r *tileRanking) multiply(words string, sums [][]reg.VecVirtual) {
	n := len(sums)
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
	r.fetch()
	ADDQ(Imm(uint64(8*n)), r.c)
	ADDQ(U32(128), r.room)
	CMPQ(r.room, r.end)
	JNE(LabelRef(words))
}

// multiplyCrosswise adds the products of a tile, of each two words crosswise, and of the last one where it has no
// other. That takes as many instructions, but of those that wait for units that multiply half as many.
func (r *tileRanking) multiplyCrosswise(words string, sums [][]reg.VecVirtual) {
	n, left := len(sums), GP64()
	points, word, products := [2][]reg.VecVirtual{avx2.vectors(2), avx2.vectors(2)}, avx2.vectors(2), avx2.vectors(2)
	// Centroids and points go by a single index, which is 0 at the end of the pairs.
	MOVQ(r.pairs, left)
	if n < crossTile {
		SARQ(Imm(1), left)
	}
	SUBQ(left, r.c)
	align()
	Label(words)
	for w := range points {
		for v := range points[w] {
			VMOVDQU(Mem{Base: r.room, Index: left, Scale: uint8(16 / n), Disp: 64*w + 32*v}, points[w][v])
		}
	}
	for q := range sums {
		for w := range word {
			VPBROADCASTD(Mem{Base: r.c, Index: left, Scale: 1, Disp: 4 * (n*(w+1) + q)}, word[w])
		}
		VPADDW(word[1], points[0][0], products[0])
		VPADDW(word[0], points[1][0], products[1])
		VPMADDWD(products[0], products[1], products[0])
		VPADDW(word[1], points[0][1], word[1])
		VPADDW(word[0], points[1][1], word[0])
		VPADDD(products[0], sums[q][0], sums[q][0])
		VPMADDWD(word[1], word[0], word[0])
		VPADDD(word[0], sums[q][1], sums[q][1])
	}
	r.fetch()
	ADDQ(Imm(uint64(8*n)), left)
	JNE(LabelRef(words))
	ADDQ(Imm(uint64(4*n)), r.c)
	CMPQ(r.room, r.end)
	JE(LabelRef(words + "_multiplied"))
	for v := range points[0] {
		VMOVDQU(Mem{Base: r.room, Disp: 32 * v}, points[0][v])
	}
	for q := range sums {
		VPBROADCASTD(Mem{Base: r.c, Disp: 4 * q}, word[0])
		for v, sum := range sums[q] {
			VPMADDWD(word[0], points[0][v], products[v])
			VPADDD(products[v], sum, sum)
		}
	}
	r.fetch()
	ADDQ(Imm(uint64(4*n)), r.c)
	Label(words + "_multiplied")
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
	for q := 2; q < manyTile; q += 2 {
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
	Load(Param("size"), at)
	VMOVD(at.As32(), step.AsX())
	VPBROADCASTW(step.AsX(), step)
	LEAQ(r.least(manyTile), at)
	Label("rows")
	VMOVDQU(Mem{Base: at}, far)
	VPCMPGTW(limit, far, far)
	VPADDW(far, total, total) // less one for each that is far
	VPBLENDVB(far, r.index, number, r.index)
	VPADDW(step, number, number)
	ADDQ(Imm(32), at)
	CMPQ(at, r.rows)
	JNE(LabelRef("rows"))
	for q := range manyTile {
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
