// Package google compares the samplers with those of github.com/google/differential-privacy, in a module of its own:
// nothing else of Cohort needs that library.
package google

import (
	"math"
	"slices"
	"testing"

	"github.com/google/differential-privacy/go/v3/noise"
	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// kolmogorov fails if two samples of size n are too far apart: the two-sample statistic exceeds
// 2.7 sqrt(2/n) with probability 2 exp(-2 2.7^2) < 1e-6.
func kolmogorov(t *testing.T, what string, a, b []float64) {
	t.Helper()
	slices.Sort(a)
	slices.Sort(b)
	worst := stat.KolmogorovSmirnov(a, nil, b, nil)
	if worst > 2.7*math.Sqrt(2/float64(len(a))) {
		t.Errorf("%s: Kolmogorov distance %v", what, worst)
	}
}

// The samplers against those of github.com/google/differential-privacy: its Laplace noise of L1
// sensitivity 1 at epsilon 1/b, and Gaussian noise of the sigma that it computes, on a grid far finer
// than the scale.
func TestAgainstGoogleNoise(t *testing.T) {
	const n = 40000
	const b = 1000.0
	seed := uint64(5)
	streams := privacy.NewStreams(&seed)
	ours, theirs := make([]float64, n), make([]float64, n)
	laplace, err := privacy.NewDiscreteLaplace(b)
	if err != nil {
		t.Fatal(err)
	}
	st := streams.Stream(0, 0, "laplace")
	google := noise.Laplace()
	for i := range ours {
		ours[i] = float64(laplace.Sample(st))
		x, err := google.AddNoiseInt64(0, 1, 1, 1/b, 0)
		if err != nil {
			t.Fatal(err)
		}
		theirs[i] = float64(x)
	}
	kolmogorov(t, "Laplace", ours, theirs)

	const eps, delta = 0.01, 1e-6
	sigma := noise.SigmaForGaussian(1, 1, eps, delta)
	mu, err := privacy.MuOf(privacy.Budget{eps, delta}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(1/mu/sigma-1) > 2e-3 { // its search ends at a relative 1e-3
		t.Errorf("sigma for (%v, %v) is %v, theirs %v", eps, delta, 1/mu, sigma)
	}
	gauss, err := privacy.NewDiscreteGaussian(sigma)
	if err != nil {
		t.Fatal(err)
	}
	st = streams.Stream(0, 0, "gaussian")
	normal := noise.Gaussian()
	for i := range ours {
		ours[i] = float64(gauss.Sample(st))
		x, err := normal.AddNoiseInt64(0, 1, 1, eps, delta)
		if err != nil {
			t.Fatal(err)
		}
		theirs[i] = float64(x)
	}
	kolmogorov(t, "Gaussian", ours, theirs)
}
