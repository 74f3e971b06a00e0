package ckks

import (
	"encoding/binary"

	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/internal/fault"
)

// publicEncryptor encrypts under another party's key. The encryption of zero is
// made modulo Q p_0 and divided by p_0, so its noise is that of a rounding, which is random.
type publicEncryptor struct {
	p    *parameters
	b, a ringqp.Poly
	rnd  entropy
	full ckks.Parameters // for the division, which transforms
}

func newPublicEncryptor(p *parameters, key *publicKey, rnd entropy) (*publicEncryptor, error) {
	full, err := p.full()
	if err != nil {
		return nil, fault.Failed("ckks parameters", err.Error(), "", err)
	}
	b, a := key.expand(p)
	r := p.rings.RingP.AtLevel(0)
	q := p.rings.RingQ
	// Montgomery form, for the products with the ternary secret.
	mb, ma := p.rings.AtLevel(p.MaxLevel(), 0).NewPoly(), p.rings.AtLevel(p.MaxLevel(), 0).NewPoly()
	q.MForm(b.Q, mb.Q)
	q.MForm(a.Q, ma.Q)
	r.MForm(b.P, mb.P)
	r.MForm(a.P, ma.P)
	return &publicEncryptor{p: p, b: mb, a: ma, rnd: rnd, full: full}, nil
}

// newColumnCipher is a ciphertext at a level that is not seeded and has no rows yet.
func newColumnCipher(level int, scale float64) columnCipher {
	return columnCipher{SeededCipher: SeededCipher{Scale: scale, C0: make(rns.Poly, level+1)},
		C1: make(rns.Poly, level+1)}
}

// encrypt makes the rows of c encrypt the polynomial of integers m.
func (e *publicEncryptor) encrypt(c columnCipher, m []int64, purpose string, index int) {
	p, l := e.p, c.C0.Level()
	rnd := e.rnd.prng(purpose, index)
	qp := p.rings.AtLevel(l, 0)
	u := qp.NewPoly()
	u.Q = wideRows(p, ternary(p.N(), rnd), l)
	qp.ExtendBasisSmallNormAndCenter(u.Q, 0, u.Q, u.P)
	p.lattice.ForwardWide(u.Q.Coeffs, u.P.Coeffs)
	extend := ring.NewBasisExtender(e.full.RingQ(), e.full.RingP())
	half := func(key ringqp.Poly) ring.Poly {
		x := gaussian(p, rnd, l, 0)
		qp.Add(x, offsets(p, rnd, l), x)
		qp.MulCoeffsMontgomeryThenAdd(u, ringqp.Poly{Q: ring.Poly{Coeffs: key.Q.Coeffs[:l+1]}, P: key.P}, x)
		out := ring.NewPoly(p.N(), l)
		extend.ModDownQPtoQNTT(l, 0, x.Q, x.P, out)
		return out
	}
	copy(c.C0, p.lattice.FromWide(half(e.b).Coeffs))
	copy(c.C1, p.lattice.FromWide(half(e.a).Coeffs))
	lifted := p.lattice.Lift(m, l)
	p.lattice.Add(c.C0, c.C0, lifted)
	p.lattice.Free(lifted)
}

// offsets is a polynomial modulo Q p_0, in the NTT domain, with uniform coefficients between -p_0/2 and p_0/2: added
// before a division by p_0 it makes the quotient's rounding random, of the quotient's mean.
func offsets(p *parameters, prng sampling.PRNG, level int) ringqp.Poly {
	qp := p.rings.AtLevel(level, 0)
	out, prime := qp.NewPoly(), p.P()[0]
	bytes := make([]byte, 4*p.N())
	_, _ = prng.Read(bytes) // never fails
	write := func(row []uint64, q uint64) {
		m := newModulus(q)
		for i := range row {
			w := binary.LittleEndian.Uint32(bytes[4*i:])
			row[i] = m.signed(int64(uint64(w)*prime>>32) - int64(prime/2))
		}
	}
	for j, row := range out.Q.Coeffs {
		write(row, p.Q()[j])
	}
	write(out.P.Coeffs[0], prime)
	p.lattice.ForwardWide(out.Q.Coeffs, out.P.Coeffs)
	return out
}
