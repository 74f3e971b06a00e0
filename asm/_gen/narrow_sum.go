package main

import (
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// narrowSumming is the routine that ranks centroids for points as they are, while the ones before go to slots.
type narrowSumming struct {
	narrowing
	slotting
	shifts reg.Register
	low    Mem // mask of the lower halves of words
}

// narrowSum emits the routine. What permutations to slots take of loads, stores and units is for the most part what the
// products leave over, and the memory has something to do all the time.
func narrowSum(one, infinity Mem) {
	framed("NarrowSumVNNI", "func(x *float32, words int, shifts *float32, c *int32, band float32, room *float32, "+
		"labels, doubts *uint16, before *float32, order *int8, passes int, bias float32, slots *int32)",
		"is NarrowAssignVNNI by one tile of 10 centroids for the two panels of 2 words > 0 dimensions at x as they are,",
		"whose words, of two dimensions, it makes: the lower halves of a coordinate plus its shift. It fetches as much",
		"after them, and adds the two panels at before to slots as SumSlotsAVX512 does, in 0 to 7 passes; those at order",
		"beyond add nothing.")
	r := &narrowSumming{narrowing: narrowing{x: GP64(), stride: GP64(), tripled: GP64(), c: GP64(), room: GP64(),
		number: GP64(), one: one}, low: constants("narrowLowerVNNI", math.MaxUint16)}
	Load(Param("words"), r.stride)
	SHLQ(Imm(7), r.stride)
	LEAQ(Mem{Base: r.stride, Index: r.stride, Scale: 2}, r.tripled)
	Load(Param("c"), r.c)
	Load(Param("room"), r.room)
	r.shifts = Load(Param("shifts"), GP64())
	r.slotting = newSlotting(r.stride, NewParamAddr("bias", 88))
	sums := r.begin(narrowTile)
	r.byPasses("multiplied", func(tag string, n int) { r.multiplyAll(tag, sums, n) })
	r.start(infinity)
	r.rank(narrowTile)
	r.end(NewParamAddr("band", 32))
}

// chunks emits a loop over all words with what comes before and after each chunk.
func chunks(tag string, before, word, after func()) {
	words, left := Load(Param("words"), GP64()), GP64()
	Label(tag + "_chunks")
	before()
	MOVQ(U32(narrowWords), left)
	CMPQ(words, left)
	CMOVQLT(words, left)
	SUBQ(left, words)
	count(tag+"_words", left, word)
	after()
	TESTQ(words, words)
	JNZ(LabelRef(tag + "_chunks"))
}

// narrowLengths emits the routine that says how long points and what their words leave out are.
func narrowLengths() {
	function("NarrowLengthsVNNI", "func(x *float32, words int, shifts *float32, sums *float32)",
		"is NarrowPackVNNI without the form, for a panel of 2 words > 0 dimensions and shifts of 768 less the origin.",
		"sums are rows of 16: the squares of y = x - origin, the largest of a chunk, the squares of y less y rounded to",
		"multiples of 2^-14, and the largest magnitude of y.")
	x, shifts, sums := Load(Param("x"), GP64()), Load(Param("shifts"), GP64()), Load(Param("sums"), GP64())
	size, positive := ZMM(), ZMM()
	VBROADCASTSS(constants("narrowShiftVNNI", math.Float32bits(3<<22>>(narrowBits-narrowRest))), size)
	VPBROADCASTD(constants("narrowPositiveVNNI", math.MaxInt32), positive)
	squares, largest, rough, most, part := ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	for _, v := range []reg.VecVirtual{squares, largest, rough, most} {
		avx512.zero(v)
	}
	chunks("lengths", func() { avx512.zero(part) }, func() {
		for half := range 2 {
			y, rounded, shift := ZMM(), ZMM(), ZMM()
			VBROADCASTSS(Mem{Base: shifts, Disp: 4 * half}, shift)
			VADDPS(Mem{Base: x, Disp: 64 * half}, shift, rounded)
			VSUBPS(size, shift, shift)
			VADDPS(Mem{Base: x, Disp: 64 * half}, shift, y)
			VSUBPS(size, rounded, rounded)
			VFMADD231PS(y, y, part)
			VSUBPS(rounded, y, rounded)
			VFMADD231PS(rounded, rounded, rough)
			VPANDD(positive, y, y)
			VPMAXUD(y, most, most) // numbers that are none are the largest
		}
		ADDQ(U32(128), x)
		ADDQ(Imm(8), shifts)
	}, func() {
		VADDPS(part, squares, squares)
		VMAXPS(part, largest, largest)
	})
	for i, v := range []reg.VecVirtual{squares, largest, rough, most} {
		VMOVUPS(v, Mem{Base: sums, Disp: 64 * i})
	}
	VZEROUPPER()
	RET()
}

// multiplyAll adds the products of all words, and n passes of their dimensions of the panels before to slots.
func (r *narrowSumming) multiplyAll(tag string, sums [][]reg.VecVirtual, n int) {
	chunks(tag, func() {
		for _, s := range slices.Concat(sums...) {
			avx512.zero(s)
		}
	}, func() { r.word(sums, n) }, func() { r.add(sums) })
}

// word adds the products of the next word.
func (r *narrowSumming) word(sums [][]reg.VecVirtual, n int) {
	points := avx512.vectors(narrowPanels)
	for half := range 2 {
		shift := ZMM()
		VBROADCASTSS(Mem{Base: r.shifts, Disp: 4 * half}, shift)
		for p, x := range points {
			at := Mem{Base: r.x, Disp: 64 * half}
			PREFETCHT1(further(at, narrowPanels+p, r.stride, r.tripled))
			if half == 0 {
				VADDPS(further(at, p, r.stride, r.tripled), shift, x)
				continue
			}
			upper := ZMM()
			VADDPS(further(at, p, r.stride, r.tripled), shift, upper)
			VPSLLD(Imm(16), upper, upper)
			VPTERNLOGD_BCST(Imm(0xec), r.low, upper, x) // x and low, or upper
		}
	}
	for q := range sums {
		r.multiply(sums[q], points, 4*q)
		r.put(q, len(sums), 2, n)
	}
	ADDQ(U32(128), r.x)
	ADDQ(Imm(8), r.shifts)
	ADDQ(Imm(4*narrowTile), r.c)
	r.next(2, n)
}
