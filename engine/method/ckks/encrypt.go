package ckks

import (
	"encoding/binary"
	"unsafe"

	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
)

// publicEncryptor encrypts under another party's key. The encryption of zero is
// made modulo Q p_0 and divided by p_0, so its noise is that of a rounding, which is random.
type publicEncryptor struct {
	p    *parameters
	b, a rns.Poly
	rnd  entropy
}

func newPublicEncryptor(p *parameters, key *publicKey, rnd entropy) *publicEncryptor {
	b, a := key.expand(p)
	return &publicEncryptor{p: p, b: b, a: a, rnd: rnd}
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
	drawn := newSmalls(p.lattice.Room(), 1)
	small := drawn.at(0)
	ternary(small, rnd)
	u := p.lattice.SmallFactors(small, l)
	x := make([]int64, p.N())
	for i, key := range [2]rns.Poly{e.b, e.a} {
		smallErrors(small, rnd)
		offsets(p, rnd, x)
		for t, v := range small {
			x[t] += int64(v)
		}
		half := p.lattice.NewPoly(l)
		p.lattice.Masked(half, u, key, x)
		copy([2]rns.Poly{c.C0, c.C1}[i], half)
	}
	clear(x)
	drawn.wipe()
	lifted := p.lattice.Lift(m, l)
	p.lattice.Add(c.C0, c.C0, lifted)
	p.lattice.Wipe(u, lifted)
}

// offsets draws uniform coefficients between -p_0/2 and p_0/2: added before a division by p_0 they make the quotient's
// rounding random, of the quotient's mean.
func offsets(p *parameters, prng sampling.PRNG, x []int64) {
	prime := p.P()[0]
	row := p.lattice.NewPoly(0)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(row[0]))), 4*len(x))
	_, _ = prng.Read(bytes) // never fails
	for i := range x {
		w := binary.LittleEndian.Uint32(bytes[4*i:])
		x[i] = int64(uint64(w)*prime>>32) - int64(prime/2)
	}
	p.lattice.Wipe(row)
}
