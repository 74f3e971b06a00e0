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

// divide sets the halves of dst to those of a over M, rounded as the workspace rounds.
func (w *Workspace) divide(d *division, a, dst *[2]Poly) {
	number, terms := w.draw(len(a)), len(d.by)
	w.run(len(a), func(_, h int) {
		for k, i := range d.by {
			w.remainder(d, h, k, a[h][i])
		}
		w.whole(number+uint64(h), h, w.parts[h][terms], w.parts[h][:terms], &d.turns)
	})
	w.quotients(d, 0, func(_, h, j int, rest []uint32) { w.quotient(d, j, dst[h][j], a[h][j], rest) })
}

// remainder finds the remainder modulo prime k of M of half h of what is divided, given its row there. The remainder
// modulo M are these parts and, behind them, how often they go round.
func (w *Workspace) remainder(d *division, h, k int, row []uint32) {
	w.c.rings[d.by[k]].InverseLazy(w.parts[h][k], row, d.down[k])
}

// quotients calls f for the halves from one on of what is divided and the primes j of the result, with the coefficients
// of the remainder there, which f may spoil.
func (w *Workspace) quotients(d *division, from int, f func(worker, h, j int, rest []uint32)) {
	halves := 2 - from
	w.run(halves*d.to, func(worker, i int) {
		h, j := from+i%halves, place(i/halves, d.to, len(w.local))
		f(worker, h, j, w.rest(d, worker, h, j))
	})
}

// rest are the coefficients of the remainder of half h of what is divided modulo prime j, in a worker's memory.
func (w *Workspace) rest(d *division, worker, h, j int) []uint32 {
	rest := w.local[worker][0]
	w.c.rings[j].Convert(rest, w.parts[h][:len(d.by)+1], d.rest[j])
	return rest
}

// quotient sets dst to row over M modulo prime j, given the coefficients of the remainder.
func (w *Workspace) quotient(d *division, j int, dst, row, rest []uint32) {
	r := w.c.rings[j]
	r.ForwardLazy(rest, rest)
	r.SubScale(dst, row, rest, d.inverse[j])
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
	w.whole(w.draw(1), 0, parts[terms], parts[:terms], &d.turns)
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
