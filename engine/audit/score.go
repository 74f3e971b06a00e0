package audit

import (
	"math"
	"slices"
)

// Distribution is the form of the noise in an outcome, for the likelihood ratio.
type Distribution int

const (
	// learned fits the ratio from histograms of each coordinate.
	learned Distribution = iota
	// direct says that the outcome is one number, which is the score.
	direct
	// laplaceNoise and gaussianNoise say that each coordinate is a fixed value plus independent noise.
	laplaceNoise
	gaussianNoise
)

// score maps an outcome to a number that is large where the record is likely to be present.
type score func(outcome []float64) float64

// learn makes the score of a case from pilot outcomes on both sides.
func learn(distribution Distribution, without, with [][]float64) score {
	switch distribution {
	case learned:
		return histograms(without, with)
	case direct:
		return func(o []float64) float64 { return o[0] }
	}
	d := len(without[0])
	m0, m1, s := make([]float64, d), make([]float64, d), make([]float64, d)
	for j := range d {
		var noise float64
		for i, side := range [][][]float64{without, with} {
			x := column(side, j)
			slices.Sort(x)
			m := x[len(x)/2]
			for _, v := range x {
				if distribution == laplaceNoise {
					noise += math.Abs(v - m)
				} else {
					noise += (v - m) * (v - m)
				}
			}
			[2][]float64{m0, m1}[i][j] = m
		}
		s[j] = noise / float64(len(without)+len(with))
	}
	return func(o []float64) float64 {
		var sum float64
		for j, v := range o {
			a, b := v-m0[j], v-m1[j]
			switch {
			case s[j] == 0: // no noise at all
				if a != 0 {
					sum += 1e9
				}
				if b != 0 {
					sum -= 1e9
				}
			case distribution == laplaceNoise:
				sum += (math.Abs(a) - math.Abs(b)) / s[j]
			default:
				sum += (a*a - b*b) / (2 * s[j])
			}
		}
		return sum
	}
}

func column(rows [][]float64, j int) []float64 {
	x := make([]float64, len(rows))
	for i, r := range rows {
		x[i] = r[j]
	}
	return x
}

// bins is the number of cells of a coordinate's histogram.
const bins = 24

// histograms adds, over the coordinates, the log ratio of smoothed histograms on pooled quantiles.
func histograms(without, with [][]float64) score {
	d := len(without[0])
	cuts, ratio := make([][]float64, d), make([][]float64, d)
	for j := range d {
		a, b := column(without, j), column(with, j)
		pooled := slices.Sorted(slices.Values(append(slices.Clone(a), b...)))
		for i := 1; i < bins; i++ {
			c := pooled[i*len(pooled)/bins]
			if n := len(cuts[j]); n == 0 || c > cuts[j][n-1] {
				cuts[j] = append(cuts[j], c)
			}
		}
		n0, n1 := make([]float64, len(cuts[j])+1), make([]float64, len(cuts[j])+1)
		for _, v := range a {
			n0[cell(cuts[j], v)]++
		}
		for _, v := range b {
			n1[cell(cuts[j], v)]++
		}
		ratio[j] = make([]float64, len(n0))
		for i := range n0 {
			ratio[j][i] = math.Log((n1[i]+2)/float64(len(b)+2)) - math.Log((n0[i]+2)/float64(len(a)+2))
		}
	}
	return func(o []float64) float64 {
		var sum float64
		for j, v := range o {
			sum += ratio[j][cell(cuts[j], v)]
		}
		return sum
	}
}

// cell is the number of cuts at or below v.
func cell(cuts []float64, v float64) int {
	i, found := slices.BinarySearch(cuts, v)
	if found {
		i++
	}
	return i
}
