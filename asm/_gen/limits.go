package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// chains is the number of independent chains of the limit kernels: enough to
// hide the latency of two instructions a cycle.
const chains = 12

// limitsFile emits loops that do nothing but keep one kind of work going, to
// measure what the machine can do at best.
func limitsFile(s isa) {
	peak := func(name, doc string, registers int, body func(q int, v []reg.VecVirtual)) {
		function(name+s.name, "func(n int)", fmt.Sprintf("runs n > 0 rounds of %d %s of %d bytes.", chains, doc, s.bytes))
		n := GP64()
		Load(Param("n"), n)
		v := s.vectors(registers)
		for _, r := range v {
			s.zero(r)
		}
		count("loop", n, func() {
			for q := range chains {
				body(q, v)
			}
		})
		VZEROUPPER()
		RET()
	}
	const what = "sums of products of 16-bit integers, two to 32 bits"
	switch s {
	case vnni:
		peak("PeakDot", what, chains+3, func(q int, v []reg.VecVirtual) {
			VPDPWSSD(v[chains], v[chains+1], v[q])
		})
	case avx2: // additions do not wait for the products, which would hold up others
		peak("PeakDot", "products of 16-bit integers, two to 32 bits, and as many additions", chains+2,
			func(q int, v []reg.VecVirtual) {
				VPMADDWD(v[chains], v[chains], v[chains+1])
				VPADDD(v[chains], v[q], v[q])
			})
	}
	if s == vnni {
		return
	}
	peak("PeakFMA", "fused multiply-adds of float32 vectors", chains+2, func(q int, v []reg.VecVirtual) {
		VFMADD231PS(v[chains], v[chains+1], v[q])
	})
	peak("PeakSubFMA", "subtractions with a dependent fused multiply-add, of float32 vectors", chains+3,
		func(q int, v []reg.VecVirtual) {
			VSUBPS(v[chains], v[chains+1], v[chains+2])
			VFMADD231PS(v[chains+2], v[chains+2], v[q])
		})
	peak("PeakWord", "products of each second 32-bit word, of vectors", chains+2, func(q int, v []reg.VecVirtual) {
		VPMULDQ(v[chains], v[chains+1], v[q])
	})
	pairs := chains / 2 // each chain keeps a minimum and an index
	if s == avx512 {
		mask := []reg.OpmaskVirtual(nil)
		peak("PeakArgmin", "steps of a minimum with its index, over float32 vectors", 2*pairs+2,
			func(q int, v []reg.VecVirtual) {
				if q == 0 {
					mask = []reg.OpmaskVirtual{K(), K(), K(), K()}
				}
				best, index, k := v[q%pairs], v[pairs+q%pairs], mask[q%4]
				VCMPPS(Imm(1), best, v[2*pairs], k)
				VMINPS(v[2*pairs], best, best)
				VMOVDQA32(v[2*pairs+1], k, index)
			})
	} else {
		peak("PeakArgmin", "steps of a minimum with its index, over float32 vectors", 2*pairs+3,
			func(q int, v []reg.VecVirtual) {
				best, index := v[q%pairs], v[pairs+q%pairs]
				VCMPPS(Imm(1), best, v[2*pairs], v[2*pairs+2])
				VMINPS(v[2*pairs], best, best)
				VBLENDVPS(v[2*pairs+2], v[2*pairs+1], index, index)
			})
	}
	if s == avx512 {
		peak("PeakAES", "AES rounds of four blocks each, in vectors", chains+1, func(q int, v []reg.VecVirtual) {
			VAESENC(v[chains], v[q], v[q])
		})
	} else {
		peakAES(s)
	}
	readBlocks(s)
}

// peakAES emits rounds of single blocks.
func peakAES(s isa) {
	function("PeakAES"+s.name, "func(n int)",
		fmt.Sprintf("runs n > 0 rounds of %d AES rounds of one block each.", chains))
	n := GP64()
	Load(Param("n"), n)
	x, key := make([]reg.VecVirtual, chains), XMM()
	VPXOR(key, key, key)
	for q := range x {
		x[q] = XMM()
		VPXOR(x[q], x[q], x[q])
	}
	count("loop", n, func() {
		for q := range x {
			VAESENC(key, x[q], x[q])
		}
	})
	RET()
}

// readBlocks emits reading.
func readBlocks(s isa) {
	function("Read"+s.name, "func(p *byte, blocks int)", "reads blocks > 0 blocks of 512 bytes.")
	p := Load(Param("p"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	sums := s.vectors(8)
	for _, v := range sums {
		s.zero(v)
	}
	count("loop", blocks, func() {
		for i := range 512 / s.bytes {
			if s == avx512 {
				VPORD(Mem{Base: p, Disp: i * s.bytes}, sums[i%8], sums[i%8])
			} else {
				VPOR(Mem{Base: p, Disp: i * s.bytes}, sums[i%8], sums[i%8])
			}
		}
		ADDQ(U32(512), p)
	})
	VZEROUPPER()
	RET()
}
