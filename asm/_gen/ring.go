package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// ringFile emits the element-wise addition over whole blocks of 64 bytes.
func ringFile(s isa) {
	function("AddUint64"+s.name, "func(dst, a *uint64, blocks int)", "adds a to dst, modulo 2^64,",
		"over blocks > 0 blocks of 64 bytes.")
	dst := Load(Param("dst"), GP64())
	a := Load(Param("a"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	v := s.vector()
	count("loop", blocks, func() {
		for h := range s.parts {
			VMOVDQUx(s, Mem{Base: dst, Disp: h * s.bytes}, v)
			VPADDQ(Mem{Base: a, Disp: h * s.bytes}, v, v)
			VMOVDQUx(s, v, Mem{Base: dst, Disp: h * s.bytes})
		}
		ADDQ(Imm(64), dst)
		ADDQ(Imm(64), a)
	})
	VZEROUPPER()
	RET()
}
