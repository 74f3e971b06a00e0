package privacy

import (
	"fmt"
	"math"
	"math/big"
	"testing"
)

// chiSquare fails if counts deviate from the law p (per point, rest in the last bin). With bins of
// expectation >= 20 the statistic is close to chi^2; the threshold is df + 6 sqrt(2 df) + 24, beyond
// which chi^2 has probability below 1e-8 (Laurent and Massart 2000, Lemma 1 with x = 18.5:
// df + 2 sqrt(18.5 df) + 37; the larger of both is used).
func chiSquare(t *testing.T, what string, obs []float64, exp []float64) {
	t.Helper()
	var chi, o, e float64
	df := -1.0
	for i := range obs {
		o += obs[i]
		e += exp[i]
		if e >= 20 || i == len(obs)-1 {
			if e > 1e-9 {
				chi += (o - e) * (o - e) / e
				df++
			}
			o, e = 0, 0
		}
	}
	df = math.Max(df, 1)
	limit := df + 2*math.Sqrt(18.5*df) + 37
	limit = math.Max(limit, df+6*math.Sqrt(2*df)+24)
	if chi > limit {
		t.Errorf("%s: chi^2 %.1f at %v degrees of freedom, limit %.1f", what, chi, df, limit)
	}
}

// binned compares samples with the unnormalised log law, in nbins equal bins over [-span, span].
func binned(t *testing.T, what string, sample func(*Stream) int64, logp func(float64) float64, scale float64, n int) {
	t.Helper()
	span := int64(9*scale) + 3
	width := int64(math.Max(1, math.Floor(scale/40)))
	bins := int(2*span/width) + 3
	index := func(z int64) int {
		return int(min(max((z+span)/width+1, 0), int64(bins-1)))
	}
	obs := make([]float64, bins)
	exp := make([]float64, bins)
	var total float64
	for z := -span; z <= span; z++ {
		p := math.Exp(logp(float64(z)))
		exp[index(z)] += p
		total += p
	}
	for i := range exp {
		exp[i] *= float64(n) / total
	}
	seed := uint64(7)
	st := NewStreams(&seed).Stream(0, 0, what)
	for range n {
		z := sample(st)
		if z < -span || z > span {
			continue // 1e-4 of the Laplace mass at most, in no bin
		}
		obs[index(z)]++
	}
	if scale > 0 && len(obs) > 0 {
		chiSquare(t, what, obs, exp)
	}
}

func TestDiscreteLaws(t *testing.T) {
	const n = 400000
	for _, s := range []float64{1.0 / 1024, 0.1, 0.3, 0.7, 1, 2.5, 10, 31.9, 32, 33, 100, 1000.5, 12345} {
		g, err := NewDiscreteGaussian(s)
		if err != nil {
			t.Fatal(err)
		}
		binned(t, fmt.Sprint("gaussian ", s), g.Sample, func(z float64) float64 { return -z * z / (2 * s * s) }, s, n)
		l, err := NewDiscreteLaplace(s)
		if err != nil {
			t.Fatal(err)
		}
		binned(t, fmt.Sprint("laplace ", s), l.Sample, func(z float64) float64 { return -math.Abs(z) / s }, s, n)
	}
}

func TestExpNegWithinEightUnits(t *testing.T) {
	seed := uint64(1)
	st := NewStreams(&seed).Stream(0, 0, "expneg")
	for i := range 20000 {
		hi, lo := st.Uint64n(50), st.Uint64()
		if i%2 == 0 {
			hi = 0
		}
		x := new(big.Int).SetUint64(hi)
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(lo))
		l, h := term{1, x, new(big.Int).Lsh(big.NewInt(1), 64)}.bounds(63)
		got := new(big.Int).SetUint64(expNeg(hi, lo))
		if new(big.Int).Sub(got, l).Cmp(big.NewInt(-8)) < 0 || new(big.Int).Sub(got, h).Cmp(big.NewInt(8)) > 0 {
			t.Fatalf("exp(-(%d + %d/2^64)) = %v, bounds %v %v", hi, lo, got, l, h)
		}
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	st := NewStreams(nil).Stream(0, 0, "alloc")
	dst := make([]int64, 1000)
	g, _ := NewDiscreteGaussian(5e4)
	l, _ := NewDiscreteLaplace(5e4)
	if n := testing.AllocsPerRun(20, func() { g.Fill(st, dst); l.Fill(st, dst) }); n != 0 {
		t.Errorf("%v allocations per fill, want 0", n)
	}
	s := NewStreams(nil)
	if n := testing.AllocsPerRun(20, func() { s.Reset(st, 3, 4, "relative sums") }); n != 0 {
		t.Errorf("%v allocations per stream reset, want 0", n)
	}
}

func BenchmarkDiscrete(b *testing.B) {
	dst := make([]int64, 4096)
	st := NewStreams(nil).Stream(0, 0, "bench")
	for _, s := range []float64{1, 20, 200, 65536 * 3.7, 1 << 40} {
		g, err := NewDiscreteGaussian(s)
		if err != nil {
			b.Fatal(err)
		}
		l, err := NewDiscreteLaplace(s)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name string
			fill func(*Stream, []int64)
		}{{"gaussian", g.Fill}, {"laplace", l.Fill}} {
			b.Run(fmt.Sprintf("law=%s/scale=%g", c.name, s), func(b *testing.B) {
				for range b.N {
					c.fill(st, dst)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(dst)), "ns/sample")
			})
		}
	}
}

func BenchmarkNewDiscreteGaussian(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		if _, err := NewDiscreteGaussian(65536 * 3.7); err != nil {
			b.Fatal(err)
		}
	}
}
