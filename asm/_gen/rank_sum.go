package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rankAdding adds a pair of panels to the rows of tables while the next pair is ranked. Two dimensions are a word of 64
// bits, and the words of points are added one by one by the units of integers, which have nothing else to do: beside
// the products, vectors only make words of coordinates, those of the pair in hand for the time after it. More than a
// point of each panel beside a row of centroids would take more stores than may wait.
type rankAdding struct {
	words  int          // of a point
	order  Mem          // the order of byPairs
	stride reg.Register // bytes from panel to panel
	labels Mem          // of the pair that is added, in the order of byPairs
	room   reg.GPVirtual
	done   reg.GPVirtual // points of each panel that were added, times two
	next   Mem           // [panel][words][16] words of the pair in hand; room has those of the pair that is added
	from   reg.GPVirtual // dimensions that words are made of next, which end at end
	to     reg.GPVirtual
	end    Mem
	tables Mem // of each panel, so that points with the same label seldom follow each other
}

// rankAdded is what done is at the end.
const rankAdded = 32

// byPairs is the order of the points of a pair of panels in words that VPUNPCKLDQ and VPUNPCKHDQ make of dimensions.
func byPairs(i int) int { return i&16 | i&6<<1 | i&8>>2 | i&1 }

// newRankAdding starts with no pair, and with labels and words at room.
func newRankAdding(words int, order Mem, stride reg.Register, room Mem) *rankAdding {
	a := &rankAdding{words: words, order: order, stride: stride, labels: room, room: GP64(), done: GP64(),
		next: AllocLocal(8), end: AllocLocal(8), tables: AllocLocal(16)}
	LEAQ(room.Offset(64+256*words), a.room)
	MOVQ(a.room, a.next)
	LEAQ(room.Offset(64), a.room)
	table, rows := Load(Param("table"), GP64()).(reg.GPVirtual), GP64()
	MOVQ(table, a.tables)
	Load(Param("k"), rows)
	INCQ(rows)
	SHLQ(Imm(6), rows)
	ADDQ(rows, table)
	MOVQ(table, a.tables.Offset(8))
	MOVQ(U32(rankAdded), a.done)
	return a
}

// start takes the pair whose labels are in a vector, and whose words were made, where there are tables.
func (a *rankAdding) start(labels reg.VecVirtual) {
	CMPQ(NewParamAddr("table", 64), Imm(0))
	JEQ(LabelRef("no_tables"))
	order := ZMM()
	VMOVDQU32(a.order, order)
	VPERMW(labels, order, labels)
	VMOVDQU32(labels, a.labels)
	XORQ(a.done, a.done)
	Label("no_tables")
}

// begin begins to make words of the pair at x, where there are tables.
func (a *rankAdding) begin(x reg.Register) {
	end := GP64()
	a.from, a.to = GP64(), GP64()
	LEAQ(Mem{Base: x, Index: a.stride, Scale: 1}, end)
	MOVQ(end, a.end)
	MOVQ(x, a.from)
	CMPQ(NewParamAddr("table", 64), Imm(0))
	CMOVQEQ(end, a.from)
	MOVQ(a.next, a.to)
}

// word makes the next words of the pair in hand; the second dimension of the last one is any where there is none.
func (a *rankAdding) word(made string) {
	CMPQ(a.from, a.end)
	JGE(LabelRef(made))
	bias, second := ZMM(), GP64()
	VBROADCASTSS(NewParamAddr("bias", 80), bias)
	LEAQ(Mem{Base: a.from, Disp: 64}, second)
	CMPQ(second, a.end)
	CMOVQEQ(a.from, second)
	for v := range 2 {
		low, high, word := ZMM(), ZMM(), ZMM()
		VADDPS(further(Mem{Base: a.from}, v, a.stride, nil), bias, low)
		VADDPS(further(Mem{Base: second}, v, a.stride, nil), bias, high)
		VPUNPCKLDQ(high, low, word)
		VPUNPCKHDQ(high, low, low)
		VMOVDQA32(word, Mem{Base: a.to, Disp: 128 * a.words * v})
		VMOVDQA32(low, Mem{Base: a.to, Disp: 128*a.words*v + 64})
	}
	ADDQ(U32(128), a.from)
	ADDQ(U32(128), a.to)
	Label(made)
}

// put adds the next point of a panel, and passes it with that of the last one.
func (a *rankAdding) put(panel int) {
	to, counts := GP64(), GP64()
	label := a.labels.Offset(32 * panel)
	label.Index, label.Scale = a.done, 1
	MOVWLZX(label, to.As32())
	Load(Param("counts"), counts)
	INCL(Mem{Base: counts, Index: to, Scale: 4})
	SHLQ(Imm(6), to)
	ADDQ(a.tables.Offset(8*panel), to)
	for w := range a.words {
		word := GP64()
		MOVQ(Mem{Base: a.room, Index: a.done, Scale: 4, Disp: 128 * (a.words*panel + w)}, word)
		ADDQ(word, Mem{Base: to, Disp: 8 * w})
	}
	if panel == 1 {
		ADDQ(Imm(2), a.done)
	}
}

// rest adds what is left of the pair.
func (a *rankAdding) rest(tag string) {
	Label(tag)
	CMPQ(a.done, Imm(rankAdded))
	JEQ(LabelRef(tag + "_end"))
	a.put(0)
	a.put(1)
	JMP(LabelRef(tag))
	Label(tag + "_end")
}

// finish makes the words that are left, adds what is left of the pair, and turns to the one in hand.
func (a *rankAdding) finish() {
	Label("words")
	a.word("made")
	CMPQ(a.from, a.end)
	JLT(LabelRef("words"))
	a.rest("rest")
	next := GP64()
	MOVQ(a.next, next)
	MOVQ(a.room, a.next)
	MOVQ(next, a.room)
}
