package privacy

import (
	"math"
	"testing"
)

// The closed forms of FM.RDP against sums over the exact distribution of the dominating pair at gamma = 1, 1/20:
// rounding to heights can only lower a divergence, and at small gamma it costs next to nothing.
func TestFMDivergenceAgainstExactDistribution(t *testing.T) {
	for _, f := range []FM{{Phantoms: 3, Parties: 2, Cells: 2}, {Phantoms: 20, Parties: 2, Cells: 5},
		{Phantoms: 5, Parties: 4, Cells: 3}} {
		for _, gamma := range []float64{1, 0.05} {
			for _, alpha := range []float64{1.5, 2, 3.5} {
				exact := exactFM(f, gamma, alpha)
				bound := f.RDP(alpha)
				if exact > bound*(1+1e-9) {
					t.Errorf("%+v gamma %v order %v: exact divergence %v exceeds the bound %v", f, gamma, alpha, exact, bound)
				}
				if gamma < 0.1 && exact < 0.9*bound {
					t.Errorf("%+v gamma %v order %v: exact divergence %v is far below the bound %v", f, gamma, alpha, exact, bound)
				}
			}
		}
	}
}

// exactFM sums the divergences over heights.
func exactFM(f FM, gamma, alpha float64) float64 {
	n := float64(f.Phantoms)
	top := int(40 / math.Log1p(gamma))
	cdf := func(h int) float64 { return -math.Expm1(-float64(h) * math.Log1p(gamma)) }
	distribution := func(n float64, h int) float64 { return math.Pow(cdf(h), n) - math.Pow(cdf(h-1), n) }
	below := func(h int) float64 { // Pr[Q <= h]
		sum, binomial := 0.0, -1.0
		for t := 1; t <= f.Parties; t++ {
			binomial *= -float64(f.Parties-t+1) / float64(t)
			sum += binomial * math.Pow(cdf(h), n*f.others(t))
		}
		return sum
	}
	forward, backward := 0.0, 0.0
	tailF, tailB := 0.0, 0.0
	for q := top; q >= 1; q-- {
		p := below(q) - below(q-1)
		c := cdf(q)
		forward += p * (math.Pow(c, n)*math.Pow(c, alpha) + tailF)
		backward += p * (math.Pow(c, n+1)*math.Pow(c, -alpha) + tailB)
		a, b := distribution(n, q), distribution(n+1, q)
		if a > 0 && b > 0 {
			tailF += a * math.Pow(b/a, alpha)
			tailB += b * math.Pow(a/b, alpha)
		}
	}
	return math.Log(math.Max(forward, backward)) / (alpha - 1)
}

// The number of phantoms at the settings for which a numerical accountant has been run: RDP needs
// some 10% more than the privacy loss distribution (166, 40, 49 and 12), never less.
func TestFMPhantoms(t *testing.T) {
	for _, c := range []struct {
		epsilon, share float64
		parties, cells int
		loss, max      int
	}{
		{1, .5, 2, 5, 166, 184}, {1, .5, 4, 5, 40, 46}, {4, .5, 2, 5, 49, 56}, {4, .5, 4, 5, 12, 15}, {1, .2, 2, 5, 268, 292},
	} {
		b := Budget{Epsilon: c.epsilon, Delta: 5e-5}
		scale, err := calibrate("rdp", b, 1, func(s float64) Mechanism { return Gaussian{Scale: s} })
		if err != nil {
			t.Fatal(err)
		}
		n, err := FMPhantoms(b, FM{Gamma: 1.0 / 1024, Parties: c.parties, Cells: c.cells}, 4096,
			Gaussian{Scale: scale / math.Sqrt(1-c.share)})
		if err != nil {
			t.Fatal(err)
		}
		if n < c.loss || n > c.max {
			t.Errorf("epsilon %v share %v S=%d k'=%d: %d phantoms, want %d to %d", c.epsilon, c.share, c.parties, c.cells, n,
				c.loss, c.max)
		}
	}
}
