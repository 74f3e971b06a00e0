package privacy

import (
	"errors"
	"math"
	"testing"
)

// The maximum is subtracted: shifting all scores changes nothing, and the counterexample of T5 (scores
// (0,-5) against (-1,-5)) stays within epsilon.
func TestSelectionSubtractsTheMaximum(t *testing.T) {
	seed := uint64(12)
	s := Selection{Epsilon: 1, Sensitivity: 1, Monotone: true}
	a, b := NewStreams(&seed).Stream(0, 0, "x"), NewStreams(&seed).Stream(0, 0, "x")
	for range 1000 {
		i, _ := s.PermuteAndFlip(a, []float64{1e6, 1e6 - 2, 1e6 - 1})
		j, _ := s.PermuteAndFlip(b, []float64{0, -2, -1})
		if i != j {
			t.Fatal("a common shift of the scores changes the choice")
		}
	}
}

func TestSelectionRefusesBadInput(t *testing.T) {
	st := NewStreams(nil).Stream(0, 0, "x")
	for _, c := range []struct {
		s      Selection
		scores []float64
	}{
		{Selection{Epsilon: 1, Sensitivity: 1}, nil}, {Selection{Epsilon: 0, Sensitivity: 1}, []float64{1}},
		{Selection{Epsilon: 1}, []float64{1}},
		{Selection{Epsilon: math.NaN(), Sensitivity: 1}, []float64{1}}, {Selection{Epsilon: 1, Sensitivity: 1},
			[]float64{1, math.NaN()}}, {Selection{Epsilon: 1, Sensitivity: 1}, []float64{math.Inf(1)}},
	} {
		if _, err := c.s.ExponentialMechanism(st, c.scores); !errors.Is(err, ErrRange) {
			t.Errorf("%+v %v: %v", c.s, c.scores, err)
		}
		if _, err := c.s.PermuteAndFlip(st, c.scores); !errors.Is(err, ErrRange) {
			t.Errorf("%+v %v: %v", c.s, c.scores, err)
		}
	}
}

// The lazily extended comparison, which ordinary draws reach once in 2^50, against its probability: a
// coin of probability exp(-x) tossed by it alone, 20000 times; 7 standard deviations (3e-12).
func TestUnlimitedPrecisionCoin(t *testing.T) {
	seed := uint64(13)
	st := NewStreams(&seed).Stream(0, 0, "coin")
	for _, x := range []float64{0.001, 0.7, 3} {
		num, den := rational(x)
		const n = 20000
		heads := 0.0
		for range n {
			if newLazy().below(st, bigInt(0), bigInt(1), bigInt(1), term{1, num, den}) {
				heads++
			}
		}
		p := math.Exp(-x)
		if math.Abs(heads-n*p) > 7*math.Sqrt(n*p*(1-p)) {
			t.Errorf("exp(-%v): %v heads of %v, want %v", x, heads, n, n*p)
		}
	}
}
