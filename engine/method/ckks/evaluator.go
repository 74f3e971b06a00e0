package ckks

import (
	"context"
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
)

// cipher is a ciphertext (c0, c1) of degree 1 in the transform's domain: the
// message at scale `scale` plus a small error is c0 + c1 s.
type cipher struct {
	c     [2]rns.Poly
	scale float64
	room  rns.Room // of the polynomials
}

func (c *cipher) level() int { return c.c[0].Level() }

// Operations counts the homomorphic operations of a round.
type Operations struct {
	Signs       int `json:"signs"`
	Products    int `json:"products"`
	Relins      int `json:"relinearisations"`
	Rescales    int `json:"rescales"`
	Rotations   int `json:"rotations"`
	Plaintexts  int `json:"plaintext_products"`
	Scalars     int `json:"scalar_products"`
	Encryptions int `json:"encryptions_of_zero"`
	Switches    int `json:"ring_switches"`
}

func (o *Operations) add(p Operations) {
	o.Signs += p.Signs
	o.Products += p.Products
	o.Relins += p.Relins
	o.Rescales += p.Rescales
	o.Rotations += p.Rotations
	o.Plaintexts += p.Plaintexts
	o.Scalars += p.Scalars
	o.Encryptions += p.Encryptions
	o.Switches += p.Switches
}

// evaluator computes on ciphertexts. It is shared by all workers; the mutable
// state is in scratch.
type evaluator struct {
	params *parameters
	chain  *rns.Chain
	relin  *rns.Key
	// rotations are the keys, and turns the permutations, by number of slots.
	rotations map[int]*rns.Key
	turns     map[int][]uint32
	rescaling []*rns.Rescaling // by level
}

func newEvaluator(p *parameters, relin *rns.Key, rotations map[int]*rns.Key) (*evaluator, error) {
	e := &evaluator{params: p, chain: p.lattice, relin: relin, rotations: rotations, turns: map[int][]uint32{}}
	e.rescaling = make([]*rns.Rescaling, p.MaxLevel()+1)
	for l := 1; l <= p.MaxLevel(); l++ {
		e.rescaling[l] = e.chain.NewRescaling(l)
	}
	for by := range rotations {
		var err error
		if e.turns[by], err = p.turn(by); err != nil {
			return nil, fmt.Errorf("rotation by %d slots: %w", by, err)
		}
	}
	return e, nil
}

// scratch is the memory of one computation: an unfinished product and what the
// encoder needs.
type scratch struct {
	*rns.Workspace
	embed  *embedder
	values []float64 // the encoder's
	ops    Operations
	// twin, if set, is for a second product that the same workers compute.
	twin *scratch
}

// newScratch makes the memory of one worker.
func newScratch(p *parameters) *scratch {
	embed := newEmbedder(p)
	return &scratch{Workspace: p.lattice.NewWorkspace(), embed: embed, values: embed.values}
}

// round makes the computation round with a party's randomness from here on.
func (w *scratch) round(r *rounding) {
	w.Round(r)
	w.embed.roundBy(r)
}

// wide is memory for a computation that uses all workers of a pool, prime by prime or in parts, while workers, w's
// the first of them, do nothing else.
func (w *scratch) wide(ctx context.Context, pool *engine.Pool, workers []*scratch) *scratch {
	var memory []*rns.Workspace
	for _, o := range workers {
		memory = append(memory, o.Workspace)
	}
	all := &scratch{Workspace: rns.NewWideWorkspace(ctx, pool, memory), embed: w.embed, values: w.values}
	if len(memory) > 1 {
		all.twin = &scratch{Workspace: all.Twin(memory[1])}
	}
	return all
}

// newCipher returns a ciphertext with any content.
func (w *scratch) newCipher(level int) *cipher {
	room := w.Room()
	return &cipher{c: [2]rns.Poly{room.NewPoly(level), room.NewPoly(level)}, room: room}
}

// newZero returns an encryption of zero without noise.
func (w *scratch) newZero(level int) *cipher {
	c := w.newCipher(level)
	rns.Clear(c.c[0])
	rns.Clear(c.c[1])
	return c
}

// free takes ciphertexts that are not used any more.
func (e *evaluator) free(cs ...*cipher) {
	for _, c := range cs {
		c.room.Free(c.c[0], c.c[1])
	}
}

// product sets the unfinished product to times a b, where times is 1,
// -1 or 2. Its scale is the product of the two scales.
func (e *evaluator) product(w *scratch, a, b *cipher, times int) {
	w.Product(&a.c, &b.c, times)
	w.ops.Products++
}

// addProduct adds times a b to the unfinished product, where times is 1 or -1.
func (e *evaluator) addProduct(w *scratch, a, b *cipher, times int) {
	w.ProductAdd(&a.c, &b.c, times)
	w.ops.Products++
}

// addScaled adds f a, with f rounded to an integer, to the unfinished product.
func (e *evaluator) addScaled(w *scratch, f float64, a *cipher) {
	w.AddScaled(&a.c, f)
	w.ops.Scalars++
}

// sparse sets dst to the product of a with the polynomial whose coefficients are 0 but for as many, equally spaced, as
// are given, or adds it to dst.
func (e *evaluator) sparse(w *scratch, dst, a *cipher, coefficients []int64, add bool) {
	if len(coefficients) == 1 {
		w.Multiple(&dst.c, &a.c, float64(coefficients[0]), add)
		w.ops.Scalars++
		return
	}
	whole := w.embed.whole
	clear(whole)
	for j, x := range coefficients {
		whole[j*len(whole)/len(coefficients)] = x
	}
	w.MultiplyIntegers(&dst.c, &a.c, whole, add)
	w.ops.Plaintexts++
}

// unfinished is the level and the scale of a product that is not finished.
type unfinished struct {
	level int
	scale float64
}

// finish relinearises the unfinished product and divides it by the prime of its level, in one step.
func (e *evaluator) finish(w *scratch, p unfinished) *cipher {
	out := e.finished(w, p)
	w.Finish(p.level, e.relin, &out.c)
	return out
}

// finished is what the unfinished product becomes.
func (e *evaluator) finished(w *scratch, p unfinished) *cipher {
	out := w.newCipher(p.level - 1)
	out.scale = p.scale / float64(e.chain.Q(p.level))
	w.ops.Relins++
	w.ops.Rescales++
	return out
}

// finishBoth finishes the products of one level that f and g begin, which do not need each other, as stages of the
// computation: at once where it has several workers, which have twice the rows to share then.
func (e *evaluator) finishBoth(w *scratch, stage int, f, g func(w *scratch) unfinished) (x, y *cipher) {
	w.Stage(stage)
	if w.twin == nil {
		x = e.finish(w, f(w))
		w.Stage(stage + 1)
		return x, e.finish(w, g(w))
	}
	w.twin.Like(w.Workspace, stage+1)
	first, second := f(w), g(w.twin)
	x, y = e.finished(w, first), e.finished(w.twin, second)
	w.FinishBoth(first.level, e.relin, &x.c, w.twin.Workspace, &y.c)
	w.ops.add(w.twin.ops)
	w.twin.ops = Operations{}
	return x, y
}

// rescale divides a by the prime of its level.
func (e *evaluator) rescale(w *scratch, a *cipher) *cipher {
	l := a.level()
	out := w.newCipher(l - 1)
	w.Rescale(e.rescaling[l], &a.c, &out.c)
	out.scale = a.scale / float64(e.chain.Q(l))
	w.ops.Rescales++
	return out
}

// double is 2 a^2 - 1, with f a + c added, at the next level.
func (e *evaluator) double(w *scratch, a *cipher, f, c float64) unfinished {
	s := a.scale * a.scale
	e.product(w, a, a, 2)
	if f != 0 {
		e.addScaled(w, f*a.scale, a)
	}
	w.AddConstant((c - 1) * s)
	return unfinished{a.level(), s}
}

// third is u = 2 T1 T2 + r T1, at the level below T2's.
func (e *evaluator) third(w *scratch, t1, t2 *cipher, r float64) unfinished {
	e.product(w, t1, t2, 2)
	e.addScaled(w, r*t2.scale, t1)
	return unfinished{t2.level(), t1.scale * t2.scale}
}

// join is a x y + f T1 + g u, at the level below y's.
func (e *evaluator) join(w *scratch, x, y *cipher, a float64, t1 *cipher, f float64, u *cipher, g float64) unfinished {
	times := 1
	if a < 0 {
		times = -1
	}
	e.product(w, x, y, times)
	s := x.scale * y.scale / math.Abs(a)
	e.addScaled(w, f*s/t1.scale, t1)
	if g != 0 {
		e.addScaled(w, g*s/u.scale, u)
	}
	return unfinished{y.level(), s}
}

// polynomial evaluates p on t1. Its products' stages are stage and those that follow.
func (e *evaluator) polynomial(w *scratch, stage int, t1 *cipher, p *polynomial) *cipher {
	w.Stage(stage)
	t2 := e.finish(w, e.double(w, t1, 0, 0))
	third := func(w *scratch) unfinished { return e.third(w, t1, t2, p.r) }
	if len(p.odd) == 3 {
		w.Stage(stage + 1)
		u := e.finish(w, third(w))
		w.Stage(stage + 2)
		out := e.finish(w, e.join(w, t2, u, p.a, t1, p.b, u, 0))
		e.free(t2, u)
		return out
	}
	u, t4 := e.finishBoth(w, stage+1, third, func(w *scratch) unfinished { return e.double(w, t2, 0, 0) })
	if len(p.odd) == 4 {
		w.Stage(stage + 3)
		out := e.finish(w, e.join(w, t4, u, p.a, t1, p.b, u, p.c))
		e.free(t2, u, t4)
		return out
	}
	x, y := e.finishBoth(w, stage+3, func(w *scratch) unfinished { return e.join(w, t4, u, 1, t1, p.b, u, p.c) },
		func(w *scratch) unfinished { return e.double(w, t4, p.s, p.t) })
	w.Stage(stage + 5)
	out := e.finish(w, e.join(w, y, x, p.a, t1, p.f, u, p.g))
	e.free(t2, u, t4, x, y)
	return out
}

// sign evaluates h of s on t, s.depth() levels down. Its stages follow the first, which is that of what came before.
func (e *evaluator) sign(w *scratch, t *cipher, s *composite) *cipher {
	stage, at := 1, t
	for i := range s.polynomials {
		p := &s.polynomials[i]
		out := e.polynomial(w, stage, at, p)
		if at != t {
			e.free(at)
		}
		stage, at = stage+p.products(), out
	}
	w.ops.Signs++
	w.Stage(1 + s.stages())
	return at
}

// side turns h(t_ij) into a comparison: side 0 is the chance 1/2 - h that i
// wins, side 1 the chance 1/2 + h that j does.
func (e *evaluator) side(w *scratch, h *cipher, side int) *cipher {
	out := w.newCipher(h.level())
	out.scale = h.scale
	for i := range out.c {
		if side == 0 {
			e.chain.Scale(out.c[i], h.c[i], -1)
		} else {
			rns.Copy(out.c[i], h.c[i])
		}
	}
	e.chain.AddConstant(out.c[0], 0.5*h.scale)
	return out
}

// rotate returns a with slot i+by moved to slot i.
func (e *evaluator) rotate(w *scratch, a *cipher, by int) (*cipher, error) {
	key, ok := e.rotations[by]
	if !ok {
		return nil, fmt.Errorf("rotation by %d slots: there is no key", by)
	}
	out := w.newCipher(a.level())
	w.Rotate(a.level(), key, &a.c, e.turns[by], &out.c)
	out.scale = a.scale
	w.ops.Rotations++
	return out, nil
}

// tree multiplies ciphertexts of one level, which it frees, in a balanced tree,
// and returns the product with the scale it ends at.
func (e *evaluator) tree(w *scratch, factors []*cipher) *cipher {
	f := append([]*cipher(nil), factors...)
	for len(f) > 1 {
		var next []*cipher
		l := f[0].level()
		for i := 0; i+1 < len(f); i += 2 {
			e.product(w, f[i], f[i+1], 1)
			next = append(next, e.finish(w, unfinished{l, f[i].scale * f[i+1].scale}))
			e.free(f[i], f[i+1])
		}
		if len(f)%2 == 1 {
			next = append(next, e.lower(f[len(f)-1], l-1))
		}
		f = next
	}
	return f[0]
}

// lower brings a, which it takes over, to a lower level.
func (e *evaluator) lower(a *cipher, level int) *cipher {
	for i := range a.c {
		a.c[i] = a.room.Truncate(a.c[i], level)
	}
	return a
}

// embedding has the tables of Lattigo's encoder, whose transform takes them: powers of the generator of rotations, and
// the roots of unity. An encoder would make those of a ring's transforms, too, which take it longer.
type embedding struct {
	powers []int
	roots  []complex128
}

func newEmbedding(n int) embedding {
	e := embedding{powers: make([]int, n), roots: ckks.GetRootsComplex128(4 * n)}
	for i, power := 0, 1; i < n; i, power = i+1, power*int(rlwe.GaloisGen)%(4*n) {
		e.powers[i] = power
	}
	return e
}

// embedder turns slots into the coefficients of a plaintext polynomial.
type embedder struct {
	embedding
	chain   *rns.Chain
	values  []float64 // for who calls, of slots or coefficients
	complex []complex128
	whole   []int64
	words   []uint32
	dither  *rounding // nil: to the nearest
	drawn   uint64    // polynomials of words from it
}

// roundBy makes encodings round with a party's randomness from here on.
func (m *embedder) roundBy(r *rounding) { m.dither, m.drawn = r, 0 }

func newEmbedder(p *parameters) *embedder {
	return &embedder{embedding: p.embedding(), chain: p.lattice, values: make([]float64, p.N()),
		complex: make([]complex128, p.N()), whole: make([]int64, p.N()), words: make([]uint32, p.N())}
}

// coefficients writes to dst the polynomial with the given values in its slots.
func (m *embedder) coefficients(values, dst []float64) {
	for i, x := range values {
		m.complex[i] = complex(x, 0)
	}
	n := len(m.complex)
	ckks.SpecialiFFTDoubleUnrolled8(m.complex, n, 4*n, m.powers, m.roots)
	for i := range dst {
		dst[i] = real(m.complex[i])
	}
}

// lift returns the polynomial of the given coefficients times scale, rounded, at a
// level and in the transform's domain.
func (w *scratch) lift(coefficients []float64, level int, scale float64) rns.Poly {
	p := w.Room().NewPoly(level)
	w.Lift(p, w.embed.round(coefficients, scale))
	return p
}

// encode returns the polynomial with the given values in its slots. It spoils them.
func (w *scratch) encode(values []float64, level int, scale float64) rns.Poly {
	w.embed.coefficients(values, values)
	return w.lift(values, level, scale)
}
