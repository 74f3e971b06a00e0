package privacy

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
)

// chiSquare fails if counts deviate from the distribution p (per point, rest in the last bin). With bins of
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

// binned compares samples with the unnormalised log distribution, in nbins equal bins over [-span, span].
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

// Four shares of deviation 1.5 add up to N_Z(0, 9), up to a slack (T6 iv) of 3e-9 that no test of this
// size sees.
func TestSharesAddUpToTheWhole(t *testing.T) {
	const m, share = 4, 1.5
	if s := SplitDistance(share, m); s > 1e-8 {
		t.Fatalf("slack %v", s)
	}
	g, err := NewDiscreteGaussian(share)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(st *Stream) (z int64) {
		for range m {
			z += g.Sample(st)
		}
		return z
	}
	const whole = 2 * share
	binned(t, "shares", sum, func(z float64) float64 { return -z * z / (2 * whole * whole) }, whole, 400000)
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

// The table behind a sampler is exact: each item's units of 2^63, counted over the buckets, are its certain
// units and the guard, the true weight lies between, and every bucket begins with guard units of its own
// item. With the decision of the guard units, tested below, this is the distribution to the last bit.
func TestTablesBracketTheDistribution(t *testing.T) {
	for _, s := range []float64{1.0 / 1024, 0.1, 0.3, 1, 2.5, 10, 31.9, 32, 100, 12345, 1e8, MaxScale} {
		g, err := NewDiscreteGaussian(s)
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewDiscreteLaplace(s)
		if err != nil {
			t.Fatal(err)
		}
		one := func(k uint64) []term { return []term{g.t.at(1, new(big.Int).SetUint64(k<<g.t.shift))} }
		difference := func(k uint64) []term {
			return []term{l.t.at(1, new(big.Int).SetUint64(k<<l.t.shift)), l.t.at(-1, new(big.Int).SetUint64((k+1)<<l.t.shift))}
		}
		beyond := []term{l.t.at(1, new(big.Int).SetUint64(l.t.cells<<l.t.shift))}
		var gauss, laplace [][]term
		if g.t.shift == 0 {
			for i := range g.t.points() {
				gauss = append(gauss, one(g.t.magnitude(i)))
			}
			for i := range l.t.points() {
				laplace = append(laplace, difference(l.t.magnitude(i)))
			}
			laplace = append(laplace, beyond, beyond)
		} else {
			for k := range g.t.cells {
				gauss = append(gauss, one(k))
			}
			for k := range l.t.cells {
				laplace = append(laplace, difference(k))
			}
			laplace = append(laplace, beyond)
		}
		bracketed(t, fmt.Sprint("gaussian ", s), &g.t, append(gauss, nil)) // the tail: all of it guard
		bracketed(t, fmt.Sprint("laplace ", s), &l.t, laplace)
	}
}

// A cell's bound of what is surely kept is at most the ratio of its last point to its first, and three units of 2^-32
// below it at most.
func TestSurelyKeptIsKept(t *testing.T) {
	const prec = 100
	for _, s := range []float64{32, 33.3, 63, 64, 100, 12345, 1e8, 3e11, MaxScale} {
		g, err := NewDiscreteGaussian(s)
		if err != nil {
			t.Fatal(err)
		}
		last := new(big.Int).SetUint64(1<<g.t.shift - 1)
		for k, sure := range g.t.sure {
			y := new(big.Int).Lsh(big.NewInt(2*int64(k)), g.t.shift)
			y.Mul(y.Add(y, last), last)
			lo, _ := term{1, y.Mul(y, g.t.num), g.t.den}.bounds(prec)
			if most := lo.Rsh(lo, prec-32).Uint64(); uint64(sure) > most || uint64(sure)+3 < most {
				t.Errorf("sigma %v, cell %d: surely kept below %d, kept below %d", s, k, sure, most)
			}
		}
	}
}

func bracketed(t *testing.T, what string, c *cellTable, distribution [][]term) {
	t.Helper()
	if len(c.weight) != len(distribution) {
		t.Fatalf("%s: %d items, want %d", what, len(c.weight), len(distribution))
	}
	capacity := uint64(one63) >> c.mBits
	units := make([]uint64, len(c.alias))
	for b, k := range c.alias {
		if k.cut < guard || k.cut > capacity {
			t.Fatalf("%s: bucket %d begins with %d units of its item", what, b, k.cut)
		}
		for _, f := range []uint64{0, guard - 1, guard, k.cut - 1, k.cut, capacity - 1} {
			want := uint32(b)
			if f >= k.cut {
				want = k.other
			}
			if item, edge := c.draw(uint64(b)*capacity + min(f, capacity-1)); f < capacity &&
				(item != want || edge != (f < guard)) {
				t.Fatalf("%s: place %d of bucket %d is item %d, guard %v", what, f, b, item, edge)
			}
		}
		units[b] += k.cut
		units[k.other] += capacity - k.cut
	}
	for i, terms := range distribution {
		if units[i] != c.weight[i]+guard {
			t.Errorf("%s: item %d has %d units, want %d and the guard", what, i, units[i], c.weight[i])
		}
		if terms == nil {
			continue
		}
		const prec = 160
		lo, hi := new(big.Int), new(big.Int)
		for _, x := range terms {
			l, h := x.bounds(prec)
			if x.sign < 0 {
				l, h = h.Neg(h), l.Neg(l)
			}
			lo.Add(lo, l)
			hi.Add(hi, h)
		}
		least := new(big.Int).Lsh(new(big.Int).SetUint64(c.weight[i]), prec)
		most := new(big.Int).Lsh(new(big.Int).SetUint64(c.weight[i]+guard), prec)
		if lo.Mul(lo, c.scale).Cmp(least) < 0 || hi.Mul(hi, c.scale).Cmp(most) > 0 {
			t.Errorf("%s: the weight of item %d is not within its guard", what, i)
		}
	}
}

// What the guard units decide has the probability that is left over, and what lies beyond the Laplace
// table starts afresh. Failure probabilities as for chiSquare.
func TestRareDrawsHaveTheDistribution(t *testing.T) {
	const n = 5000
	seed := uint64(9)
	st := NewStreams(&seed).Stream(0, 0, "rare")
	// left is (A * sum of terms - weight)/guard
	left := func(c *cellTable, item uint64, terms ...term) float64 {
		const prec = 100
		sum := new(big.Int)
		for _, x := range terms {
			lo, _ := x.bounds(prec)
			if x.sign < 0 {
				lo.Neg(lo)
			}
			sum.Add(sum, lo)
		}
		sum.Mul(sum, c.scale)
		sum.Sub(sum, new(big.Int).Lsh(new(big.Int).SetUint64(c.weight[item]), prec))
		x, _ := new(big.Float).SetInt(sum).Float64()
		return x / math.Ldexp(guard, prec)
	}
	decide := func(what string, p float64, keep func() bool) {
		var kept float64
		for range n {
			if keep() {
				kept++
			}
		}
		chiSquare(t, what, []float64{kept, n - kept}, []float64{n * p, n - n*p})
	}
	for _, s := range []float64{0.3, 3, 40} {
		g, _ := NewDiscreteGaussian(s)
		l, _ := NewDiscreteLaplace(s)
		for item := range uint64(3) {
			y, k := item, item
			if g.t.shift == 0 {
				y, k = g.t.magnitude(item), l.t.magnitude(item)
			}
			p := left(&g.t, item, g.t.at(1, new(big.Int).SetUint64(y<<g.t.shift)))
			decide(fmt.Sprint("edge of gaussian ", s), p, func() bool { return g.edge(st, item, y<<g.t.shift) })
			p = left(&l.t, item, l.t.at(1, new(big.Int).SetUint64(k<<l.t.shift)),
				l.t.at(-1, new(big.Int).SetUint64((k+1)<<l.t.shift)))
			decide(fmt.Sprint("edge of laplace ", s), p, func() bool { return l.edge(st, item, k, false) })
		}
		if l.t.shift != 0 {
			continue
		}
		obs, exp := make([]float64, 200), make([]float64, 200)
		r := math.Exp(-1 / s)
		for i := range exp {
			exp[i] = n * (1 - r) * math.Pow(r, float64(i))
		}
		for i := range n {
			side := uint64(i % 2)
			z, ok := l.rarePoint(st, l.t.points()+side, false)
			if side == 0 {
				z = -z
			}
			if !ok || z < int64(l.t.cells) {
				t.Fatalf("laplace %v: %d beyond the table, %v", s, z, ok)
			}
			obs[min(z-int64(l.t.cells), 199)]++
		}
		chiSquare(t, fmt.Sprint("beyond laplace ", s), obs, exp)
	}
	// the first two terms of exp's series decide as exp does
	for range n {
		eh, el, u := uint64(0), st.Uint64()>>st.Uint64n(20), st.Uint64()
		if a, g := u>>1, expNeg(eh, el); a+guard < g || a > g+guard {
			if keepSlow(st, u, eh, el, func() term { t.Fatal("not reached"); return term{} }) != (a < g) {
				t.Fatalf("exp(-%v/2^64) against %v: decided wrongly", el, u)
			}
		}
	}
}

// Fill is a sequence of samples, word for word.
func TestFillIsSamples(t *testing.T) {
	seed := uint64(10)
	streams := NewStreams(&seed)
	for _, s := range []float64{0.3, 5, 100, 1e9} {
		g, _ := NewDiscreteGaussian(s)
		l, _ := NewDiscreteLaplace(s)
		a, b := make([]int64, 20000), make([]int64, 20000)
		st, again := streams.Stream(0, 0, "fill"), streams.Stream(0, 0, "fill")
		g.Fill(st, a[:len(a)/2])
		l.Fill(st, a[len(a)/2:])
		for i := range b {
			if i < len(b)/2 {
				b[i] = g.Sample(again)
			} else {
				b[i] = l.Sample(again)
			}
		}
		if !slices.Equal(a, b) || st.Uint64() != again.Uint64() {
			t.Errorf("scale %v: Fill and Sample differ", s)
		}
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	st := NewStreams(nil).Stream(0, 0, "alloc")
	dst := make([]int64, 1000)
	for _, s := range []float64{1, 5e4} {
		g, _ := NewDiscreteGaussian(s)
		l, _ := NewDiscreteLaplace(s)
		if n := testing.AllocsPerRun(20, func() { g.Fill(st, dst); l.Fill(st, dst) }); n != 0 {
			t.Errorf("%v allocations per fill at scale %v, want 0", n, s)
		}
		if n := testing.AllocsPerRun(1000, func() { dst[0] = g.Sample(st) + l.Sample(st) }); n != 0 {
			t.Errorf("%v allocations per sample at scale %v, want 0", n, s)
		}
	}
	s := NewStreams(nil)
	if n := testing.AllocsPerRun(20, func() { s.Reset(st, 3, 4, "relative sums") }); n != 0 {
		t.Errorf("%v allocations per stream reset, want 0", n)
	}
}

// A stream rooted in crypto/rand and one of a seed are the same cipher; both are timed.
func BenchmarkDiscrete(b *testing.B) {
	dst := make([]int64, 4096)
	seed := uint64(1)
	for _, s := range []float64{0.3, 1, 3, 10, 100, 1e4, 1e8} {
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
			for _, r := range []struct {
				name string
				seed *uint64
			}{{"seed", &seed}, {"system", nil}} {
				b.Run(fmt.Sprintf("distribution=%s/scale=%g/root=%s", c.name, s, r.name), func(b *testing.B) {
					st := NewStreams(r.seed).Stream(0, 0, "bench")
					for b.Loop() {
						c.fill(st, dst)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(dst)), "ns/sample")
				})
			}
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
