package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The places of a prime's words; see kernels/ntt/prime.go.
const (
	nttQ = 4 * iota
	nttInverse
	ntt2Q
	ntt4Q
	nttI
	nttFold
	nttUnfold
	_
	_
	_
	nttMask
)

// nttFile emits the kernels of polynomials modulo primes below 2^30: layers of
// transforms, pointwise products and base conversion (kernels/ntt).
func nttFile(s isa) {
	for _, lazy := range []bool{false, true} {
		nttForwardFold(s, lazy)
		nttForward2(s, lazy)
		nttForward4(s, lazy)
		nttForwardTail(s, lazy, false)
		nttForwardTail(s, lazy, true)
	}
	nttInverseTail(s)
	nttInverse4(s)
	nttInverse2(s)
	nttInverseFold(s, false)
	nttInverseFold(s, true)
	nttScale(s, false)
	nttScale(s, true)
	nttElementwise(s)
	nttSubScale(s, false)
	nttSubScale(s, true)
	nttProduct(s, false)
	nttProduct(s, true)
	for terms := 1; terms <= 5; terms++ {
		nttConvert(s, terms)
		nttWhole(s, terms)
		nttInner(s, terms)
	}
	nttConvert(s, 6)
	nttInnerLift(s)
	nttUniform(s)
}

// nttUniform emits the choice of random words below a prime. All words of a vector are written and the next ones over
// those that are none: there is room for all.
func nttUniform(s isa) {
	function("NTTUniform"+s.name, "func(dst *uint32, random *byte, words *uint32, blocks int) int",
		"writes the masked words below q of blocks of 16 groups of 8 bytes, a word being the last 4 of these, the highest",
		"first, and returns how many these are. It may write over 16 words for each block.")
	dst, random := Load(Param("dst"), GP64()), Load(Param("random"), GP64())
	words, blocks := Load(Param("words"), GP64()), blockCount()
	q, mask := s.broadcast(Mem{Base: words, Disp: nttQ}), s.broadcast(Mem{Base: words, Disp: nttMask})
	swap := s.sequence("nttUniformBytes", func(i int) int { return [...]int{0x04050607, 0x0c0d0e0f, -1, -1}[i%4] })
	var halves reg.VecVirtual
	var places reg.GPVirtual
	if s == avx512 {
		halves = s.sequence("nttUniformHalves", func(i int) int { return [...]int{0, 2, 4, 6, 1, 3, 5, 7}[i/2] * (1 - i%2) })
	} else {
		places = GP64()
		LEAQ(uniformPlaces("nttUniformPlaces"+s.name), places)
	}
	first := GP64()
	MOVQ(dst, first)
	count("loop", blocks, func() {
		for h := range s.parts {
			x, y, bits := s.vector(), s.vector(), GP32()
			VPSHUFB(swap, s.load(Mem{Base: random, Disp: 2 * h * s.bytes}), x)
			VPSHUFB(swap, s.load(Mem{Base: random, Disp: (2*h + 1) * s.bytes}), y)
			VPUNPCKLQDQ(y, x, x)
			if s == avx512 {
				below := K()
				VPERMQ(x, halves, x)
				VPANDD(mask, x, x)
				VPCMPUD(Imm(1), q, x, below)
				VPCOMPRESSD_Z(x, below, x)
				KMOVW(below, bits)
			} else {
				VPERMQ(Imm(0b11011000), x, x)
				VPAND(mask, x, x)
				VPCMPGTD(x, q, y)
				VMOVMSKPS(y, bits)
				VPMOVZXBD(Mem{Base: places, Index: bits.As64(), Scale: 8}, y)
				VPERMD(x, y, x)
			}
			POPCNTL(bits, bits)
			VMOVDQUx(s, x, Mem{Base: dst})
			LEAQ(Mem{Base: dst, Index: bits.As64(), Scale: 4}, dst)
		}
		ADDQ(Imm(128), random)
	})
	VZEROUPPER()
	SUBQ(first, dst)
	SHRQ(Imm(2), dst)
	Store(dst, ReturnIndex(0))
	RET()
}

// uniformPlaces emits the places of the set bits of each byte, a byte for each and zeros after them.
func uniformPlaces(name string) Mem {
	words := make([]uint32, 0, 2*256)
	for bits := range 256 {
		var places uint64
		for lane, at := 0, 0; lane < 8; lane++ {
			if bits>>lane&1 == 1 {
				places |= uint64(lane) << (8 * at)
				at++
			}
		}
		words = append(words, uint32(places), uint32(places>>32))
	}
	return constants(name, words...)
}

func lazyName(lazy bool) string {
	if lazy {
		return "Lazy"
	}
	return ""
}

// modulus holds a prime's constants in registers. The reduction of summands maps
// [-cap, cap) to [-half, half).
type modulus struct {
	s         isa
	lazy      bool
	words     reg.Register
	q         reg.VecVirtual
	inverse   Op
	cap, half Op
	evens     reg.Register
}

// newModulus loads what products need, and with reductions what these do.
func newModulus(s isa, words reg.Register, lazy, reductions bool) *modulus {
	m := &modulus{s: s, lazy: lazy, words: words, q: s.broadcast(Mem{Base: words, Disp: nttQ}),
		inverse: s.broadcast(Mem{Base: words, Disp: nttInverse})}
	if s == avx512 {
		bits := GP32()
		MOVL(U32(0x5555), bits)
		k := K()
		KMOVW(bits, k)
		m.evens = k
	}
	if reductions {
		m.half = m.q
		if lazy {
			m.half = m.constant(ntt2Q)
			m.cap = m.constant(ntt4Q)
		} else {
			m.cap = m.constant(ntt2Q)
		}
	}
	return m
}

// constant is a word of the prime in all lanes: of AVX2, which has few registers, in memory.
func (m *modulus) constant(disp int) Op {
	v := m.s.broadcast(Mem{Base: m.words, Disp: disp})
	if m.s == avx512 {
		return v
	}
	return m.s.spilled(v)
}

// spilled is v in the function's frame.
func (s isa) spilled(v Op) Op {
	at := AllocLocal(s.bytes)
	VMOVDQUx(s, v, at)
	return at
}

// broadcast loads a word into all lanes.
func (s isa) broadcast(from Mem) reg.VecVirtual {
	v := s.vector()
	VPBROADCASTD(from, v)
	return v
}

// parameter loads a word among the arguments into all lanes.
func (s isa) parameter(name string) reg.VecVirtual {
	v := s.vector()
	VMOVD(Load(Param(name), GP32()), v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

// load loads a vector.
func (s isa) load(from Mem) reg.VecVirtual {
	v := s.vector()
	VMOVDQUx(s, from, v)
	return v
}

// odd moves odd lanes to even ones.
func (s isa) odd(x reg.VecVirtual) reg.VecVirtual {
	v := s.vector()
	VPSRLQ(Imm(32), x, v)
	return v
}

// high joins the upper halves of products of even and odd lanes, into odd.
func (m *modulus) high(even, odd reg.VecVirtual) {
	if m.s == avx512 {
		VPSHUFD(Imm(0xf5), even, m.evens, odd)
		return
	}
	VPSHUFD(Imm(0xf5), even, even)
	VPBLENDD(Imm(0xaa), odd, even, odd)
}

// divide returns x / R for 64-bit x in even and odd lanes.
func (m *modulus) divide(even, odd reg.VecVirtual) reg.VecVirtual {
	t, u := m.s.vector(), m.s.vector()
	VPMULDQ(m.inverse, even, t)
	VPMULDQ(m.inverse, odd, u)
	VPMULDQ(m.q, t, t)
	VPMULDQ(m.q, u, u)
	VPSUBQ(t, even, even)
	VPSUBQ(u, odd, odd)
	m.high(even, odd)
	return odd
}

// product returns y w / R.
func (m *modulus) product(y, w reg.VecVirtual) reg.VecVirtual {
	even, wOdd, odd := m.s.vector(), m.s.odd(w), m.s.odd(y)
	VPMULDQ(w, y, even)
	VPMULDQ(wOdd, odd, odd)
	return m.divide(even, odd)
}

// factor is what vectors are multiplied by: w, its odd lanes and, of AVX2, w/q modulo R, by which the multiple of q
// that a product loses is known without the product. AVX2 works out what is nil with the product, for want of
// registers.
type factor struct {
	w, odd, low Op
}

// factor is the factor with w in all lanes.
func (m *modulus) factor(w reg.VecVirtual) factor {
	f := factor{w: w, odd: w}
	if m.s == avx2 {
		low := m.s.vector()
		VPMULLD(m.inverse, w, low)
		f.low = low
	}
	return f
}

// mont returns y f / R.
func (m *modulus) mont(y reg.VecVirtual, f factor) reg.VecVirtual { return m.monts(operand{y, f})[0] }

// reduce maps x from [-cap, cap) to [-half, half).
func (m *modulus) reduce(x reg.VecVirtual) {
	t := m.s.vector()
	VPADDD(m.cap, x, t)
	VPMINUD(t, x, x)
	VPSUBD(m.half, x, x)
}

// canonical maps x from [-cap, cap) to [0, q).
func (m *modulus) canonical(x reg.VecVirtual) {
	t := m.s.vector()
	VPADDD(m.cap, x, t)
	VPMINUD(t, x, x)
	if m.lazy {
		VPSUBD(m.half, x, t)
		VPMINUD(t, x, x)
	}
	VPSUBD(m.q, x, t)
	VPMINUD(t, x, x)
}

// operand is a product y f / R to be taken.
type operand struct {
	y reg.VecVirtual
	factor
}

// monts returns the products. Instructions of several alternate where there are
// registers for it: one alone is a chain of some twenty cycles, longer than what a
// core looks ahead.
func (m *modulus) monts(xs ...operand) []reg.VecVirtual {
	out := make([]reg.VecVirtual, len(xs))
	even, t, u := m.s.vectors(len(xs)), m.s.vectors(len(xs)), m.s.vectors(len(xs))
	stages := []func(i int){
		func(i int) { out[i] = m.s.odd(xs[i].y); VPMULDQ(xs[i].w, xs[i].y, even[i]) },
		func(i int) { VPMULDQ(xs[i].odd, out[i], out[i]) },
		func(i int) { VPMULDQ(m.inverse, even[i], t[i]) },
		func(i int) { VPMULDQ(m.inverse, out[i], u[i]) },
		func(i int) { VPMULDQ(m.q, t[i], t[i]) },
		func(i int) { VPMULDQ(m.q, u[i], u[i]) },
		func(i int) { VPSUBQ(t[i], even[i], even[i]) },
		func(i int) { VPSUBQ(u[i], out[i], out[i]) },
		func(i int) { m.high(even[i], out[i]) },
	}
	if m.s == avx2 {
		stages = append([]func(i int){
			func(i int) {
				if xs[i].low == nil {
					VPMULLD(m.inverse, xs[i].w, t[i])
					xs[i].low = t[i]
				}
			},
			func(i int) { VPMULLD(xs[i].low, xs[i].y, t[i]) },
			stages[0],
			func(i int) {
				odd := xs[i].odd
				if odd == nil {
					VPSRLQ(Imm(32), xs[i].w, u[i])
					odd = u[i]
				}
				VPMULDQ(odd, out[i], out[i])
			},
			func(i int) { VPSRLQ(Imm(32), t[i], u[i]) },
		}, stages[4:]...)
	}
	for _, stage := range stages {
		for i := range xs {
			stage(i)
		}
	}
	return out
}

// butterfly is one of the butterflies that are taken in step.
type butterfly struct {
	x, y reg.VecVirtual
	factor
}

// butterflies sets each x, y to x + y f / R, x - y f / R.
func (m *modulus) butterflies(bs ...butterfly) {
	xs := make([]operand, len(bs))
	for i, b := range bs {
		xs[i] = operand{b.y, b.factor}
	}
	for i, r := range m.monts(xs...) {
		VPSUBD(r, bs[i].x, bs[i].y)
		VPADDD(r, bs[i].x, bs[i].x)
	}
}

// unbutterflies sets each x to x + y, reduced, and returns the (x - y) f / R.
func (m *modulus) unbutterflies(bs ...butterfly) []reg.VecVirtual {
	xs := make([]operand, len(bs))
	for i, b := range bs {
		d := m.s.vector()
		VPSUBD(b.y, b.x, d)
		VPADDD(b.y, b.x, b.x)
		xs[i] = operand{d, b.factor}
	}
	for _, b := range bs {
		m.reduce(b.x)
	}
	return m.monts(xs...)
}

// reverse reverses the lanes of x, with the index vector of [isa.reversal].
func (s isa) reverse(x, index reg.VecVirtual) { VPERMD(x, index, x) }

func (s isa) lanes() int { return s.bytes / 4 }

// sequence emits an index vector as data and loads it.
func (s isa) sequence(name string, lane func(i int) int) reg.VecVirtual {
	words := make([]uint32, s.lanes())
	for i := range words {
		words[i] = uint32(lane(i))
	}
	return s.load(constants(name+s.name, words...))
}

func (s isa) reversal(name string) reg.VecVirtual {
	return s.sequence(name, func(i int) int { return s.lanes() - 1 - i })
}

// foldPointers are the four places that the first layer joins: j and N/2+j go up,
// N/2-j and N-j down.
type foldPointers struct {
	up, middle, down, end reg.GPVirtual
	count                 reg.GPVirtual
}

// newFoldPointers sets the places for a polynomial of n words to j = 16.
func newFoldPointers(s isa, a, n reg.Register, count reg.GPVirtual) foldPointers {
	p := foldPointers{up: GP64(), middle: GP64(), down: GP64(), end: GP64(), count: count}
	LEAQ(Mem{Base: a, Disp: 64}, p.up)
	LEAQ(Mem{Base: a, Index: n, Scale: 2, Disp: 64}, p.middle)
	LEAQ(Mem{Base: a, Index: n, Scale: 2, Disp: -64 - s.bytes + 4}, p.down)
	LEAQ(Mem{Base: a, Index: n, Scale: 4, Disp: -64 - s.bytes + 4}, p.end)
	return p
}

func (p foldPointers) next(s isa) {
	ADDQ(Imm(uint64(s.bytes)), p.up)
	ADDQ(Imm(uint64(s.bytes)), p.middle)
	SUBQ(Imm(uint64(s.bytes)), p.down)
	SUBQ(Imm(uint64(s.bytes)), p.end)
}

// foldCount sets count to the number of vectors of j = 16 .. n/4-1.
func foldCount(s isa, n reg.Register) reg.GPVirtual {
	count := GP64()
	MOVQ(n, count)
	SHRQ(Imm(2), count)
	SUBQ(Imm(16), count)
	SHRQ(Imm(map[isa]uint64{avx512: 4, avx2: 3}[s]), count)
	return count
}

func nttForwardFold(s isa, lazy bool) {
	name := "NTTForwardFold" + lazyName(lazy) + s.name
	function(name, "func(dst, src, words *uint32, n int)",
		"takes the first layer of the conjugate-invariant ring of degree",
		"n >= 128 at j = 16 .. n/4-1, n/2-j, n/2+j and n-j.")
	dst, src, words, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("words"), GP64()),
		Load(Param("n"), GP64())
	m := newModulus(s, words, lazy, !lazy)
	i, fold := m.factor(s.broadcast(Mem{Base: words, Disp: nttI})), m.factor(s.broadcast(Mem{Base: words, Disp: nttFold}))
	index := s.reversal("nttReverseFold" + lazyName(lazy))
	from := newFoldPointers(s, src, n, foldCount(s, n))
	offset := GP64()
	MOVQ(dst, offset)
	SUBQ(src, offset)
	count("loop", from.count, func() {
		b, d := s.vector(), s.load(Mem{Base: from.middle})
		VPERMD(Mem{Base: from.end}, index, b)
		turned := m.monts(operand{b, i}, operand{d, i})
		ib, id := turned[0], turned[1]
		a, c := s.load(Mem{Base: from.up}), s.vector()
		VPERMD(Mem{Base: from.down}, index, c)
		g1, g0 := s.vector(), s.vector()
		VPADDD(ib, a, g1)
		VPADDD(id, c, g0)
		VPSUBD(ib, a, a)
		VPSUBD(id, c, c)
		if !lazy {
			m.reduce(a)
			m.reduce(c)
		}
		folded := m.monts(operand{g0, fold}, operand{g1, fold})
		g0, g1 = folded[0], folded[1]
		x := s.vector()
		VPADDD(g0, a, x)
		VPSUBD(g0, a, a)
		VMOVDQUx(s, x, Mem{Base: from.up, Index: offset, Scale: 1})
		VMOVDQUx(s, a, Mem{Base: from.middle, Index: offset, Scale: 1})
		VPADDD(g1, c, x)
		VPSUBD(g1, c, c)
		s.reverse(x, index)
		s.reverse(c, index)
		VMOVDQUx(s, x, Mem{Base: from.down, Index: offset, Scale: 1})
		VMOVDQUx(s, c, Mem{Base: from.end, Index: offset, Scale: 1})
		from.next(s)
	})
	VZEROUPPER()
	RET()
}

func nttInverseFold(s isa, full bool) {
	name := "NTTInverseFold" + map[bool]string{false: "Lazy"}[full] + s.name
	function(name, "func(a, words *uint32, n int, scale, turned uint32)",
		"takes the last layer of the conjugate-invariant ring of degree",
		"n >= 128 at j = 16 .. n/4-1, n/2-j, n/2+j and n-j.")
	a, words, n := Load(Param("a"), GP64()), Load(Param("words"), GP64()), Load(Param("n"), GP64())
	m := newModulus(s, words, false, true)
	unfold := m.factor(s.broadcast(Mem{Base: words, Disp: nttUnfold}))
	scale, turned := m.factor(s.parameter("scale")), m.factor(s.parameter("turned"))
	index := s.reversal("nttReverseUnfold" + map[bool]string{false: "Lazy"}[full])
	at := newFoldPointers(s, a, n, foldCount(s, n))
	end := func(x reg.VecVirtual) {
		if full {
			t := s.vector()
			VPADDD(m.q, x, t)
			VPMINUD(t, x, x)
		}
	}
	count("loop", at.count, func() {
		u0, d := s.load(Mem{Base: at.up}), s.load(Mem{Base: at.middle})
		g0 := m.unbutterflies(butterfly{u0, d, unfold})[0]
		u1, b := s.vector(), s.vector()
		VPERMD(Mem{Base: at.down}, index, u1)
		VPERMD(Mem{Base: at.end}, index, b)
		g1 := m.unbutterflies(butterfly{u1, b, unfold})[0]
		x := s.vector()
		VPADDD(g1, u0, x)
		VPSUBD(u0, g1, g1)
		x = m.mont(x, scale)
		end(x)
		VMOVDQUx(s, x, Mem{Base: at.up})
		x = m.mont(g1, turned)
		end(x)
		s.reverse(x, index)
		VMOVDQUx(s, x, Mem{Base: at.end})
		y := s.vector()
		VPADDD(g0, u1, y)
		VPSUBD(u1, g0, g0)
		y = m.mont(y, scale)
		end(y)
		s.reverse(y, index)
		VMOVDQUx(s, y, Mem{Base: at.down})
		y = m.mont(g0, turned)
		end(y)
		VMOVDQUx(s, y, Mem{Base: at.middle})
		at.next(s)
	})
	VZEROUPPER()
	RET()
}

// nttLayers emits the loops of one or two layers: blocks of parts stretches of t
// words each, for which body gets the vectors at the same place of each stretch.
func nttLayers(s isa, parts int, m func(words reg.Register) *modulus,
	body func(m *modulus, w []factor, x []reg.VecVirtual)) {
	a, w := Load(Param("a"), GP64()), Load(Param("w"), GP64())
	var w2 reg.Register
	if parts == 4 {
		w2 = Load(Param("w2"), GP64())
	}
	mod := m(Load(Param("words"), GP64()))
	blocks, t := GP64(), GP64()
	Load(Param("blocks"), blocks)
	Load(Param("t"), t)
	SHLQ(Imm(2), t)
	upper, n := GP64(), GP64()
	count("block", blocks, func() {
		twiddles := []factor{mod.factor(s.broadcast(Mem{Base: w}))}
		ADDQ(Imm(4), w)
		if parts == 4 {
			twiddles = append(twiddles, mod.factor(s.broadcast(Mem{Base: w2})),
				mod.factor(s.broadcast(Mem{Base: w2, Disp: 4})))
			if s == avx2 {
				f := &twiddles[0]
				f.w, f.low = s.spilled(f.w), s.spilled(f.low)
				f.odd = f.w
			}
			ADDQ(Imm(8), w2)
			LEAQ(Mem{Base: a, Index: t, Scale: 2}, upper)
		}
		MOVQ(t, n)
		SHRQ(Imm(map[isa]uint64{avx512: 6, avx2: 5}[s]), n)
		count("vector", n, func() {
			at := []Mem{{Base: a}, {Base: a, Index: t, Scale: 1}}
			if parts == 4 {
				at = append(at, Mem{Base: upper}, Mem{Base: upper, Index: t, Scale: 1})
			}
			x := make([]reg.VecVirtual, parts)
			for i := range x {
				x[i] = s.load(at[i])
			}
			body(mod, twiddles, x)
			for i := range x {
				VMOVDQUx(s, x[i], at[i])
			}
			ADDQ(Imm(uint64(s.bytes)), a)
			if parts == 4 {
				ADDQ(Imm(uint64(s.bytes)), upper)
			}
		})
		if parts == 4 {
			LEAQ(Mem{Base: a, Index: t, Scale: 2}, a)
		}
		ADDQ(t, a)
	})
	VZEROUPPER()
	RET()
}

func nttForward2(s isa, lazy bool) {
	function("NTTForwardLayer"+lazyName(lazy)+s.name, "func(a, w, words *uint32, blocks, t int)",
		"takes a layer of blocks of 2t words, t a multiple of 16.")
	nttLayers(s, 2, func(words reg.Register) *modulus { return newModulus(s, words, lazy, true) },
		func(m *modulus, w []factor, x []reg.VecVirtual) {
			m.reduce(x[0])
			m.butterflies(butterfly{x[0], x[1], w[0]})
		})
}

func nttForward4(s isa, lazy bool) {
	function("NTTForwardLayers"+lazyName(lazy)+s.name, "func(a, w, w2, words *uint32, blocks, t int)",
		"takes two layers of blocks of 4t words, t a multiple of 16.")
	nttLayers(s, 4, func(words reg.Register) *modulus { return newModulus(s, words, lazy, true) },
		func(m *modulus, w []factor, x []reg.VecVirtual) {
			if !lazy {
				m.reduce(x[0])
				m.reduce(x[1])
			}
			m.butterflies(butterfly{x[0], x[2], w[0]}, butterfly{x[1], x[3], w[0]})
			m.reduce(x[0])
			m.reduce(x[2])
			m.butterflies(butterfly{x[0], x[1], w[1]}, butterfly{x[2], x[3], w[2]})
		})
}

func nttInverse2(s isa) {
	function("NTTInverseLayer"+s.name, "func(a, w, words *uint32, blocks, t int)",
		"takes an inverse layer of blocks of 2t words, t a multiple of 16.")
	nttLayers(s, 2, func(words reg.Register) *modulus { return newModulus(s, words, false, true) },
		func(m *modulus, w []factor, x []reg.VecVirtual) {
			x[1] = m.unbutterflies(butterfly{x[0], x[1], w[0]})[0]
		})
}

func nttInverse4(s isa) {
	function("NTTInverseLayers"+s.name, "func(a, w, w2, words *uint32, blocks, t int)",
		"takes two inverse layers of blocks of 4t words, t a multiple of 16.")
	nttLayers(s, 4, func(words reg.Register) *modulus { return newModulus(s, words, false, true) },
		func(m *modulus, w []factor, x []reg.VecVirtual) {
			y := m.unbutterflies(butterfly{x[0], x[1], w[1]}, butterfly{x[2], x[3], w[2]})
			x[1], x[3] = y[0], y[1]
			y = m.unbutterflies(butterfly{x[0], x[2], w[0]}, butterfly{x[1], x[3], w[0]})
			x[2], x[3] = y[0], y[1]
		})
}

// tail holds what the layers inside a block of 32 words need with AVX-512: the maps from lanes
// to twiddles of the layers 8, 4 and 2, and the index vectors that join and part two registers.
type tail struct {
	s             isa
	m             *modulus
	lanes         map[int]reg.VecVirtual
	group4        [2]reg.VecVirtual
	first, second reg.VecVirtual
}

// newTail loads the maps. Inverted layers begin by parting two registers in
// natural order, the others end by joining them.
func newTail(s isa, m *modulus, name string, inverted bool) *tail {
	b := &tail{s: s, m: m, lanes: map[int]reg.VecVirtual{}}
	b.lanes[8] = s.sequence(name+"Lanes8", func(l int) int { return l / 8 })
	b.lanes[4] = s.sequence(name+"Lanes4", func(l int) int { return l / 4 })
	b.lanes[2] = s.sequence(name+"Lanes2", func(l int) int { return l / 2 })
	quads := func(shift int) func(i int) int {
		return func(i int) int {
			q := []int{0, 1, 8, 9, 4, 5, 12, 13}[i/2]
			return (q + shift) * (1 - i%2)
		}
	}
	b.group4 = [2]reg.VecVirtual{s.sequence(name+"Low4", quads(0)), s.sequence(name+"High4", quads(2))}
	if inverted {
		b.first = s.sequence(name+"Evens", func(i int) int { return 2 * i })
		b.second = s.sequence(name+"Odds", func(i int) int { return 2*i + 1 })
	} else {
		b.first = s.sequence(name+"Low", func(i int) int { return i/2 + 16*(i%2) })
		b.second = s.sequence(name+"High", func(i int) int { return 8 + i/2 + 16*(i%2) })
	}
	return b
}

// exchange2 sets x, y to two permutations of both, given by index vectors.
func (b *tail) exchange2(x, y, first, second reg.VecVirtual, wide bool) (reg.VecVirtual, reg.VecVirtual) {
	p, q := b.s.vector(), b.s.vector()
	VMOVDQA64(first, p)
	VMOVDQA64(second, q)
	if wide {
		VPERMI2Q(y, x, p)
		VPERMI2Q(y, x, q)
	} else {
		VPERMI2D(y, x, p)
		VPERMI2D(y, x, q)
	}
	return p, q
}

// split separates the halves of blocks of 2t words in x and y; it is its own
// inverse.
func (b *tail) split(t int, x, y reg.VecVirtual) (reg.VecVirtual, reg.VecVirtual) {
	s := b.s
	p, q := s.vector(), s.vector()
	switch {
	case t == 8:
		VSHUFI64X2(Imm(0x44), y, x, p)
		VSHUFI64X2(Imm(0xee), y, x, q)
	case t == 4:
		return b.exchange2(x, y, b.group4[0], b.group4[1], true)
	case t == 2:
		VPUNPCKLQDQ(y, x, p)
		VPUNPCKHQDQ(y, x, q)
	default:
		// p = x with its odd lanes replaced by y's even ones, q the rest.
		VPSLLQ(Imm(32), y, p)
		VMOVDQA32(x, b.m.evens, p)
		VMOVDQA64(y, q)
		b.m.high(x, q)
	}
	return p, q
}

// join interleaves x and y, even and odd coefficients, to natural order.
func (b *tail) join(x, y reg.VecVirtual) (reg.VecVirtual, reg.VecVirtual) {
	return b.exchange2(x, y, b.first, b.second, false)
}

// part separates two registers in natural order into even and odd coefficients.
func (b *tail) part(x, y reg.VecVirtual) (reg.VecVirtual, reg.VecVirtual) {
	return b.exchange2(x, y, b.first, b.second, false)
}

// tailGroup is the number of blocks that are taken in step; it divides the
// count. There are always four blocks or more, a power of two.
const tailGroup = 2

// twiddles loads those of layer t, offset bytes on, and spreads them.
func (b *tail) twiddles(t int, w reg.Register, offset int) factor {
	v := b.s.load(Mem{Base: w, Disp: 4*(16/t) + offset})
	if t == 1 {
		return factor{w: v, odd: b.s.odd(v)}
	}
	VPERMD(v, b.lanes[t], v)
	return factor{w: v, odd: v}
}

// all loads the twiddle of a layer with the same one everywhere.
func (b *tail) all(w reg.Register, offset int) factor {
	v := b.s.broadcast(Mem{Base: w, Disp: offset})
	return factor{w: v, odd: v}
}

// nttForwardTail emits the layers 16 .. 1 of blocks of 32 words.
func nttForwardTail(s isa, lazy, full bool) {
	kind := map[bool]string{true: "Full"}[full] + lazyName(lazy)
	function("NTTForwardTail"+kind+s.name, "func(a, tail, words *uint32, blocks int)",
		"takes the layers inside blocks of 32 words.")
	a, w := Load(Param("a"), GP64()), Load(Param("tail"), GP64())
	m := newModulus(s, Load(Param("words"), GP64()), lazy, true)
	take := func() { newPair(m, w).forward(a, full) }
	if s == avx512 {
		b := newTail(s, m, "nttTail"+kind, false)
		take = func() { b.forwardBlocks(a, w, full) }
	}
	blocks := GP64()
	Load(Param("blocks"), blocks)
	SHRQ(Imm(1), blocks)
	count("loop", blocks, func() {
		take()
		ADDQ(U32(uint32(128*tailGroup)), a)
		ADDQ(U32(uint32(128*tailGroup)), w)
	})
	VZEROUPPER()
	RET()
}

// layer takes layer t.
func (b *tail) layer(t int, bs ...butterfly) {
	for _, x := range bs {
		if !b.m.lazy || t == 8 || t == 2 {
			b.m.reduce(x.x)
		}
	}
	b.m.butterflies(bs...)
}

// writeJoined writes p and q in natural order.
func (b *tail) writeJoined(p, q reg.VecVirtual, at Mem, full bool) {
	p, q = b.join(p, q)
	if full {
		b.m.canonical(p)
		b.m.canonical(q)
	}
	VMOVDQUx(b.s, p, at)
	VMOVDQUx(b.s, q, at.Offset(b.s.bytes))
}

// forwardBlocks takes blocks of two registers in step.
func (b *tail) forwardBlocks(a, w reg.Register, full bool) {
	s := b.s
	bs := make([]butterfly, tailGroup)
	for g := range bs {
		bs[g].x, bs[g].y = s.load(Mem{Base: a, Disp: 128 * g}), s.load(Mem{Base: a, Disp: 128*g + 64})
		bs[g].factor = b.all(w, 128*g+4)
	}
	b.layer(16, bs...)
	for _, t := range []int{8, 4, 2, 1} {
		for g := range bs {
			bs[g].x, bs[g].y = b.split(t, bs[g].x, bs[g].y)
			bs[g].factor = b.twiddles(t, w, 128*g)
		}
		b.layer(t, bs...)
	}
	for g := range bs {
		b.writeJoined(bs[g].x, bs[g].y, Mem{Base: a, Disp: 128 * g}, full)
	}
}

// nttInverseTail emits the inverse layers 1 .. 16 of blocks of 32 words.
func nttInverseTail(s isa) {
	function("NTTInverseTail"+s.name, "func(dst, src, untail, words *uint32, blocks int)",
		"takes the inverse layers inside blocks of 32 words.")
	dst, src, w := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("untail"), GP64())
	m := newModulus(s, Load(Param("words"), GP64()), false, true)
	take := func() { newPair(m, w).inverse(dst, src) }
	if s == avx512 {
		b := newTail(s, m, "nttUntail", true)
		take = func() { b.inverseBlocks(m, dst, src, w) }
	}
	blocks := GP64()
	Load(Param("blocks"), blocks)
	SHRQ(Imm(1), blocks)
	count("loop", blocks, func() {
		take()
		for _, p := range []reg.Register{src, dst, w} {
			ADDQ(U32(uint32(128*tailGroup)), p)
		}
	})
	VZEROUPPER()
	RET()
}

// inverseBlocks takes blocks of two registers in step.
func (b *tail) inverseBlocks(m *modulus, dst, src, w reg.Register) {
	s := b.s
	bs := make([]butterfly, tailGroup)
	for g := range bs {
		bs[g].x, bs[g].y = b.part(s.load(Mem{Base: src, Disp: 128 * g}), s.load(Mem{Base: src, Disp: 128*g + 64}))
	}
	for _, t := range []int{1, 2, 4, 8} {
		for g := range bs {
			bs[g].factor = b.twiddles(t, w, 128*g)
		}
		for g, y := range m.unbutterflies(bs...) {
			bs[g].x, bs[g].y = b.split(t, bs[g].x, y)
		}
	}
	for g := range bs {
		bs[g].factor = b.all(w, 128*g+4)
	}
	for g, y := range m.unbutterflies(bs...) {
		VMOVDQUx(s, bs[g].x, Mem{Base: dst, Disp: 128 * g})
		VMOVDQUx(s, y, Mem{Base: dst, Disp: 128*g + 64})
	}
}

// over emits a loop over blocks of 16 words of the named slices; body is called
// for each vector with the place of each.
func over(s isa, blocks reg.GPVirtual, pointers []reg.Register, body func(at []Mem)) {
	i := GP64()
	XORQ(i, i)
	count("loop", blocks, func() {
		for h := range s.parts {
			at := make([]Mem, len(pointers))
			for j, p := range pointers {
				at[j] = Mem{Base: p, Index: i, Scale: 1, Disp: h * s.bytes}
			}
			body(at)
		}
		ADDQ(Imm(64), i)
	})
	VZEROUPPER()
	RET()
}

func pointers(names ...string) []reg.Register {
	out := make([]reg.Register, len(names))
	for i, n := range names {
		out[i] = Load(Param(n), GP64())
	}
	return out
}

func blockCount() reg.GPVirtual {
	blocks := GP64()
	Load(Param("blocks"), blocks)
	return blocks
}

func nttScale(s isa, full bool) {
	name := "NTTScale" + map[bool]string{false: "Lazy"}[full] + s.name
	function(name, "func(dst, a, words *uint32, blocks int, c uint32)", "writes a c / R over blocks of 16 words.")
	ps := pointers("dst", "a")
	m := newModulus(s, Load(Param("words"), GP64()), false, false)
	c := m.factor(s.parameter("c"))
	over(s, blockCount(), ps, func(at []Mem) {
		x := m.mont(s.load(at[1]), c)
		if full {
			t := s.vector()
			VPADDD(m.q, x, t)
			VPMINUD(t, x, x)
		}
		VMOVDQUx(s, x, at[0])
	})
}

// nttElementwise emits the operations on two polynomials.
func nttElementwise(s isa) {
	binary := func(name, doc string, body func(m *modulus, x, y reg.VecVirtual, dst Mem) reg.VecVirtual) {
		function(name+s.name, "func(dst, a, b, words *uint32, blocks int)", doc+" over blocks of 16 words.")
		ps := pointers("dst", "a", "b")
		m := newModulus(s, Load(Param("words"), GP64()), false, true)
		over(s, blockCount(), ps, func(at []Mem) {
			VMOVDQUx(s, body(m, s.load(at[1]), s.load(at[2]), at[0]), at[0])
		})
	}
	binary("NTTAdd", "writes a + b", func(m *modulus, x, y reg.VecVirtual, _ Mem) reg.VecVirtual {
		VPADDD(y, x, x)
		VPSUBD(m.q, x, y)
		VPMINUD(y, x, x)
		return x
	})
	binary("NTTSub", "writes a - b", func(m *modulus, x, y reg.VecVirtual, _ Mem) reg.VecVirtual {
		VPSUBD(y, x, x)
		VPADDD(m.q, x, y)
		VPMINUD(y, x, x)
		return x
	})
	binary("NTTMultiply", "writes a b / R", func(m *modulus, x, y reg.VecVirtual, _ Mem) reg.VecVirtual {
		r := m.product(x, y)
		m.canonical(r)
		return r
	})
	binary("NTTMultiplyAdd", "adds a b / R", func(m *modulus, x, y reg.VecVirtual, dst Mem) reg.VecVirtual {
		r := m.product(x, y)
		VPADDD(dst, r, r)
		m.canonical(r)
		return r
	})
	function("NTTAddScalar"+s.name, "func(dst, a, words *uint32, blocks int, c uint32)",
		"writes a + c over blocks of 16 words.")
	ps := pointers("dst", "a")
	m := newModulus(s, Load(Param("words"), GP64()), false, false)
	c := s.parameter("c")
	over(s, blockCount(), ps, func(at []Mem) {
		x, t := s.load(at[1]), s.vector()
		VPADDD(c, x, x)
		VPSUBD(m.q, x, t)
		VPMINUD(t, x, x)
		VMOVDQUx(s, x, at[0])
	})
	function("NTTScaleAdd"+s.name, "func(dst, a, words *uint32, blocks int, c uint32)",
		"adds a c / R over blocks of 16 words.")
	ps = pointers("dst", "a")
	m = newModulus(s, Load(Param("words"), GP64()), false, true)
	c2 := m.factor(s.parameter("c"))
	over(s, blockCount(), ps, func(at []Mem) {
		x := m.mont(s.load(at[1]), c2)
		VPADDD(at[0], x, x)
		m.canonical(x)
		VMOVDQUx(s, x, at[0])
	})
}

// nttSubScale emits (a - b) c / R, with b reduced first.
func nttSubScale(s isa, lazy bool) {
	function("NTTSubScale"+lazyName(lazy)+s.name, "func(dst, a, b, words *uint32, blocks int, c uint32)",
		"writes (a - b) c / R over blocks of 16 words.")
	ps := pointers("dst", "a", "b")
	m := newModulus(s, Load(Param("words"), GP64()), lazy, true)
	c := m.factor(s.parameter("c"))
	over(s, blockCount(), ps, func(at []Mem) {
		x, y := s.load(at[1]), s.load(at[2])
		m.reduce(y)
		VPSUBD(y, x, x)
		x = m.mont(x, c)
		t := s.vector()
		VPADDD(m.q, x, t)
		VPMINUD(t, x, x)
		VMOVDQUx(s, x, at[0])
	})
}

// nttProduct emits the product of two ciphertexts, added to c where add is set.
func nttProduct(s isa, add bool) {
	name := "NTTProduct" + map[bool]string{true: "Add"}[add] + s.name
	function(name, "func(c0, c1, c2, a0, a1, b0, b1, words *uint32, blocks int, times uint32)",
		"writes or adds times (a0 b0, a0 b1 + a1 b0, a1 b1)/R over blocks", "of 16 words.")
	ps := pointers("c0", "c1", "c2", "a0", "a1", "b0", "b1")
	m := newModulus(s, Load(Param("words"), GP64()), false, true)
	times := s.parameter("times")
	end := func(even, odd reg.VecVirtual, dst Mem) {
		x := m.divide(even, odd)
		VPMULLD(times, x, x)
		if add {
			VPADDD(dst, x, x)
		}
		m.canonical(x)
		VMOVDQUx(s, x, dst)
	}
	// pair multiplies even and odd lanes of two vectors in memory.
	pair := func(x, y Mem) (even, odd reg.VecVirtual) {
		v, w := s.load(x), s.load(y)
		even, odd = s.vector(), s.odd(v)
		VPMULDQ(w, v, even)
		VPSRLQ(Imm(32), w, w)
		VPMULDQ(w, odd, odd)
		return even, odd
	}
	over(s, blockCount(), ps, func(at []Mem) {
		even, odd := pair(at[3], at[5])
		end(even, odd, at[0])
		even, odd = pair(at[4], at[6])
		end(even, odd, at[2])
		even, odd = pair(at[3], at[6])
		even2, odd2 := pair(at[4], at[5])
		VPADDQ(even2, even, even)
		VPADDQ(odd2, odd, odd)
		end(even, odd, at[1])
	})
}

// addProduct adds x y to 64-bit sums of even and odd lanes, or starts them where
// first is set. It spoils x and y; with a broadcast y the odd lanes are y's too.
func addProduct(s isa, x, y reg.VecVirtual, broadcast, first bool, even, odd reg.VecVirtual) {
	t, u := s.vector(), s.odd(x)
	if first {
		t = even
	}
	VPMULDQ(y, x, t)
	if !broadcast {
		VPSRLQ(Imm(32), y, y)
	}
	if first {
		VPMULDQ(y, u, odd)
		return
	}
	VPMULDQ(y, u, u)
	VPADDQ(t, even, even)
	VPADDQ(u, odd, odd)
}

// nttConvert emits the conversion of terms residues to one prime.
func nttConvert(s isa, terms int) {
	function(fmt.Sprintf("NTTConvert%d%s", terms, s.name), "func(dst *uint32, src **uint32, c, words *uint32, blocks int)",
		"writes the sum of src c / R over blocks of 16 words.")
	ps := pointers("dst")
	table, c := Load(Param("src"), GP64()), Load(Param("c"), GP64())
	for k := range terms {
		r := GP64()
		MOVQ(Mem{Base: table, Disp: 8 * k}, r)
		ps = append(ps, r)
	}
	m := newModulus(s, Load(Param("words"), GP64()), false, false)
	over(s, blockCount(), ps, func(at []Mem) {
		even, odd := s.vector(), s.vector()
		for k := range terms {
			addProduct(s, s.load(at[1+k]), s.broadcast(Mem{Base: c, Disp: 4 * k}), true, k == 0, even, odd)
		}
		VMOVDQUx(s, m.divide(even, odd), at[0])
	})
}

// nttWhole emits the number of times that residues go round.
func nttWhole(s isa, terms int) {
	function(fmt.Sprintf("NTTWhole%d%s", terms, s.name),
		"func(dst *uint32, src **uint32, fractions *uint32, blocks, bits int)",
		"writes the rounded sum of src fractions / 2^bits over blocks of 16", "words.")
	ps := pointers("dst")
	table, f := Load(Param("src"), GP64()), Load(Param("fractions"), GP64())
	for k := range terms {
		r := GP64()
		MOVQ(Mem{Base: table, Disp: 8 * k}, r)
		ps = append(ps, r)
	}
	half, shift := s.vector(), XMM()
	bits, one := GP64(), GP64()
	Load(Param("bits"), bits)
	DECQ(bits)
	MOVQ(bits, reg.RCX)
	MOVQ(U32(1), one)
	SHLQ(reg.CL, one)
	VMOVQ(one, half.AsX())
	VPBROADCASTQ(half.AsX(), half)
	SUBQ(Imm(31), bits)
	VMOVQ(bits, shift)
	var evens reg.Register
	if s == avx512 {
		mask := GP32()
		MOVL(U32(0x5555), mask)
		evens = K()
		KMOVW(mask, evens)
	}
	join := &modulus{s: s, evens: evens}
	over(s, blockCount(), ps, func(at []Mem) {
		even, odd := s.vector(), s.vector()
		for k := range terms {
			addProduct(s, s.load(at[1+k]), s.broadcast(Mem{Base: f, Disp: 4 * k}), true, k == 0, even, odd)
		}
		VPADDQ(half, even, even)
		VPADDQ(half, odd, odd)
		join.high(even, odd)
		VPSRAD(shift, odd, odd)
		VMOVDQUx(s, odd, at[0])
	})
}

// nttInner emits the inner products of digits with a key's two factors.
func nttInner(s isa, digits int) {
	function(fmt.Sprintf("NTTInner%d%s", digits, s.name),
		"func(k0, k1 *uint32, x **uint32, key *uint32, stride int, words *uint32, blocks int)",
		"writes the sums of x times the key's factors, divided by R, over",
		"blocks of 16 words; the key advances by stride bytes a block.")
	ps := pointers("k0", "k1")
	table, key := Load(Param("x"), GP64()), Load(Param("key"), GP64())
	for d := range digits {
		r := GP64()
		MOVQ(Mem{Base: table, Disp: 8 * d}, r)
		ps = append(ps, r)
	}
	stride := NewParamAddr("stride", 32)
	m := newModulus(s, Load(Param("words"), GP64()), false, true)
	h := 0
	over(s, blockCount(), ps, func(at []Mem) {
		e := s.vectors(4)
		for d := range digits {
			addFactors(s, s.load(at[2+d]), Mem{Base: key, Disp: 128*d + h*s.bytes}, d == 0, e)
		}
		m.writeInner(e, at)
		if h++; h == s.parts {
			ADDQ(stride, key)
			h = 0
		}
	})
}

// addFactors adds x times the two factors of a key to sums.
func addFactors(s isa, x reg.VecVirtual, key Mem, first bool, e []reg.VecVirtual) {
	if s == avx2 {
		xOdd := s.odd(x)
		for part := range 2 {
			y, even, odd := s.load(key.Offset(64*part)), e[2*part], e[2*part+1]
			if first {
				VPMULDQ(y, x, even)
				VPSRLQ(Imm(32), y, y)
				VPMULDQ(y, xOdd, odd)
				continue
			}
			t := s.vector()
			VPMULDQ(y, x, t)
			VPADDQ(t, even, even)
			VPSRLQ(Imm(32), y, y)
			VPMULDQ(y, xOdd, y)
			VPADDQ(y, odd, odd)
		}
		return
	}
	for part := range 2 {
		addProduct(s, x, s.load(key.Offset(64*part)), false, first, e[2*part], e[2*part+1])
	}
}

// writeInner divides the sums of both factors and writes them.
func (m *modulus) writeInner(e []reg.VecVirtual, at []Mem) {
	for part := range 2 {
		r := m.divide(e[2*part], e[2*part+1])
		m.canonical(r)
		VMOVDQUx(m.s, r, at[part])
	}
}

// nttInnerLift emits nttInner for any number of digits, with more to add up: a loop over digits costs nothing beside
// that.
func nttInnerLift(s isa) {
	function("NTTInnerLift"+s.name, "func(k0, k1 *uint32, x **uint32, d int, key *uint32, stride int, words *uint32, "+
		"blocks int, c0, c1 *uint32, lift uint32)",
		"writes the sums of d x times the key's factors and of lift c0 and c1, divided by R,",
		"over blocks of 16 words; the key advances by stride bytes a block.")
	ps := pointers("k0", "k1", "c0", "c1")
	x, key := Load(Param("x"), GP64()), Load(Param("key"), GP64())
	m := newModulus(s, Load(Param("words"), GP64()), false, true)
	lift := s.parameter("lift")
	i, blocks := GP64(), blockCount()
	XORQ(i, i)
	count("loop", blocks, func() {
		e := make([][]reg.VecVirtual, s.parts)
		at := func(p, h int) Mem { return Mem{Base: ps[p], Index: i, Scale: 1, Disp: h * s.bytes} }
		for h := range e {
			e[h] = s.vectors(4)
			addProduct(s, s.load(at(2, h)), lift, true, true, e[h][0], e[h][1])
			addProduct(s, s.load(at(3, h)), lift, true, true, e[h][2], e[h][3])
		}
		from, factors, left := GP64(), GP64(), GP64()
		MOVQ(x, from)
		MOVQ(key, factors)
		Load(Param("d"), left)
		count("digits", left, func() {
			digit := GP64()
			MOVQ(Mem{Base: from}, digit)
			for h := range e {
				addFactors(s, s.load(Mem{Base: digit, Index: i, Scale: 1, Disp: h * s.bytes}),
					Mem{Base: factors, Disp: h * s.bytes}, false, e[h])
			}
			ADDQ(Imm(8), from)
			ADDQ(U32(128), factors)
		})
		for h := range e {
			m.writeInner(e[h], []Mem{at(0, h), at(1, h)})
		}
		ADDQ(NewParamAddr("stride", 40), key)
		ADDQ(Imm(64), i)
	})
	VZEROUPPER()
	RET()
}
