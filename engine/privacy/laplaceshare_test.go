package privacy

import (
	"fmt"
	"math"
	"math/big"
	"testing"
)

func newShare(t *testing.T, b float64, shares int) *LaplaceShare {
	t.Helper()
	l, err := newLaplaceShare(b, shares)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Any t shares of t add up to discrete Laplace noise, and one more than needed is more spread. Each
// chi-square fails with probability below 1e-8 (see chiSquare), that of the variances with less than 1e-9.
func TestLaplaceSharesAddUpToTheWhole(t *testing.T) {
	for _, c := range []struct {
		b float64
		t int
	}{{0.1, 2}, {0.7, 2}, {2.5, 1}, {2.5, 3}, {31.9, 2}, {100, 5}, {12345, 2}} {
		l := newShare(t, c.b, c.t)
		sum := func(st *Stream) (z int64) {
			for range c.t {
				z += l.sample(st)
			}
			return z
		}
		binned(t, fmt.Sprintf("%d shares of %v", c.t, c.b), sum,
			func(z float64) float64 { return -math.Abs(z) / c.b }, c.b, 200000)
	}
	// Large scales: the mean of |z| of the whole is b but for 1/b, the deviation of the mean of n draws
	// b/sqrt(n), and six and a half of them have probability below 1e-9.
	const n = 20000
	for _, b := range []float64{1e6, 1 << 30, MaxScale} {
		l := newShare(t, b, 3)
		seed := uint64(11)
		st := NewStreams(&seed).Stream(0, 0, "large shares")
		var mean float64
		for range n {
			mean += math.Abs(float64(l.sample(st)+l.sample(st)+l.sample(st))) / n
		}
		if math.Abs(mean-b) > 6.5*b/math.Sqrt(n) {
			t.Errorf("three shares of %v: mean magnitude %v", b, mean)
		}
	}
}

// One share has the distribution of the difference of two negative binomials NB(1/t, p), summed here from their
// probabilities (r)_k/k! p^k (1-p)^r.
func TestLaplaceShareIsANegativeBinomialDifference(t *testing.T) {
	for _, c := range []struct {
		b float64
		t int
	}{{0.3, 2}, {1, 4}, {3, 2}, {8, 3}, {5, 20}} {
		l := newShare(t, c.b, c.t)
		r, p := 1/float64(c.t), math.Exp(-1/c.b)
		span := int(45*c.b) + 20
		one := make([]float64, span+1)
		one[0] = math.Pow(1-p, r)
		for k := 1; k <= span; k++ {
			one[k] = one[k-1] * p * (r + float64(k-1)) / float64(k)
		}
		distribution := func(z float64) float64 {
			sum := 0.0
			for k := int(math.Abs(z)); k <= span; k++ {
				sum += one[k] * one[k-int(math.Abs(z))]
			}
			return math.Log(sum)
		}
		table := map[float64]float64{}
		logp := func(z float64) float64 {
			if _, ok := table[z]; !ok {
				table[z] = distribution(z)
			}
			return table[z]
		}
		binned(t, fmt.Sprintf("a share of %d of %v", c.t, c.b), l.sample, logp, c.b, 300000)
	}
}

// The tables behind a share are exact: every magnitude's true rate is at most what is proposed and within
// the guard of the ratio that decides; the numbers of proposals are bracketed as those of the other
// samplers are; what lies beyond the tables has room there.
func TestLaplaceShareTablesBracketTheDistribution(t *testing.T) {
	const prec = 200
	one := new(big.Int).Lsh(big.NewInt(1), 63)
	for _, b := range []float64{1.0 / 1024, 0.1, 0.9, 1, 7.3, 32, 12345, 1e8, MaxScale} {
		for _, shares := range []int{1, 2, 7, 1 << 20} {
			l := newShare(t, b, shares)
			seed := uint64(5)
			st := NewStreams(&seed).Stream(0, 0, "places")
			next := uint64(1)
			for i := range l.cells {
				c := &l.cells[i]
				if c.first != next {
					t.Fatalf("b %v: cell %d begins at %d, the one before ends at %d", b, i, c.first, next)
				}
				next += 1 << c.shift
				for _, k := range []uint64{c.first, next - 1, c.first + st.Uint64()&(1<<c.shift-1)} {
					mul, div, x := l.proposed(k, c.shift)
					lo, hi := x.bounds(prec)
					div.Mul(div, new(big.Int).SetUint64(c.rate))
					for _, v := range []*big.Int{lo, hi} {
						v.Mul(v, mul).Lsh(v, 63).Div(v, div).Rsh(v, prec)
					}
					got := new(big.Int).SetUint64(l.ratio(c, k))
					if hi.Cmp(one) > 0 || new(big.Int).Abs(lo.Sub(lo, got)).Cmp(big.NewInt(guard/2)) > 0 {
						t.Fatalf("b %v, %d shares: magnitude %d is kept with %v/2^63, should be %v", b, shares, k, got, hi)
					}
					if sure := new(big.Int).Lsh(big.NewInt(int64(c.sure)), 31); sure.Cmp(hi) > 0 {
						t.Fatalf("b %v, %d shares: magnitude %d is surely kept with %v, its chance is %v", b, shares, k, sure, hi)
					}
					// the rate itself, from the definition
					want := 2 * math.Exp(-float64(k)/b) / (float64(shares) * float64(k))
					if rate := float64(c.rate) / math.Ldexp(1, rateBits+
						int(c.shift)) * float64(l.ratio(c, k)) / one63; math.Abs(rate-want) > 1e-9*want+0x1p-100 {
						t.Fatalf("b %v, %d shares: rate of %d is %v, want %v", b, shares, k, rate, want)
					}
				}
			}
			// the tail begins where the cells end and its first interval has room
			mul, div, x := l.proposed(next, l.tailShift())
			_, hi := x.bounds(prec)
			if hi.Mul(hi, mul).Lsh(hi, 1).Cmp(div.Lsh(div, prec)) > 0 {
				t.Errorf("b %v, %d shares: the tail from %d on has no room", b, shares, next)
			}
			last := len(l.t.weight) - 1
			for n, certain := range l.t.weight {
				mul, div, x := l.chance(uint64(n))
				lo, hi := x.bounds(prec)
				for _, v := range []*big.Int{lo, hi} {
					v.Mul(v, mul).Div(v, div).Rsh(v, prec)
				}
				if n == last { // all that is beyond: twice the first at most
					hi.Lsh(hi, 1)
				}
				base := new(big.Int).SetUint64(certain)
				if lo.Add(lo, big.NewInt(1)).Cmp(base) < 0 || hi.Cmp(base.Add(base, big.NewInt(guard))) >= 0 {
					t.Fatalf("b %v, %d shares: %d proposals weigh %v to %v, the table has %d and the guard", b, shares, n,
						lo, hi, certain)
				}
			}
		}
	}
}

// What the guard units decide is right in the mean: over 4000 draws a chance is met within 0.08, ten
// deviations of at most 0.008.
func TestLaplaceShareRareDecisions(t *testing.T) {
	l := newShare(t, 3, 2)
	seed := uint64(9)
	st := NewStreams(&seed).Stream(0, 0, "rare")
	const n = 4000
	for _, item := range []uint64{0, 1, 5} {
		mul, div, x := l.chance(item)
		_, weight := x.bounds(200)
		weight.Mul(weight, mul).Div(weight, div).Rsh(weight, 200-20)
		want := (float64(new(big.Int).Sub(weight,
			new(big.Int).Lsh(new(big.Int).SetUint64(l.t.weight[item]), 20)).Int64()) / (1 << 20)) / guard
		kept := 0.0
		for range n {
			if l.numberEdge(st, item) {
				kept++
			}
		}
		if math.Abs(kept/n-want) > 0.08 {
			t.Errorf("the guard units of %d are kept with %v, want %v", item, kept/n, want)
		}
	}
}

func TestLaplaceShareRefusals(t *testing.T) {
	for _, c := range []struct {
		b float64
		t int
	}{{0, 2}, {math.NaN(), 2}, {MaxScale * 2, 2}, {1, 0}, {1, 1<<20 + 1}} {
		if _, err := newLaplaceShare(c.b, c.t); err == nil {
			t.Errorf("scale %v in %d shares is taken", c.b, c.t)
		}
	}
}

func BenchmarkLaplaceShare(b *testing.B) {
	for _, scale := range []float64{10, 1 << 20, 1 << 40} {
		for _, t := range []int{2, 8} {
			b.Run(fmt.Sprintf("b=%g/t=%d", scale, t), func(b *testing.B) {
				l, err := newLaplaceShare(scale, t)
				if err != nil {
					b.Fatal(err)
				}
				st, dst := NewStreams(nil).Stream(0, 0, ""), make([]int64, 1)
				b.ReportAllocs()
				for b.Loop() {
					l.Fill(st, dst)
				}
			})
		}
	}
}
