package synopsis

import (
	"math"
)

// Weighted is a set of points with weights: what a search works on.
type Weighted struct {
	D       int
	Points  []float64 // row-major, len(Weights) x D
	Weights []float64
}

// Len returns the number of points.
func (w *Weighted) Len() int { return len(w.Weights) }

// Append adds a point.
func (w *Weighted) Append(point []float64, weight float64) {
	w.Points = append(w.Points, point...)
	w.Weights = append(w.Weights, weight)
}

// Total returns the sum of the weights.
func (w *Weighted) Total() float64 {
	sum := 0.0
	for _, x := range w.Weights {
		sum += x
	}
	return sum
}

// Spread turns boxes into weighted points: each box becomes
// clamp(budget/len(boxes), 1, 32) quasi-random points of equal weight. The
// points are a Kronecker sequence (square roots of primes) whose mean is moved
// to the middle of the box, so a box keeps its weight and its mean.
func Spread(boxes []Box, d, budget int) *Weighted {
	w := &Weighted{D: d}
	if len(boxes) == 0 {
		return w
	}
	per := min(max(budget/len(boxes), 1), 32)
	offsets := make([]float64, per*d) // in half sides, mean 0
	for h, p := range primes(d) {
		_, alpha := math.Modf(math.Sqrt(float64(p)))
		mean := 0.0
		for i := range per {
			_, u := math.Modf(0.5 + float64(float64(i)*alpha))
			offsets[i*d+h] = float64(2*u) - 1
			mean += offsets[i*d+h]
		}
		mean /= float64(per)
		for i := range per {
			offsets[i*d+h] -= mean
		}
	}
	w.Points = make([]float64, 0, len(boxes)*per*d)
	w.Weights = make([]float64, 0, len(boxes)*per)
	for _, b := range boxes {
		for i := range per {
			for h := range d {
				middle, half := (b.Lo[h]+b.Hi[h])/2, (b.Hi[h]-b.Lo[h])/2
				x := middle + float64(offsets[i*d+h]*half)
				w.Points = append(w.Points, min(max(x, b.Lo[h]), b.Hi[h]))
			}
			w.Weights = append(w.Weights, b.Weight/float64(per))
		}
	}
	return w
}

// primes returns the first n primes.
func primes(n int) []int {
	p := make([]int, 0, n)
next:
	for c := 2; len(p) < n; c++ {
		for _, q := range p {
			if q*q > c {
				break
			}
			if c%q == 0 {
				continue next
			}
		}
		p = append(p, c)
	}
	return p
}
