package audit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// DefaultConfidence is the confidence of a lower bound.
const DefaultConfidence = 0.999

// clopperLower is the lower confidence limit of a probability after k successes in n trials, wrong with
// probability at most alpha (Clopper and Pearson 1934): where k or more successes have probability alpha.
func clopperLower(k, n int, alpha float64) float64 {
	switch k {
	case 0:
		return 0
	case n:
		return math.Pow(alpha, 1/float64(n))
	}
	lo, hi := 0.0, float64(k)/float64(n)
	for range 60 {
		if m := (lo + hi) / 2; mathext.RegIncBeta(float64(k), float64(n-k+1), m) <= alpha {
			lo = m
		} else {
			hi = m
		}
	}
	return lo
}

// clopperUpper is the upper limit: failures and successes change places.
func clopperUpper(k, n int, alpha float64) float64 { return 1 - clopperLower(n-k, n, alpha) }

// roughly are both limits by Wilson's score interval, to choose among many events.
func roughly(k, n int, alpha float64) (lo, hi float64) {
	z2 := 2 * math.Log(1/alpha)
	nn, p := float64(n), float64(k)/float64(n)
	mid := (p + z2/(2*nn)) / (1 + z2/nn)
	half := math.Sqrt(z2*(p*(1-p)/nn+z2/(4*nn*nn))) / (1 + z2/nn)
	return math.Max(0, mid-half), math.Min(1, mid+half)
}

// event is a set of outcomes: scores at or above the threshold, or at or below it, likelier on one
// side than privacy allows.
type event struct {
	threshold float64
	above     bool
	// with tells which data set it is the likelier on: with the record or without.
	with bool
}

func (e event) String() string {
	side, likelier := "at most", "without the record"
	if e.above {
		side = "at least"
	}
	if e.with {
		likelier = "with the record"
	}
	return fmt.Sprintf("score %s %.4g, likelier %s", side, e.threshold, likelier)
}

// count is how many scores, which are sorted, fall into the event.
func (e event) count(scores []float64) int {
	if e.above {
		return len(scores) - lowerIndex(scores, e.threshold)
	}
	i, _ := slices.BinarySearchFunc(scores, e.threshold, func(x, t float64) int {
		if x <= t {
			return -1
		}
		return 1
	})
	return i
}

func lowerIndex(scores []float64, t float64) int {
	i, _ := slices.BinarySearch(scores, t)
	return i
}

// epsilonAtLeast is the epsilon below which (epsilon, delta)-privacy contradicts k1 in n1 trials on the
// likelier side and k0 in n0 on the other, wrong with probability at most alpha.
func epsilonAtLeast(k1, n1, k0, n0 int, delta, alpha float64) float64 {
	p := clopperLower(k1, n1, alpha/2) - delta
	q := clopperUpper(k0, n0, alpha/2)
	if p <= 0 {
		return 0
	}
	return math.Max(0, math.Log(p/q))
}

// choose finds the event that promises the largest bound on training scores, which are sorted, and
// e to the bound that it promises. It is evaluated on other scores, so the choice costs no confidence.
func choose(without, with []float64, delta, alpha float64) (event, float64) {
	var thresholds []float64
	pooled := slices.Sorted(slices.Values(append(slices.Clone(without), with...)))
	n := len(pooled)
	for i := 1; i < n; i = max(i+1, i*21/20) { // quantiles, denser toward both ends
		thresholds = append(thresholds, pooled[i-1], pooled[n-i])
	}
	best, value := event{threshold: pooled[n/2], above: true, with: true}, -1.0
	for _, t := range thresholds {
		for _, above := range []bool{true, false} {
			e := event{threshold: t, above: above}
			k0, k1 := e.count(without), e.count(with)
			lo0, hi0 := roughly(k0, len(without), alpha/2)
			lo1, hi1 := roughly(k1, len(with), alpha/2)
			if v := (lo1 - delta) / hi0; v > value {
				best, value = event{t, above, true}, v
			}
			if v := (lo0 - delta) / hi1; v > value {
				best, value = event{t, above, false}, v
			}
		}
	}
	return best, math.Max(value, 1e-9)
}
