package privacy

import (
	"fmt"
	"math"
	"math/big"
)

// Selection chooses one of several candidates by score, privately (T5). A record changes each score by
// at most Sensitivity. If all scores move the same way when a record is added (Monotone: a sum of
// losses does) and neighbours add or remove one, candidates weigh exp(Epsilon score/Sensitivity);
// otherwise, replace-one included, exp(Epsilon score/(2 Sensitivity)). The maximum is always
// subtracted first. Random bits are compared with exp exactly; only the exponent, computed from
// float64 scores, is rounded, by a relative 2^-50.
type Selection struct {
	Epsilon     float64
	Sensitivity float64
	Monotone    bool
	Neighbours  Neighbours // AddRemove if empty
}

// exponents returns how far each score is below the best, in units of the scale.
func (s Selection) exponents(scores []float64) ([]float64, error) {
	switch {
	case len(scores) == 0:
		return nil, fmt.Errorf("selection: no candidates: %w: give at least one", ErrRange)
	case !(s.Epsilon > 0) || math.IsInf(s.Epsilon, 1):
		return nil, fmt.Errorf("selection: epsilon is %v: %w: must be positive and finite", s.Epsilon, ErrRange)
	case !(s.Sensitivity > 0) || math.IsInf(s.Sensitivity, 1):
		return nil, fmt.Errorf("selection: sensitivity is %v: %w: must be positive and finite", s.Sensitivity, ErrRange)
	}
	best := math.Inf(-1)
	for i, u := range scores {
		if math.IsNaN(u) || math.IsInf(u, 0) {
			return nil, fmt.Errorf("selection: score %d is %v: %w: must be finite", i, u, ErrRange)
		}
		best = math.Max(best, u)
	}
	rate := s.Epsilon / s.Sensitivity
	if !s.Monotone || s.Neighbours == ReplaceOne {
		rate /= 2
	}
	x := make([]float64, len(scores))
	for i, u := range scores {
		x[i] = float64((best - u) * rate)
	}
	return x, nil
}

// ExponentialMechanism chooses candidate i with probability proportional to its weight. It costs
// bounded{Epsilon: Epsilon}: pure Epsilon and Epsilon^2/8 of zCDP.
func (s Selection) ExponentialMechanism(st *Stream, scores []float64) (int, error) {
	x, err := s.exponents(scores)
	if err != nil {
		return 0, err
	}
	// a uniform candidate is kept with probability exp(-x), 1 for the best: len(x) tries at most on
	// average
	for {
		if i := st.IntN(len(x)); bernoulliExp(st, x[i]) {
			return i, nil
		}
	}
}

// PermuteAndFlip visits the candidates in random order and takes the first whose coin of probability
// exp(-x) falls (McKenna and Sheldon 2020): never worse on average than the exponential mechanism.
// It costs PureDP{Epsilon: Epsilon}.
func (s Selection) PermuteAndFlip(st *Stream, scores []float64) (int, error) {
	x, err := s.exponents(scores)
	if err != nil {
		return 0, err
	}
	for _, i := range st.Perm(len(x)) {
		if bernoulliExp(st, x[i]) {
			return i, nil
		}
	}
	panic("privacy: PermuteAndFlip: the best candidate has a coin of probability 1")
}

// bernoulliExp is true with probability exp(-x), exactly, for x >= 0.
func bernoulliExp(st *Stream, x float64) bool {
	if x == 0 {
		return true
	}
	hi, lo := uint64(math.MaxUint64), uint64(0)
	if x < 1<<32 {
		fl := math.Floor(x)
		hi, lo = uint64(fl), uint64(math.Ldexp(x-fl, 64))
	}
	return keepSlow(st, st.Uint64(), hi, lo, func() term {
		num, den := rational(x)
		return term{1, new(big.Int).Set(num), new(big.Int).Set(den)}
	})
}

// bounded is a mechanism whose log ratio between neighbours stays, over all outcomes, in an interval
// of length Epsilon: the exponential mechanism.
type bounded struct {
	unproved
	Epsilon float64
}

// Pure is Epsilon.
func (b bounded) Pure() float64 { return b.Epsilon }

// Rho is Epsilon^2/8 (Cesar and Rogers 2021, Lemma 3.2; T5).
func (b bounded) Rho() float64 { return math.Min(b.Epsilon*b.Epsilon/8, b.Epsilon) }

// RDP is the smaller of the bounds by Rho and by Pure.
func (b bounded) RDP(alpha float64) float64 {
	return math.Min(alpha*b.Rho(), PureDP{Epsilon: b.Epsilon}.RDP(alpha))
}
