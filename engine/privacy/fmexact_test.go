package privacy

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"
)

// expm1Complex is e^z - 1, accurate near 0.
func expm1Complex(z complex128) complex128 {
	half, s := math.Sin(imag(z)/2), math.Sin(imag(z))
	return complex(float64(math.Expm1(real(z))*math.Cos(imag(z)))-2*half*half, math.Exp(real(z))*s)
}

// log1pComplex is log(1+z), accurate near 0.
func log1pComplex(z complex128) complex128 {
	x, y := real(z), imag(z)
	return complex(math.Log1p(2*x+float64(x*x)+float64(y*y))/2, math.Atan2(y, 1+x))
}

// moment is E[e^(zL)] - 1 of one key's loss L on continuous hashes, with a record or without: the closed form of T3 at
// complex orders z + 1.
func (f FM) moment(z complex128, with bool) complex128 {
	n, a := complex(float64(f.Phantoms), 0), z+1
	step := complex(math.Log1p(1/float64(f.Phantoms)), 0)
	b, rest := n+a, n*expm1Complex(a*step)-a
	if !with {
		b, rest = n+1-a, (n+1)*expm1Complex(-a*step)+a
	}
	var mix complex128
	binomial := -1.0
	for t := 1; t <= f.Parties; t++ {
		binomial *= -float64(f.Parties-t+1) / float64(t)
		mix += complex(binomial, 0) / (n*complex(f.others(t), 0) + b)
	}
	return mix * rest
}

// inverted is delta at epsilon of so many keys without a grid of losses, by the inversion of their moments,
//
//	delta = 1/(2 pi i) integral of E[e^(zL)]^keys e^(-z epsilon)/(z(z+1)) dz over z = c + is,
//
// by the trapezoidal rule, whose aliases are deltas at epsilons that differ by more than the losses reach.
func (f FM) inverted(keys int, epsilon float64, with bool) float64 {
	m := float64(keys)
	total := func(c float64) float64 { return m * real(log1pComplex(f.moment(complex(c, 0), with))) }
	exponent := func(c float64) float64 {
		if x := total(c) - float64(c*epsilon) - math.Log(c) - math.Log1p(c); !math.IsNaN(x) {
			return x
		}
		return math.Inf(1)
	}
	most := 1e6
	if !with { // beyond, the moment is infinite
		most = float64(f.Phantoms) * (f.others(1) + 1) * (1 - 1e-9)
	}
	at := 1e-6
	for c := at; c < most; c *= 1.02 {
		if exponent(c) < exponent(at) {
			at = c
		}
	}
	peak, d := exponent(at), 1e-3*at
	sd := math.Sqrt(math.Abs(total(at+d)-2*total(at)+total(at-d))) / d
	mean := (total(at+d) - total(at-d)) / (2 * d)
	step := 2 * math.Pi / (44*sd + 2*math.Abs(mean-epsilon) + 60/at)
	sum, largest := 0.0, 0.0
	for i := range 1 << 19 {
		z := complex(at, float64(i)*step)
		w := cmplx.Exp(complex(m, 0)*log1pComplex(f.moment(z, with)) - z*complex(epsilon, 0) - cmplx.Log(z) -
			log1pComplex(z) - complex(peak, 0))
		if i == 0 {
			w /= 2
		}
		sum += real(w)
		if largest = max(largest, cmplx.Abs(w)); i%1024 == 1023 { // of the last ones
			if largest*float64(i) < 1e-7*math.Abs(sum) {
				break
			}
			largest = 0
		}
	}
	return sum * step / math.Pi * math.Exp(peak)
}

// The number of phantoms is the least that keeps the budget, or at most a hundredth more, by a computation that has
// nothing in common with the accountant's: over budgets, numbers of keys, parties and clusters from end to end.
func TestFMPhantomsAgainstInvertedMoments(t *testing.T) {
	for _, c := range []struct {
		b                    Budget
		parties, cells, keys int
	}{
		{Budget{0.5, 5e-5}, 2, 5, 4096}, {Budget{0.01, 5e-5}, 2, 2, 4096}, {Budget{0.01, 1e-9}, 3, 2, 512},
		{Budget{0.1, 1e-12}, 2, 5, 4096}, {Budget{0.1, 1e-9}, 12, 2, 4096}, {Budget{1, 1e-9}, 2, 64, 65536},
		{Budget{1, 1e-6}, 4, 5, 65536}, {Budget{1, 0.1}, 16, 2, 65536}, {Budget{4, 1e-6}, 3, 19, 65536},
		{Budget{4, 0.01}, 2, 255, 65536}, {Budget{4, 1e-9}, 2, 2, 64}, {Budget{10, 0.1}, 2, 5, 4096},
		{Budget{10, 1e-9}, 2, 255, 1 << 20}, {Budget{50, 1e-6}, 2, 2, 65536}, {Budget{50, 1e-12}, 2, 2, 1 << 20},
	} {
		f := FM{Gamma: 1. / 1024, Parties: c.parties, Cells: c.cells}
		n, err := FMPhantomsPLD(c.b, f, c.keys)
		if err != nil {
			t.Fatal(err)
		}
		delta := func(n int) float64 {
			f.Phantoms = n
			return max(f.inverted(c.keys, c.b.Epsilon, false), f.inverted(c.keys, c.b.Epsilon, true))
		}
		what := fmt.Sprintf("%+v", c)
		at := delta(n)
		f.Phantoms = n
		a := &PLDAccountant{}
		a.Compose(f, c.keys)
		if said := a.Delta(c.b.Epsilon); !(at > 0 && at <= said*(1+1e-6)) {
			t.Errorf("%s: %d phantoms have delta %v, the accountant says %v", what, n, at, said)
		}
		if at > c.b.Delta {
			t.Errorf("%s: %d phantoms have delta %v", what, n, at)
		}
		if less := n - 1 - n/100; less > 0 && delta(less) < c.b.Delta {
			t.Errorf("%s: %d phantoms are more than needed, %d have delta %v", what, n, less, delta(less))
		}
		t.Logf("%s: %d phantoms, delta %.4g", what, n, at)
	}
}
