package audit

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/vertical/he"
)

// Equations is Alice's attack on the homomorphic protocol (T4): she knows the noise that she added,
// the number of records and her own column, and sees the quotients that Bob returns. In one round with
// two clusters, one column of hers and two of Bob's, she solves
//
//	C_0 + C_1 = N,   sum_j r_j (C_j + m_j) - n_j = the sum of her column
//
// for the counts and gets Bob's sums. The pair replaces Bob's half of one record of cluster 0. The
// round is the protocol's arithmetic on plain numbers; encryption would only add its error.
func Equations(c privacy.Calibration, s Settings) ([]Case, error) {
	const n, k, d = 8, 2, 3
	b := privacy.Budget{Epsilon: s.epsilon(), Delta: s.Delta}
	if b.Delta == 0 {
		b.Delta = 1e-5
	}
	sigmaCount, sigmaSum, twice, err := he.Scales(c, privacy.ReplaceOne, b, 1, n, k, d)
	if err != nil {
		return nil, err
	}
	const unit = 1 << 20 // of the noise in a record
	counts, err := privacy.NewDiscreteGaussian(sigmaCount * unit)
	if err != nil {
		return nil, err
	}
	sums, err := privacy.NewDiscreteGaussian(sigmaSum * unit)
	if err != nil {
		return nil, err
	}
	one := Case{Name: "linear equations", About: "Bob's features of one record turn from one corner to the other; Alice solves for his sums",
		Epsilon: b.Epsilon, Delta: b.Delta, Unbounded: c == privacy.Claimed, Law: Learned, Weight: 1}
	one.Draw = func(_ context.Context, _ *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		count := [k]float64{5, 3}
		sum := [k][d]float64{{-2, 1, 1}, {1.5, 0.5, -0.25}} // Alice's column first
		if !present {
			sum[0][1], sum[0][2] = sum[0][1]-2, sum[0][2]-2
		}
		draw := func(g *privacy.DiscreteGaussian) float64 { return float64(g.Sample(st)) / unit }
		var m [k]float64
		var noise, r [k][d]float64
		for j := range k {
			m[j] = draw(counts)
			denominator := count[j] + m[j]
			if twice {
				denominator += draw(counts)
			}
			for h := range d {
				noise[j][h] = draw(sums)
				total := sum[j][h] + noise[j][h]
				if twice {
					total += draw(sums)
				}
				r[j][h] = total / denominator
			}
		}
		// her equation for the counts, with her own column
		right := sum[0][0] + sum[1][0]
		for j := range k {
			right -= r[j][0]*m[j] - noise[j][0]
		}
		solved := (right - n*r[1][0]) / (r[0][0] - r[1][0])
		var out []float64
		for h := 1; h < d; h++ {
			x := r[0][h]*(solved+m[0]) - noise[0][h]
			// the answer is exact up to rounding, or as noisy as Bob made it
			out = append(out, math.Round(x*1e4)/1e4)
		}
		return out, nil
	}
	return []Case{one}, nil
}
