package rns

import "github.com/cohort-engine/cohort/kernels/ntt"

// Dither is a source of random words for roundings: it fills all of them, uniformly and independently.
type Dither interface{ Words(dst []uint32) }

// turns are the constants of a sum of residues over their primes: fractions 2^bits/m_i, and the first
// prime.
type turns struct {
	fractions []uint32
	bits      int
	first     uint32
}

func (c *Chain) newTurns(by []int) turns {
	least := ntt.MaxBits
	for _, i := range by {
		least = min(least, width(c.rings[i]))
	}
	// 2^bits/m is below 2^31 for primes of least bits.
	t := turns{bits: 30 + least, first: c.rings[by[0]].Q()}
	for _, i := range by {
		t.fractions = append(t.fractions, c.rings[i].Fraction(t.bits))
	}
	return t
}

// wholes sets dst, for n numbers h, to the sum z of the residues in src over their primes, rounded:
// to the nearest integer, or with a dither to floor(z + U) for U uniform in [0, 1), whose mean is z
// whatever z is. U - 1/2 is a multiple of 1/m that is added to the first residue.
func (w *Workspace) wholes(n int, terms func(h int) (dst []uint32, src Poly, t *turns)) {
	if w.Dither != nil {
		for h := range n {
			w.Dither.Words(w.offset[h])
		}
	}
	w.run(n, func(_, h int) {
		dst, src, t := terms(h)
		if w.Dither == nil {
			ntt.Whole(dst, src, t.fractions, t.bits)
			return
		}
		m := uint64(t.first)
		for i, x := range src[0] {
			w.offset[h][i] = x + uint32(uint64(w.offset[h][i])*m>>32) - uint32(m/2)
		}
		var shifted [maxTerms][]uint32
		shifted[0] = w.offset[h]
		ntt.Whole(dst, shifted[:1+copy(shifted[1:], src[1:])], t.fractions, t.bits)
	})
}
