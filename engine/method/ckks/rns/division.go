package rns

import "github.com/cohort-engine/cohort/kernels/ntt"

// division divides by the product M of a few primes, with rounding: the residues
// modulo these give the remainder in (-M/2, M/2], which is subtracted modulo the
// other primes before the product with M^-1.
type division struct {
	by []int // indices of the primes of M
	to int   // the result is modulo q_0 .. q_{to-1}
	// down are the constants (M/m_i)^-1.
	down  []uint32
	turns turns
	// rest[j] are M/m_i and -M modulo q_j, inverse[j] is M^-1.
	rest    [][]uint32
	inverse []uint32
}

func (c *Chain) newDivision(by []int, to int) *division {
	d := &division{by: by, to: to, turns: c.newTurns(by)}
	for k, i := range by {
		r := c.rings[i]
		d.down = append(d.down, r.Constant(r.Invert(c.product(r, by, k))))
	}
	for j := range to {
		r := c.rings[j]
		var row []uint32
		for k := range by {
			row = append(row, r.Constant(c.product(r, by, k)))
		}
		m := c.product(r, by, -1)
		d.rest = append(d.rest, append(row, r.Constant(uint64(r.Q())-m)))
		d.inverse = append(d.inverse, r.Constant(r.Invert(m)))
	}
	return d
}

// product multiplies the primes of the given indices, except number skip, modulo
// r's prime.
func (c *Chain) product(r *ntt.Ring, indices []int, skip int) uint64 {
	q, x := uint64(r.Q()), uint64(1)
	for k, i := range indices {
		if k != skip {
			x = x * (uint64(c.rings[i].Q()) % q) % q
		}
	}
	return x
}

// divide sets dst[h] = x[h]/M for the polynomials x, whose rows are found by row, rounded as the
// workspace rounds. The rows of M are spoilt in none of them.
func (w *Workspace) divide(d *division, halves int, row func(h, prime int) []uint32, dst func(h int) Poly) {
	c, terms := w.c, len(d.by)
	w.run(halves*terms, func(_, i int) {
		h, k := i/terms, i%terms
		c.rings[d.by[k]].InverseLazy(w.parts[h][k], row(h, d.by[k]), d.down[k])
	})
	w.wholes(halves, func(h int) (dst []uint32, src Poly, t *turns) {
		return w.parts[h][terms], w.parts[h][:terms], &d.turns
	})
	w.run(halves*d.to, func(worker, i int) {
		h, j := i/d.to, i%d.to
		r, t := c.rings[j], w.local[worker][0]
		r.Convert(t, w.parts[h][:terms+1], d.rest[j])
		r.ForwardLazy(t, t)
		r.SubScale(dst(h)[j], row(h, j), t, d.inverse[j])
	})
}
