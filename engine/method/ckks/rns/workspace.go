package rns

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

// Workspace is the memory of one computation: the unfinished product and what key
// switching passes through. Its operations run on one worker, or prime by prime
// on all workers of a pool.
type Workspace struct {
	c *Chain
	// C is the unfinished product (c0, c1, c2), divided by R. Its rows are made by terms, in their order, when it is
	// finished.
	C     [3]Poly
	terms []func(j int)
	// digits of a polynomial before their extension, and the key's product by
	// index in rings: it takes the place of c0 and c1, row by row.
	digits Poly
	k      [2]Poly
	// parts serve divisions, local[worker] extensions.
	parts [2]Poly
	local []Poly
	run   func(n int, f func(worker, i int))
	room  Room
	// left counts the rows that a digit, or the remainders, wait for.
	left [MaxDigits + 1]atomic.Int32
	// dither is where roundings take random words from, and drawn the number of polynomials so far. The digits' turns are
	// in turns; offset is what is rounded.
	dither        Dither
	drawn         uint64
	early         bool // a product's words are drawn before they are needed
	turns, offset Poly
}

// NewWorkspace makes a workspace for one worker.
func (c *Chain) NewWorkspace() *Workspace {
	room := Room{c: c}
	w := &Workspace{c: c, room: room, digits: room.NewPoly(c.MaxLevel()), local: []Poly{room.NewPoly(MaxDigits - 1)},
		turns: room.NewPoly(MaxDigits - 1), offset: room.NewPoly(MaxDigits + 1),
		run: func(n int, f func(worker, i int)) {
			for i := range n {
				f(0, i)
			}
		}}
	for i := range w.C {
		w.C[i] = room.NewPoly(c.MaxLevel())
	}
	for i := range w.k {
		w.k[i] = append(slices.Clip(w.C[i]), room.NewPoly(len(c.rings)-len(w.C[i])-1)...)
		w.parts[i] = room.NewPoly(maxTerms)
	}
	return w
}

// NewWideWorkspace returns a workspace whose operations use all workers of pool and the memory of their workspaces,
// which stay idle meanwhile. These must not be called from a region of the pool. When ctx is cancelled what they return
// is not defined.
func NewWideWorkspace(ctx context.Context, pool *engine.Pool, workers []*Workspace) *Workspace {
	w := &Workspace{run: func(n int, f func(worker, i int)) {
		// The caller finds out from ctx.
		_ = pool.Run(ctx, n, f)
	}}
	for _, o := range workers {
		w.local = append(w.local, o.local[0])
	}
	w.room = workers[0].c.Room()
	return w.with(workers[0])
}

// with gives the workspace the memory of one worker's.
func (w *Workspace) with(o *Workspace) *Workspace {
	w.c, w.C, w.digits, w.k, w.parts, w.turns, w.offset = o.c, o.C, o.digits, o.k, o.parts, o.turns, o.offset
	return w
}

// Twin returns a workspace that uses the same workers for a product of its own, in the memory of a second one's:
// [Workspace.FinishBoth] finishes both.
func (w *Workspace) Twin(second *Workspace) *Workspace {
	return (&Workspace{run: w.run, room: w.room, local: w.local}).with(second)
}

// rows calls f for 0 <= j < n, the places of primes. Those that are equal modulo the number of workers are one
// worker's, unless another has none left: they stay in its cache from one operation to the next.
func (w *Workspace) rows(n int, f func(worker, j int)) {
	workers := len(w.local)
	w.run(n, func(worker, i int) { f(worker, place(i, n, workers)) })
}

// place is the i-th of n rows: those of each of the workers in turn, the last ones first, as a pool hands them out.
func place(i, n, workers int) int {
	each, more := n/workers, n%workers
	long := more * (each + 1)
	if i < long {
		return (each-i%(each+1))*workers + i/(each+1)
	}
	i -= long
	return (each-1-i%each)*workers + more + i/each
}

// Product sets the unfinished product to times a b, times -2 to 2. Neither may change until it is finished.
func (w *Workspace) Product(a, b *[2]Poly, times int) {
	w.terms = append(w.terms[:0], func(j int) { w.c.rings[j].Product(w.triple(j), rowOf(a, j), rowOf(b, j), times) })
}

// ProductAdd adds times a b, times -1 or 1. Neither may change until the product is finished.
func (w *Workspace) ProductAdd(a, b *[2]Poly, times int) {
	w.terms = append(w.terms, func(j int) { w.c.rings[j].ProductAdd(w.triple(j), rowOf(a, j), rowOf(b, j), times) })
}

func (w *Workspace) triple(j int) *[3][]uint32 { return &[3][]uint32{w.C[0][j], w.C[1][j], w.C[2][j]} }

func rowOf(a *[2]Poly, j int) *[2][]uint32 { return &[2][]uint32{a[0][j], a[1][j]} }

// Parts calls f(0) .. f(n-1), which do not depend on each other.
func (w *Workspace) Parts(n int, f func(i int)) { w.run(n, func(_, i int) { f(i) }) }

// LiftAdd adds to dst what Lift writes.
func (w *Workspace) LiftAdd(dst Poly, x []int64) {
	w.rows(len(dst), func(worker, j int) {
		r, row := w.c.rings[j], w.local[worker][1]
		lift(r, row, w.local[worker][0], x)
		r.Add(dst[j], dst[j], row)
	})
}

// Lift writes the integers x, below 2^56 in magnitude, modulo each prime of dst and transforms them.
func (w *Workspace) Lift(dst Poly, x []int64) {
	w.rows(len(dst), func(worker, j int) { lift(w.c.rings[j], dst[j], w.local[worker][0], x) })
}

// MultiplyIntegers sets dst to the product of a with the polynomial of integers x, below 2^56 in magnitude, or adds it
// to dst.
func (w *Workspace) MultiplyIntegers(dst, a *[2]Poly, x []int64, add bool) {
	w.rows(len(dst[0]), func(worker, j int) {
		r, factor := w.c.rings[j], w.local[worker][1]
		lift(r, factor, w.local[worker][0], x)
		r.Scale(factor, factor, r.Constant(radix(r)))
		for h := range dst {
			if add {
				r.MultiplyAdd(dst[h][j], a[h][j], factor)
			} else {
				r.Multiply(dst[h][j], a[h][j], factor)
			}
		}
	})
}

// Multiple sets dst to f, rounded, times a, or adds it to dst.
func (w *Workspace) Multiple(dst, a *[2]Poly, f float64, add bool) {
	w.rows(len(dst[0]), func(_, j int) {
		r := w.c.rings[j]
		x := r.Constant(residue(f, r))
		for h := range dst {
			if add {
				r.ScaleAdd(dst[h][j], a[h][j], x)
			} else {
				r.Scale(dst[h][j], a[h][j], x)
			}
		}
	})
}

// AddScaled adds f, rounded, times a to (c0, c1) of the unfinished product. a may not change until it is finished.
func (w *Workspace) AddScaled(a *[2]Poly, f float64) {
	w.terms = append(w.terms, func(j int) {
		r := w.c.rings[j]
		x := centred(residue(f, r), r.Q())
		r.ScaleAdd(w.C[0][j], a[0][j], x)
		r.ScaleAdd(w.C[1][j], a[1][j], x)
	})
}

// AddConstant adds the constant x, rounded, to the unfinished product.
func (w *Workspace) AddConstant(x float64) {
	w.terms = append(w.terms, func(j int) {
		r := w.c.rings[j]
		r.AddScalar(w.C[0][j], w.C[0][j], uint32(residue(x, r)*r.Invert(radix(r))%uint64(r.Q())))
	})
}

// Make computes the unfinished product of level l, which finishing it does otherwise.
func (w *Workspace) Make(l int) {
	w.rows(l+1, func(_, j int) { w.row(j) })
	w.terms = w.terms[:0]
}

// row makes row j of the unfinished product.
func (w *Workspace) row(j int) {
	for _, f := range w.terms {
		f(j)
	}
}

// Finish relinearises the unfinished product of level l with key and divides it by
// the prime of that level in one step, with one rounding: the products with the
// key, P (c0, c1) added, are divided by P q_l. The noise of key switching is then
// below that of the rounding even where P is smaller than a digit. dst is of
// level l-1.
func (w *Workspace) Finish(l int, key *Key, dst *[2]Poly) {
	d := key.g.levels[l].drop
	w.inner(l, key, d, 0, w.C[2], w.C[0], w.C[1], w.row)
	w.quotients(d, 0, func(_, h, j int, rest []uint32) { w.quotient(d, j, dst[h][j], w.k[h][j], rest) })
}

// FinishBoth finishes the products of level l of the workspace and of its twin v, which do not need each other: rows of
// both modulo one prime are one worker's, as far as their number goes.
func (w *Workspace) FinishBoth(l int, key *Key, dst *[2]Poly, v *Workspace, second *[2]Poly) {
	d, both := key.g.levels[l].drop, [2]*Workspace{w, v}
	var switches [2]*keySwitch
	for i, x := range both {
		switches[i] = x.newSwitch(l, key, d, 0, x.C[2], x.C[0], x.C[1], x.row)
	}
	workers, out := len(w.local), [2]*[2]Poly{dst, second}
	n := switches[0].pieces()
	w.run(2*n, func(_, i int) { switches[i%2].takeApart(place(i/2, n, workers)) })
	rows := switches[0].rows()
	w.run(2*rows, func(worker, i int) { switches[i%2].inner(worker, place(i/2, rows, workers)) })
	w.run(2*2*d.to, func(worker, i int) {
		x, h, j := both[i%2], i/2%2, place(i/4, d.to, workers)
		x.quotient(d, j, out[i%2][h][j], x.k[h][j], x.rest(d, worker, h, j))
	})
	w.early, v.early = false, false
}

// Rotate sets dst to a with its second half switched by key, divided by P, and then all its values moved to where index
// says: dst[i] is value index[i].
func (w *Workspace) Rotate(l int, key *Key, a *[2]Poly, index []uint32, dst *[2]Poly) {
	d, x := key.g.levels[l].out, w.C[2]
	w.inner(l, key, d, 0, x, nil, nil, func(j int) { w.c.rings[j].Scale(x[j], a[1][j], 1) })
	w.quotients(d, 0, func(worker, h, j int, rest []uint32) {
		q := w.local[worker][1]
		w.quotient(d, j, q, w.k[h][j], rest)
		if h == 0 {
			w.c.rings[j].Add(q, q, a[0][j])
		}
		ntt.Permute(dst[h][j], q, index)
	})
}

// RelineariseHead is Finish without the division by the level's prime, for who needs of the first half its
// coefficient 0 alone, which it returns modulo q_0 .. q_l; c1 is the second half, of level l.
func (w *Workspace) RelineariseHead(l int, key *Key, c1 Poly) []uint32 {
	d := key.g.levels[l].out
	w.inner(l, key, d, 1, w.C[2], w.C[0], w.C[1], w.row)
	w.quotients(d, 1, func(_, _, j int, rest []uint32) { w.quotient(d, j, c1[j], w.k[1][j], rest) })
	return w.headQuotient(d)
}

// SwitchHead sets c1 to the coefficients of the second half of the product of x with key, divided by P: an encryption
// of x times the key's message, of whose first half it returns coefficient 0 modulo q_0 .. q_l. x is spoilt; it may be
// c1.
func (w *Workspace) SwitchHead(l int, key *Key, x, c1 Poly) []uint32 {
	d := key.g.levels[l].out
	w.inner(l, key, d, 1, x, nil, nil, func(j int) { w.c.rings[j].Scale(x[j], x[j], 1) })
	w.quotients(d, 1, func(worker, _, j int, rest []uint32) {
		r, q := w.c.rings[j], w.local[worker][1]
		r.Inverse(q, w.k[1][j], r.Constant(1))
		r.SubScale(c1[j], q, rest, d.inverse[j])
	})
	return w.headQuotient(d)
}

// Rescale divides a, of level l, by the prime of its level; dst is of level l-1.
func (w *Workspace) Rescale(d *Rescaling, a, dst *[2]Poly) {
	w.divide(d.division, a, dst)
}

// Rescaling holds the constants of the division by one level's prime.
type Rescaling struct{ division *division }

// NewRescaling prepares the division by the prime of level l.
func (c *Chain) NewRescaling(l int) *Rescaling {
	return &Rescaling{c.newDivision([]int{l}, l)}
}

// inner sets k to the product of x with the key modulo Q P at level l, with P
// (c0, c1) added where they are given, and finds the remainders of its halves from the given one on by d. x, c0 and c1
// are divided by R; row makes their rows.
func (w *Workspace) inner(l int, key *Key, d *division, from int, x, c0, c1 Poly, row func(j int)) {
	s := w.newSwitch(l, key, d, from, x, c0, c1, row)
	w.rows(s.pieces(), func(_, i int) { s.takeApart(i) })
	w.rows(s.rows(), s.inner)
	w.early = false
}

// keySwitch is a product with a key in the making, piece by piece and then row by row.
type keySwitch struct {
	w         *Workspace
	l         int
	key       *Key
	d         *division
	from      int
	x, c0, c1 Poly
	row       func(j int)
	v         *gadgetLevel
	// number is that of the dither's first polynomial for the digits, behind that for the halves of the product. words
	// are those that are drawn first, on several workers all: they are little pieces, with which workers end about
	// together. before is their number and some pieces without anything, so that rows stay with their worker.
	number, behind uint64
	words, before  int
}

func (w *Workspace) newSwitch(l int, key *Key, d *division, from int, x, c0, c1 Poly, row func(j int)) *keySwitch {
	if l > key.g.maxLevel {
		panic(fmt.Sprintf("rns: level %d, the key has %d", l, key.g.maxLevel))
	}
	s := &keySwitch{w: w, l: l, key: key, d: d, from: from, x: x, c0: c0, c1: c1, row: row, v: &key.g.levels[l]}
	halves := len(w.k) - from
	if w.dither != nil {
		s.number = w.draw(len(s.v.digits))
		if w.early = len(w.local) > 1; w.early {
			s.words = len(s.v.digits) + halves
			s.before = (s.words + len(w.local) - 1) / len(w.local) * len(w.local)
		}
	}
	s.behind = w.draw(halves)
	for d, run := range s.v.digits {
		w.left[d].Store(int32(run.count + min(s.words, 1)))
	}
	w.left[MaxDigits].Store(int32(len(d.by)))
	return s
}

// pieces is the number of those in which x is taken apart, rows that of rows of the product.
func (s *keySwitch) pieces() int { return s.before + s.l + 1 }

func (s *keySwitch) rows() int { return s.l + 1 + s.key.g.auxiliary }

// takeApart makes a row of x and of the digits, and counts how often a digit goes round when all of it is there; or it
// draws words.
func (s *keySwitch) takeApart(i int) {
	w, v := s.w, s.v
	one := func(d int) {
		if w.left[d].Add(-1) == 0 && w.dither != nil {
			run := v.digits[d]
			w.whole(s.number+uint64(d), d, w.turns[d], w.digits[run.from:][:run.count], &v.turns[d])
		}
	}
	switch j := i - s.before; {
	case j >= 0:
		s.row(j)
		w.c.rings[j].InverseLazy(w.digits[j], s.x[j], v.shrink[j])
		one(v.digit(j))
	case i < len(v.digits):
		w.dither.Words(s.number+uint64(i), w.offset[i])
		one(i)
	case i < s.words:
		w.dither.Words(s.number+uint64(i), w.offset[MaxDigits+2-s.words+i])
	}
}

// inner makes a row of the product, and the remainders when all that these need is there.
func (s *keySwitch) inner(worker, p int) {
	w, c, v, l, d, auxiliary := s.w, s.w.c, s.v, s.l, s.d, s.key.g.auxiliary
	j, by, terms := p, -1, len(d.by) // by is the place among the primes of d
	if p > l {
		j, by = c.auxiliary(p-l-1), p-l-1
	} else if p == l && terms > auxiliary {
		by = auxiliary
	}
	r := c.rings[j]
	digits := w.extend(v, j, s.x, w.local[worker])
	var r0, r1 []uint32
	var lift uint32
	if s.c0 != nil && j <= l {
		r0, r1, lift = s.c0[j], s.c1[j], v.lift[j]
	}
	s.key.rows[j].inner(r, w.k[0][j], w.k[1][j], digits[:len(v.digits)], r0, r1, lift)
	if by < 0 {
		return
	}
	for h := s.from; h < len(w.k); h++ {
		w.remainder(d, h, by, w.k[h][j])
	}
	if w.left[MaxDigits].Add(-1) == 0 {
		for h := s.from; h < len(w.k); h++ {
			w.whole(s.behind+uint64(h-s.from), MaxDigits+h, w.parts[h][terms], w.parts[h][:terms], &d.turns)
		}
	}
}

// extend returns the digits of x modulo prime j in the transform's domain, in memory or in x.
func (w *Workspace) extend(v *gadgetLevel, j int, x, memory Poly) (digits [MaxDigits][]uint32) {
	r := w.c.rings[j]
	for d, run := range v.digits {
		if j >= run.from && j < run.from+run.count {
			digits[d] = x[j]
			continue
		}
		digits[d] = memory[d]
		var terms [maxTerms + 1][]uint32
		count := copy(terms[:], w.digits[run.from:run.from+run.count])
		if w.dither != nil {
			terms[count] = w.turns[d]
			count++
		}
		r.Convert(digits[d], terms[:count], v.extend[j][d][:count])
		r.ForwardLazy(digits[d], digits[d])
	}
	return digits
}

// MaxDigits bounds the digits of a key.
const MaxDigits = 7
