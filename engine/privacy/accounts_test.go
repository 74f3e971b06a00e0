package privacy

import "testing"

// TestGaussianAlone: accountants that are not asked about Gaussian releases alone would not be the best, whatever the
// slack of discretisation takes.
func TestGaussianAlone(t *testing.T) {
	for _, scale := range []float64{0.05, 0.3, 1, 4, 50, 1000} {
		for _, slack := range []float64{0, 1e-40, 1e-15} {
			for _, delta := range []float64{1e-12, 1e-6, 1e-2} {
				a := newAccounts()
				a.compose(Gaussian{Scale: scale, Discretised: slack}, 7)
				got, by := a.quick(delta)
				for _, x := range a.all() {
					if e := x.Epsilon(delta); e < got*(1-1e-9) {
						t.Errorf("scale %g, slack %g, delta %g: %g by %s, %g by %s", scale, slack, delta, got, by, e, x.Name())
					}
				}
			}
		}
	}
}
