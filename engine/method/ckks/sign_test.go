package ckks

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// at is h(t), the real function that the ciphertexts evaluate.
func (s *composite) at(t float64) float64 {
	for _, p := range s.polynomials {
		t = chebyshevOdd(p.odd, t)
	}
	return t
}

var signs = map[string]*composite{"pairs": pairSign, "early rounds": earlySign, "ranks": rankSign,
	"many ranks": sharpRankSign}

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
	for name, s := range signs {
		var far, most float64
		const steps = 1 << 14
		for i := 0; i <= steps; i++ {
			x := float64(i) / steps
			last := len(s.polynomials) - 1
			most = max(most, math.Abs(chebyshevOdd(s.polynomials[last].odd, x)))
			for _, p := range s.polynomials[:last] {
				if math.Abs(chebyshevOdd(p.odd, x)) > 1 {
					t.Fatalf("%s: a polynomial leaves the domain of the next one at %g", name, x)
				}
			}
			if x >= s.undecided {
				far = max(far, math.Abs(s.at(x)-0.5))
			}
			if s.at(x) != -s.at(-x) {
				t.Fatalf("%s: h is not odd at %g", name, x)
			}
			if h := s.at(x); h < 0 || h > 0.5 {
				t.Fatalf("%s: h(%g) = %g leaves [0, 1/2]", name, x, h)
			}
		}
		if peak := 2 * s.peak * most; peak > s.peak || peak < s.peak-1e-5 {
			t.Errorf("%s: peak %.9f, constant %.9f", name, peak, s.peak)
		}
		if far > s.error || far < s.error-1e-5 {
			t.Errorf("%s: error %.9f, constant %.9f", name, far, s.error)
		}
	}
	if pairSign.depth() != signDepth {
		t.Errorf("%d levels by pairs, constant %d", pairSign.depth(), signDepth)
	}
	if pairSign.stages() != signStages {
		t.Errorf("%d stages by pairs, constant %d", pairSign.stages(), signStages)
	}
}

// Each polynomial is the best of its degree: its error takes its maximum as often as it has coefficients and once more,
// with alternating signs (Chebyshev), and no more than that is in the composition's.
func TestSignPolynomialsAreMinimax(t *testing.T) {
	for name, s := range signs {
		low := s.undecided
		for i, p := range s.polynomials {
			middle, last := 0.5/s.peak, i == len(s.polynomials)-1
			if !last {
				middle = (chebyshevOdd(p.odd, low) + 1/(1+0x1p-14)) / 2
			}
			low = alternates(t, fmt.Sprintf("%s, %d", name, i+1), p.odd, low, middle)
		}
	}
}

// Products of subtrees of the indicator's factors stay small at all ranks, which roundings grow with.
func TestRanksAreSpreadOverTheTree(t *testing.T) {
	for k := 2; k <= maxRankClusters; k++ {
		roots := ranks(k)
		if sorted := slices.Sorted(slices.Values(roots)); len(roots) != k-1 || sorted[0] != 2 || sorted[k-2] != k {
			t.Fatalf("k = %d: roots %v", k, roots)
		}
		mean := 1.0
		for _, i := range roots {
			mean *= math.Pow(float64(i-1), 1/float64(k-1))
		}
		for size := 1; size < k; size *= 2 {
			for first := 0; first < k-1; first += size {
				for rank := 1; rank <= k; rank++ {
					product := 1.0
					for _, i := range roots[first:min(k-1, first+size)] {
						product *= float64(i-rank) / mean
					}
					if math.Abs(product) > 16 { // in their own order 30,000
						t.Errorf("k = %d: %d factors from %d on make %g of rank %d", k, size, first, product, rank)
					}
				}
			}
		}
	}
}

// alternates fails the test if a polynomial is not the best for a constant from low to 1. It returns its least value.
func alternates(t *testing.T, name string, coefficients []float64, low, middle float64) (least float64) {
	t.Helper()
	const steps = 1 << 16
	var peaks []float64 // of runs of one sign
	least = math.Inf(1)
	for i := range steps + 1 {
		value := chebyshevOdd(coefficients, low+(1-low)*float64(i)/steps)
		least = min(least, value)
		e := value - middle
		switch n := len(peaks); {
		case n == 0 || peaks[n-1]*e < 0:
			peaks = append(peaks, e)
		case math.Abs(e) > math.Abs(peaks[n-1]):
			peaks[n-1] = e
		}
	}
	if len(peaks) != len(coefficients)+1 {
		t.Errorf("%s: the error alternates %d times, want %d", name, len(peaks), len(coefficients)+1)
	}
	for _, e := range peaks {
		if math.Abs(math.Abs(e)-math.Abs(peaks[0])) > 1e-6*math.Abs(peaks[0]) {
			t.Errorf("%s: peaks of %v are not equal", name, peaks)
			break
		}
	}
	return least
}

// The products that the ciphertexts evaluate must be the polynomials.
func TestSignPlansAreThePolynomials(t *testing.T) {
	for i := -100; i <= 100; i++ {
		x := float64(i) / 100
		for name, s := range signs {
			if got, want := s.rounded(x, make([]float64, s.stages())), s.at(x); math.Abs(got-want) > 1e-13 {
				t.Fatalf("%s: h(%g) = %.16g, want %.16g", name, x, got, want)
			}
		}
	}
	// Of any polynomial of degree 15, too.
	any := []float64{0.3, -0.7, 0.2, 0.9, -0.4, 0.1, 0.8, 0.5}
	o := fifteen(any)
	for i := -100; i <= 100; i++ {
		x := float64(i) / 100
		t2 := 2*x*x - 1
		t4, u := 2*t2*t2-1, 2*x*t2+o.r*x
		got := o.a*(2*t4*t4-1+o.s*t4+o.t)*(t4*u+o.b*x+o.c*u) + o.f*x + o.g*u
		if want := chebyshevOdd(any, x); math.Abs(got-want) > 1e-12 {
			t.Fatalf("p(%g) = %.16g, want %.16g", x, got, want)
		}
	}
}
