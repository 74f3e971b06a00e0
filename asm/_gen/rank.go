package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Words of points that are ranked where they are.
const leastRanked, mostRanked = 3, 8

// rankFile emits the ranking of centroids by products of 16-bit integers that are made of the points as they are read.
func rankFile(s isa) {
	if s == avx2 {
		rankTiles()
		return
	}
	halves := wordConstants("rankHalvesVNNI", 32, func(i int) int { return (2*i + 1) % 33 })
	columns := wordConstants("rankColumnsVNNI", 32*rankRow, func(i int) int { return rankColumn + i/32 })
	steps := wordConstants("rankStepsVNNI", 4, func(i int) int { return []int{rankFirst, rankRow, 1, rankMost}[i] })
	order := wordConstants("rankOrderVNNI", 32, byPairs)
	for words := leastRanked; words <= mostRanked; words++ {
		r := &ranking{words: words, halves: halves, columns: columns, steps: steps, order: order}
		r.routine()
	}
	rankLong(halves)
}

// Words of points and centroids are multiplied one by one, as x1 c1 + x2 c2, or two of each crosswise, as
// (x1 + c2) (x2 + c1): that is one product instead of two and more by x1 x2, which all centroids of a point have in
// common, and c1 c2, which is known beforehand (Winograd, A new algorithm for inner product, IEEE Trans. Comp. C-17,
// 1968). Additions have units of their own, so two words of three that go crosswise keep all units at work; of points
// of a single block what comes after the products does.
const rankBlock = 3 // words, the first two of which go crosswise

// crosswise adds the crosswise products of words of a point and a centroid to sum.
func crosswise(points, centroid [2]reg.VecVirtual, sum reg.VecVirtual) {
	one, other := ZMM(), ZMM()
	VPADDW(centroid[1], points[0], one)
	VPADDW(centroid[0], points[1], other)
	VPDPWSSD(one, other, sum)
}

// uppers leaves the upper halves of the words of two panels in other: those of sum in the odd places.
func uppers(sum, other reg.VecVirtual, high reg.Register) {
	VPSRLD(Imm(16), other, other)
	VMOVDQU16(sum, high, other)
}

const (
	rankRow    = 4    // columns
	rankMost   = 128  // centroids
	rankFirst  = 1536 // what a row counts beside its number: more than all columns, and all rows fit 16 bits
	rankColumn = 256  // what a column counts beside its number
	rankRows   = rankMost/rankRow + rankRow - 1
)

// ranking is a routine for points of so many words, which stay in registers, with its arguments in registers. Sums are
// compared by their upper halves, those of two panels in a vector. Centroids are in rows and columns, those beyond the
// whole rows in rows of their own: of each row and each column the least sum is kept, one instruction for each instead
// of those that the least, its number and the second least of all would take. Where more than one row or column is
// near the least of all, the point is doubtful; else they name the centroid.
type ranking struct {
	words   int
	halves  Mem // the odd places of a vector, and then the even ones
	columns Mem // vectors of what columns count
	steps   Mem // words: what the first row counts, the steps of rows and of single centroids, and rankMost
	order   Mem // see rankAdding

	x, stride, c, row reg.Register
	points            [2][]reg.VecVirtual
	high              reg.OpmaskVirtual // the upper halves of words
	least             []reg.VecVirtual  // of columns
	adding            *rankAdding
}

// routine emits it.
func (r *ranking) routine() {
	framed(fmt.Sprintf("Rank%dVNNI", r.words),
		"func(x *float32, pairs, d int, c *int32, k int, scale float32, band int32, labels, doubts *uint16, "+
			"table *int64, counts *int32, bias float32)",
		fmt.Sprintf("ranks k centroids, 0 < k <= %d, for each point of pairs > 0 pairs of panels at x, of d dimensions,",
			rankMost),
		fmt.Sprintf("d = %d or %d. The coordinates times scale, rounded to the nearest integer, fit 16 bits. A centroid",
			2*r.words-1, 2*r.words),
		fmt.Sprintf("at c is a word, to which the products of a point with the integers of 16 bits in the next %d are added",
			r.words),
		"modulo 2^32, where there are more than three, for the first two of each three crosswise. The upper halves of the",
		"sums count: a bit of doubts, 16 for each panel, says that the second least is at most the least plus band, and the",
		"label is k; else the label is the number of the least. Where table is not nil, the bits of x+bias of two dimensions",
		"each, as words of 64 bits modulo 2^64, are added to the row of [2][k+1][8]int64 that panel and label name, and 1 to",
		"counts[label]; where a last word has one dimension, its upper bits may be any.")
	r.x, r.stride, r.c, r.row = Load(Param("x"), GP64()), GP64(), GP64(), GP64()
	rows := alignedLocal(64*(rankRows+1) + 2*256*r.words)
	pairs, labels, doubts, before := AllocLocal(8), AllocLocal(8), AllocLocal(8), AllocLocal(8)
	for i, name := range []string{"pairs", "labels", "doubts"} {
		MOVQ(Load(Param(name), GP64()), []Mem{pairs, labels, doubts}[i])
	}
	MOVQ(U32(0), before)
	odd, bits := K(), GP32()
	r.high = K()
	Load(Param("d"), r.stride.(reg.GPVirtual))
	MOVQ(r.stride, bits.As64())
	ANDL(Imm(1), bits)
	DECL(bits) // ones where d is even
	KMOVD(bits, odd)
	MOVL(U32(0xaaaaaaaa), bits)
	KMOVD(bits, r.high)
	SHLQ(Imm(6), r.stride)
	r.adding = newRankAdding(r.words, r.order, r.stride, Mem{Base: rows, Disp: 64 * rankRows})
	// What comes of a pair's sums waits until the next pair is rounded, so that it does not wait for the last sums, with
	// all after it; beside the last pair that pair is rounded once more.
	r.least = avx512.vectors(rankRow)
	Label("pairs")
	r.round(odd)
	CMPQ(before, Imm(0))
	JZ(LabelRef("first"))
	r.store(rows, labels, doubts)
	CMPQ(pairs, Imm(0))
	JZ(LabelRef("stored"))
	Label("first")
	r.sums(rows)
	MOVQ(U32(1), before)
	step := GP64()
	LEAQ(Mem{Base: r.x, Index: r.stride, Scale: 2}, step)
	DECQ(pairs)
	CMOVQNE(step, r.x)
	JMP(LabelRef("pairs"))
	Label("stored")
	r.adding.rest("last")
	VZEROUPPER()
	RET()
}

// round leaves the integers of a pair of panels in registers. Numbers near 1.5*2^23 hold what was added, rounded, in
// their low bits.
func (r *ranking) round(odd reg.Register) {
	scale, shift, bits := ZMM(), ZMM(), GP32()
	VBROADCASTSS(NewParamAddr("scale", 40), scale)
	MOVL(U32(math.Float32bits(3<<22)), bits)
	VPBROADCASTD(bits, shift)
	for v := range r.points {
		r.points[v] = avx512.vectors(r.words)
		for w, low := range r.points[v] {
			upper := ZMM()
			at := Mem{Base: r.x, Disp: 128 * w}
			if v == 1 {
				at.Index, at.Scale = r.stride, 1
			}
			VMOVAPS(shift, low)
			VFMADD231PS(at, scale, low)
			VMOVAPS(shift, upper)
			if at = at.Offset(64); w < r.words-1 {
				VFMADD231PS(at, scale, upper)
			} else {
				VFMADD231PS_Z(at, scale, odd, upper)
			}
			VPSLLD(Imm(16), upper, upper)
			VMOVDQU16(upper, r.high, low)
		}
	}
}

// sums leaves the least sums of columns in registers, and those of rows at rows; meanwhile the pair before is added.
func (r *ranking) sums(rows reg.Register) {
	VPTERNLOGD(Imm(0xff), r.least[0], r.least[0], r.least[0])
	VPSRLW(Imm(1), r.least[0], r.least[0])
	for _, v := range r.least[1:] {
		VMOVDQA32(r.least[0], v)
	}
	Load(Param("c"), r.c.(reg.GPVirtual))
	MOVQ(rows, r.row)
	left, ahead := GP64(), GP64()
	LEAQ(Mem{Base: r.x, Index: r.stride, Scale: 2}, ahead)
	Load(Param("k"), left)
	size := 4 * (1 + r.words)
	whole := func(between func(q int)) {
		PREFETCHT0(Mem{Base: ahead})
		PREFETCHT0(Mem{Base: ahead, Disp: 64})
		ADDQ(U32(128), ahead)
		var least reg.VecVirtual
		for q := range rankRow {
			if sum := r.centroid(q*size, q); q == 0 {
				least = sum
			} else {
				VPMINSW(sum, least, least)
			}
			between(q)
		}
		VMOVDQA32(least, Mem{Base: r.row})
		ADDQ(U32(uint32(rankRow*size)), r.c)
	}
	r.adding.begin(r.x)
	Label("both")
	CMPQ(r.adding.done, Imm(rankAdded))
	JEQ(LabelRef("sums_whole"))
	SUBQ(Imm(rankRow), left)
	JLT(LabelRef("sums_whole_end"))
	whole(func(q int) {
		switch q {
		case 0:
			r.adding.word("both_made")
		case 1, 2:
			r.adding.put(q - 1)
		}
	})
	ADDQ(Imm(64), r.row)
	JMP(LabelRef("both"))
	r.eachRow(left, "sums", func() { whole(func(int) {}) }, func() {
		VMOVDQA32(r.centroid(0, 0), Mem{Base: r.row})
		ADDQ(Imm(uint64(size)), r.c)
	})
	r.adding.finish()
}

// eachRow emits loops over the rows of left centroids: whole is for one of rankRow, single for the others. Both have
// their place in r.row.
func (r *ranking) eachRow(left reg.GPVirtual, name string, whole, single func()) {
	loop := func(tag string, width int, body func()) {
		Label(name + tag)
		SUBQ(Imm(uint64(width)), left)
		JLT(LabelRef(name + tag + "_end"))
		body()
		ADDQ(Imm(64), r.row)
		JMP(LabelRef(name + tag))
		Label(name + tag + "_end")
	}
	loop("_whole", rankRow, whole)
	ADDQ(Imm(rankRow), left)
	loop("_single", 1, single)
}

// centroid leaves the upper halves of the sums of a pair of panels and the centroid at disp, which lower those of its
// column. Products that broadcast their word by themselves read one register less, which leaves more to the additions.
func (r *ranking) centroid(disp, column int) reg.VecVirtual {
	sums, word := avx512.vectors(2), avx512.vectors(2)
	VPBROADCASTD(Mem{Base: r.c, Disp: disp}, sums[0])
	VMOVDQA32(sums[0], sums[1])
	for w := 0; w < r.words; w++ {
		if w%rankBlock > 0 || w+rankBlock > r.words || r.words == rankBlock {
			for v, sum := range sums {
				VPDPWSSD_BCST(Mem{Base: r.c, Disp: disp + 4*(w+1)}, r.points[v][w], sum)
			}
			continue
		}
		VPBROADCASTD(Mem{Base: r.c, Disp: disp + 4*(w+1)}, word[0])
		w++
		VPBROADCASTD(Mem{Base: r.c, Disp: disp + 4*(w+1)}, word[1])
		for v, sum := range sums {
			crosswise([2]reg.VecVirtual(r.points[v][w-1:]), [2]reg.VecVirtual(word), sum)
		}
	}
	uppers(sums[0], sums[1], r.high)
	VPMINSW(sums[1], r.least[column], r.least[column])
	return sums[1]
}

// store writes labels and doubts of a pair of panels, and passes them.
func (r *ranking) store(rows reg.Register, labels, doubts Mem) {
	limit, total, near := ZMM(), ZMM(), K()
	VPMINSW(r.least[1], r.least[0], limit)
	for _, v := range r.least[2:] {
		VPMINSW(v, limit, limit)
	}
	number, step := ZMM(), ZMM()
	VPBROADCASTW(Load(Param("band"), GP32()), number)
	VPADDSW(number, limit, limit)
	avx512.zero(total)
	VPBROADCASTW(r.steps, number)
	VPBROADCASTW(r.steps.Offset(2), step)
	left := GP64()
	Load(Param("k"), left)
	MOVQ(rows, r.row)
	row := func() {
		VPCMPW(Imm(5), Mem{Base: r.row}, limit, near) // at most the limit
		VPADDW(number, total, near, total)
		VPADDW(step, number, number)
	}
	r.eachRow(left, "rows", row, func() {
		VPBROADCASTW(r.steps.Offset(4), step)
		row()
	})
	for q, v := range r.least {
		VPCMPW(Imm(2), limit, v, near)
		VPADDW(r.columns.Offset(64*q), total, near, total)
	}
	VPBROADCASTW(r.steps, number)
	VPSUBW(number, total, total)
	bits := GP32()
	MOVL(U32(rankColumn), bits)
	VPBROADCASTW(bits, number)
	VPSUBW(number, total, total)
	VMOVDQU32(r.halves, number)
	VPERMW(total, number, total)
	VPBROADCASTW(r.steps.Offset(6), number)
	VPCMPUW(Imm(5), number, total, near) // of several rows or columns
	Load(Param("k"), left)
	VPBROADCASTW(left.As32(), number)
	VMOVDQU16(number, near, total)
	to := GP64()
	MOVQ(labels, to)
	VMOVDQU32(total, Mem{Base: to})
	MOVQ(doubts, to)
	KMOVD(near, bits)
	MOVL(bits, Mem{Base: to})
	ADDQ(U32(64), labels)
	ADDQ(Imm(4), doubts)
	r.adding.start(total)
}

// longRanking is the routine for points of any number of dimensions, with its arguments in registers: their integers go
// to memory, and tiles of centroids are multiplied with those of four panels at a time. Sums are compared by their
// upper halves, those of two panels in a vector.
type longRanking struct {
	halves  Mem // the odd places of a vector, and then the even ones
	numbers Mem // vectors of the numbers of a tile's centroids, as words
	stack   Mem // the least, the second least and the index of two panels each, and the number of a tile's first centroid

	x, stride, tripled, c, room reg.Register
	high                        reg.OpmaskVirtual // the upper halves of words
}

const (
	longPanels = 4
	// crossTile is the number of centroids of a tile, whose crosswise products need registers.
	crossTile = 4
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
func rankLong(halves Mem) {
	numbers := wordConstants("rankNumbersVNNI", 32*crossTile, func(i int) int { return i / 32 })
	framed("RankLongVNNI", "func(x *float32, groups, d int, c *int32, tiles, last int, scale float32, band int32, "+
		"room *int32, labels, doubts *uint16)",
		"ranks the centroids of tiles > 0 tiles for each point of groups > 0 groups of four panels of d > 0 dimensions",
		"at x. The coordinates times scale, rounded to the nearest integer, fit 16 bits. A tile at c is",
		"[1+(d+1)/2][4] words: those that the products of a point with the integers of 16 bits in the next ones are added",
		"to, modulo 2^32, where there are more than three, for the first two of each three crosswise; one of",
		"[1+(d+1)/2][2] follows where last is not 0. The upper halves of the sums count: the label",
		"is the number of the first least, and a bit of doubts, 16 for each panel, says that the second least is at most",
		"the least plus band. room is for [(d+1)/2][4][16] words, which begin a cache line.")
	r := &longRanking{halves: halves, numbers: numbers, x: Load(Param("x"), GP64()), stride: GP64(), tripled: GP64(),
		c: GP64(), room: GP64(), high: K()}
	groups := Load(Param("groups"), GP64()).(reg.GPVirtual)
	Load(Param("d"), r.stride.(reg.GPVirtual))
	SHLQ(Imm(6), r.stride)
	LEAQ(Mem{Base: r.stride, Index: r.stride, Scale: 2}, r.tripled)
	r.stack = AllocLocal(64*3*longPanels/2 + 8)
	odd := GP32()
	MOVL(U32(0xaaaaaaaa), odd)
	KMOVD(odd, r.high)
	labels, doubts := Load(Param("labels"), GP64()), Load(Param("doubts"), GP64())
	count("groups", groups, func() {
		r.round()
		r.tiles()
		band, halves := ZMM(), ZMM()
		VPBROADCASTW(Load(Param("band"), GP32()), band)
		VMOVDQU32(r.halves, halves)
		for pair := range longPanels / 2 {
			second, index, near, bits := ZMM(), ZMM(), K(), GP32()
			VMOVDQU32(r.place(pair, 1), second)
			VMOVDQU32(r.place(pair, 2), index)
			VPSUBW(r.place(pair, 0), second, second)
			VPERMW(second, halves, second)
			VPERMW(index, halves, index)
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

// round writes the integers of a group to room. Numbers near 1.5*2^23 hold what was added, rounded, in their low bits.
func (r *longRanking) round() {
	at, left, d, scale, shift, bits := GP64(), GP64(), GP64(), ZMM(), ZMM(), GP32()
	VBROADCASTSS(NewParamAddr("scale", 48), scale)
	MOVL(U32(math.Float32bits(3<<22)), bits)
	VPBROADCASTD(bits, shift)
	MOVQ(r.x, at)
	Load(Param("room"), r.room.(reg.GPVirtual))
	Load(Param("d"), d)
	MOVQ(d, left)
	integers := func(disp, v int, to reg.VecVirtual) {
		VMOVAPS(shift, to)
		VFMADD231PS(further(Mem{Base: at, Disp: disp}, v, r.stride, r.tripled), scale, to)
	}
	store := func(v int, low, upper reg.VecVirtual) {
		VMOVDQU16(upper, r.high, low)
		VMOVDQU32(low, Mem{Base: r.room, Disp: 64 * v})
	}
	SHRQ(Imm(1), left)
	JZ(LabelRef("last"))
	count("pairs", left, func() {
		for v := range longPanels {
			low, upper := ZMM(), ZMM()
			integers(0, v, low)
			integers(64, v, upper)
			VPSLLD(Imm(16), upper, upper)
			store(v, low, upper)
		}
		ADDQ(U32(128), at)
		ADDQ(U32(64*longPanels), r.room)
	})
	Label("last")
	TESTQ(U32(1), d)
	JZ(LabelRef("rounded"))
	none := ZMM()
	avx512.zero(none)
	for v := range longPanels {
		low := ZMM()
		integers(0, v, low)
		store(v, low, none)
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
		r.tile("", crossTile, func() {
			PREFETCHT1(Mem{Base: ahead})
			PREFETCHT1(Mem{Base: ahead, Disp: 64})
			ADDQ(step, ahead)
		})
		ADDL(Imm(crossTile), r.counter())
		CMPL(r.counter(), Imm(fetching*crossTile))
		JLT(LabelRef("fetching"))
		XORQ(step, step)
		Label("fetching")
	})
	last := Load(Param("last"), GP64())
	TESTQ(last, last)
	JZ(LabelRef("ranked"))
	r.tile("last_", crossTile/2, func() {})
	Label("ranked")
}

// tile ranks the next n centroids; fetch is done for each word.
func (r *longRanking) tile(tag string, n int, fetch func()) {
	sums := make([][]reg.VecVirtual, n)
	for q := range sums {
		sums[q] = avx512.vectors(longPanels)
		for _, sum := range sums[q] {
			VPBROADCASTD(Mem{Base: r.c, Disp: 4 * q}, sum)
		}
	}
	ADDQ(Imm(uint64(4*n)), r.c)
	left := GP64()
	Load(Param("d"), left)
	INCQ(left)
	SHRQ(Imm(1), left)
	Load(Param("room"), r.room.(reg.GPVirtual))
	points, words := [2][]reg.VecVirtual{avx512.vectors(longPanels), avx512.vectors(longPanels)}, avx512.vectors(2)
	load := func(word, of int) {
		for v := range points[of] {
			VMOVDQU32(Mem{Base: r.room, Disp: 64 * (longPanels*word + v)}, points[of][v])
		}
	}
	multiply := func(word int) {
		load(word, 0)
		for q := range sums {
			VPBROADCASTD(Mem{Base: r.c, Disp: 4 * (n*word + q)}, words[0])
			for v, sum := range sums[q] {
				VPDPWSSD(words[0], points[0][v], sum)
			}
		}
	}
	next := func(words int) {
		for range words {
			fetch()
		}
		ADDQ(Imm(uint64(4*n*words)), r.c)
		ADDQ(U32(uint32(64*longPanels*words)), r.room)
	}
	CMPQ(left, Imm(rankBlock))
	JLE(LabelRef(tag + "words"))
	SUBQ(Imm(rankBlock), left)
	Label(tag + "blocks")
	load(0, 0)
	load(1, 1)
	for q := range sums {
		for i, word := range words {
			VPBROADCASTD(Mem{Base: r.c, Disp: 4 * (n*i + q)}, word)
		}
		for v, sum := range sums[q] {
			crosswise([2]reg.VecVirtual{points[0][v], points[1][v]}, [2]reg.VecVirtual(words), sum)
		}
	}
	multiply(2)
	next(rankBlock)
	SUBQ(Imm(rankBlock), left)
	JGE(LabelRef(tag + "blocks"))
	ADDQ(Imm(rankBlock), left)
	JZ(LabelRef(tag + "multiplied"))
	count(tag+"words", left, func() {
		multiply(0)
		next(1)
	})
	Label(tag + "multiplied")
	r.offer(sums)
}

// offer takes the sums of a tile, by centroid and panel, into those on the stack.
func (r *longRanking) offer(sums [][]reg.VecVirtual) {
	first, nearer := ZMM(), K()
	VPBROADCASTW(r.counter(), first)
	for pair := range longPanels / 2 {
		least, second, index := ZMM(), ZMM(), ZMM()
		VMOVDQU32(r.place(pair, 0), least)
		VMOVDQU32(r.place(pair, 1), second)
		VMOVDQU32(r.place(pair, 2), index)
		for q := range sums {
			larger, sum := sums[q][2*pair], sums[q][2*pair+1]
			uppers(larger, sum, r.high)
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
