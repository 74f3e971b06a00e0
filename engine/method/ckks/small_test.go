package ckks

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
)

// The chances of errors are those of Lattigo's default distribution: a Gaussian, truncated and rounded.
func TestErrorTailsAreTheGaussians(t *testing.T) {
	xe := rlwe.DefaultXe
	if xe.Sigma != 3.2 || xe.Bound != 19.2 || rlwe.DefaultXs != (ring.Ternary{P: 2.0 / 3}) {
		t.Fatalf("Lattigo's defaults are %v and %v", xe, rlwe.DefaultXs)
	}
	beyond := math.Erfc(xe.Bound / (xe.Sigma * math.Sqrt2))
	for m, got := range errorTails {
		want := (math.Erfc((float64(m)+0.5)/(xe.Sigma*math.Sqrt2)) - beyond) / (1 - beyond) * (1 << 63)
		// The difference loses up to six digits at the end.
		if math.Abs(float64(got)-want) > 1e-9*want+2 {
			t.Errorf("the chance of more than %d is %d/2^63, want %.0f", m, got, want)
		}
	}
	for _, x := range []struct {
		word uint64
		want int8
	}{{0, 19}, {1 << 63, -19}, {1<<63 - 1, 0}, {1<<64 - 1, 0}, {errorTails[0], 0}, {errorTails[0] - 1, 1},
		{1<<63 + errorTails[0], 0}, {1<<63 + errorTails[1], -1}} {
		if got := smallError(x.word); got != x.want {
			t.Errorf("the word %#x gives %d, want %d", x.word, got, x.want)
		}
	}
}

// Lattigo's samplers and ours draw alike.
func TestSamplersAreLattigos(t *testing.T) {
	p := smallParameters(t)
	const polynomials = 300
	rnd := testEntropy(8)
	for _, x := range []struct {
		name string
		law  ring.DistributionParameters
		ours func(n int) []int8
		most int
	}{
		{"secrets", lattigo(p).Xs(), func(n int) []int8 { return newTernary(n, rnd.prng("ours", n)) }, 1},
		{"errors", lattigo(p).Xe(), func(n int) []int8 { return newErrors(n, rnd.prng("ours too", n)) }, 19},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := lattigo(p).RingQ().AtLevel(0)
			// The library's ternary sampler fills every prime that its ring knows, whatever the level.
			r = &ring.Ring{SubRings: r.SubRings[:1], ModulusAtLevel: r.ModulusAtLevel[:1]}
			sampler, err := ring.NewSampler(rnd.prng(x.name, 0), r, x.law, false)
			if err != nil {
				t.Fatal(err)
			}
			var theirs, ours [39]float64
			pol, q := ring.NewPoly(p.N(), 0), p.Q()[0]
			for range polynomials {
				sampler.Read(pol)
				for _, v := range pol.Coeffs[0] {
					at := int(v)
					if v > q/2 {
						at = -int(q - v)
					}
					theirs[at+19]++
				}
			}
			for _, v := range x.ours(polynomials * p.N()) {
				if int(v) < -x.most || int(v) > x.most {
					t.Fatalf("%d was drawn", v)
				}
				ours[v+19]++
			}
			// The statistic of two samples of one size; cells of few are left out.
			var statistic, cells float64
			for i, a := range ours {
				if b := theirs[i]; a+b >= 20 {
					statistic += (a - b) * (a - b) / (a + b)
					cells++
				}
			}
			// Mean cells - 1, variance twice that: beyond 6 deviations in fewer than one in 10^5.
			if dof := cells - 1; statistic > dof+6*math.Sqrt(2*dof) {
				t.Errorf("chi-square %.1f with %g degrees of freedom: %v beside %v", statistic, dof, ours, theirs)
			}
		})
	}
}

// Coefficients of a ternary polynomial, five of which come from a byte, are independent: those a distance apart take
// each of nine pairs of values alike.
func TestTernaryCoefficientsAreIndependent(t *testing.T) {
	const n = 300000
	x := newTernary(n, testEntropy(9).prng("t", 0))
	if len(x) != n {
		t.Fatalf("%d coefficients, want %d", len(x), n)
	}
	for distance := 1; distance <= 6; distance++ {
		var cells [9]float64
		for i := distance; i < n; i++ {
			cells[3*(x[i]+1)+x[i-distance]+1]++
		}
		var statistic float64
		for _, c := range cells {
			want := float64(n-distance) / 9
			statistic += (c - want) * (c - want) / want
		}
		if statistic > 8+6*4 { // as above, for 8 degrees of freedom
			t.Errorf("a distance of %d: chi-square %.1f: %v", distance, statistic, cells)
		}
	}
}

// Re-randomisation adds an encryption of zero under the public key, of whose first half coefficient 0 is made alone:
// with Lattigo's products of key and u taken off, what is left of both halves are errors.
func TestRerandomisationAddsErrorsToBothHalves(t *testing.T) {
	p := smallParameters(t)
	rnd := testEntropy(10)
	key := newPublicKey(p, newSecretKey(p, rnd, alone), aggregateLevel, -1, rnd.key("seed", 0), rnd)
	b, a := key.expand(p)
	c := &computer{params: p, rnd: rnd, ev: &evaluator{chain: p.lattice}}
	c.receivePublicKey(key)
	w := newScratch(p)
	r := lattigo(p).RingQ().AtLevel(aggregateLevel)
	const trials = 200
	var heads, rows float64
	for index := range trials {
		acc := w.newZero(aggregateLevel)
		head := c.rerandomise(w, acc, c.drawMask(w.Room(), index))
		head = []uint32{uint32((uint64(head[0]) + uint64(p.lattice.Head(acc.c[0])[0])) % p.Q()[0])}
		u := ring.Poly{Coeffs: wideRows(newTernary(p.N(), rnd.prng("re-randomisation", index)), p.Q()[:aggregateLevel+1])}
		r.NTT(u, u)
		r.MForm(u, u)
		left := func(k ring.Poly, half ring.Poly) []uint64 {
			x := r.NewPoly()
			r.MulCoeffsMontgomery(k, u, x)
			r.Sub(half, x, x)
			r.INTT(x, x)
			return x.Coeffs[0]
		}
		square := func(x uint64) float64 {
			v := float64(x)
			if x > p.Q()[0]/2 {
				v = -float64(p.Q()[0] - x)
			}
			return v * v
		}
		key0 := left(ring.Poly{Coeffs: p.lattice.ToWide(b)}, r.NewPoly())[0] // minus coefficient 0 of the key times u
		heads += square((uint64(head[0])+key0)%p.Q()[0]) / trials
		for _, x := range left(ring.Poly{Coeffs: p.lattice.ToWide(a)}, ring.Poly{Coeffs: p.lattice.ToWide(acc.c[1])}) {
			rows += square(x) / trials / float64(p.N())
		}
	}
	// The variance is 3.2^2 + 1/12; that of 200 squares deviates by a tenth.
	const want = 3.2*3.2 + 1.0/12
	if math.Abs(heads/want-1) > 0.5 || math.Abs(rows/want-1) > 0.02 {
		t.Errorf("what is added beside the key's products has squares of %g and %g, want %g", heads, rows, want)
	}
}

// No two totals of a run have one mask, whether it is drawn ahead or not: two that are masked alike differ by the data.
func TestNoMaskServesTwice(t *testing.T) {
	p := smallParameters(t)
	const rounds, perRound = 3, masksAhead + 4
	c := &computer{params: p, rnd: testEntropy(11), rounds: rounds, perRound: perRound}
	draw := func(round int) {
		for _, d := range c.drawAhead(round) {
			d(p.lattice.Room())
		}
	}
	seen := make(map[string]int)
	draw(0)
	for round := range rounds {
		drawn := c.masks
		if len(drawn.drawn) != masksAhead {
			t.Fatalf("%d masks were drawn ahead of round %d", len(drawn.drawn), round)
		}
		draw(round + 1)
		for i := range perRound {
			index := round*perRound + i
			m, want := c.maskOf(p.lattice.Room(), drawn, index), c.drawMask(p.lattice.Room(), index)
			if drawn.take(index) != nil {
				t.Errorf("the mask of total %d is taken twice", index)
			}
			if m.first != want.first || !slices.Equal(m.u[0], want.u[0]) || !slices.Equal(m.e[0], want.e[0]) {
				t.Errorf("the mask of total %d depends on when it is drawn", index)
			}
			for _, half := range []rns.Poly{m.u, m.e} {
				key := fmt.Sprint(half[0])
				if other, twice := seen[key]; twice {
					t.Errorf("totals %d and %d have one mask", other, index)
				}
				seen[key] = index
			}
		}
	}
	if len(c.masks.drawn) > 0 {
		t.Error("masks are drawn for a round after the last")
	}
}

// newTernary and newErrors draw into memory of their own.
func newTernary(n int, prng sampling.PRNG) []int8 {
	out := make([]int8, n)
	ternary(out, prng)
	return out
}

func newErrors(n int, prng sampling.PRNG) []int8 {
	out := make([]int8, n)
	smallErrors(out, prng)
	return out
}
