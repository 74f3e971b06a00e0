package privacy

import (
	"fmt"
	"math"
	"math/rand/v2"
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
		t.Logf("scale %v n %v delta %v: pld %.8g analytic %.8g (%+.4f%%), optimistic %.8g, %v", c.scale, c.n, c.delta, got,
			want, 100*(got/want-1), low, time.Since(t0))
		if !(got >= want && got <= want*1.005) {
			t.Errorf("scale %v n %v delta %v: epsilon %v, want %v to 0.5%% above", c.scale, c.n, c.delta, got, want)
		}
		if !(low <= want && low >= want*0.98) {
			t.Errorf("scale %v n %v delta %v: optimistic epsilon %v, want up to 2%% below %v", c.scale, c.n, c.delta, low, want)
		}
	}
}

// enumerate is delta at each epsilon of the composition of distributions (p, q), by going through all outcomes.
func enumerate(distributions [][2][]float64, epsilons []float64) []float64 {
	delta := make([]float64, len(epsilons))
	var walk func(i int, p, q float64)
	walk = func(i int, p, q float64) {
		if i == len(distributions) {
			for j, e := range epsilons {
				delta[j] += math.Max(0, p-math.Exp(e)*q)
			}
			return
		}
		for o := range distributions[i][0] {
			walk(i+1, p*distributions[i][0][o], q*distributions[i][1][o])
		}
	}
	walk(0, 1, 1)
	return delta
}

// Random small distributions, composed: the exact delta lies between the optimistic and the pessimistic
// accountant's, in both orders of the neighbours, and both are near. Laws with a heavy lowest loss,
// ties, and outcomes that only one neighbour gives are among them.
func TestPLDEnclosesEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	distribution := func(n int, spread float64, lost bool) [2][]float64 {
		var out [2][]float64
		for side := range out {
			sum := 0.0
			for range n {
				x := math.Exp(spread * r.NormFloat64())
				out[side] = append(out[side], x)
				sum += x
			}
			for i := range out[side] {
				out[side][i] /= sum
			}
		}
		if lost { // an outcome that q never gives
			rest := 1 - out[1][0]
			out[1][0] = 0
			for i := range out[1] {
				out[1][i] /= rest
			}
		}
		return out
	}
	epsilons := []float64{0, 0.05, 0.5, 2}
	for trial := range 20 {
		spread := []float64{0.02, 0.3, 1}[trial%3]
		a := distribution(3+r.IntN(3), spread, trial%10 == 9)
		b := distribution(2+r.IntN(3), spread, false)
		if trial%4 == 0 { // most of the mass on the lowest loss
			a = [2][]float64{{0.9, 0.1}, {0.95, 0.05}}
		}
		na, nb := 1+r.IntN(4), r.IntN(4)
		var distributions [][2][]float64
		for range na {
			distributions = append(distributions, a)
		}
		for range nb {
			distributions = append(distributions, b)
		}
		want := enumerate(distributions, epsilons)
		up, low := &PLDAccountant{}, &PLDAccountant{Optimistic: true}
		for _, x := range []struct {
			distribution [2][]float64
			n            int
		}{{a, na}, {b, nb}} {
			l, err := lossesOf(x.distribution[0], x.distribution[1])
			if err != nil {
				t.Fatal(err)
			}
			up.composeLosses(x.n, l)
			low.composeLosses(x.n, l)
		}
		for i, e := range epsilons {
			hi, lo := up.Delta(e), low.Delta(e)
			if hi < want[i]*(1-1e-12)-1e-15 || lo > want[i]*(1+1e-12)+1e-15 {
				t.Errorf("trial %d: delta(%v) is %.12g, not between %.12g and %.12g", trial, e, want[i], lo, hi)
			}
			if hi-lo > 0.01*want[i]+1e-4*spread {
				t.Errorf("trial %d: delta(%v) is %.6g, the bounds %.6g and %.6g are far", trial, e, want[i], lo, hi)
			}
		}
	}
}

// BenchmarkPLDGaussian times epsilon at delta 1e-6 of n compositions, and reports by how much it is
// above the exact one of the Gaussian mechanism.
func BenchmarkPLDGaussian(b *testing.B) {
	for _, n := range []int{1, 100, 10000} {
		b.Run(fmt.Sprintf("rounds=%d", n), func(b *testing.B) {
			scale := 4.3 * math.Sqrt(float64(n))
			want := EpsilonOfMu(math.Sqrt(float64(n))/scale, 1e-6, 0)
			var got float64
			for b.Loop() {
				a := &PLDAccountant{}
				a.Compose(Gaussian{Scale: scale}, n)
				got = a.Epsilon(1e-6)
			}
			b.ReportMetric(100*(got/want-1), "%above")
		})
	}
}

// One coordinate that moves by the whole L1 sensitivity is the worst case of Laplace noise (T9): delta of any
// split over coordinates, by direct integration over all but the last, is no larger.
func TestLaplaceOnOneCoordinateIsTheWorst(t *testing.T) {
	one := func(t, eps float64) float64 {
		switch {
		case eps >= t:
			return 0
		case eps <= -t:
			return -math.Expm1(eps)
		}
		return -math.Expm1((eps - t) / 2)
	}
	var split func(moves []float64, eps float64) float64
	split = func(moves []float64, eps float64) float64 {
		if len(moves) == 1 {
			return one(moves[0], eps)
		}
		m, rest := moves[0], moves[1:]
		sum := split(rest, eps-m)/2 + math.Exp(-m)/2*split(rest, eps+m)
		const n = 400
		for i := range n { // the density of the loss m - 2x, midpoints
			x := (float64(i) + 0.5) * m / n
			sum += math.Exp(-x) / 2 * m / n * split(rest, eps-m+2*x)
		}
		return sum
	}
	for _, moves := range [][]float64{{0.5, 0.5}, {0.1, 1.4}, {2, 3}, {0.2, 0.3, 0.4}} {
		total := 0.0
		for _, m := range moves {
			total += m
		}
		for eps := -1.2 * total; eps <= 1.2*total; eps += total / 7 {
			// the midpoint rule errs by up to (m/n)^2/24 times a second derivative of order 1
			if got, most := split(moves, eps), one(total, eps); got > most+1e-5 {
				t.Errorf("moves %v, epsilon %v: delta %v, one coordinate has %v", moves, eps, got, most)
			}
		}
	}
}

// A slack that takes next to nothing of delta takes next to nothing of what is proven, however far the losses reach.
func TestPLDSlackIsFelt(t *testing.T) {
	const delta = 1e-3
	proven := func(slack float64) float64 {
		a := &PLDAccountant{}
		a.Compose(Gaussian{Scale: 0.8, Discretised: slack}, 1)
		a.Compose(Laplace{Scale: 3}, 4)
		return a.Epsilon(delta)
	}
	without := proven(0)
	for _, slack := range []float64{1e-18, 1e-12, 1e-9} {
		if e := proven(slack); !(e >= without && e <= without*1.001) {
			t.Errorf("slack %g: epsilon %g, %g without", slack, e, without)
		}
	}
}
