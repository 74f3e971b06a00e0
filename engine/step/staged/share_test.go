package staged

import (
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// TestPureOfMu checks that an epsilon taken from mu costs that mu again.
func TestPureOfMu(t *testing.T) {
	for _, mu := range []float64{1e-3, 0.1, 1, 3} {
		epsilon := Share{Gaussian: true, Total: mu * mu}.Pure()
		if got := (privacy.PureDP{Epsilon: epsilon}).Mu(); got > mu || got < mu*(1-1e-6) {
			t.Errorf("mu = %v gives epsilon %v, which costs %v", mu, epsilon, got)
		}
	}
}
