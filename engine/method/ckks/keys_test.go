package ckks

import (
	"context"
	"reflect"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

func TestUniformPolynomialsAreLattigos(t *testing.T) {
	p := smallParameters(t)
	key := make([]byte, 32)
	ours, theirs := newPRNG(key), newPRNG(key)
	for _, l := range [][2]int{{p.MaxLevel(), p.MaxLevelP()}, {1, -1}, {2, 0}} {
		want := p.narrow(uniform(p, theirs, l[0], l[1]))
		if got := uniformRows(p, ours, l[0], l[1]); !reflect.DeepEqual(got, want) {
			t.Errorf("levels %v: another polynomial", l)
		}
	}
}

// lattigoKey is newSwitchKey in Lattigo's arithmetic.
func lattigoKey(p *parameters, from, to *rlwe.SecretKey, g *rns.Gadget, seed [32]byte, rnd entropy,
	purpose string, index int) []ringqp.Poly {
	errs, as := rnd.prng(purpose+": errors", index), newPRNG(seed[:])
	levelQ, levelP := g.MaxLevel(), g.Auxiliary()-1
	qp := lattigo(p).RingQP().AtLevel(levelQ, levelP)
	s := ringqp.Poly{Q: ring.Poly{Coeffs: to.Value.Q.Coeffs[:levelQ+1]},
		P: ring.Poly{Coeffs: to.Value.P.Coeffs[:levelP+1]}}
	lifted := qp.RingQ.NewPoly()
	qp.RingQ.MulScalarBigint(ring.Poly{Coeffs: from.Value.Q.Coeffs[:levelQ+1]}, qp.RingP.Modulus(), lifted)
	var rows []ringqp.Poly
	for d := range g.Digits(levelQ) {
		a := uniform(p, as, levelQ, levelP)
		b := gaussian(p, errs, levelQ, levelP)
		qp.MForm(b, b)
		qp.MulCoeffsMontgomeryThenSub(a, s, b)
		first, count := g.Own(d)
		for j := first; j < first+count; j++ {
			qp.RingQ.SubRings[j].Add(b.Q.Coeffs[j], lifted.Coeffs[j], b.Q.Coeffs[j])
		}
		rows = append(rows, b)
	}
	return rows
}

func TestKeysEqualLattigos(t *testing.T) {
	p := smallParameters(t)
	rnd := testEntropy(3)
	sk := newSecretKey(p, rnd, alone)
	pool := engine.NewPool(3)
	defer pool.Close()
	for name, g := range map[string]*rns.Gadget{"relinearisation": p.relin, "rotation": p.rotation, "small": p.small} {
		seed := rnd.key(name, 0)
		want := lattigoKey(p, sk.main.wide(p), sk.small.wide(p), g, seed, rnd, name, 1)
		for _, run := range []region{alone, abreast(context.Background(), pool)} {
			got := newSwitchKey(p, sk.main, sk.small, g, seed, rnd, name, 1, run)
			for d, b := range want {
				if !reflect.DeepEqual(got.Rows[d], p.narrow(b)) {
					t.Errorf("%s: rows are not Lattigo's", name)
				}
			}
			one := g.NewKey() // from all rows of a digit at once
			as := newPRNG(seed[:])
			for d, b := range want {
				one.Set(d, p.narrow(b), uniformRows(p, as, g.MaxLevel(), g.Auxiliary()-1))
			}
			if !reflect.DeepEqual(got.expand(p, run), one) {
				t.Errorf("%s: the expanded key is another", name)
			}
		}
	}
}

// TestPrimesAreLattigos compares primes of all sizes with those of Lattigo's generator, up to the last of a size.
func TestPrimesAreLattigos(t *testing.T) {
	for _, logN := range []int{10, 13, 15} {
		order := int64(4) << logN
		for bits := logN + 4; bits <= ntt.MaxBits; bits++ {
			ours, theirs := primeSource{order: order, last: map[int]int64{}},
				ring.NewNTTFriendlyPrimesGenerator(uint64(bits), uint64(order))
			for range 30 {
				want, err := theirs.NextDownstreamPrime()
				got := ours.next(bits)[0]
				if (ours.err != nil) != (err != nil) || err == nil && got != want {
					t.Fatalf("%d bits, order %d: %d and %v, want %d and %v", bits, order, got, ours.err, want, err)
				}
				if err != nil {
					break
				}
			}
		}
	}
	for _, bits := range []int{5, ntt.MaxBits + 1} {
		s := primeSource{order: 1 << 12, last: map[int]int64{}}
		if s.next(bits); s.err == nil {
			t.Errorf("there are primes of %d bits", bits)
		}
	}
}
