package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// amx is AVX-512 VNNI with products of tiles of bytes. Go's assembler does not know the instructions: their bytes are
// written out, each instruction after a comment in Intel's syntax, which a test assembles by another assembler.
var amx = isa{"AMX", 64, 1}

// The mandatory prefixes of VEX.
const (
	prefixNone = iota
	prefix66
	prefixF3
	prefixF2
)

// tileLoad fills tile t with rows at base, stride bytes apart.
func tileLoad(t int, base, stride reg.Register, disp int) {
	tileMemory(fmt.Sprintf("tileloadd tmm%d, %s", t, sibText(base, stride, disp)), prefixF2, 0x4b, t, base, stride, disp)
}

// tileStore writes the rows of tile t to base, stride bytes apart.
func tileStore(t int, base, stride reg.Register, disp int) {
	tileMemory(fmt.Sprintf("tilestored %s, tmm%d", sibText(base, stride, disp), t), prefixF3, 0x4b, t, base, stride, disp)
}

// tileZero clears tile t.
func tileZero(t int) {
	opaque(fmt.Sprintf("tilezero tmm%d", t), vex(0, 0, 0, 0, prefixF2, 0x49, 0xc0|t<<3))
}

// tileProducts adds to each 32-bit word (i, j) of tile c the products of the signed bytes of row i of tile a with the
// unsigned ones of words j of tile b.
func tileProducts(c, a, b int) {
	opaque(fmt.Sprintf("tdpbsud tmm%d, tmm%d, tmm%d", c, a, b), vex(0, 0, 0, b, prefixF3, 0x5e, 0xc0|c<<3|a))
}

// tileConfigure sets the shapes of tiles from the 64 bytes at base.
func tileConfigure(base reg.Register) {
	r := number(base)
	if r&7 == 4 || r&7 == 5 {
		panic("tileConfigure: a register whose encoding takes another form")
	}
	opaque("ldtilecfg ["+register(base)+"]", vex(0, 0, r, 0, prefixNone, 0x49, r&7), base)
}

// tileRelease leaves no state of tiles behind.
func tileRelease() { opaque("tilerelease", vex(0, 0, 0, 0, prefixNone, 0x49, 0xc0)) }

// tileMemory emits an instruction with a place of rows, which is always base + stride + disp of 32 bits.
func tileMemory(text string, prefix, opcode, t int, base, stride reg.Register, disp int) {
	b, s := number(base), number(stride)
	if s == 4 {
		panic("tileMemory: the stride is no index register")
	}
	bytes := vex(0, s, b, 0, prefix, opcode, 0x80|t<<3|4)
	bytes = append(bytes, byte(s&7<<3|b&7))
	for i := range 4 {
		bytes = append(bytes, byte(disp>>(8*i)))
	}
	opaque(text, bytes, base, stride)
}

// vex is an instruction of the map 0F38: r, x and b are the registers whose fourth bit the prefix holds, v the one it
// holds whole.
func vex(r, x, b, v, prefix, opcode, modrm int) []byte {
	high := func(n, bit int) int { return (n>>3&1 ^ 1) << bit }
	return []byte{0xc4, byte(high(r, 7) | high(x, 6) | high(b, 5) | 2), byte((v^15)<<3 | prefix), byte(opcode),
		byte(modrm)}
}

// opaque emits an instruction as bytes that reads the given registers.
func opaque(text string, bytes []byte, inputs ...reg.Register) {
	Comment("AMX: " + text)
	var in []Op
	for _, r := range inputs {
		in = append(in, r)
	}
	for len(bytes) > 0 {
		op, size, value := "BYTE", 1, Constant(nil)
		switch {
		case len(bytes) >= 4:
			op, size = "LONG", 4
			value = U32(uint32(bytes[0]) | uint32(bytes[1])<<8 | uint32(bytes[2])<<16 | uint32(bytes[3])<<24)
		case len(bytes) >= 2:
			op, size = "WORD", 2
			value = U16(uint16(bytes[0]) | uint16(bytes[1])<<8)
		default:
			value = U8(bytes[0])
		}
		Instruction(&ir.Instruction{Opcode: op, Operands: []Op{value}, Inputs: in})
		bytes = bytes[size:]
	}
}

var registerNames = [...]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
	"r13", "r14", "r15"}

// number is the encoding of a physical register.
func number(r reg.Register) int {
	for i, p := range []reg.Register{reg.RAX, reg.RCX, reg.RDX, reg.RBX, reg.RSP, reg.RBP, reg.RSI, reg.RDI, reg.R8,
		reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14, reg.R15} {
		if p == r {
			return i
		}
	}
	panic("number: not a register of 64 bits")
}

func register(r reg.Register) string { return registerNames[number(r)] }

func sibText(base, stride reg.Register, disp int) string {
	return fmt.Sprintf("[%s + %s + %d]", register(base), register(stride), disp)
}
