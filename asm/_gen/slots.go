package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// passNumbers are the numbers of passes that there are loops for; others take some in which nothing is added.
var passNumbers = []int{slotPasses, 5, 4, 3, 0}

// keptPlaces is the number of passes whose places have a register beside twenty sums.
const keptPlaces = 4

// slotting adds two panels to slots as SumSlotsAVX512 does, while others are multiplied. What that takes of loads,
// stores and units is for the most part what the products leave over, and the memory has something to do all the time.
// Where products read centroids by a broadcast of their own, they leave over more: beside 20 multiply-adds of Zen 4, of
// 20 cycles, three passes take 1 cycle more, and 6 where 10 broadcasts come before them.
type slotting struct {
	before, slots reg.Register
	apart         reg.Register // bytes from panel to panel
	bias          Mem
	places        []Op // by pass, registers or memory
	taken         []reg.OpmaskVirtual

	first, other, to reg.VecVirtual
	done             int // passes of the dimensions in hand
}

// newSlotting loads the arguments.
func newSlotting(apart reg.Register, bias Mem) slotting {
	r := slotting{before: Load(Param("before"), GP64()), slots: Load(Param("slots"), GP64()), apart: apart, bias: bias}
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
	return r
}

// byPasses emits body for each number of passes, which all end at the label end.
func (r *slotting) byPasses(end string, body func(tag string, n int)) {
	passes := Load(Param("passes"), GP64())
	for i, n := range passNumbers {
		tag := fmt.Sprintf("passes%d", n)
		if n > 0 {
			CMPQ(passes, Imm(uint64(passNumbers[i+1])))
			JLE(LabelRef(tag + "_less"))
		}
		body(tag, n)
		if n > 0 {
			JMP(LabelRef(end))
			Label(tag + "_less")
		}
	}
	Label(end)
}

// put emits what comes after the given part of so many: its share of n passes of some dimensions.
func (r *slotting) put(part, parts, dims, n int) {
	if part == 0 {
		r.done = 0
	}
	for ; n > 0 && r.done*parts < (part+1)*dims*n; r.done++ {
		dim, pass := r.done/n, r.done%n
		at, slot := Mem{Base: r.before, Disp: 64 * dim}, Mem{Base: r.slots, Disp: 64 * dim}
		if pass == 0 {
			r.first, r.other, r.to = ZMM(), ZMM(), ZMM()
			VBROADCASTSS(r.bias, r.other)
			VADDPS(at, r.other, r.first)
			VADDPS(further(at, 1, r.apart, nil), r.other, r.other)
			VMOVDQU32(slot, r.to)
		}
		t := ZMM()
		VMOVDQA32(r.places[pass], t)
		VPERMI2D_Z(r.other, r.first, r.taken[pass], t)
		VPADDD(t, r.to, r.to)
		if pass == n-1 {
			VMOVDQU32(r.to, slot)
		}
	}
}

// next moves on by so many dimensions.
func (r *slotting) next(dims, n int) {
	if n > 0 {
		ADDQ(distance(64*dims), r.before)
		ADDQ(distance(64*dims), r.slots)
	}
}
