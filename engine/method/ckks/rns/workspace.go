package rns

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

// Workspace is the memory of one computation: the unfinished product and what key
// switching passes through. Its operations run on one worker, or prime by prime
// on all workers of a pool.
type Workspace struct {
	c *Chain
	// C is the unfinished product (c0, c1, c2), divided by R.
	C [3]Poly
	// digits of a polynomial before their extension, and the key's product by
	// index in rings.
	digits Poly
	k      [2]Poly
	// parts serve divisions, local[worker] extensions.
	parts [2]Poly
	local []Poly
	run   func(n int, f func(worker, i int))
	// dither is where roundings take random words from, and drawn the number of polynomials so far. The digits' turns are
	// in turns; offset is what is rounded.
	dither        Dither
	drawn         uint64
	turns, offset Poly
}

// NewWorkspace makes a workspace for one worker.
func (c *Chain) NewWorkspace() *Workspace {
	return c.newWorkspace(1, func(n int, f func(worker, i int)) {
		for i := range n {
			f(0, i)
		}
	})
}

// NewWideWorkspace makes a workspace whose operations use all workers of pool. They
// must not be called from a region of the pool. When ctx is cancelled what they
// return is not defined.
func (c *Chain) NewWideWorkspace(ctx context.Context, pool *engine.Pool) *Workspace {
	return c.newWorkspace(pool.Workers(), func(n int, f func(worker, i int)) {
		// The caller finds out from ctx.
		_ = pool.Run(ctx, n, f)
	})
}

func (c *Chain) newWorkspace(workers int, run func(n int, f func(worker, i int))) *Workspace {
	w := &Workspace{c: c, run: run, digits: c.NewPoly(c.MaxLevel()), turns: c.NewPoly(MaxDigits - 1),
		offset: c.NewPoly(MaxDigits - 1)}
	for i := range w.C {
		w.C[i] = c.NewPoly(c.MaxLevel())
	}
	for i := range w.k {
		w.k[i] = c.NewPoly(len(c.rings) - 1)
		w.parts[i] = c.NewPoly(maxTerms)
	}
	for range workers {
		w.local = append(w.local, c.NewPoly(MaxDigits-1))
	}
	return w
}

// Free gives the memory back. The workspace must not be used any more.
func (w *Workspace) Free() {
	w.c.Free(w.digits, w.turns, w.offset)
	w.c.Free(w.C[:]...)
	w.c.Free(w.k[:]...)
	w.c.Free(w.parts[:]...)
	w.c.Free(w.local...)
}

// Product sets the unfinished product at level l to times a b, times -2 to 2.
func (w *Workspace) Product(l int, a, b *[2]Poly, times int) {
	w.run(l+1, func(_, j int) { w.c.rings[j].Product(w.row(j), rowOf(a, j), rowOf(b, j), times) })
}

// ProductAdd adds times a b, times -1 or 1.
func (w *Workspace) ProductAdd(l int, a, b *[2]Poly, times int) {
	w.run(l+1, func(_, j int) { w.c.rings[j].ProductAdd(w.row(j), rowOf(a, j), rowOf(b, j), times) })
}

func (w *Workspace) row(j int) *[3][]uint32 { return &[3][]uint32{w.C[0][j], w.C[1][j], w.C[2][j]} }

func rowOf(a *[2]Poly, j int) *[2][]uint32 { return &[2][]uint32{a[0][j], a[1][j]} }

// Lift writes the integers x, below 2^56 in magnitude, modulo each prime of dst and transforms them.
func (w *Workspace) Lift(dst Poly, x []int64) {
	w.run(len(dst), func(worker, j int) { lift(w.c.rings[j], dst[j], w.local[worker][0], x) })
}

// MultiplyAdd adds to dst the product of a with the polynomial of integers x, below 2^56 in magnitude. It
// spoils factor, which has the rows of dst's halves.
func (w *Workspace) MultiplyAdd(dst, a *[2]Poly, factor Poly, x []int64) {
	w.run(len(factor), func(worker, j int) {
		r := w.c.rings[j]
		lift(r, factor[j], w.local[worker][0], x)
		r.Scale(factor[j], factor[j], r.Constant(radix(r)))
		for h := range dst {
			r.MultiplyAdd(dst[h][j], a[h][j], factor[j])
		}
	})
}

// Multiple sets dst to f, rounded, times a, or adds it to dst.
func (w *Workspace) Multiple(dst, a *[2]Poly, f float64, add bool) {
	w.run(len(dst[0]), func(_, j int) {
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

// AddScaled adds f, rounded, times a to (c0, c1) of the unfinished product.
func (w *Workspace) AddScaled(l int, a *[2]Poly, f float64) {
	w.run(l+1, func(_, j int) {
		r := w.c.rings[j]
		x := centred(residue(f, r), r.Q())
		r.ScaleAdd(w.C[0][j], a[0][j], x)
		r.ScaleAdd(w.C[1][j], a[1][j], x)
	})
}

// AddConstant adds the constant x, rounded, to the unfinished product.
func (w *Workspace) AddConstant(l int, x float64) {
	for j := range l + 1 {
		r := w.c.rings[j]
		r.AddScalar(w.C[0][j], w.C[0][j], uint32(residue(x, r)*r.Invert(radix(r))%uint64(r.Q())))
	}
}

// ScaleProduct multiplies the unfinished product by an integer.
func (w *Workspace) ScaleProduct(l int, f float64) {
	for j := range l + 1 {
		r := w.c.rings[j]
		x := r.Constant(residue(f, r))
		for _, c := range w.C {
			r.Scale(c[j], c[j], x)
		}
	}
}

// Finish relinearises the unfinished product of level l with key and divides it by
// the prime of that level in one step, with one rounding: the products with the
// key, P (c0, c1) added, are divided by P q_l. The noise of key switching is then
// below that of the rounding even where P is smaller than a digit. dst is of
// level l-1.
func (w *Workspace) Finish(l int, key *Key, dst *[2]Poly) {
	w.inner(l, key, w.C[2], w.C[0], w.C[1])
	w.divide(key.g.levels[l].drop, 2, func(h, prime int) []uint32 { return w.k[h][prime] },
		func(h int) Poly { return dst[h] })
}

// Relinearise is Finish without the division by the level's prime; dst is of level
// l.
func (w *Workspace) Relinearise(l int, key *Key, dst *[2]Poly) {
	w.inner(l, key, w.C[2], w.C[0], w.C[1])
	w.divide(key.g.levels[l].out, 2, func(h, prime int) []uint32 { return w.k[h][prime] },
		func(h int) Poly { return dst[h] })
}

// Switch sets dst to the product of x with key, divided by P: an encryption of x
// times the key's message. x is spoilt.
func (w *Workspace) Switch(l int, key *Key, x Poly, dst *[2]Poly) {
	for j := range l + 1 {
		w.c.rings[j].Scale(x[j], x[j], 1)
	}
	w.inner(l, key, x, nil, nil)
	w.divide(key.g.levels[l].out, 2, func(h, prime int) []uint32 { return w.k[h][prime] },
		func(h int) Poly { return dst[h] })
}

// RelineariseHead is Relinearise for who needs of the first half its coefficient 0 alone, which it returns modulo
// q_0 .. q_l; c1 is the second half.
func (w *Workspace) RelineariseHead(l int, key *Key, c1 Poly) []uint32 {
	w.inner(l, key, w.C[2], w.C[0], w.C[1])
	return w.divideHead(key.g.levels[l].out, c1, false)
}

// SwitchHead is Switch for who needs of the first half its coefficient 0 alone, which it returns modulo q_0 .. q_l, and
// of the second half, c1, its coefficients. x is spoilt; it may be c1.
func (w *Workspace) SwitchHead(l int, key *Key, x, c1 Poly) []uint32 {
	for j := range l + 1 {
		w.c.rings[j].Scale(x[j], x[j], 1)
	}
	w.inner(l, key, x, nil, nil)
	return w.divideHead(key.g.levels[l].out, c1, true)
}

// Rescale divides a, of level l, by the prime of its level; dst is of level l-1.
func (w *Workspace) Rescale(d *Rescaling, a, dst *[2]Poly) {
	w.divide(d.division, 2, func(h, prime int) []uint32 { return a[h][prime] }, func(h int) Poly { return dst[h] })
}

// Rescaling holds the constants of the division by one level's prime.
type Rescaling struct{ division *division }

// NewRescaling prepares the division by the prime of level l.
func (c *Chain) NewRescaling(l int) *Rescaling {
	return &Rescaling{c.newDivision([]int{l}, l)}
}

// inner sets k to the product of x with the key modulo Q P at level l, with P
// (c0, c1) added where they are given. x, c0 and c1 are divided by R.
func (w *Workspace) inner(l int, key *Key, x, c0, c1 Poly) {
	random := w.dither != nil
	g, c := key.g, w.c
	if l > g.maxLevel {
		panic(fmt.Sprintf("rns: level %d, the key has %d", l, g.maxLevel))
	}
	v := &g.levels[l]
	w.run(l+1, func(_, j int) { c.rings[j].InverseLazy(w.digits[j], x[j], v.shrink[j]) })
	if random {
		w.wholes(len(v.digits), func(d int) (dst []uint32, src Poly, t *turns) {
			run := v.digits[d]
			return w.turns[d], w.digits[run.from:][:run.count], &v.turns[d]
		})
	}
	rows := g.rows(l)
	w.run(len(rows), func(worker, i int) {
		// Auxiliary primes have a digit more to extend: they come first.
		j := rows[len(rows)-1-i]
		r := c.rings[j]
		var digits [MaxDigits][]uint32
		for d, run := range v.digits {
			if j >= run.from && j < run.from+run.count {
				digits[d] = x[j]
				continue
			}
			digits[d] = w.local[worker][d]
			var terms [maxTerms + 1][]uint32
			count := copy(terms[:], w.digits[run.from:run.from+run.count])
			if random {
				terms[count] = w.turns[d]
				count++
			}
			r.Convert(digits[d], terms[:count], v.extend[j][d][:count])
			r.ForwardLazy(digits[d], digits[d])
		}
		var r0, r1 []uint32
		var lift uint32
		if c0 != nil && j <= l {
			r0, r1, lift = c0[j], c1[j], v.lift[j]
		}
		key.rows[j].inner(r, w.k[0][j], w.k[1][j], digits[:len(v.digits)], r0, r1, lift)
	})
}

// MaxDigits bounds the digits of a key.
const MaxDigits = 7

// Permute sets dst[i] = a[index[i]] in every row.
func Permute(dst, a Poly, index []uint32) {
	for j, row := range dst {
		ntt.Permute(row, a[j], index)
	}
}
