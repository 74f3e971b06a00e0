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
		if x >= 1.0/16 {
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

// The products that the ciphertexts evaluate must be the polynomials.
func TestSignPlansAreThePolynomials(t *testing.T) {
	low := func(x float64, p signPlan) (out, u, t4, t8 float64) {
		t2 := 2*x*x - 1
		t4 = 2*t2*t2 - 1
		u = 2*x*t2 + p.r*x
		return p.a*t4*u + p.b*x + p.c*u, u, t4, 2*t4*t4 - 1
	}
	for i := -100; i <= 100; i++ {
		x := float64(i) / 100
		if got, _, _, _ := low(x, innerPlan); math.Abs(got-chebyshevOdd(inner[:], x)) > 1e-12 {
			t.Fatalf("inner(%g) = %g, want %g", x, got, chebyshevOdd(inner[:], x))
		}
		q, u, t4, t8 := low(x, outerPlan)
		got := t8*q + t4*(outerPlan.d*x+outerPlan.e*u) + outerPlan.f*x + outerPlan.g*u
		if want := chebyshevOdd(outer[:], x) / (2 * outerPeak); math.Abs(got-want) > 1e-12 {
			t.Fatalf("outer(%g) = %g, want %g", x, got, want)
		}
	}
}
