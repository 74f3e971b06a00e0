package privacy

import (
	"fmt"
	"math"
)

// lossesOf returns the loss distribution of two distributions on the same outcomes. Both must be
// non-negative and sum to 1 within 1e-9.
func lossesOf(p, q []float64) (*Losses, error) {
	if len(p) != len(q) {
		return nil, fmt.Errorf("losses: %d and %d outcomes: must be the same", len(p), len(q))
	}
	var sp, sq float64
	l := &Losses{}
	for i := range p {
		if !(p[i] >= 0) || !(q[i] >= 0) {
			return nil, fmt.Errorf("losses: outcome %d has probabilities %v and %v: %w: must not be negative", i, p[i],
				q[i], ErrRange)
		}
		sp += p[i]
		sq += q[i]
		switch {
		case p[i] == 0:
		case q[i] == 0:
			l.infinite += p[i]
		default:
			l.atoms = append(l.atoms, atom{math.Log(p[i] / q[i]), p[i]})
		}
	}
	if math.Abs(sp-1) > 1e-9 || math.Abs(sq-1) > 1e-9 {
		return nil, fmt.Errorf("losses: probabilities sum to %v and %v: %w: must be 1", sp, sq, ErrRange)
	}
	l.finish()
	return l, nil
}
