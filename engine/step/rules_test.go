package step

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{0.5, 0.5}, {1, 1}, {-1, -1}, {1.25, 0.75}, {-1.25, -0.75}, {3.5, -0.5}, {-5.5, -0.5 + 0}, {7, -1}, {9, 1},
	} {
		if got := fold(c.x, -1, 1); got != c.want {
			t.Errorf("fold(%g) = %g, want %g", c.x, got, c.want)
		}
	}
	if got := fold(12, 4, 4); got != 4 {
		t.Errorf("an empty interval gives %g", got)
	}
}

// The remainder form equals reflecting one bound after the other.
func TestFoldEqualsRepeatedReflection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := float64(rapid.IntRange(-64, 64).Draw(t, "lo"))
		hi := lo + float64(rapid.IntRange(1, 64).Draw(t, "width"))
		x := float64(rapid.IntRange(-4096, 4096).Draw(t, "x")) / 8
		want := x
		for want < lo || want > hi {
			if want < lo {
				want = 2*lo - want
			} else {
				want = 2*hi - want
			}
		}
		if got := fold(x, lo, hi); got != want {
			t.Fatalf("fold(%g, %g, %g) = %g, want %g", x, lo, hi, got, want)
		}
	})
}

func TestPostRules(t *testing.T) {
	if got := Truncate.Apply(3, -1, 1); got != 1 {
		t.Errorf("truncate 3: %g", got)
	}
	if got := Keep.Apply(3, -1, 1); got != 3 {
		t.Errorf("none 3: %g", got)
	}
	if got := Fold.Apply(3, -1, 1); got != -1 {
		t.Errorf("fold 3: %g", got)
	}
}

// The split spends exactly the budget and beats the equal split (THEOREMS.md T2).
func TestSplitGaussianSpendsTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 64).Draw(t, "d")
		r := rapid.Float64Range(0.01, 4).Draw(t, "r")
		m := r * rapid.Float64Range(0.01, 1).Draw(t, "m/r")
		size := rapid.Float64Range(2, 1e5).Draw(t, "size")
		mu2 := rapid.Float64Range(1e-6, 10).Draw(t, "mu2")
		s, c := SplitGaussian(r, m, size, d, mu2)
		if spent := r*r/(s*s) + 1/(c*c); math.Abs(spent/mu2-1) > 1e-9 {
			t.Fatalf("spends %g of %g", spent, mu2)
		}
	})
	mse := func(s, c float64) float64 { return (2*s*s + 0.5*0.5*c*c) / (200 * 200) }
	s, c := SplitGaussian(1, 0.5, 200, 2, 0.02)
	equal := math.Sqrt(2 / 0.02)
	if got, eq := mse(s, c), mse(equal, equal); got >= eq || math.Abs(got-4.6e-3) > 4e-4 {
		t.Errorf("mean squared error %g, equal split %g", got, eq)
	}
}
