package ntt

import (
	"fmt"
	"sync"
)

// Kind is a ring of polynomials modulo a prime.
type Kind int

const (
	// Standard is Z_q[X]/(X^N + 1).
	Standard Kind = iota
	// ConjugateInvariant is Z_q[X + X^-1]/(X^2N + 1) in the basis 1, X^i + X^-i.
	ConjugateInvariant
)

// The degrees of rings.
const (
	MinLogN = 9
	MaxLogN = 16
)

// block is the number of coefficients whose last layers one step of the kernels
// keeps in registers.
const (
	logBlock = 5
	block    = 1 << logBlock
)

// cached is the number of coefficients of a part that is finished before the next
// begins, so that it stays in the first-level cache.
const cached = 2048

// Ring is a ring of degree N = 2^logN modulo a prime, with the tables of its
// transform. Its tables and their order are Lattigo's for the same prime (the
// smallest primitive root from 3 on, bit-reversed powers), and so are its results.
type Ring struct {
	*Prime
	kind    Kind
	n, logN int
	// psi is a root of unity, of order 2N, or 4N for the conjugate-invariant ring; shrink is twice 1 over its order.
	psi, shrink uint64
	once        sync.Once
	made        tables // by once
}

// tables are the factors of a transform: forward[h+i] is the twiddle of block i of h, backward its inverse; the layers
// inside blocks of 32 read tail and untail, 32 words a block, laid out as a heap. All times R, centred.
type tables struct{ forward, backward, tail, untail []uint32 }

// NewRing prepares the ring of the given kind and degree 2^logN. It returns an
// error unless q is a prime below 2^30, 1 modulo 2N, or 1 modulo 4N for the
// conjugate-invariant ring.
func NewRing(kind Kind, logN int, q uint32) (*Ring, error) {
	if logN < MinLogN || logN > MaxLogN {
		return nil, fmt.Errorf("ntt: degree 2^%d is not 2^%d to 2^%d", logN, MinLogN, MaxLogN)
	}
	p, err := NewPrime(q)
	if err != nil {
		return nil, err
	}
	n := 1 << logN
	// Powers of a root of order twice their number.
	powers := n
	if kind == ConjugateInvariant {
		powers = 2 * n
	}
	if int(q-1)%(2*powers) != 0 {
		return nil, fmt.Errorf("ntt: prime %d is not 1 modulo %d", q, 2*powers)
	}
	psi := p.Power(p.generator(), uint64(q-1)/uint64(2*powers))
	r := &Ring{Prime: p, kind: kind, n: n, logN: logN, psi: psi, shrink: p.Invert(uint64(powers))}
	if kind == ConjugateInvariant {
		i := p.Power(psi, uint64(n))
		fold := (uint64(q) - i) * p.Power(psi, uint64(n/2)) % uint64(q)
		middle := fold * (1 + i) % uint64(q)
		for word, x := range map[int]uint64{
			wordI: i, wordMinusI: uint64(q) - i, wordFold: fold, wordUnfold: p.Invert(fold), wordMiddle: middle,
			wordUnmiddle: p.Invert(middle),
		} {
			p.words[word] = p.Constant(x)
		}
	}
	return r, nil
}

// Prepare makes the tables of transforms. It may be called by several workers at once.
func (r *Ring) Prepare() { r.tables() }

// tables makes them when a transform asks for them first, unless they are prepared: a plan needs none.
func (r *Ring) tables() *tables {
	r.once.Do(func() {
		p := r.Prime
		forward, backward := p.twiddles(r.kind, r.logN, r.psi), p.twiddles(r.kind, r.logN, p.Invert(r.psi))
		r.made = tables{forward, backward, heap(forward), heap(backward)}
	})
	return &r.made
}

// twiddles are powers of psi in bit-reversed order, times R and centred: twiddle i of h is the word h+i, and of the
// conjugate-invariant ring's 2h the first half.
func (p *Prime) twiddles(kind Kind, logN int, psi uint64) []uint32 {
	n := 1 << logN
	out := make([]uint32, n)
	all, first := out, 1 // index of the first layer's twiddle among all
	if kind == ConjugateInvariant {
		all, first = make([]uint32, n+n/2), 2
	}
	// The exponent of word s+i, i below a power of two s, is that of word i and first n/2s.
	all[0] = p.canonical(p.Constant(1))
	for s := 1; s < len(all); s *= 2 {
		count, by := min(s, len(all)-s), p.Constant(p.Power(psi, uint64(first*n/(2*s))))
		if s < lanes {
			for i, x := range all[:s] {
				all[s+i] = p.canonical(p.mont(x, by))
			}
			continue
		}
		p.Scale(all[s:s+count], all[:count], by)
	}
	for h := 1; h < n; h *= 2 {
		for i, x := range all[first*h:][:h] {
			out[h+i] = p.centred(x)
		}
	}
	out[0] = 0
	return out
}

// heap gathers the twiddles of the layers t = 16 .. 1 block by block: those of
// layer t are words 16/t .. 32/t - 1 of a block of 32.
func heap(twiddles []uint32) []uint32 {
	n := len(twiddles)
	out := make([]uint32, n)
	for count := 1; count < block; count *= 2 {
		layer := twiddles[n/block*count:]
		for k := range n / block {
			at := k*block + count
			for i, x := range layer[k*count:][:count] { // a copy of so few words is mostly its call
				out[at+i] = x
			}
		}
	}
	return out
}

// N returns the degree.
func (r *Ring) N() int { return r.n }

func (r *Ring) check(what string, lengths ...int) {
	for _, n := range lengths {
		if n != r.n {
			panic(fmt.Sprintf("ntt: %s: length %d, the ring has degree %d", what, n, r.n))
		}
	}
}

// Forward transforms src, words in (-q, q), to dst, which may be src. The result
// is canonical.
func (r *Ring) Forward(dst, src []uint32) {
	r.check("Forward", len(dst), len(src))
	r.transform(dst, src, true)
}

// ForwardLazy is Forward with a result below 3.5 q in magnitude, 1.75 q for primes
// above 2^29.09, and below 2^31.
func (r *Ring) ForwardLazy(dst, src []uint32) {
	r.check("ForwardLazy", len(dst), len(src))
	r.transform(dst, src, false)
}

// transform takes the first layers over the whole polynomial, two at a time, and
// the others part by part.
func (r *Ring) transform(dst, src []uint32, full bool) {
	p, w, n, h := r.Prime, r.tables(), r.n, 1
	if r.kind == ConjugateInvariant {
		forwardFold(p, dst, src)
		h = 2
	} else if &dst[0] != &src[0] {
		copy(dst, src)
	}
	if n/h/block&0x5555 == 0 { // an odd number of layers above the blocks
		forward2(p, dst, w.forward[h:], h, n/h/2)
		h *= 2
	}
	for ; n/h > cached; h *= 4 {
		forward4(p, dst, w.forward[h:], w.forward[2*h:], h, n/h/4)
	}
	part := n / h
	for b := range h {
		a := dst[b*part:][:part]
		for g := 1; part/g > block; g *= 4 {
			forward4(p, a, w.forward[h*g+b*g:], w.forward[2*(h*g+b*g):], g, part/g/4)
		}
		forwardTail(p, a, w.tail[b*part:][:part], full)
	}
}

// Inverse transforms src, canonical or in [-q, q), back to dst, which may be src,
// and multiplies it by factor/R: give Constant(1) for none. The result is
// canonical.
func (r *Ring) Inverse(dst, src []uint32, factor uint32) {
	r.check("Inverse", len(dst), len(src))
	r.transformBack(dst, src, factor, true)
}

// InverseLazy is Inverse with a result below 3q/4 in magnitude.
func (r *Ring) InverseLazy(dst, src []uint32, factor uint32) {
	r.check("InverseLazy", len(dst), len(src))
	r.transformBack(dst, src, factor, false)
}

func (r *Ring) transformBack(dst, src []uint32, factor uint32, full bool) {
	p, w, n, first := r.Prime, r.tables(), r.n, 1
	if r.kind == ConjugateInvariant {
		first = 2
	}
	odd := n/first/block&0x5555 == 0
	start := first // the blocks where layers begin to be taken in pairs
	if odd {
		start *= 2
	}
	h := start
	for n/h > cached {
		h *= 4
	}
	part := n / h
	for b := range h {
		a := dst[b*part:][:part]
		inverseTail(p, a, src[b*part:][:part], w.untail[b*part:][:part])
		for g := part / block / 4; g > 0; g /= 4 {
			inverse4(p, a, w.backward[h*g+b*g:], w.backward[2*(h*g+b*g):], g, part/g/4)
		}
	}
	for h /= 4; h >= start; h /= 4 {
		inverse4(p, dst, w.backward[h:], w.backward[2*h:], h, n/h/4)
	}
	if odd {
		inverse2(p, dst, w.backward[first:], first, n/first/2)
	}
	scale := p.centred(p.mont(factor, p.Constant(r.shrink)))
	if r.kind == ConjugateInvariant {
		inverseFold(p, dst, scale, full)
	} else {
		scaleWords(p, dst, dst, scale, full)
	}
}

// The portable forms of the layers.

// reduction is half the range that a summand is reduced from.
func (p *Prime) reduction() uint32 {
	if p.lazy {
		return 2 * p.q
	}
	return p.q
}

// butterfly returns x + y w / R and x - y w / R.
func (p *Prime) butterfly(x, y, w uint32) (uint32, uint32) {
	t := p.mont(y, w)
	return x + t, x - t
}

// unbutterfly returns x + y, reduced, and (x - y) w / R.
func (p *Prime) unbutterfly(x, y, w uint32) (uint32, uint32) {
	return reduce(x+y, p.q), p.mont(x-y, w)
}

// foldAt maps coefficients j, N-j, N/2-j and N/2+j of Z_q[X + X^-1] to Z_q[X]/(X^N - I),
// half of the ring of degree 2N, and takes the first layer with it.
func (p *Prime) foldAt(dst, src []uint32, j int) {
	n, h := len(src), len(src)/2
	a, b, c, d := src[j], src[n-j], src[h-j], src[h+j]
	ib, id := p.mont(b, p.words[wordI]), p.mont(d, p.words[wordI])
	u0, u1 := a-ib, c-id
	if !p.lazy {
		u0, u1 = reduce(u0, p.q), reduce(u1, p.q)
	}
	g0, g1 := p.mont(c+id, p.words[wordFold]), p.mont(a+ib, p.words[wordFold])
	dst[j], dst[h+j], dst[h-j], dst[n-j] = u0+g0, u0-g0, u1+g1, u1-g1
}

// foldEdge maps the coefficients that the kernels leave out: 0, N/2, those nearer
// than 16 to them or to the ends, and N/4.
func (p *Prime) foldEdge(dst, src []uint32) {
	h := len(src) / 2
	x, y := src[0], p.mont(src[h], p.words[wordMiddle])
	dst[0], dst[h] = x+y, x-y
	for j := 1; j < lanes; j++ {
		p.foldAt(dst, src, j)
	}
	p.foldAt(dst, src, h/2)
}

// lanes is the stretch of coefficients that the kernels of the first and last
// layer leave to their edges.
const lanes = 16

func forwardFoldPortable(p *Prime, dst, src []uint32) {
	for j := lanes; j < len(src)/4; j++ {
		p.foldAt(dst, src, j)
	}
	p.foldEdge(dst, src)
}

// forward2Portable takes one layer of blocks of 2t; twiddle w[i] is block i's.
func forward2Portable(p *Prime, a, w []uint32, blocks, t int) {
	for i := range blocks {
		x, y := a[2*t*i:][:t], a[2*t*i+t:][:t]
		for j := range x {
			x[j], y[j] = p.butterfly(reduce(x[j], p.reduction()), y[j], w[i])
		}
	}
}

// forward4Portable takes two layers of blocks of 4t.
func forward4Portable(p *Prime, a, w, w2 []uint32, blocks, t int) {
	for i := range blocks {
		b := a[4*t*i:][:4*t]
		for j := range t {
			x0, x1, x2, x3 := b[j], b[t+j], b[2*t+j], b[3*t+j]
			if !p.lazy {
				x0, x1 = reduce(x0, p.q), reduce(x1, p.q)
			}
			x0, x2 = p.butterfly(x0, x2, w[i])
			x1, x3 = p.butterfly(x1, x3, w[i])
			x0, x1 = p.butterfly(reduce(x0, p.reduction()), x1, w2[2*i])
			x2, x3 = p.butterfly(reduce(x2, p.reduction()), x3, w2[2*i+1])
			b[j], b[t+j], b[2*t+j], b[3*t+j] = x0, x1, x2, x3
		}
	}
}

// forwardTailPortable takes the layers t = 16 .. 1 of blocks of 32.
func forwardTailPortable(p *Prime, a, tail []uint32, full bool) {
	for k := 0; k < len(a); k += block {
		x, w := a[k:][:block], tail[k:][:block]
		for t := block / 2; t > 0; t /= 2 {
			for i := range block / 2 / t {
				for j := 2 * t * i; j < 2*t*i+t; j++ {
					u := x[j]
					if !p.lazy || t == 8 || t == 2 {
						u = reduce(u, p.reduction())
					}
					x[j], x[j+t] = p.butterfly(u, x[j+t], w[block/2/t+i])
				}
			}
		}
		if full {
			for j, u := range x {
				if p.lazy {
					u = min(u, u+4*p.q)
					u = min(u, u-2*p.q)
					x[j] = min(u, u-p.q)
				} else {
					x[j] = p.canonical(u)
				}
			}
		}
	}
}

// inverseTailPortable takes the layers t = 1 .. 16 of blocks of 32.
func inverseTailPortable(p *Prime, dst, src, untail []uint32) {
	for k := 0; k < len(src); k += block {
		x, w := dst[k:][:block], untail[k:][:block]
		copy(x, src[k:])
		for t := 1; t < block; t *= 2 {
			for i := range block / 2 / t {
				for j := 2 * t * i; j < 2*t*i+t; j++ {
					x[j], x[j+t] = p.unbutterfly(x[j], x[j+t], w[block/2/t+i])
				}
			}
		}
	}
}

func inverse2Portable(p *Prime, a, w []uint32, blocks, t int) {
	for i := range blocks {
		x, y := a[2*t*i:][:t], a[2*t*i+t:][:t]
		for j := range x {
			x[j], y[j] = p.unbutterfly(x[j], y[j], w[i])
		}
	}
}

func inverse4Portable(p *Prime, a, w, w2 []uint32, blocks, t int) {
	for i := range blocks {
		b := a[4*t*i:][:4*t]
		for j := range t {
			x0, x1 := p.unbutterfly(b[j], b[t+j], w2[2*i])
			x2, x3 := p.unbutterfly(b[2*t+j], b[3*t+j], w2[2*i+1])
			b[j], b[2*t+j] = p.unbutterfly(x0, x2, w[i])
			b[t+j], b[3*t+j] = p.unbutterfly(x1, x3, w[i])
		}
	}
}

// foldBack holds the factors of the last layer: scale, and -I scale.
type foldBack struct {
	scale, turned uint32
	full          bool
}

func (p *Prime) newFoldBack(scale uint32, full bool) foldBack {
	return foldBack{scale: scale, turned: p.centred(p.mont(scale, p.words[wordMinusI])), full: full}
}

// end makes x in (-q, q) canonical where the result is to be.
func (f foldBack) end(p *Prime, x uint32) uint32 {
	if f.full {
		return min(x, x+p.q)
	}
	return x
}

// unfoldAt takes the last layer and returns to the conjugate-invariant ring.
func (p *Prime) unfoldAt(a []uint32, j int, f foldBack) {
	n, h := len(a), len(a)/2
	a0, b0, c0, d0 := a[j], a[n-j], a[h-j], a[h+j]
	u0, g0 := p.unbutterfly(a0, d0, p.words[wordUnfold])
	u1, g1 := p.unbutterfly(c0, b0, p.words[wordUnfold])
	a[j], a[n-j] = f.end(p, p.mont(u0+g1, f.scale)), f.end(p, p.mont(g1-u0, f.turned))
	a[h-j], a[h+j] = f.end(p, p.mont(u1+g0, f.scale)), f.end(p, p.mont(g0-u1, f.turned))
}

func (p *Prime) unfoldEdge(a []uint32, f foldBack) {
	h := len(a) / 2
	x, y := a[0], a[h]
	twice := p.centred(reduce(2*f.scale, p.q))
	a[0] = f.end(p, p.mont(reduce(x+y, p.q), twice))
	a[h] = f.end(p, p.mont(reduce(x-y, p.q), p.centred(p.mont(twice, p.words[wordUnmiddle]))))
	for j := 1; j < lanes; j++ {
		p.unfoldAt(a, j, f)
	}
	p.unfoldAt(a, h/2, f)
}

func inverseFoldPortable(p *Prime, a []uint32, scale uint32, full bool) {
	f := p.newFoldBack(scale, full)
	for j := lanes; j < len(a)/4; j++ {
		p.unfoldAt(a, j, f)
	}
	p.unfoldEdge(a, f)
}

// scaleWordsPortable sets dst = a c / R, in (-q, q) or canonical.
func scaleWordsPortable(p *Prime, dst, a []uint32, c uint32, full bool) {
	f := foldBack{full: full}
	for j, x := range a {
		dst[j] = f.end(p, p.mont(x, c))
	}
}
