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
	w.remainders(d, halves, row)
	w.run(halves*d.to, func(worker, i int) {
		h, j := i/d.to, i%d.to
		r, t := w.c.rings[j], w.local[worker][0]
		r.Convert(t, w.parts[h][:len(d.by)+1], d.rest[j])
		r.ForwardLazy(t, t)
		r.SubScale(dst(h)[j], row(h, j), t, d.inverse[j])
	})
}

// remainders finds the remainders of polynomials modulo M: in parts, their residues and how often these go round.
func (w *Workspace) remainders(d *division, halves int, row func(h, prime int) []uint32) {
	terms := len(d.by)
	w.run(halves*terms, func(_, i int) {
		h, k := i/terms, i%terms
		w.c.rings[d.by[k]].InverseLazy(w.parts[h][k], row(h, d.by[k]), d.down[k])
	})
	w.wholes(halves, func(h int) (dst []uint32, src Poly, t *turns) {
		return w.parts[h][terms], w.parts[h][:terms], &d.turns
	})
}

// divideHead divides the key's product by M: its second half, to c1, as coefficients if these are wanted, and of its
// first half coefficient 0 alone, which it returns.
func (w *Workspace) divideHead(d *division, c1 Poly, coefficients bool) []uint32 {
	second := func(_, prime int) []uint32 { return w.k[1][prime] }
	if coefficients {
		w.remainders(d, 1, second)
		w.run(d.to, func(worker, j int) {
			r, t, x := w.c.rings[j], w.local[worker][0], w.local[worker][1]
			r.Convert(t, w.parts[0][:len(d.by)+1], d.rest[j])
			r.Inverse(x, w.k[1][j], r.Constant(1))
			r.SubScale(c1[j], x, t, d.inverse[j])
		})
	} else {
		w.divide(d, 1, second, func(int) Poly { return c1 })
	}
	return w.headQuotient(d)
}

// headWords is the length of a row that holds one residue: what kernels take at a time.
const headWords = 16

// headQuotient is coefficient 0 of the first half of the key's product, divided by M.
func (w *Workspace) headQuotient(d *division) []uint32 {
	terms := len(d.by)
	parts := make(Poly, terms+1)
	for k := range parts {
		parts[k] = w.parts[0][k][:headWords]
	}
	for k, i := range d.by {
		r, row := w.c.rings[i], parts[k]
		clear(row)
		row[0] = head(r, w.k[0][i])
		r.Scale(row, row, d.down[k])
		row[0] = centred(uint64(row[0]), r.Q())
	}
	w.wholes(1, func(int) (dst []uint32, src Poly, t *turns) { return parts[terms], parts[:terms], &d.turns })
	out := make([]uint32, d.to)
	rest, value := w.local[0][0][:headWords], w.local[0][1][:headWords]
	for j := range out {
		r := w.c.rings[j]
		clear(value)
		value[0] = head(r, w.k[0][j])
		r.Convert(rest, parts, d.rest[j])
		r.SubScale(value, value, rest, d.inverse[j])
		out[j] = value[0]
	}
	return out
}

// Head is coefficient 0 of a polynomial in the transform's domain.
func (c *Chain) Head(a Poly) []uint32 {
	out := make([]uint32, len(a))
	for j, row := range a {
		out[j] = head(c.rings[j], row)
	}
	return out
}

// head is coefficient 0 of the polynomial with the given values: their mean. It divides: ciphertexts are public.
func head(r *ntt.Ring, values []uint32) uint32 {
	var sum uint64 // of at most 2^16 words below 2^30
	for _, x := range values {
		sum += uint64(x)
	}
	q := uint64(r.Q())
	return uint32(sum % q * r.Invert(uint64(len(values))) % q)
}
