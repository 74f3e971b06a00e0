package privacy

import (
	"testing"
	"time"
)

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
						t.Errorf("scale %g, slack %g, delta %g: %g by %s, %g by %s", scale, slack, delta, got, by, e,
							x.Name())
					}
				}
			}
		}
	}
}

// TestTinyCosts: a total of costs near the smallest numbers takes no longer than any other, and is no more than their
// sum.
func TestTinyCosts(t *testing.T) {
	for _, epsilon := range []float64{1e-9, 1e-300, 1e-307} {
		a, start := newAccounts(), time.Now()
		a.compose(PureDP{Epsilon: epsilon}, 3)
		a.compose(Laplace{Scale: 1 / epsilon}, 2)
		got, by := a.total(1e-6)
		if took := time.Since(start); got > 5*epsilon*(1+1e-9) || took > 20*time.Second {
			t.Errorf("epsilon %v: %v by %s, in %v", epsilon, got, by, took)
		}
	}
}

// Pure releases, sketches and Gaussian releases cost together no more than the pure ones and the others apart.
func TestPureReleasesAddUp(t *testing.T) {
	sketches := Spec{Family: "fm", Gamma: 1, Phantoms: 190, Parties: 2, Cells: 5, Rounds: 4096}
	gaussian := Spec{Family: "discrete-gaussian", Scale: 9, Slack: 1e-12, Distance: 1e-9, Rounds: 4}
	for _, pure := range []float64{0.01, 0.9, 7.2} {
		apart, both := &Ledger{Delta: 5e-5}, &Ledger{Delta: 5e-5}
		for i, cost := range []Spec{sketches, gaussian, {Family: "discrete-laplace", Scale: 2 / pure, Rounds: 2}} {
			e := Entry{What: cost.Family, Viewers: []string{Outsider}, Calibration: Proven, Cost: cost}
			err := both.Add(e)
			if err == nil && i < 2 {
				err = apart.Add(e)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		sum, total := *apart.TotalFor(Outsider).Epsilon+pure, both.TotalFor(Outsider)
		if e := *total.Epsilon; !(e <= sum*(1+1e-9)) || e < pure {
			t.Errorf("pure %v: together %v by %s, apart %v", pure, e, total.Accountant, sum)
		}
	}
}
