package rns

// Encryption under a public key: a polynomial modulo q_0 .. q_level and the first auxiliary prime, the last row, is
// divided by that prime.

// SmallFactors returns the transform of small coefficients modulo these primes, as factors.
func (c *Chain) SmallFactors(x []int8, level int) Poly {
	out := c.NewPoly(level + 1)
	for i, row := range out {
		j := c.place(level, i)
		c.SmallRow(j, row, x)
		c.rings[j].Scale(row, row, 1)
	}
	return out
}

// Masked sets dst, of a level, to the product of the factors u with a polynomial modulo all of q_0 .. and the first
// auxiliary prime, plus the transform of integers x, below 2^56 in magnitude, over that prime and rounded to the
// nearest.
func (c *Chain) Masked(dst, u, key Poly, x []int64) {
	level, auxiliary := dst.Level(), c.rings[c.auxiliary(0)]
	rest, row := c.NewPoly(0)[0], c.NewPoly(0)[0]
	lift(auxiliary, rest, row, x)
	auxiliary.MultiplyAdd(rest, key[c.MaxLevel()+1], u[level+1])
	auxiliary.Inverse(rest, rest, auxiliary.Constant(1))
	centre(rest, auxiliary.Q())
	for j, out := range dst {
		r := c.rings[j]
		lift(r, out, row, x)
		r.MultiplyAdd(out, key[j], u[j])
		r.Scale(row, rest, r.Constant(1))
		r.Forward(row, row)
		r.SubScale(out, out, row, r.Constant(r.Invert(uint64(auxiliary.Q())%uint64(r.Q()))))
	}
	c.Wipe(Poly{rest, row})
}
