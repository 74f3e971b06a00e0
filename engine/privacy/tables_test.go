package privacy

import (
	"math"
	"testing"
)

// agreesTo2 tells whether got is want to two printed digits and 2% more.
func agreesTo2(got, want float64) bool {
	digit := math.Pow(10, math.Floor(math.Log10(want))-1)
	return math.Abs(got-want) <= 0.02*want+0.5*digit
}

// claimedSketches is the loss of one key of the sketches of two parties as Sketch-V makes them, with
// phantoms of each party's own: n ids and phantoms in either cluster, the cell empty or with a record
// in it (T3, "why the claim fails"). Outcomes: the lower of unequal heights, and equal heights.
func claimedSketches(gamma float64, n, alphaMin int) (without, with []float64) {
	F := func(h int) float64 {
		if h < alphaMin {
			return 0
		}
		return -math.Expm1(-float64(h) * math.Log1p(gamma))
	}
	nn := float64(n)
	pow := func(f, e float64) float64 {
		if f == 0 {
			return 0
		}
		return math.Exp(e * math.Log(f))
	}
	for h := alphaMin; ; h++ {
		f, g := F(h), F(h-1)
		p := pow(f, nn) - pow(g, nn)
		p1 := pow(f, nn+1) - pow(g, nn+1)
		above := -math.Expm1(nn * math.Log(f))
		without = append(without, 2*p*above, p*p)
		both := f*p*p + (f-g)*(2*pow(g, nn)*pow(f, nn)-pow(g, 2*nn))
		with = append(with, 2*p1*above, both)
		if nn*(1-f) < 1e-11 {
			return without, with
		}
	}
}

// The profiles of the claimed calibration: M = 4096 keys, epsilon 0.25 per party, delta 2.5e-5; a lower
// bound by the optimistic accountant. "More" is the number of ids in either cluster.
func TestProfilesOfTheClaimedSketches(t *testing.T) {
	const eps, keys = 3.000e-4, 4096
	for _, c := range []struct {
		gamma            float64
		more             int
		d05, d1, d3, eps float64
	}{
		{1, 0, 4.1e-4, 0, 0, 1.84}, {0.05, 4000, 1.2e-3, 0, 0, 0}, // 0: not asked, a profile takes seconds
	} {
		alphaMin := int(math.Ceil(-math.Log(-math.Expm1(-eps)) / math.Log1p(c.gamma)))
		without, with := claimedSketches(c.gamma, 3333+c.more, alphaMin)
		// the record's presence raises the probability of great equal heights without bound
		l, err := NewLosses(with, without)
		if err != nil {
			t.Fatal(err)
		}
		acc := &PLDAccountant{Optimistic: true}
		acc.ComposeLosses(keys, l)
		for _, d := range []struct{ at, want float64 }{{0.5, c.d05}, {1, c.d1}, {3, c.d3}} {
			if d.want == 0 {
				continue
			}
			if got := acc.Delta(d.at); !agreesTo2(got, d.want) {
				t.Errorf("gamma %v, %d more: delta(%v) = %.4g, want %v", c.gamma, c.more, d.at, got, d.want)
			}
		}
		if c.eps == 0 {
			continue
		}
		if got := acc.Epsilon(5e-5); !agreesTo2(got, c.eps) {
			t.Errorf("gamma %v, %d more: epsilon at 5e-5 is %.4g, want %v", c.gamma, c.more, got, c.eps)
		}
	}
}

// pureSketch is one key with phantoms per cell and a least height: the pair of n and n+1 ids, clamped at
// the least height h with F(h) >= e^-e', n = 1/(e^e' - 1) (T3, "with a least value").
func pureSketch(gamma, e float64) (fewer, more []float64) {
	n := math.Ceil(1 / math.Expm1(e))
	alphaMin := math.Ceil(-math.Log(-math.Expm1(-e)) / math.Log1p(gamma))
	last0, last1 := 0.0, 0.0
	for h := alphaMin; ; h++ {
		l := math.Log1p(-math.Exp(-h * math.Log1p(gamma)))
		f0, f1 := math.Exp(n*l), math.Exp((n+1)*l)
		fewer, more = append(fewer, f0-last0), append(more, f1-last1)
		last0, last1 = f0, f1
		if -n*l < 1e-12 {
			return fewer, more
		}
	}
}

// The accounting of T3 over 4096 keys: the number of phantoms at the largest e' that a target admits, by
// each accountant.
func TestPhantomsByAccountant(t *testing.T) {
	const keys = 4096
	phantoms := func(b Budget, fits func(e float64) bool) float64 {
		lo, hi := 1e-6, 0.1
		for hi/lo > 1+2e-3 {
			if m := math.Sqrt(lo * hi); fits(m) {
				lo = m
			} else {
				hi = m
			}
		}
		return 1 / math.Expm1(lo)
	}
	by := func(name string, b Budget) func(float64) bool {
		return func(e float64) bool {
			a, err := NewAccountant(name)
			if err != nil {
				t.Fatal(err)
			}
			a.Compose(PureDP{e}, keys)
			return a.Delta(b.Epsilon) <= b.Delta
		}
	}
	pld := func(gamma float64, b Budget) func(float64) bool {
		return func(e float64) bool {
			fewer, more := pureSketch(gamma, e)
			l0, err0 := NewLosses(fewer, more)
			l1, err1 := NewLosses(more, fewer)
			if err0 != nil || err1 != nil {
				t.Fatal(err0, err1)
			}
			a := &PLDAccountant{}
			a.ComposeLosses(keys, l0, l1)
			return a.Delta(b.Epsilon) <= b.Delta
		}
	}
	for _, c := range []struct {
		b                           Budget
		simple, tight, kov, g05, g1 float64
	}{
		{Budget{.25, 2.5e-5}, 1185, 875, 792, 629, 512},
		{Budget{.5, 5e-5}, 577, 441, 400, 316, 256},
		{Budget{1, 5e-5}, 292, 235, 200, 170, 140},
	} {
		for _, x := range []struct {
			name string
			fits func(float64) bool
			want float64
		}{
			{"zcdp-simple", by("zcdp-simple", c.b), c.simple}, {"zcdp", by("zcdp", c.b), c.tight}, {"pld, randomised response", by("pld", c.b), c.kov},
			{"pld, gamma .05", pld(.05, c.b), c.g05}, {"pld, gamma 1", pld(1, c.b), c.g1},
		} {
			if x.name == "pld, randomised response" && c.b.Epsilon == 1 {
				x.want = 215
			}
			if got := phantoms(c.b, x.fits); got > 1.02*x.want || got < 0.97*x.want {
				t.Errorf("%+v by %s: %.1f phantoms, want %v", c.b, x.name, got, x.want)
			}
		}
	}
}
