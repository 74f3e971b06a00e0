package privacy

import (
	"errors"
	"math"
	"testing"
)

// The number of phantoms together with the Gaussian releases of the local centres, which take 1-f of mu^2.
func TestFMPhantomsPLDBesideGaussianReleases(t *testing.T) {
	for _, c := range []struct {
		epsilon, f     float64
		parties, cells int
		want           int
	}{
		{1, .5, 2, 5, 166}, {1, .5, 4, 5, 40}, {4, .2, 2, 15, 49},
	} {
		b := Budget{c.epsilon, 5e-5}
		mu, err := MuOf(b, 0)
		if err != nil {
			t.Fatal(err)
		}
		n, err := FMPhantomsPLD(b, FM{Gamma: 1. / 1024, Parties: c.parties, Cells: c.cells}, 4096,
			Gaussian{Scale: 1 / (mu * math.Sqrt(1-c.f))})
		if err != nil {
			t.Fatal(err)
		}
		if n > c.want || float64(n) < 0.93*float64(c.want) {
			t.Errorf("%+v: %d phantoms", c, n)
		}
	}
}

// The least numbers of phantoms per cell for (0.5, 5e-5) over 4096 keys, of a table computed apart: (k'^S-1) n_c is
// 4560, 5160, ... Continuous hashes need a little more than fine heights.
func TestFMPhantomsPLDIsTheTable(t *testing.T) {
	b := Budget{0.5, 5e-5}
	for _, c := range []struct{ parties, cells, coarse, fine int }{
		{2, 5, 190, 215}, {2, 10, 135, 155}, {3, 5, 93, 108}, {4, 5, 46, 53}, {8, 2, 48, 55},
	} {
		for _, g := range []struct {
			gamma float64
			want  int
		}{{1, c.coarse}, {0.05, c.fine}, {0, c.fine + 2}} {
			f := FM{Gamma: g.gamma, Parties: c.parties, Cells: c.cells}
			n, err := FMPhantomsPLD(b, f, 4096)
			if err != nil || n > g.want || n < g.want-3 {
				t.Errorf("S=%d k'=%d gamma %v: %d phantoms, %v, the table has %d", c.parties, c.cells, g.gamma, n, err, g.want)
				continue
			}
			fits := func(n int) bool {
				f.Phantoms = n
				a := &PLDAccountant{}
				a.Compose(f, 4096)
				return a.Delta(b.Epsilon) <= b.Delta
			}
			if !fits(n) || fits(n-1) {
				t.Errorf("S=%d k'=%d gamma %v: %d is not the least that fits", c.parties, c.cells, g.gamma, n)
			}
		}
	}
	// what is impossible is refused
	if n, err := FMPhantomsPLD(b, FM{Parties: 2, Cells: 5}, 4096, Gaussian{Scale: 0.5}); !errors.Is(err, ErrRange) {
		t.Errorf("beside a release that takes the whole budget: %d phantoms, %v", n, err)
	}
	if n, err := FMPhantomsPLD(b, FM{Parties: 2, Cells: 5}, 4096,
		Gaussian{Scale: 100, Discretised: 1}); !errors.Is(err, ErrRange) {
		t.Errorf("beside a release without a loss distribution: %d phantoms, %v", n, err)
	}
}

// Continuous hashes dominate heights of every Gamma, which are a rounding of them, and heights of a small
// one come near.
func TestContinuousHashesDominateHeights(t *testing.T) {
	for _, f := range []FM{{Phantoms: 20, Parties: 2, Cells: 5}, {Phantoms: 4, Parties: 4, Cells: 3},
		{Phantoms: 7, Parties: 9, Cells: 2}} {
		fine := f.continuousLosses()
		epsilons := []float64{0, 0.3, 1, 3}
		var most [2][4]float64
		for order, l := range fine {
			for i, eps := range epsilons {
				a := &PLDAccountant{}
				a.composeLosses(4, l)
				most[order][i] = a.Delta(eps * l.sd)
			}
		}
		for _, gamma := range []float64{1, 0.1, 1e-3} {
			f.Gamma = gamma
			for order, coarse := range f.heightLosses() {
				for i, eps := range epsilons {
					low := &PLDAccountant{Optimistic: true}
					low.composeLosses(4, coarse)
					least, most := low.Delta(eps*fine[order].sd), most[order][i]
					if least > most {
						t.Errorf("%+v order %d at %v: heights have delta %v at least, continuous hashes %v at most", f, order,
							eps, least, most)
					}
					if gamma < 0.01 && most > 1.02*least+1e-6 {
						t.Errorf("%+v order %d at %v: fine heights have delta %v at least, continuous hashes %v", f, order,
							eps, least, most)
					}
				}
			}
		}
	}
}

// The loss distribution against direct enumeration of the distributions of (T, Q), and under the closed form.
func TestFMLossesAreThoseOfTheCensoredMaximum(t *testing.T) {
	f := FM{Gamma: 0.7, Phantoms: 3, Parties: 2, Cells: 2}
	F := func(h int) float64 { return 1 - math.Pow(1+f.Gamma, -float64(h)) }
	// k'=2, S=2: each party's cluster holds one other cell, so Pr[Q <= z] = 1-(1-F^3)^2
	cdf := func(h int) float64 { x := 1 - math.Pow(F(h), 3); return 1 - x*x }
	for order, l := range f.Losses() {
		for _, alpha := range []float64{1.5, 2, 3.5} {
			var s float64
			for q := 1; q < 80; q++ {
				w := cdf(q) - cdf(q-1)
				term := func(lo, hi int) {
					a := math.Pow(F(hi), 3) - math.Pow(F(lo), 3)
					b := math.Pow(F(hi), 4) - math.Pow(F(lo), 4)
					if order == 1 {
						a, b = b, a
					}
					if a > 0 && b > 0 {
						s += w * math.Pow(a, alpha) * math.Pow(b, 1-alpha)
					}
				}
				term(0, q)
				for h := q + 1; h < 60; h++ {
					term(h-1, h)
				}
			}
			want, got := math.Log(s)/(alpha-1), l.renyi(alpha)
			if math.Abs(got-want) > 1e-6*want {
				t.Errorf("order %d alpha %v: divergence %v, want %v", order, alpha, got, want)
			}
			if got > f.RDP(alpha) {
				t.Errorf("order %d alpha %v: divergence %v exceeds the closed form %v", order, alpha, got, f.RDP(alpha))
			}
		}
	}
}
