package privacy

import (
	"math"
	"testing"
)

// What is no ratio of sensitivity to noise is answered as one without bound, not as one without a release.
func TestMuThatIsNoRatio(t *testing.T) {
	for _, mu := range []float64{-1, math.NaN(), math.Inf(-1), math.Inf(1)} {
		if delta := DeltaOfMu(mu, 1); delta != 1 {
			t.Errorf("delta of mu %v is %v, want 1", mu, delta)
		}
		if epsilon := EpsilonOfMu(mu, 1e-5, 0); !math.IsInf(epsilon, 1) {
			t.Errorf("epsilon of mu %v is %v, want +Inf", mu, epsilon)
		}
	}
}
