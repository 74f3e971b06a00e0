package privacy

import (
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
		n, err := FMPhantomsPLD(b, FM{Gamma: 1. / 1024, Parties: c.parties, Cells: c.cells}, 4096, Gaussian{Scale: 1 / (mu * math.Sqrt(1-c.f))})
		if err != nil {
			t.Fatal(err)
		}
		if n > c.want || float64(n) < 0.93*float64(c.want) {
			t.Errorf("%+v: %d phantoms", c, n)
		}
	}
}

// The loss distribution against direct enumeration of the laws of (T, Q), and under the closed form.
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
