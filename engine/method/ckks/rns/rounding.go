package rns

import "github.com/cohort-engine/cohort/kernels/ntt"

// Dither is a source of random words for roundings. Words fills all of polynomial number index of them, uniformly and
// independently; it may be called by several workers at once.
type Dither interface {
	Words(index uint64, dst []uint32)
}

// Round makes divisions round at random from here on, with the dither's polynomials from number 0 on, and digits random
// representatives: the error of either has the mean 0 whatever is divided or taken apart. Without a dither they are
// rounded to the nearest.
func (w *Workspace) Round(d Dither) { w.dither, w.drawn = d, 0 }

// Stage makes divisions take the dither's polynomials of a stage of a computation from here on, 2^16 of them: whatever
// stages are computed where, each has its own.
func (w *Workspace) Stage(i int) { w.drawn = uint64(i) << 16 }

// Like makes divisions round as those of another workspace, at a stage.
func (w *Workspace) Like(o *Workspace, stage int) {
	w.dither = o.dither
	w.Stage(stage)
}

// turns are the constants of a sum of residues over their primes: fractions 2^bits/m_i, the same with that of a random
// word, 2^bits/2^32, behind them, and the first prime.
type turns struct {
	fractions, dithered []uint32
	bits                int
	first               uint32
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
	t.dithered = append(append(t.dithered, t.fractions...), 1<<(t.bits-32))
	return t
}

// draw takes n of the dither's polynomials and returns the number of the first.
func (w *Workspace) draw(n int) (first uint64) {
	first = w.drawn
	w.drawn += uint64(n)
	return first
}

// whole sets dst to the sum z of the residues in src over their primes, rounded: to the nearest integer, or with a
// dither, whose polynomial of a number it takes, to floor(z + U) for U uniform in [0, 1), whose mean is z whatever z
// is. Those that are computed at once, or whose words have been drawn before, have memory of different places.
func (w *Workspace) whole(number uint64, place int, dst []uint32, src Poly, t *turns) {
	if w.dither == nil {
		ntt.Whole(dst, src, t.fractions, t.bits)
		return
	}
	offset := w.offset[place][:len(dst)]
	if !w.early {
		w.dither.Words(number, offset)
	}
	var all [maxTerms + 1][]uint32
	n := copy(all[:], src)
	if n < ntt.MaxTerms { // U - 1/2 is a word over 2^32
		all[n] = offset
		ntt.Whole(dst, all[:n+1], t.dithered, t.bits)
		return
	}
	// There is no room for a term more: U - 1/2 is a multiple of 1/m that is added to the first residue.
	m, residues := uint64(t.first), src[0][:len(offset)]
	half := t.first >> 1
	for i, x := range residues {
		offset[i] = x + uint32(uint64(offset[i])*m>>32) - half
	}
	all[0] = offset
	ntt.Whole(dst, all[:n], t.fractions, t.bits)
}
