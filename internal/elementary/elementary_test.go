package elementary

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLogAndExpAreNearTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-300, 1e300).Draw(t, "x")
		if got, want := Log(x), math.Log(x); math.Abs(got-want) > 2.3e-16*max(math.Abs(want), 1e-3) {
			t.Fatalf("Log(%v) = %v, want %v", x, got, want)
		}
		y := rapid.Float64Range(-700, 700).Draw(t, "y")
		if got, want := Exp(y), math.Exp(y); math.Abs(got-want) > 4.5e-16*want {
			t.Fatalf("Exp(%v) = %v, want %v", y, got, want)
		}
	})
	inf := math.Inf(1)
	for _, c := range []struct{ got, want float64 }{
		{Log(1), 0}, {Log(0), -inf}, {Log(inf), inf}, {Exp(0), 1}, {Exp(-inf), 0}, {Exp(inf), inf}, {Exp(710), inf},
		{Exp(-746), 0},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if !math.IsNaN(Log(-1)) || !math.IsNaN(Exp(math.NaN())) {
		t.Error("no NaN where there is no value")
	}
}

// The bits of some values, which every architecture gives.
func TestBits(t *testing.T) {
	h := uint64(14695981039346656037)
	for i := range 1000 {
		for _, v := range []float64{Log(float64(float64(i)*1.37) + 0.01), Exp(float64(i)/7 - 60)} {
			h = (h ^ math.Float64bits(v)) * 1099511628211
		}
	}
	const want = uint64(0x789bca68fbbb34f3)
	if h != want {
		t.Errorf("hash %#x, want %#x", h, want)
	}
}
