package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// potentialFile emits the sums of squared distances that k-means++ compares.
func potentialFile(s isa) {
	potential(s, false)
	potential(s, true)
	nearestSum(s, false)
	nearestSum(s, true)
}

// addWide adds the float32 of v to two chains of float64; w and high are spoilt.
func (s isa) addWide(v, w, high reg.VecVirtual, chains []reg.VecVirtual) {
	if s == avx512 {
		VEXTRACTF64X4(Imm(1), v, high.AsY())
		VCVTPS2PD(v.AsY(), w)
		VCVTPS2PD(high.AsY(), high)
	} else {
		VEXTRACTF128(Imm(1), v, high.AsX())
		VCVTPS2PD(v.AsX(), w)
		VCVTPS2PD(high.AsX(), high)
	}
	VADDPD(w, chains[0], chains[0])
	VADDPD(high, chains[1], chains[1])
}

// potential emits them for distances that come from products; or, with keep, the taking
// over of a candidate.
func potential(s isa, keep bool) {
	minusTwo := constants(map[bool]string{true: "lower", false: "potential"}[keep]+"Two"+s.name, 0xc0000000)
	if keep {
		function("Lower"+s.name, "func(dots *float32, panels, stride int, norms, nearest *float32, square float32)",
			"lowers nearest to max(0, fma(-2, dot, norm+square)) of each point of panels > 0",
			"panels; dots are stride bytes apart from panel to panel.")
	} else {
		function("Potential"+s.name, "func(dots *float32, panels, stride int, norms, nearest *float32, square float32, "+
			"sums *[16]float64)",
			"adds min(nearest, max(0, fma(-2, dot, norm+square))) of each point of panels > 0",
			"panels to the sum of its lane; dots are stride bytes apart from panel to panel.")
	}
	dots := Load(Param("dots"), GP64())
	panels := Load(Param("panels"), GP64()).(reg.GPVirtual)
	stride := Load(Param("stride"), GP64())
	norms := Load(Param("norms"), GP64())
	nearest := Load(Param("nearest"), GP64())
	square, none, two, high := s.vector(), s.vector(), s.vector(), s.vector()
	VBROADCASTSS(NewParamAddr("square", 40), square)
	VBROADCASTSS(minusTwo, two)
	s.zero(none)
	var sums reg.Register
	chains := s.vectors(2 * s.parts)
	if !keep {
		sums = Load(Param("sums"), GP64())
		for i, v := range chains {
			VMOVUPD(Mem{Base: sums, Disp: i * s.bytes}, v)
		}
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
			if keep {
				VMOVUPS(v, at(nearest))
			} else {
				s.addWide(v, w, high, chains[2*h:])
			}
		}
		ADDQ(stride, dots)
		ADDQ(Imm(64), norms)
		ADDQ(Imm(64), nearest)
	})
	for i, v := range chains {
		if !keep {
			VMOVUPD(v, Mem{Base: sums, Disp: i * s.bytes})
		}
	}
	VZEROUPPER()
	RET()
}

// nearestSum emits the same for distances that are sums of squares; or, with keep, the
// taking over of a candidate.
func nearestSum(s isa, keep bool) {
	if keep {
		function("Nearer"+s.name, "func(x *float32, panels, d int, c, nearest *float32)",
			"lowers nearest to the squared distance of each point of panels > 0 panels of d > 0",
			"dimensions at x to c, by the chain t = x-c, s = fma(t, t, s).")
	} else {
		function("NearestSum"+s.name, "func(x *float32, panels, d int, c, nearest *float32, sums *[16]float64)",
			"adds the smaller of nearest and the squared distance to c of each point of panels > 0",
			"panels of d > 0 dimensions at x to the sum of its lane, by the chain t = x-c, s = fma(t, t, s).")
	}
	x := Load(Param("x"), GP64())
	panels := Load(Param("panels"), GP64()).(reg.GPVirtual)
	d := Load(Param("d"), GP64())
	c := Load(Param("c"), GP64())
	nearest := Load(Param("nearest"), GP64())
	var sums reg.Register
	chains := s.vectors(2 * s.parts)
	if !keep {
		sums = Load(Param("sums"), GP64())
		for i, v := range chains {
			VMOVUPD(Mem{Base: sums, Disp: i * s.bytes}, v)
		}
	}
	square, t, value, w, high := s.vectors(s.parts), s.vectors(s.parts), s.vector(), s.vector(), s.vector()
	at, left := GP64(), GP64()
	count("panels", panels, func() {
		for h := range s.parts {
			s.zero(square[h])
		}
		MOVQ(c, at)
		MOVQ(d, left)
		count("dimensions", left, func() {
			VBROADCASTSS(Mem{Base: at}, value)
			for h := range s.parts {
				VMOVUPS(Mem{Base: x, Disp: h * s.bytes}, t[h])
				VSUBPS(value, t[h], t[h])
				VFMADD231PS(t[h], t[h], square[h])
			}
			ADDQ(Imm(4), at)
			ADDQ(Imm(64), x)
		})
		for h := range s.parts {
			near := Mem{Base: nearest, Disp: h * s.bytes}
			VMINPS(near, square[h], square[h])
			if keep {
				VMOVUPS(square[h], near)
			} else {
				s.addWide(square[h], w, high, chains[2*h:])
			}
		}
		ADDQ(Imm(64), nearest)
	})
	for i, v := range chains {
		if !keep {
			VMOVUPD(v, Mem{Base: sums, Disp: i * s.bytes})
		}
	}
	VZEROUPPER()
	RET()
}
