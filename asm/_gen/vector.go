package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set: its suffix, the bytes of a vector and the number
// of vectors in a panel of 16 float32.
type isa struct {
	name  string
	bytes int
	parts int
}

var (
	avx512 = isa{"AVX512", 64, 1}
	avx2   = isa{"AVX2", 32, 2}
)

// vector returns a fresh vector register.
func (s isa) vector() reg.VecVirtual {
	if s.bytes == 64 {
		return ZMM()
	}
	return YMM()
}

// vectors returns n fresh vector registers.
func (s isa) vectors(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = s.vector()
	}
	return v
}

// zero clears v.
func (s isa) zero(v reg.VecVirtual) {
	if s.bytes == 64 {
		VPXORD(v, v, v)
	} else {
		VPXOR(v, v, v)
	}
}

// constants emits read-only data: name -> 32-bit words.
func constants(name string, words ...uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, w := range words {
		DATA(4*i, U32(w))
	}
	return m
}

// wideConstant emits a read-only vector of four float64 with the given bits.
func wideConstant(name string, bits uint64) Mem {
	low, high := uint32(bits), uint32(bits>>32)
	return constants(name, low, high, low, high, low, high, low, high)
}

// function starts an assembly function whose pointer arguments do not escape.
func function(name, signature, doc string, more ...string) {
	start(name, NOSPLIT, signature, doc, more...)
}

// framed is function for one whose stack frame is too large for NOSPLIT.
func framed(name, signature, doc string, more ...string) {
	start(name, 0, signature, doc, more...)
}

func start(name string, flags attr.Attribute, signature, doc string, more ...string) {
	TEXT(name, flags, signature)
	Pragma("noescape")
	Doc(append([]string{name + " " + doc}, more...)...)
}

// alignedLocal is the address of room in a function's frame, a multiple of 64. Where the frame lies its callers
// decide: vectors that cross cache lines there are stored and read again at half the speed.
func alignedLocal(bytes int) reg.GPVirtual {
	at := GP64()
	LEAQ(AllocLocal(bytes+64), at)
	ADDQ(Imm(63), at)
	ANDQ(I8(-64), at)
	return at
}

// count emits a loop over a counter register that must be positive.
func count(label string, n reg.GPVirtual, body func()) {
	Label(label)
	body()
	DECQ(n)
	JNZ(LabelRef(label))
}

// align makes what follows begin a cache line, for loops whose speed depends on where their instructions lie.
func align() { Instruction(&ir.Instruction{Opcode: "PCALIGN", Operands: []Op{Imm(64)}}) }

// VMOVDQUx is the unaligned integer move of the instruction set.
func VMOVDQUx(s isa, from, to Op) {
	if s.bytes == 64 {
		VMOVDQU64(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

// groups emits loops over what n counts: body for most at a time while there are as many, then for one at a time. It
// ends the routine.
func groups(n reg.Register, most int, body func(tag string, size int)) {
	take := func(tag string, size int) {
		body(tag, size)
		SUBQ(Imm(uint64(size)), n)
	}
	if most > 1 {
		Label("groups")
		CMPQ(n, Imm(uint64(most)))
		JLT(LabelRef("rest"))
		take("group", most)
		JMP(LabelRef("groups"))
	}
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	take("single", 1)
	JMP(LabelRef("rest"))
	Label("end")
	VZEROUPPER()
	RET()
}

// further is the place i < 4 strides after m; tripled has three strides.
func further(m Mem, i int, stride, tripled reg.Register) Mem {
	switch i {
	case 1, 2:
		m.Index, m.Scale = stride, uint8(i)
	case 3:
		m.Index, m.Scale = tripled, 1
	}
	return m
}

// points are the vectors of panels of d dimensions at x. Some stay in registers.
type points struct {
	s    isa
	d    int
	x    reg.Register
	kept [][]reg.VecVirtual // by vector, of the first dimensions
}

// loadPoints loads the first kept dimensions of np panels, and fetches those that come later.
func loadPoints(s isa, x reg.Register, np, d, kept int) *points {
	p := &points{s: s, d: d, x: x, kept: make([][]reg.VecVirtual, np*s.parts)}
	for v := range p.kept {
		p.kept[v] = s.vectors(kept)
		for j := range kept {
			VMOVUPS(p.at(v, j), p.kept[v][j])
		}
	}
	if np > 1 {
		for line := range np * d {
			PREFETCHT0(Mem{Base: x, Disp: 64*line + prefetchBytes})
		}
	}
	return p
}

// at is dimension j of vector v.
func (p *points) at(v, j int) Mem {
	panel, h := v/p.s.parts, v%p.s.parts
	return Mem{Base: p.x, Disp: (panel*p.d+j)*64 + h*p.s.bytes}
}

// minus sets t to dimension j of vector v less the value; where that is read from L1 by the subtraction, to the value
// less it: the square is the same.
func (p *points) minus(v, j int, value, t reg.VecVirtual) {
	if j < len(p.kept[v]) {
		VSUBPS(value, p.kept[v][j], t)
	} else {
		VSUBPS(p.at(v, j), value, t)
	}
}
