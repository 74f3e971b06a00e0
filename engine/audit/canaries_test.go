package audit

import (
	"context"
	"math"
	"math/bits"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// What no mechanism of a family can do by chance is refuted, and what one does is not: a mechanism that draws one
// loss and answers every coin by randomised response of that size, which is mu-Gaussian for each coin, reaches a
// number of right guesses with the probability that possible allows, and not much more is allowed. c = m, all coins
// are guessed.
func TestGuessesOfACorrelatedMechanism(t *testing.T) {
	const mu, m = 0.5, 400
	// a Gaussian mechanism is a mixture of randomised responses: of loss l with the probability that |L| is l
	tail := func(v int) float64 {
		var p float64
		const steps = 4000
		for i := range steps {
			x := -8 + 16*(float64(i)+0.5)/steps // L = mu x + mu^2/2 under the likelier side
			l := math.Abs(mu*x + mu*mu/2)
			weight := 16. / steps * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
			q := 1 / (1 + math.Exp(-l))
			z := (float64(v) - 0.5 - m*q) / math.Sqrt(m*q*(1-q))
			p += weight * math.Erfc(z/math.Sqrt2) / 2
		}
		return p
	}
	for _, v := range []int{240, 280, 300, 320} {
		p := tail(v)
		if !gaussianFamily.possible(mu, m, m, v, 0.98*p) { // the normal approximation of the binomial errs by less
			t.Errorf("%d right of %d with probability %.3g happens, and is called impossible", v, m, p)
		}
		if most := gaussianFamily.tails(mu, m, m, v)[1]; most > 12*p {
			t.Errorf("%d right of %d: probability %.3g is allowed, %.3g happens", v, m, most, p)
		}
	}
	// the extreme: no more than c can be right, and without privacy all may be
	if gaussianFamily.possible(0.1, m, m, m, 0.5) || !gaussianFamily.possible(20, m, m, m, 0.999) {
		t.Error("all right half of the time: impossible at mu 20, or possible at 0.1")
	}
}

// The bound on independent coins is near the truth, and not above it but with the probability stated: coins in Gaussian
// noise, in one run of many and in many runs of few; and coins of randomised response, which attain their epsilon.
func TestGuessesOfIndependentCoins(t *testing.T) {
	seed := uint64(4)
	st := privacy.NewStreams(&seed).Stream(0, 0, "coins")
	rt := engine.NewRuntime(nil)
	for _, x := range []struct {
		mu, epsilon float64
		m, runs     int
		least       float64 // share
	}{{0.268, 0, 10000, 1, 0.4}, {1, 0, 10000, 1, 0.5}, {0.268, 0, 500, 40, 0.4}, {0, 1, 4000, 1, 0.6}} {
		f := field{canaries: x.m, runs: x.runs, Case: Case{Delta: 1e-5, Mu: x.mu, Epsilon: x.epsilon}}
		if x.mu > 0 {
			f.Epsilon = privacy.EpsilonOfMu(x.mu, f.Delta, 0)
		}
		f.play = func(_ context.Context, _ *engine.Runtime, st *privacy.Stream, in []bool) ([]float64, int, error) {
			scores := make([]float64, len(in))
			for i, there := range in {
				z := 2*float64(sideOf(there)) - 1
				if x.mu > 0 {
					scores[i] = st.Normal() + z*x.mu/2
				} else if scores[i] = z; st.Float64Open() > 1/(1+math.Exp(-x.epsilon)) {
					scores[i] = -z
				}
			}
			return scores, len(in), nil
		}
		r, err := f.judge(context.Background(), rt, st, x.runs, 1e-3)
		if err != nil {
			t.Fatal(err)
		}
		truth := max(x.mu, x.epsilon)
		got := r.MuLower
		if x.mu == 0 {
			got = r.Lower
		}
		if r.Violated || got > truth || got < x.least*truth*0.9 {
			t.Errorf("%+v: at least %v of %v: %+v", x, got, truth, r)
		}
		// a claim of a fifth of the truth is refuted
		f.Mu, f.Epsilon = f.Mu/5, f.Epsilon/5
		if r, err = f.judge(context.Background(), rt, st, x.runs, 1e-3); err != nil || !r.Violated {
			t.Errorf("%+v: a fifth is claimed and not refuted: %+v, %v", x, r, err)
		}
	}
}

// The canaries of a run are told from all that it releases: those of one number each by the whole of what is claimed,
// and a run with half the noise is refuted.
func TestCanariesOfWholeRuns(t *testing.T) {
	pool := engine.NewPool(2)
	defer pool.Close()
	seed := uint64(3)
	for _, method := range []string{"eugkm", "hybrid"} {
		all, err := Canaries(context.Background(), pool, method, Settings{}, 0, Options{Seed: &seed})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if r := all[0]; r.Violated || r.Lower < 0.45*r.Epsilon || r.Asymptotic < 0.7*r.Epsilon ||
			r.Asymptotic > 1.1*r.Epsilon || r.Numbers < 10000 || r.Runs != 1 {
			t.Errorf("%s: %+v", r.Method, r)
		}
	}
	if _, err := Canaries(context.Background(), pool, "balcan-edler", Settings{}, 1, Options{}); err == nil {
		t.Error("a method without a proven calibration has bounds")
	}
	f := small(t)
	f.Mu /= 8 // far less than is spent
	st := privacy.NewStreams(&seed).Stream(0, 0, "small")
	r, err := f.judge(context.Background(), engine.NewRuntime(pool), st, f.runs, 0.05)
	if err != nil || !r.Violated {
		t.Errorf("%s: an eighth is claimed and not refuted: %+v, %v", f.Name, r, err)
	}
}

// The canaries of a number are those of a cell of halvings, of a place with several canaries, one, or not to be told.
func TestBlocksOfCanaries(t *testing.T) {
	rows := repeat(halvings(3), 4)
	part := func(i int, lo, hi [2]float64) float64 {
		return float64(sideOf(rows[i][0] > lo[0] && rows[i][0] < hi[0] && rows[i][1] > lo[1] && rows[i][1] < hi[1]))
	}
	for _, x := range []struct {
		lo, hi [2]float64
		n      int // canaries, 0 if they are no block
	}{
		{[2]float64{-1, -1}, [2]float64{1, 1}, 256}, {[2]float64{0, -1}, [2]float64{1, 1}, 128},
		{[2]float64{0.5, -0.5}, [2]float64{1, 0}, 16}, {[2]float64{-0.25, 0.75}, [2]float64{0, 1}, 4},
		{[2]float64{-0.5, -1}, [2]float64{0.25, 1}, 0}, {[2]float64{2, 2}, [2]float64{3, 3}, 0},
	} {
		var o block
		for digit := range bits.Len(uint(len(rows) - 1)) {
			var halves [2]float64
			for i := range rows {
				halves[i>>digit&1] += 3 * part(i, x.lo, x.hi)
			}
			o.add(digit, halves[0], halves[1])
		}
		if x.n == 0 {
			if o.base != nobody {
				t.Errorf("%v: %+v, and it is no block", x, o)
			}
			continue
		}
		if n := 1 << bits.OnesCount(uint(o.free)); n != x.n || o.move != 3*float64(n) {
			t.Errorf("%v: %+v", x, o)
		}
		for i := range rows {
			if in := i&^o.free == o.base; in != (part(i, x.lo, x.hi) == 1) {
				t.Errorf("%v: canary %d at %v is in %+v: %v", x, i, rows[i], o, in)
			}
		}
	}
}

// What sketches give away is read from the messages: half of the coins that are guessed would be right by chance,
// with a deviation of 16 of 1024, and a share of .56 or more is expected.
func TestCanariesInSketches(t *testing.T) {
	pool := engine.NewPool(2)
	defer pool.Close()
	seed := uint64(3)
	list, err := fields("sketch", Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		st := privacy.NewStreams(&seed).Stream(0, 0, f.Name)
		r, err := f.judge(context.Background(), engine.NewRuntime(pool), st, 1, 0.05)
		if err != nil || r.Violated || float64(r.Right) < 0.53*float64(r.Guessed) || r.Numbers < 10000 {
			t.Errorf("%s: %+v, %v", f.Name, r, err)
		}
	}
}

// small is a crowd of a horizontal method in a few dimensions, with split noise of three clients in two rounds.
func small(t *testing.T) *field {
	t.Helper()
	c, name, about := lloydCrowd("sulloyd", 6, 1, privacy.Budget{Epsilon: 4, Delta: 1e-5})
	f, err := c.begin(name, about)
	if err != nil {
		t.Fatal(err)
	}
	f.runs = 10
	return f
}
