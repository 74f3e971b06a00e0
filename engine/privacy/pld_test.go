package privacy

import (
	"math"
	"testing"
	"time"
)

func TestPLDGaussianAgainstAnalytic(t *testing.T) {
	for _, c := range []struct {
		scale float64
		n     int
		delta float64
	}{
		{1, 1, 1e-5}, {10, 1, 1e-6}, {5, 10, 1e-6}, {50, 100, 1e-5}, {30, 1000, 1e-6},
		{100, 10000, 1e-5}, {430, 10000, 1e-6}, {50, 10000, 1e-10}, {1000, 10000, 1e-5}, {20, 10000, 1e-7},
	} {
		t0 := time.Now()
		a := &PLDAccountant{}
		a.Compose(Gaussian{Scale: c.scale}, c.n)
		got := a.Epsilon(c.delta)
		want := EpsilonOfMu(math.Sqrt(float64(c.n))/c.scale, c.delta, 0)
		o := &PLDAccountant{Optimistic: true}
		o.Compose(Gaussian{Scale: c.scale}, c.n)
		low := o.Epsilon(c.delta)
		t.Logf("scale %v n %v delta %v: pld %.8g analytic %.8g (%+.4f%%), optimistic %.8g, %v", c.scale, c.n, c.delta, got, want, 100*(got/want-1), low, time.Since(t0))
		if !(got >= want && got <= want*1.005) {
			t.Errorf("scale %v n %v delta %v: epsilon %v, want %v to 0.5%% above", c.scale, c.n, c.delta, got, want)
		}
		if !(low <= want && low >= want*0.98) {
			t.Errorf("scale %v n %v delta %v: optimistic epsilon %v, want up to 2%% below %v", c.scale, c.n, c.delta, low, want)
		}
	}
}
