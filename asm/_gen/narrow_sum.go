package main

import (
	"fmt"
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// passNumbers are the numbers of passes that there are loops for; others take some in which nothing is added.
var passNumbers = []int{slotPasses, 5, 4, 3, 0}

// keptPlaces is the number of passes whose places have a register beside the sums of products.
const keptPlaces = 4

// narrowSumming is the routine that ranks centroids for points as they are, while the ones before go to slots.
type narrowSumming struct {
	narrowing
	shifts, before, slots reg.Register
	low                   Mem  // mask of the lower halves of words
	bias                  Mem  // of slots
	places                []Op // by pass, registers or memory
	taken                 []reg.OpmaskVirtual
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
	r.shifts, r.before = Load(Param("shifts"), GP64()), Load(Param("before"), GP64())
	r.slots = Load(Param("slots"), GP64())
	r.bias = NewParamAddr("bias", 88)
	r.arrange()
	sums, passes := r.begin(narrowTile), Load(Param("passes"), GP64())
	for i, n := range passNumbers {
		tag := fmt.Sprintf("passes%d", n)
		if n > 0 {
			CMPQ(passes, Imm(uint64(passNumbers[i+1])))
			JLE(LabelRef(tag + "_less"))
		}
		r.multiplyAll(tag, sums, n)
		if n > 0 {
			JMP(LabelRef("multiplied"))
			Label(tag + "_less")
		}
	}
	Label("multiplied")
	r.start(infinity)
	r.rank(narrowTile)
	r.end(NewParamAddr("band", 32))
}

// arrange loads places.
func (r *narrowSumming) arrange() {
	order, zero, room := Load(Param("order"), GP64()), ZMM(), alignedLocal(64*(slotPasses-keptPlaces))
	avx512.zero(zero)
	for p := range slotPasses {
		place, taken := ZMM(), K()
		VPMOVSXBD(Mem{Base: order, Disp: 16 * p}, place)
		VPCMPD(Imm(5), zero, place, taken) // not less
		r.places, r.taken = append(r.places, place), append(r.taken, taken)
		if p >= keptPlaces {
			r.places[p] = Mem{Base: room, Disp: 64 * (p - keptPlaces)}
			VMOVDQA32(place, r.places[p])
		}
	}
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
	var first, other, to reg.VecVirtual
	done := 0
	for q := range sums {
		r.multiply(sums[q], points, 4*q)
		for ; n > 0 && done*len(sums) < (q+1)*2*n; done++ {
			half, pass := done/n, done%n
			at, slot := Mem{Base: r.before, Disp: 64 * half}, Mem{Base: r.slots, Disp: 64 * half}
			if pass == 0 {
				first, other, to = ZMM(), ZMM(), ZMM()
				VBROADCASTSS(r.bias, other)
				VADDPS(at, other, first)
				VADDPS(further(at, 1, r.stride, r.tripled), other, other)
				VMOVDQU32(slot, to)
			}
			t := ZMM()
			VMOVDQA32(r.places[pass], t)
			VPERMI2D_Z(other, first, r.taken[pass], t)
			VPADDD(t, to, to)
			if pass == n-1 {
				VMOVDQU32(to, slot)
			}
		}
	}
	ADDQ(U32(128), r.x)
	ADDQ(Imm(8), r.shifts)
	ADDQ(Imm(4*narrowTile), r.c)
	if n > 0 {
		ADDQ(U32(128), r.before)
		ADDQ(U32(128), r.slots)
	}
}
