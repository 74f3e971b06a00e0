package audit

import (
	"context"
	"math"
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
	all, err := Canaries(context.Background(), pool, []string{"eugkm"}, Settings{}, 1, Options{Seed: &seed})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if r := all[0]; r.Violated || r.Lower < 0.5*r.Epsilon || r.Numbers < 10000 || r.Runs != 1 {
		t.Errorf("eugkm: %+v", r)
	}
	if _, err := Canaries(context.Background(), pool, []string{"balcan-edler"}, Settings{}, 1, Options{}); err == nil {
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

// What sketches give away is read from the messages: half of the coins that are guessed would be right by chance,
// with a deviation of 11 of 512, and a share of .56 or more is expected.
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
	c, name, about := lloydCrowd("sulloyd", 6, privacy.Budget{Epsilon: 4, Delta: 1e-5})
	f, err := c.begin(name, about)
	if err != nil {
		t.Fatal(err)
	}
	f.runs = 10
	return f
}
