package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pair is two blocks of 32 words in eight registers of AVX2, one in each half: register [r][h] has words
// 8r+4h .. 8r+4h+3 of both. Layers 16 .. 4 join whole registers, and layers 2 and 1 too once groups of four words are
// transposed in their halves: four butterflies at a time that do not wait for each other.
type pair struct {
	s    isa
	m    *modulus
	w    reg.Register // twiddles, those of the second block a block on
	x    [4][2]reg.VecVirtual
	next int // bytes from a block to the next
}

func newPair(m *modulus, w reg.Register) *pair { return &pair{s: m.s, m: m, w: w, next: 128} }

// halves loads 16 bytes of each block.
func (p *pair) halves(from Mem) reg.VecVirtual {
	v := p.s.vector()
	VBROADCASTI128(from, v)
	VINSERTI128(Imm(1), from.Offset(p.next), v, v)
	return v
}

func (p *pair) place(base reg.Register, r, h int) Mem { return Mem{Base: base, Disp: 32*r + 16*h} }

func (p *pair) load(from reg.Register) {
	for r := range p.x {
		for h := range p.x[r] {
			p.x[r][h] = p.halves(p.place(from, r, h))
		}
	}
}

func (p *pair) store(v reg.VecVirtual, to Mem) {
	VMOVDQU(v.AsX(), to)
	VEXTRACTI128(Imm(1), v, to.Offset(p.next))
}

// all is a twiddle of each block in all lanes of its half.
func (p *pair) all(word int) factor {
	at := Mem{Base: p.w, Disp: 4 * word}
	v := p.s.broadcast(at)
	VPBLENDD(Imm(0xf0), p.s.broadcast(at.Offset(p.next)), v, v)
	return p.m.factor(v)
}

// twos are the twiddles of layer 2 of a set of four groups.
func (p *pair) twos(set int) factor {
	return factor{w: p.halves(Mem{Base: p.w, Disp: 4 * (8 + 4*set)})}
}

// ones are those of layer 1, the first and the second of each group.
func (p *pair) ones(set int) (first, second factor) {
	at := Mem{Base: p.w, Disp: 4 * (16 + 8*set)}
	u, v := p.halves(at), p.halves(at.Offset(16))
	f := p.s.vector()
	VSHUFPS(Imm(0x88), v, u, f)
	VSHUFPS(Imm(0xdd), v, u, u)
	return factor{w: f}, factor{w: u}
}

// set is the registers of four groups, in their order.
func (p *pair) set(i int) [4]reg.VecVirtual {
	return [4]reg.VecVirtual{p.x[2*i][0], p.x[2*i][1], p.x[2*i+1][0], p.x[2*i+1][1]}
}

// transposed has word j of each group, in its order, in register j. It is its own inverse.
func (p *pair) transposed(g [4]reg.VecVirtual) [4]reg.VecVirtual {
	var low, high [2]reg.VecVirtual
	for i := range low {
		low[i], high[i] = p.s.vector(), p.s.vector()
		VPUNPCKLDQ(g[2*i+1], g[2*i], low[i])
		VPUNPCKHDQ(g[2*i+1], g[2*i], high[i])
	}
	var out [4]reg.VecVirtual
	for i, v := range [][2]reg.VecVirtual{low, high} {
		out[2*i], out[2*i+1] = p.s.vector(), p.s.vector()
		VPUNPCKLQDQ(v[1], v[0], out[2*i])
		VPUNPCKHQDQ(v[1], v[0], out[2*i+1])
	}
	return out
}

// forward takes layers 16 .. 1.
func (p *pair) forward(a reg.Register, full bool) {
	p.load(a)
	layer := func(t int, x, y reg.VecVirtual, f factor) {
		if !p.m.lazy || t == 8 || t == 2 {
			p.m.reduce(x)
		}
		p.m.butterflies(butterfly{x, y, f})
	}
	c := p.all(1)
	for r := range 2 {
		for h := range 2 {
			layer(16, p.x[r][h], p.x[r+2][h], c)
		}
	}
	for r := 0; r < 4; r += 2 {
		c := p.all(2 + r/2)
		for h := range 2 {
			layer(8, p.x[r][h], p.x[r+1][h], c)
		}
	}
	for r := range 4 {
		layer(4, p.x[r][0], p.x[r][1], p.all(4+r))
	}
	for i := range 2 {
		g := p.transposed(p.set(i))
		c := p.twos(i)
		layer(2, g[0], g[2], c)
		layer(2, g[1], g[3], c)
		c, d := p.ones(i)
		layer(1, g[0], g[1], c)
		layer(1, g[2], g[3], d)
		for j, v := range p.transposed(g) {
			if full {
				p.m.canonical(v)
			}
			p.store(v, p.place(a, 2*i+j/2, j%2))
		}
	}
}

// inverse takes layers 1 .. 16 back.
func (p *pair) inverse(dst, src reg.Register) {
	p.load(src)
	back := func(x, y *reg.VecVirtual, f factor) { *y = p.m.unbutterflies(butterfly{*x, *y, f})[0] }
	for i := range 2 {
		g := p.transposed(p.set(i))
		c, d := p.ones(i)
		back(&g[0], &g[1], c)
		back(&g[2], &g[3], d)
		c = p.twos(i)
		back(&g[0], &g[2], c)
		back(&g[1], &g[3], c)
		for j, v := range p.transposed(g) {
			p.x[2*i+j/2][j%2] = v
		}
	}
	for r := range 4 {
		back(&p.x[r][0], &p.x[r][1], p.all(4+r))
	}
	for r := 0; r < 4; r += 2 {
		c := p.all(2 + r/2)
		for h := range 2 {
			back(&p.x[r][h], &p.x[r+1][h], c)
		}
	}
	c := p.all(1)
	for r := range 2 {
		for h := range 2 {
			back(&p.x[r][h], &p.x[r+2][h], c)
		}
	}
	for r := range p.x {
		for h, v := range p.x[r] {
			p.store(v, p.place(dst, r, h))
		}
	}
}
