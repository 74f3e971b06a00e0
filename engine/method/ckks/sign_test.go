package ckks

import (
	"math"
	"testing"
)

// halfSign is h(t), the real function that the ciphertexts evaluate.
func halfSign(t float64) float64 {
	return chebyshevOdd(outer[:], chebyshevOdd(inner[:], t)) / (2 * outerPeak)
}

// chebyshevOdd returns sum_i c[i] T_{2i+1}(x) by Clenshaw's recurrence.
func chebyshevOdd(c []float64, x float64) float64 {
	var b1, b2 float64
	for k := 2*len(c) - 1; k >= 1; k-- {
		var a float64
		if k%2 == 1 {
			a = c[k/2]
		}
		b1, b2 = a+float64(2*x*b1)-b2, b1
	}
	return float64(x*b1) - b2
}

func TestSignConstants(t *testing.T) {
	var peak, far, inside float64
	const steps = 1 << 14
	for i := 0; i <= steps; i++ {
		x := float64(i) / steps
		peak = max(peak, math.Abs(chebyshevOdd(outer[:], x)))
		inside = max(inside, math.Abs(chebyshevOdd(inner[:], x)))
		if x >= undecided {
			far = max(far, math.Abs(halfSign(x)-0.5))
		}
		if halfSign(x) != -halfSign(-x) {
			t.Fatalf("h is not odd at %g", x)
		}
		if h := halfSign(x); h < 0 || h > 0.5 {
			t.Fatalf("h(%g) = %g leaves [0, 1/2]", x, h)
		}
	}
	if peak > outerPeak || peak < outerPeak-1e-5 {
		t.Errorf("peak %.9f, constant %.9f", peak, outerPeak)
	}
	if far > signError || far < signError-1e-5 {
		t.Errorf("error %.9f, constant %.9f", far, signError)
	}
	if inside > 1 {
		t.Errorf("the inner polynomial reaches %g, outside the outer one's domain", inside)
	}
}

// Each polynomial is the best of its degree: its error takes its maximum as often as it has coefficients and once more,
// with alternating signs (Chebyshev), and no more than that is in the composition's.
func TestSignPolynomialsAreMinimax(t *testing.T) {
	low := undecided
	for _, p := range []struct {
		name         string
		coefficients []float64
		middle       float64 // of the values, 1 but for what it is divided by
	}{{"inner", inner[:], (chebyshevOdd(inner[:], undecided) + 1 - 0x1p-14) / 2}, {"outer", outer[:], 1}} {
		const steps = 1 << 16
		var peaks []float64 // of runs of one sign
		least := math.Inf(1)
		for i := range steps + 1 {
			value := chebyshevOdd(p.coefficients, low+(1-low)*float64(i)/steps)
			least = min(least, value)
			e := value - p.middle
			switch n := len(peaks); {
			case n == 0 || peaks[n-1]*e < 0:
				peaks = append(peaks, e)
			case math.Abs(e) > math.Abs(peaks[n-1]):
				peaks[n-1] = e
			}
		}
		if len(peaks) != len(p.coefficients)+1 {
			t.Errorf("%s: the error alternates %d times, want %d", p.name, len(peaks), len(p.coefficients)+1)
		}
		for _, e := range peaks {
			if math.Abs(math.Abs(e)-math.Abs(peaks[0])) > 1e-6*math.Abs(peaks[0]) {
				t.Errorf("%s: peaks of %v are not equal", p.name, peaks)
				break
			}
		}
		low = least
	}
}

// The products that the ciphertexts evaluate must be the polynomials.
func TestSignPlansAreThePolynomials(t *testing.T) {
	for i := -100; i <= 100; i++ {
		x := float64(i) / 100
		var zero [signStages]float64
		if got, want := roundedSign(x, &zero), halfSign(x); math.Abs(got-want) > 1e-13 {
			t.Fatalf("h(%g) = %.16g, want %.16g", x, got, want)
		}
	}
	// Of any polynomial of degree 15, too.
	any := [8]float64{0.3, -0.7, 0.2, 0.9, -0.4, 0.1, 0.8, 0.5}
	o := splitFifteen(any)
	for i := -100; i <= 100; i++ {
		x := float64(i) / 100
		t2 := 2*x*x - 1
		t4, u := 2*t2*t2-1, 2*x*t2+o.r*x
		got := o.a*(2*t4*t4-1+o.s*t4+o.t)*(t4*u+o.b*x+o.c*u) + o.f*x + o.g*u
		if want := chebyshevOdd(any[:], x); math.Abs(got-want) > 1e-12 {
			t.Fatalf("p(%g) = %.16g, want %.16g", x, got, want)
		}
	}
}
