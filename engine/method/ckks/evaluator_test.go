package ckks

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"github.com/cohort-engine/cohort/internal/secret"
)

func testEntropy(seed uint64) entropy { return entropy{secret.Simulated(seed, "test")} }

// encode returns the integers of values at a scale, rounded by an embedder.
func (m *embedder) encode(t testing.TB, values []float64, scale float64) []int64 {
	coefficients := make([]float64, len(values))
	m.coefficients(values, coefficients)
	return m.round(coefficients, scale)
}

// decrypt returns c0 + c1 s in the NTT domain.
func decrypt(p *parameters, c *cipher, sk secretRows) ring.Poly {
	l := c.level()
	r := lattigo(p).RingQ().AtLevel(l)
	m := ring.Poly{Coeffs: p.lattice.ToWide(c.c[0])}
	r.MulCoeffsMontgomeryThenAdd(ring.Poly{Coeffs: p.lattice.ToWide(c.c[1])}, sk.wide(p).Value.Q, m)
	return m
}

func decode(t *testing.T, p *parameters, c *cipher, sk *secretKey) []float64 {
	t.Helper()
	pt := ckks.NewPlaintext(lattigo(p), c.level())
	pt.Value.CopyLvl(c.level(), decrypt(p, c, sk.main))
	pt.Scale = rlwe.NewScale(c.scale)
	out := make([]float64, p.slots())
	if err := ckks.NewEncoder(lattigo(p)).Decode(pt, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEmbeddingIsLattigos: the coefficients of slots are the encoder's, bit for bit, and rotations move slots as its
// automorphisms do.
func TestEmbeddingIsLattigos(t *testing.T) {
	for _, logN := range []int{10, 14} {
		p, err := buildParameters(Chain{LogN: logN, Levels: signDepth, LogLevel: 30, LogP: []int{30, 30}})
		if err != nil {
			t.Fatal(err)
		}
		full, err := p.full()
		if err != nil {
			t.Fatal(err)
		}
		n, r := p.N(), rand.New(rand.NewPCG(1, 2))
		values, got, want := make([]float64, n), make([]float64, n), make([]complex128, n)
		for i := range values {
			values[i] = 2*r.Float64() - 1
			want[i] = complex(values[i], 0)
		}
		newEmbedder(p).coefficients(values, got)
		if err := ckks.NewEncoder(full).IFFT(want, logN); err != nil {
			t.Fatal(err)
		}
		for i, x := range got {
			if x != real(want[i]) {
				t.Fatalf("LogN %d: coefficient %d is %g, Lattigo's %g", logN, i, x, real(want[i]))
			}
		}
		if root := uint64(full.NthRoot()); p.rootOrder() != root {
			t.Errorf("LogN %d: roots of order %d, Lattigo's are of order %d", logN, p.rootOrder(), root)
		}
		for _, by := range []int{1, 2, 64} {
			element := full.GaloisElement(by)
			for sign, e := range map[int]uint64{1: element, -1: full.ModInvGaloisElement(element)} {
				got, err := p.turn(sign * by)
				want, err2 := ring.AutomorphismNTTIndex(n, p.rootOrder(), e)
				same := slices.EqualFunc(got, want, func(a uint32, b uint64) bool { return uint64(a) == b })
				if err != nil || err2 != nil || !same {
					t.Errorf("LogN %d: turn by %d is not Lattigo's (%v, %v)", logN, sign*by, err, err2)
				}
			}
		}
	}
}

func TestSignUnderEncryption(t *testing.T) {
	for _, x := range []struct {
		depth int
		sign  *composite
	}{{0, pairSign}, {4, pairSign}, {0, earlySign}, {4, earlySign}, {2, rankSign}, {3, sharpRankSign}} {
		depth := x.depth
		c, err := chooseChain(depth)
		if err != nil {
			t.Fatal(err)
		}
		if x.sign == sharpRankSign {
			c = rankChain(7)
			c.LogN = 11
		}
		p, err := buildParameters(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(p.Security)
		start := time.Now()
		rnd := testEntropy(7)
		sk := newSecretKey(p, rnd, alone)
		ev, err := newEvaluator(p, newRelinearisation(p, sk, rnd).make(alone).expand(p, alone), nil)
		if err != nil {
			t.Fatal(err)
		}
		w := newScratch(p)
		t.Log("setup", time.Since(start))
		r := rand.New(rand.NewPCG(1, 2))
		values := make([]float64, p.slots())
		for i := range values {
			values[i] = 1.98*r.Float64() - 0.99
		}
		s := x.sign.plan(p, aggregateLevel, depth, 1)
		top := aggregateLevel + depth + x.sign.depth()
		m := w.embed.encode(t, values, math.Exp2(s.in))
		in := encryptSeeded(p, m, top, math.Exp2(s.in), sk, rnd, "t", 0).expand(p)
		start = time.Now()
		h := ev.sign(w, in, x.sign)
		d := time.Since(start)
		if h.level() != aggregateLevel+depth {
			t.Fatalf("level %d", h.level())
		}
		var worst float64
		for i, y := range decode(t, p, h, sk) {
			worst = max(worst, math.Abs(y-x.sign.at(values[i])))
		}
		t.Logf("depth %d: in 2^%.2f out 2^%.2f (planned %.2f), %v, worst error 2^%.1f, ops %+v", depth, s.in,
			math.Log2(h.scale), s.out, d, math.Log2(worst), w.ops)
		if worst > math.Exp2(-8) {
			t.Errorf("depth %d: error %g", depth, worst)
		}
	}
}
