package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const minHashDoc = "lowers dst to the minimum of both little-endian halves of AES-128 under"

var minHashMore = []string{
	"key over n >= %d consecutive blocks. The last blocks are visited twice when n is",
	"not a multiple of the vector: a minimum does not mind.",
}

func minHashText(least int) []string {
	return []string{fmt.Sprintf(minHashMore[0], least), minHashMore[1]}
}

// schedule expands the key and hands its eleven round keys to use, one at a
// time. The registers are fixed because the key instructions reach only the
// first sixteen.
func schedule(key Mem, use func(round int, k reg.VecPhysical)) {
	k, g, t := reg.X0, reg.X1, reg.X2
	VMOVDQU(key, k)
	use(0, k)
	for round, rcon := range []uint64{1, 2, 4, 8, 16, 32, 64, 128, 0x1b, 0x36} {
		VAESKEYGENASSIST(Imm(rcon), k, g)
		VPSHUFD(Imm(0xff), g, g)
		VPSLLDQ(Imm(4), k, t) // k ^ k<<32 ^ k<<64 ^ k<<96 in two steps
		VPXOR(t, k, k)
		VPSLLDQ(Imm(8), k, t)
		VPXOR(t, k, k)
		VPXOR(g, k, k)
		use(round+1, k)
	}
}

func minHashAVX512() {
	const inFlight = 8
	function("MinHashAVX512", "func(key, blocks *[16]byte, n int, dst *[2]uint64)", minHashDoc, minHashText(4)...)
	key := Mem{Base: Load(Param("key"), GP64())}
	blocks := Load(Param("blocks"), GP64())
	n := Load(Param("n"), GP64())
	dst := Mem{Base: Load(Param("dst"), GP64())}

	keys := avx512.vectors(11)
	schedule(key, func(round int, k reg.VecPhysical) {
		VSHUFI32X4(Imm(0), k.AsZ(), k.AsZ(), keys[round])
	})
	least := avx512.vectors(inFlight)
	for _, v := range least {
		VPTERNLOGD(Imm(0xff), v, v, v)
	}
	end := GP64()
	SHLQ(Imm(4), n)
	LEAQ(Mem{Base: blocks, Index: n, Scale: 1}, end)

	x := avx512.vectors(inFlight)
	// rounds encrypts the first m vectors from memory and takes the minima. The
	// minimum is a compare and a masked move because the AES unit and the 64-bit
	// minimum share a port on Intel cores.
	masks := []reg.OpmaskVirtual{K(), K(), K(), K()}
	rounds := func(m int, at func(q int) Mem) {
		for q := range m {
			VPXORQ(at(q), keys[0], x[q])
		}
		for r := 1; r < 10; r++ {
			for q := range m {
				VAESENC(keys[r], x[q], x[q])
			}
		}
		for q := range m {
			VAESENCLAST(keys[10], x[q], x[q])
		}
		for q := range m {
			VPCMPUQ(Imm(1), least[q], x[q], masks[q%4])
			VMOVDQA64(x[q], masks[q%4], least[q])
		}
	}

	Label("groups")
	left := GP64()
	MOVQ(end, left)
	SUBQ(blocks, left)
	CMPQ(left, U32(64*inFlight))
	JLT(LabelRef("single"))
	rounds(inFlight, func(q int) Mem { return Mem{Base: blocks, Disp: 64 * q} })
	ADDQ(U32(64*inFlight), blocks)
	JMP(LabelRef("groups"))

	Label("single")
	CMPQ(left, Imm(64))
	JLT(LabelRef("last"))
	rounds(1, func(int) Mem { return Mem{Base: blocks} })
	ADDQ(Imm(64), blocks)
	SUBQ(Imm(64), left)
	JMP(LabelRef("single"))

	Label("last")
	TESTQ(left, left)
	JZ(LabelRef("reduce"))
	rounds(1, func(int) Mem { return Mem{Base: end, Disp: -64} })

	Label("reduce")
	for step := inFlight / 2; step > 0; step /= 2 {
		for q := range step {
			VPMINUQ(least[q+step], least[q], least[q])
		}
	}
	half := avx512.vector()
	VSHUFI64X2(Imm(0b1110), least[0], least[0], half)
	VPMINUQ(half, least[0], least[0])
	VSHUFI64X2(Imm(0b01), least[0], least[0], half)
	VPMINUQ(half.AsX(), least[0].AsX(), least[0].AsX())
	VPMINUQ(dst, least[0].AsX(), least[0].AsX())
	VMOVDQU(least[0].AsX(), dst)
	VZEROUPPER()
	RET()
}

func minHashAVX2() {
	const inFlight, minima = 8, 4 // blocks, and the minima that they share
	function("MinHashAVX2", "func(key, blocks *[16]byte, n int, dst *[2]uint64)", minHashDoc, minHashText(1)...)
	key := Mem{Base: Load(Param("key"), GP64())}
	blocks := Load(Param("blocks"), GP64())
	n := Load(Param("n"), GP64())
	dst := Mem{Base: Load(Param("dst"), GP64())}

	stack := AllocLocal(16 * 11)
	round := func(r int) Mem { return stack.Offset(16 * r) }
	schedule(key, func(r int, k reg.VecPhysical) { VMOVDQU(k, round(r)) })

	// There is no unsigned 64-bit comparison: minima are kept with the top bit
	// flipped and compared as signed numbers.
	flip := XMM()
	VPCMPEQD(flip, flip, flip)
	VPSLLQ(Imm(63), flip, flip)
	least := make([]reg.VecVirtual, minima)
	for q := range least {
		least[q] = XMM()
		VPCMPEQD(least[q], least[q], least[q])
		VPSRLQ(Imm(1), least[q], least[q])
	}
	x := make([]reg.VecVirtual, inFlight)
	for q := range x {
		x[q] = XMM()
	}
	k, greater := XMM(), XMM()
	rounds := func(m int) {
		VMOVDQU(round(0), k)
		for q := range m {
			VPXOR(Mem{Base: blocks, Disp: 16 * q}, k, x[q])
		}
		for r := 1; r < 10; r++ {
			VMOVDQU(round(r), k)
			for q := range m {
				VAESENC(k, x[q], x[q])
			}
		}
		VMOVDQU(round(10), k)
		for q := range m {
			VAESENCLAST(k, x[q], x[q])
		}
		for q := range m {
			VPXOR(flip, x[q], x[q])
			l := least[q%minima]
			VPCMPGTQ(x[q], l, greater)
			VBLENDVPD(greater, x[q], l, l)
		}
	}
	Label("groups")
	CMPQ(n, Imm(inFlight))
	JLT(LabelRef("rest"))
	rounds(inFlight)
	ADDQ(Imm(16*inFlight), blocks)
	SUBQ(Imm(inFlight), n)
	JMP(LabelRef("groups"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("reduce"))
	rounds(1)
	ADDQ(Imm(16), blocks)
	DECQ(n)
	JMP(LabelRef("rest"))
	Label("reduce")
	VMOVDQU(dst, k)
	VPXOR(flip, k, k)
	for q := range least {
		VPCMPGTQ(least[q], k, greater)
		VBLENDVPD(greater, least[q], k, k)
	}
	VPXOR(flip, k, k)
	VMOVDQU(k, dst)
	RET()
}
