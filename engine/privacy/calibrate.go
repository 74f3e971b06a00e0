package privacy

import (
	"fmt"
	"math"
)

// calibrate returns the least noise scale, over the sensitivity, at which rounds releases of
// family(scale) stay within the budget by the accountant, to 1e-6 relative and never below it.
// family must get dearer as scale falls.
func calibrate(accountant string, b Budget, rounds int, family func(scale float64) Mechanism) (float64, error) {
	return CalibrateWith(accountant, b, rounds, family, func(Accountant) {})
}

// CalibrateWith is that scale beside other releases, which others composes into an empty accountant.
func CalibrateWith(accountant string, b Budget, rounds int, family func(scale float64) Mechanism,
	others func(Accountant)) (float64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	if rounds < 1 {
		return 0, fmt.Errorf("rounds is %d: %w: must be at least 1", rounds, ErrRange)
	}
	if _, err := NewAccountant(accountant); err != nil {
		return 0, err
	}
	fits := func(scale float64) bool {
		a, _ := NewAccountant(accountant)
		others(a)
		a.Compose(family(scale), rounds)
		if b.Delta == 0 {
			return a.Epsilon(0) <= b.Epsilon
		}
		return a.Delta(b.Epsilon) <= b.Delta
	}
	lo, hi := 1.0, 1.0
	for !fits(hi) {
		lo = hi
		if hi *= 2; hi > 1e15 {
			return 0, fmt.Errorf("calibration by %s: %w: no scale gives epsilon %v at delta %v: choose another accountant, "+
				"a positive delta or a larger epsilon", accountant, ErrBudget, b.Epsilon, b.Delta)
		}
	}
	for lo == hi || fits(lo) {
		hi = lo
		if lo /= 2; lo < 1e-9 {
			return hi, nil // any scale will do
		}
	}
	for hi/lo > 1+5e-7 {
		m := math.Sqrt(lo * hi)
		if fits(m) {
			hi = m
		} else {
			lo = m
		}
	}
	return hi, nil
}
