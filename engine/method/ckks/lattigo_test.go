package ckks

import (
	"reflect"
	"slices"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
)

// Lattigo is the oracle: what is made of keys and secrets, in its arithmetic.

// lattigo are its own parameters.
func lattigo(p *parameters) ckks.Parameters {
	full, err := p.full()
	if err != nil {
		panic(err)
	}
	return full
}

// wide is a secret as it keeps them.
func (s secretRows) wide(p *parameters) *rlwe.SecretKey {
	return &rlwe.SecretKey{Value: wideQP(p, rns.Poly(s))}
}

// wideQP is a polynomial of rows modulo all of Q and then modulo P in 64-bit words, and narrow the inverse.
func wideQP(p *parameters, a rns.Poly) ringqp.Poly {
	rows := p.lattice.ToWide(a)
	return ringqp.Poly{Q: ring.Poly{Coeffs: rows[:len(p.q)]}, P: ring.Poly{Coeffs: rows[len(p.q):]}}
}

func (p *parameters) narrow(a ringqp.Poly) rns.Poly {
	return p.lattice.FromWide(slices.Concat(a.Q.Coeffs, a.P.Coeffs))
}

// wideRows are integers modulo each prime.
func wideRows[T int8 | int64](coefficients []T, primes []uint64) [][]uint64 {
	out := make([][]uint64, len(primes))
	for j, q := range primes {
		for _, x := range coefficients {
			r := int64(x) % int64(q)
			out[j] = append(out[j], uint64(r+int64(q)&(r>>63)))
		}
	}
	return out
}

// transformedQP is the transform of integers modulo Q P.
func transformedQP[T int8 | int64](p *parameters, coefficients []T, levelQ, levelP int) ringqp.Poly {
	out := ringqp.Poly{Q: ring.Poly{Coeffs: wideRows(coefficients, p.Q()[:levelQ+1])},
		P: ring.Poly{Coeffs: wideRows(coefficients, p.P()[:levelP+1])}}
	lattigo(p).RingQP().AtLevel(levelQ, levelP).NTT(out, out)
	return out
}

// gaussian samples an error polynomial modulo Q P in the transform's domain.
func gaussian(p *parameters, prng sampling.PRNG, levelQ, levelP int) ringqp.Poly {
	return transformedQP(p, newErrors(p.N(), prng), levelQ, levelP)
}

// uniform expands a seed into a uniform polynomial modulo Q P.
func uniform(p *parameters, prng sampling.PRNG, levelQ, levelP int) ringqp.Poly {
	out := ringqp.NewPoly(p.N(), levelQ, levelP)
	ringqp.NewUniformSampler(prng, *lattigo(p).RingQP()).AtLevel(levelQ, levelP).Read(out)
	return out
}

// A public key is Lattigo's, and so is what is encrypted under it: its products, and its division by the auxiliary
// prime.
func TestPublicEncryptionEqualsLattigos(t *testing.T) {
	p := smallParameters(t)
	rnd := testEntropy(3)
	sk, seed := newSecretKey(p, rnd, alone), rnd.key("test", 0)
	for _, level := range []int{aggregateLevel, p.MaxLevel()} {
		levelP := -1
		if level == p.MaxLevel() {
			levelP = 0
		}
		qp := lattigo(p).RingQP().AtLevel(level, levelP)
		s, a := sk.main.wide(p).Value, uniform(p, newPRNG(seed[:]), level, levelP)
		want := gaussian(p, rnd.prng("public key: error", level), level, levelP)
		qp.MulCoeffsMontgomeryThenSub(a, s, want)
		if got := newPublicKey(p, sk, level, levelP, seed, rnd); !reflect.DeepEqual(got.B, p.narrow(want)) {
			t.Errorf("level %d: the public key is another", level)
		}
	}
	key := newPublicKey(p, sk, p.MaxLevel(), 0, seed, rnd)
	e := newPublicEncryptor(p, key, rnd)
	m := make([]int64, p.N())
	for i := range m {
		m[i] = int64(i*i) << 20
	}
	for _, level := range []int{aggregateLevel, p.MaxLevel()} {
		got := newColumnCipher(level, 1)
		e.encrypt(got, slices.Clone(m), "test", level)
		want := lattigoEncryption(p, key, m, rnd.prng("test", level), level)
		for i, half := range [2]rns.Poly{got.C0, got.C1} {
			if !reflect.DeepEqual(half, p.lattice.FromWide(want[i].Coeffs)) {
				t.Errorf("level %d: half %d of the ciphertext is another", level, i)
			}
		}
	}
}

// lattigoEncryption is an encryption of integers under a public key.
func lattigoEncryption(p *parameters, key *publicKey, m []int64, rnd sampling.PRNG, level int) (halves [2]ring.Poly) {
	qp := lattigo(p).RingQP().AtLevel(level, 0)
	u := transformedQP(p, newTernary(p.N(), rnd), level, 0)
	qp.MForm(u, u)
	extend := ring.NewBasisExtender(lattigo(p).RingQ(), lattigo(p).RingP())
	b, a := key.expand(p)
	for i, k := range [2]rns.Poly{b, a} {
		rows := p.lattice.ToWide(k)
		x := gaussian(p, rnd, level, 0)
		offset := make([]int64, p.N())
		offsets(p, rnd, offset)
		qp.Add(x, transformedQP(p, offset, level, 0), x)
		qp.MulCoeffsMontgomeryThenAdd(u, ringqp.Poly{Q: ring.Poly{Coeffs: rows[:level+1]},
			P: ring.Poly{Coeffs: rows[len(p.q):]}}, x)
		halves[i] = ring.NewPoly(p.N(), level)
		extend.ModDownQPtoQNTT(level, 0, x.Q, x.P, halves[i])
	}
	qp.RingQ.Add(halves[0], transformedQP(p, m, level, -1).Q, halves[0])
	return halves
}

// The rows of the relinearisation key that a member adds are Lattigo's: h1 = s a + e1 of the first round, and
// s h0 + (u - s) h1 + e2 of the second.
func TestSharesEqualLattigos(t *testing.T) {
	p := smallParameters(t)
	rnd := testEntropy(6)
	m := &member{peer: peer{run: &run{jobPlan: &jobPlan{params: p}}, rnd: rnd}, secret: newSecretKey(p, rnd, alone)}
	first, u := m.firstShares([]byte("root"), nil)
	s, diff := m.secret.main.wide(p).Value, u.wide(p).Value
	qp := lattigo(p).RingQP()
	qp.Sub(diff, s, diff)
	seed := commonSeed([]byte("root"), "relinearisation key", 0)
	as, errs, late := newPRNG(seed[:]), rnd.prng("relinearisation key, mask", 0),
		rnd.prng("relinearisation key, round 2", 0)
	var sums [2][]ringqp.Poly
	for i := range first.Relin.Rows {
		sums[0] = append(sums[0], wideQP(p, first.Relin.Rows[i]))
		sums[1] = append(sums[1], wideQP(p, first.Mask.Rows[i]))
	}
	second := m.secondShare(first, u)
	for i, h0 := range sums[0] {
		h1, e := gaussian(p, errs, p.MaxLevel(), p.MaxLevelP()), gaussian(p, late, p.MaxLevel(), p.MaxLevelP())
		qp.MForm(h1, h1)
		qp.MulCoeffsMontgomeryThenAdd(uniform(p, as, p.MaxLevel(), p.MaxLevelP()), s, h1)
		if !reflect.DeepEqual(sums[1][i], h1) {
			t.Errorf("row %d of the mask is another", i)
		}
		qp.MForm(e, e)
		qp.MulCoeffsMontgomeryThenAdd(s, h0, e)
		qp.MulCoeffsMontgomeryThenAdd(diff, h1, e)
		if !reflect.DeepEqual(second.Relin.Rows[i], p.narrow(e)) {
			t.Errorf("row %d of the second round is another", i)
		}
	}
}
