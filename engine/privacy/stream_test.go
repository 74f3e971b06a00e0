package privacy

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/internal/elementary"
)

func bigInt(x int64) *big.Int { return big.NewInt(x) }

func newLazy() *lazy { return &lazy{new(big.Int), 0} }

func TestStreamsAreNamed(t *testing.T) {
	seed, other := uint64(1), uint64(2)
	first := func(s *Streams, party, iteration int, purpose string) uint64 {
		return s.Stream(party, iteration, purpose).Uint64()
	}
	a := NewStreams(&seed)
	base := first(a, 1, 2, "sums")
	if base != first(NewStreams(&seed), 1, 2, "sums") {
		t.Error("the same name gives another stream")
	}
	for name, x := range map[string]uint64{"party": first(a, 2, 2, "sums"), "iteration": first(a, 1, 3, "sums"),
		"purpose": first(a, 1, 2, "sum"),
		"seed":    first(NewStreams(&other), 1, 2, "sums"), "run": first(a.Run(1), 1, 2, "sums"),
		"swapped": first(a, 2, 1, "sums"), "unseeded": first(NewStreams(nil), 1, 2, "sums")} {
		if x == base {
			t.Errorf("another %s gives the same stream", name)
		}
	}
	if first(a.Run(1), 1, 2, "sums") == first(a.Run(2), 1, 2, "sums") {
		t.Error("another run gives the same stream")
	}
	if one, two := first(NewStreams(nil), 0, 0, ""), first(NewStreams(nil), 0, 0, ""); one == two {
		t.Error("two roots of crypto/rand are the same")
	}
}

// A root without a seed is 256 bits of the system's randomness: over 64 roots every byte takes more than 20
// values (expected 57; fewer has probability below 1e-20 a byte) and every bit both.
func TestRootsAreTheSystems(t *testing.T) {
	var values [32]map[byte]bool
	var or, nor [32]byte
	for range 64 {
		for i, b := range NewStreams(nil).root {
			if values[i] == nil {
				values[i] = map[byte]bool{}
			}
			values[i][b] = true
			or[i] |= b
			nor[i] |= ^b
		}
	}
	for i := range values {
		if len(values[i]) <= 20 || or[i]&nor[i] != 0xff {
			t.Errorf("byte %d of a root takes %d values in 64 roots", i, len(values[i]))
		}
	}
}

func TestUint64nIsUniform(t *testing.T) {
	seed := uint64(3)
	st := NewStreams(&seed).Stream(0, 0, "n")
	const n = 60000
	obs, exp := make([]float64, 7), make([]float64, 7)
	for i := range exp {
		exp[i] = n / 7.
	}
	for range n {
		obs[st.Uint64n(7)]++
	}
	chiSquare(t, "Uint64n(7)", obs, exp)
	big := uint64(1)<<63 + 1
	for range 100 {
		if x := st.Uint64n(big); x >= big {
			t.Fatalf("%d is not below %d", x, big)
		}
	}
}

// Log and Exp against math's, which is within one unit in the last place itself.
func TestPortableLogAndExp(t *testing.T) {
	seed := uint64(4)
	st := NewStreams(&seed).Stream(0, 0, "log")
	for range 20000 {
		x := math.Ldexp(1+st.Float64(), int(st.Uint64n(200))-100)
		if got, want := elementary.Log(x), math.Log(x); math.Abs(got-want) > 3e-16*math.Abs(want)+1e-300 &&
			math.Abs(x-1) > 1e-3 {
			t.Fatalf("elementary.Log(%v) = %v, want %v", x, got, want)
		}
		y := 1400*st.Float64() - 700
		if got, want := elementary.Exp(y), math.Exp(y); math.Abs(got-want) > 5e-16*want {
			t.Fatalf("elementary.Exp(%v) = %v, want %v", y, got, want)
		}
	}
	if !math.IsInf(elementary.Log(0), -1) || !math.IsNaN(elementary.Log(-1)) || elementary.Log(1) != 0 ||
		elementary.Exp(0) != 1 || elementary.Exp(-1e4) != 0 || !math.IsInf(elementary.Exp(1e4), 1) {
		t.Error("special values are wrong")
	}
}

// kolmogorov fails if two samples of size n are too far apart: the two-sample statistic exceeds
// 2.7 sqrt(2/n) with probability 2 exp(-2 2.7^2) < 1e-6.
func kolmogorov(t *testing.T, what string, a, b []float64) {
	t.Helper()
	slices.Sort(a)
	slices.Sort(b)
	worst := stat.KolmogorovSmirnov(a, nil, b, nil)
	if worst > 2.7*math.Sqrt(2/float64(len(a))) {
		t.Errorf("%s: Kolmogorov distance %v", what, worst)
	}
}

// The continuous samplers against the discrete ones at a scale that makes the grid invisible.
func TestContinuousLaws(t *testing.T) {
	const n = 40000
	seed := uint64(6)
	streams := NewStreams(&seed)
	a, b := make([]float64, n), make([]float64, n)
	st := streams.Stream(0, 0, "continuous")
	for i := range a {
		a[i] = 2 * st.Normal()
	}
	g, _ := NewDiscreteGaussian(2 << 30)
	for i := range b {
		b[i] = float64(g.Sample(st)) / (1 << 30)
	}
	kolmogorov(t, "normal", a, b)
	st.FillLaplace(2, a)
	l, _ := NewDiscreteLaplace(2 << 30)
	for i := range b {
		b[i] = float64(l.Sample(st)) / (1 << 30)
	}
	kolmogorov(t, "Laplace", a, b)
	// five differences of Gamma(1/5) shares are Laplace
	for i := range a {
		a[i] = 0
		for range 5 {
			a[i] += 2 * (st.Gamma(0.2) - st.Gamma(0.2))
		}
	}
	kolmogorov(t, "Gamma shares", a, b)
}

func TestSamplersRefuseBadScales(t *testing.T) {
	for _, s := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-4, MaxScale * 2} {
		if _, err := NewDiscreteGaussian(s); err == nil {
			t.Errorf("sigma %v is accepted", s)
		}
		if _, err := NewDiscreteLaplace(s); err == nil {
			t.Errorf("b %v is accepted", s)
		}
	}
}
