package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// shareFile emits the kernels of the expectation maximisation over a grid.
func shareFile(s isa) {
	var members Mem
	if s == avx2 {
		members = fourMembers()
	}
	for _, stride := range []int{8, 16, 32, 64} {
		share(s, stride, members)
	}
	sumMaxima(s)
}

// fourMembers emits, for each set of four, a vector whose lanes are all ones for its
// members.
func fourMembers() Mem {
	var words []uint32
	for set := range 16 {
		for lane := range 4 {
			all := -uint32(set >> lane & 1)
			words = append(words, all, all)
		}
	}
	return constants("shareMembers", words...)
}

// sharing are the operands of a share routine.
type sharing struct {
	weights, shares                   Mem
	rows, sets, counts, backgrounds   reg.Register
	rowCount, events, row, left, next reg.GPVirtual
}

// share emits the routine of rows of stride cells.
func share(s isa, stride int, members Mem) {
	name := fmt.Sprintf("Share%d%s", stride, s.name)
	begin := function
	if s == avx2 {
		begin = framed // the sums are on the stack
	}
	begin(name, "func(weights, shares *float64, rows *int32, rowCount int, sets *uint64, counts, backgrounds "+
		"*float64, events int)",
		fmt.Sprintf("adds to the shares of rows of %d cells what rowCount > 0 rows get of", stride),
		"events > 0 events: to each member of an event's set, bit i for cell i of every row, its",
		"count over the sum of the weights of the members and its background, or nothing where that",
		"sum is not positive.")
	p := sharing{rows: Load(Param("rows"), GP64()), sets: Load(Param("sets"), GP64()),
		counts:      Load(Param("counts"), GP64()),
		backgrounds: Load(Param("backgrounds"), GP64()), rowCount: GP64(), events: GP64(), row: GP64(), left: GP64(),
		next: GP64()}
	p.weights.Base = Load(Param("weights"), GP64())
	p.shares.Base = Load(Param("shares"), GP64())
	Load(Param("rowCount"), p.rowCount)
	Load(Param("events"), p.events)
	if s == avx512 {
		p.avx512(stride / 8)
	} else {
		p.avx2(stride/4, members)
	}
	VZEROUPPER()
	RET()
}

// overRows visits the places of the rows' cells after a base.
func (p *sharing) overRows(label string, base Mem, body func(place Mem)) {
	MOVQ(p.rows, p.next)
	MOVQ(p.rowCount, p.left)
	count(label, p.left, func() {
		MOVLQSX(Mem{Base: p.next}, p.row)
		body(Mem{Base: base.Base, Index: p.row, Scale: 8})
		ADDQ(Imm(4), p.next)
	})
}

// overEvents visits the events.
func (p *sharing) overEvents(body func()) {
	count("events", p.events, func() {
		body()
		ADDQ(Imm(8), p.sets)
		ADDQ(Imm(8), p.counts)
		ADDQ(Imm(8), p.backgrounds)
	})
}

// total adds the four chains of y, then the background, in its lowest lane.
func (p *sharing) total(s isa, y reg.VecVirtual) reg.VecVirtual {
	high := YMM()
	if s == avx512 {
		VEXTRACTF64X2(Imm(1), y.AsY(), high.AsX())
	} else {
		VEXTRACTF128(Imm(1), y.AsY(), high.AsX())
	}
	VADDPD(high.AsX(), y.AsX(), y.AsX())
	VUNPCKHPD(y.AsX(), y.AsX(), high.AsX())
	VADDSD(high.AsX(), y.AsX(), y.AsX())
	VADDSD(Mem{Base: p.backgrounds}, y.AsX(), y.AsX())
	return y
}

func (p *sharing) avx512(parts int) {
	sums, shares := avx512.vectors(parts), avx512.vectors(parts)
	none, acc, high, each := avx512.vector(), avx512.vector(), avx512.vector(), avx512.vector()
	VPXORQ(none, none, none)
	for i := range parts {
		VPXORQ(sums[i], sums[i], sums[i])
		VPXORQ(shares[i], shares[i], shares[i])
	}
	p.overRows("sums", p.weights, func(place Mem) {
		for i, sum := range sums {
			VADDPD(place.Offset(64*i), sum, sum)
		}
	})
	masks := []reg.Register{K(), K(), K(), K()} // all bytes of a set fit where there are few
	positive := K()
	load := func(i int) reg.Register {
		k := masks[i%len(masks)]
		KMOVB(Mem{Base: p.sets, Disp: i}, k)
		return k
	}
	p.overEvents(func() {
		for i, sum := range sums {
			k := load(i)
			if i == 0 {
				VMOVAPD_Z(sum, k, acc)
			} else {
				VADDPD(sum, acc, k, acc)
			}
		}
		VEXTRACTF64X4(Imm(1), acc, high.AsY())
		VADDPD(high.AsY(), acc.AsY(), acc.AsY())
		total := p.total(avx512, acc)
		VCMPSD(Imm(0x1e), none.AsX(), total.AsX(), positive) // greater, ordered
		VMOVSD(Mem{Base: p.counts}, each.AsX())
		VDIVSD_Z(total.AsX(), each.AsX(), positive, each.AsX())
		VBROADCASTSD(each.AsX(), each)
		for i, share := range shares {
			k := masks[i%len(masks)]
			if parts > len(masks) {
				load(i)
			}
			VADDPD(each, share, k, share)
		}
	})
	p.overRows("shares", p.shares, func(place Mem) {
		for i, share := range shares {
			VADDPD(place.Offset(64*i), share, acc)
			VMOVUPD(acc, place.Offset(64*i))
		}
	})
}

// avx2 takes the lanes of a set from a table, four at a time. The masks of a set stay in
// registers where there are as many.
func (p *sharing) avx2(parts int, members Mem) {
	const most = 8
	sums := Mem{Base: alignedLocal(64 * parts)}
	shares := sums.Offset(32 * parts)
	none, a, b, each, v := YMM(), YMM(), YMM(), YMM(), YMM()
	VPXOR(none, none, none)
	masks := avx2.vectors(min(parts, most))
	for lo := 0; lo < parts; lo += most {
		for i := range masks {
			VPXOR(masks[i], masks[i], masks[i])
			VMOVUPD(none, shares.Offset(32*(lo+i)))
		}
		p.overRows(fmt.Sprintf("sums%d", lo), p.weights, func(place Mem) {
			for i, sum := range masks {
				VADDPD(place.Offset(32*(lo+i)), sum, sum)
			}
		})
		for i, sum := range masks {
			VMOVUPD(sum, sums.Offset(32*(lo+i)))
		}
	}
	table, set, four := GP64(), GP64(), GP64()
	LEAQ(members, table)
	mask := func(i int) reg.VecVirtual {
		MOVQ(set, four)
		if i < 2 {
			SHLQ(U8(5-4*i), four)
		} else {
			SHRQ(U8(4*i-5), four)
		}
		ANDL(U32(15<<5), four.As32())
		m := masks[i%len(masks)]
		VMOVUPD(Mem{Base: table, Index: four, Scale: 1}, m)
		return m
	}
	p.overEvents(func() {
		MOVQ(Mem{Base: p.sets}, set)
		for i := range parts {
			acc, w := []reg.VecVirtual{a, b}[i%2], v
			if i < 2 {
				w = acc
			}
			VANDPD(sums.Offset(32*i), mask(i), w)
			if i >= 2 {
				VADDPD(w, acc, acc)
			}
		}
		VADDPD(b, a, a)
		total := p.total(avx2, a)
		VMOVSD(Mem{Base: p.counts}, each.AsX())
		VDIVSD(total.AsX(), each.AsX(), each.AsX())
		VCMPSD(Imm(0x1e), none.AsX(), total.AsX(), v.AsX())
		VANDPD(v.AsX(), each.AsX(), each.AsX())
		VBROADCASTSD(each.AsX(), each)
		for i := range parts {
			m := masks[i%len(masks)]
			if parts > len(masks) {
				m = mask(i)
			}
			VANDPD(each, m, v)
			VADDPD(shares.Offset(32*i), v, v)
			VMOVUPD(v, shares.Offset(32*i))
		}
	})
	p.overRows("shares", p.shares, func(place Mem) {
		for i := range parts {
			VMOVUPD(shares.Offset(32*i), v)
			VADDPD(place.Offset(32*i), v, v)
			VMOVUPD(v, place.Offset(32*i))
		}
	})
}

// sumMaxima emits the sum of the larger of two numbers.
func sumMaxima(s isa) {
	const chains = 32
	function("SumMaxima"+s.name, "func(x, y *float64, blocks int, sums *[32]float64)",
		"adds the larger of x and y of blocks > 0 blocks of 32 to the sums.")
	x := Load(Param("x"), GP64())
	y := Load(Param("y"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	sums := Load(Param("sums"), GP64())
	acc, v := s.vectors(8*chains/s.bytes), s.vectors(2)
	for i, sum := range acc {
		VMOVUPD(Mem{Base: sums, Disp: i * s.bytes}, sum)
	}
	count("loop", blocks, func() {
		for i, sum := range acc {
			w := v[i%2]
			VMOVUPD(Mem{Base: x, Disp: i * s.bytes}, w)
			VMAXPD(Mem{Base: y, Disp: i * s.bytes}, w, w)
			VADDPD(w, sum, sum)
		}
		ADDQ(U32(8*chains), x)
		ADDQ(U32(8*chains), y)
	})
	for i, sum := range acc {
		VMOVUPD(sum, Mem{Base: sums, Disp: i * s.bytes})
	}
	VZEROUPPER()
	RET()
}
