package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// potentialFile emits the sums of squared distances that k-means++ compares.
func potentialFile(s isa) {
	minusTwo := constants("potentialTwo"+s.name, 0xc0000000)
	function("Potential"+s.name, "func(dots *float32, panels, stride int, norms, nearest *float32, square float32, sums *[16]float64)",
		"adds min(nearest, max(0, fma(-2, dot, norm+square))) of each point of panels > 0",
		"panels to the sum of its lane; dots are stride bytes apart from panel to panel.")
	dots := Load(Param("dots"), GP64())
	panels := Load(Param("panels"), GP64()).(reg.GPVirtual)
	stride := Load(Param("stride"), GP64())
	norms := Load(Param("norms"), GP64())
	nearest := Load(Param("nearest"), GP64())
	sums := Load(Param("sums"), GP64())
	square, none, two, high := s.vector(), s.vector(), s.vector(), s.vector()
	VBROADCASTSS(NewParamAddr("square", 40), square)
	VBROADCASTSS(minusTwo, two)
	s.zero(none)
	chains := s.vectors(2 * s.parts)
	for i, v := range chains {
		VMOVUPD(Mem{Base: sums, Disp: i * s.bytes}, v)
	}
	count("panels", panels, func() {
		for h := range s.parts {
			at := func(base reg.Register) Mem { return Mem{Base: base, Disp: h * s.bytes} }
			v, w := s.vector(), s.vector()
			VMOVUPS(at(norms), v)
			VADDPS(square, v, v)
			VFMADD231PS(at(dots), two, v)
			VMAXPS(none, v, v)
			VMINPS(at(nearest), v, v)
			if s == avx512 {
				VEXTRACTF64X4(Imm(1), v, high.AsY())
				VCVTPS2PD(v.AsY(), w)
				VCVTPS2PD(high.AsY(), high)
			} else {
				VEXTRACTF128(Imm(1), v, high.AsX())
				VCVTPS2PD(v.AsX(), w)
				VCVTPS2PD(high.AsX(), high)
			}
			VADDPD(w, chains[2*h], chains[2*h])
			VADDPD(high, chains[2*h+1], chains[2*h+1])
		}
		ADDQ(stride, dots)
		ADDQ(Imm(64), norms)
		ADDQ(Imm(64), nearest)
	})
	for i, v := range chains {
		VMOVUPD(v, Mem{Base: sums, Disp: i * s.bytes})
	}
	VZEROUPPER()
	RET()
}
