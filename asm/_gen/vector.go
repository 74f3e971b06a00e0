package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
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

// count emits a loop over a counter register that must be positive.
func count(label string, n reg.GPVirtual, body func()) {
	Label(label)
	body()
	DECQ(n)
	JNZ(LabelRef(label))
}

// VMOVDQUx is the unaligned integer move of the instruction set.
func VMOVDQUx(s isa, from, to Op) {
	if s.bytes == 64 {
		VMOVDQU64(from, to)
	} else {
		VMOVDQU(from, to)
	}
}
