package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exchangeFile emits the kernels of the local search.
func exchangeFile(s isa) {
	exchange(s)
	pointLosses(s, "Roots", "min(sqrt(dist), most)", true)
	pointLosses(s, "Squares", "min(dist, most)", false)
}

// exchange emits the sums over the exchanges with one candidate.
func exchange(s isa) {
	function("Exchange"+s.name, "func(own, near, next *float32, labels *uint16, weights *float64, blocks int, table, "+
		"base *float64)",
		"adds, for each point of blocks > 0 blocks of 8, weight*min(own, near) to chain i of",
		"base [8] and weight*(max(min(next, own), near)-near) to chain i of the row of table",
		"[][8] that its label names, where i is the place of the point in its block. weights",
		"may be nil for ones.")
	own := Load(Param("own"), GP64())
	near := Load(Param("near"), GP64())
	next := Load(Param("next"), GP64())
	labels := Load(Param("labels"), GP64())
	weights := Load(Param("weights"), GP64())
	blocks := GP64()
	Load(Param("blocks"), blocks)
	table := Load(Param("table"), GP64())
	base := Load(Param("base"), GP64())
	gains := AllocLocal(8 * weightedChains)
	sums := s.vectors(s.parts)
	for h, sum := range sums {
		VMOVUPD(Mem{Base: base, Disp: h * s.bytes}, sum)
	}
	loop := func(tag string, weighted bool) {
		n, x, bound := YMM(), YMM(), YMM()
		count(tag, blocks, func() {
			VMOVUPS(Mem{Base: near}, n)
			VMOVUPS(Mem{Base: own}, x)
			VMINPS(n, x, bound)
			VMINPS(Mem{Base: next}, x, x)
			VMAXPS(n, x, x)
			for h, sum := range sums {
				wide := s.widened(h, bound, x, n)
				paid, gain, old := wide[0], wide[1], wide[2]
				VSUBPD(old, gain, gain)
				if weighted {
					VMOVUPD(Mem{Base: weights, Disp: h * s.bytes}, old)
					VMULPD(old, paid, paid)
					VMULPD(old, gain, gain)
				}
				VADDPD(paid, sum, sum)
				VMOVUPD(gain, gains.Offset(h*s.bytes))
			}
			one := XMM()
			for i := range weightedChains {
				l := GP64()
				MOVWLZX(Mem{Base: labels, Disp: 2 * i}, l.As32())
				SHLQ(Imm(6), l)
				place := Mem{Base: table, Index: l, Scale: 1, Disp: 8 * i}
				VMOVSD(gains.Offset(8*i), one)
				VADDSD(place, one, one)
				VMOVSD(one, place)
			}
			ADDQ(Imm(32), own)
			ADDQ(Imm(32), near)
			ADDQ(Imm(32), next)
			ADDQ(Imm(2*weightedChains), labels)
			if weighted {
				ADDQ(Imm(8*weightedChains), weights)
			}
		})
	}
	TESTQ(weights, weights)
	JZ(LabelRef("ones"))
	loop("weighted", true)
	JMP(LabelRef("end"))
	Label("ones")
	loop("unweighted", false)
	Label("end")
	for h, sum := range sums {
		VMOVUPD(sum, Mem{Base: base, Disp: h * s.bytes})
	}
	VZEROUPPER()
	RET()
}

// widened turns part h of vectors of eight float32 into float64; the second spoils them.
func (s isa) widened(h int, narrow ...reg.VecVirtual) []reg.VecVirtual {
	wide := s.vectors(len(narrow))
	if s == avx2 && h == 1 {
		for _, v := range narrow {
			VEXTRACTF128(Imm(1), v, v.AsX())
		}
	}
	for i, v := range narrow {
		if s == avx512 {
			VCVTPS2PD(v, wide[i])
		} else {
			VCVTPS2PD(v.AsX(), wide[i])
		}
	}
	return wide
}

// pointLosses emits the bound of distances, or of their roots.
func pointLosses(s isa, name, what string, root bool) {
	function(name+s.name, "func(dist *float32, panels int, most float32)",
		"replaces panels > 0 groups of 16 distances by "+what+".")
	dist := Load(Param("dist"), GP64())
	panels := GP64()
	Load(Param("panels"), panels)
	most := s.vector()
	VBROADCASTSS(NewParamAddr("most", 16), most)
	count("loop", panels, func() {
		for h := range s.parts {
			v := s.vector()
			place := Mem{Base: dist, Disp: h * s.bytes}
			if root {
				VSQRTPS(place, v)
				VMINPS(most, v, v)
			} else {
				VMINPS(place, most, v)
			}
			VMOVUPS(v, place)
		}
		ADDQ(Imm(64), dist)
	})
	VZEROUPPER()
	RET()
}
