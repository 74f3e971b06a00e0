package audit

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/ckks"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Alice's attack is on two clusters and three columns, of which the first is hers.
const (
	attackedClusters = 2
	attackedColumns  = 3
)

// aliceView is what Alice has after a round: what she added and what came back, by cluster.
type aliceView struct {
	countNoise [attackedClusters]float64
	sumNoise   [attackedClusters][attackedColumns]float64
	quotient   [attackedClusters][attackedColumns]float64
}

// solve is Alice's attack on the homomorphic protocol (T4): she knows the noise that she added, the
// number n of records and the sum of her own column, and sees the quotients that Bob returns. In one
// round with two clusters, one column of hers and two of Bob's, she solves
//
//	C_0 + C_1 = n,   sum_j r_j (C_j + m_j) - n_j = the sum of her column
//
// for the counts and gets Bob's sums in cluster 0. Rounding to 1/64 of a record keeps the error of the
// encrypted arithmetic from blurring an outcome that has no noise.
func (v *aliceView) solve(n, own float64) []float64 {
	for j := range attackedClusters {
		own -= v.quotient[j][0]*v.countNoise[j] - v.sumNoise[j][0]
	}
	count := (own - n*v.quotient[1][0]) / (v.quotient[0][0] - v.quotient[1][0])
	var out []float64
	for h := 1; h < attackedColumns; h++ {
		x := v.quotient[0][h]*(count+v.countNoise[0]) - v.sumNoise[0][h]
		if math.IsNaN(x) || math.IsInf(x, 0) { // both quotients are the same: nothing to solve
			x = 0
		}
		out = append(out, math.Round(x*64)/64)
	}
	return out
}

// equationCases are the cases of ckks. The pair replaces Bob's half of one record of cluster 0, and Alice
// attacks; once on the protocol's arithmetic on plain numbers, many times, and fewer times on the
// protocol itself, from keys to the centroids that Bob decrypts.
func equationCases(c privacy.Calibration, s Settings) ([]Case, error) {
	b := privacy.Budget{Epsilon: s.epsilon(), Delta: s.Delta}
	if b.Delta == 0 {
		b.Delta = 1e-5
	}
	plain, err := plainRound(c, b)
	if err != nil {
		return nil, err
	}
	totals, err := plainTotals(c, b)
	if err != nil {
		return nil, err
	}
	encrypted, err := encryptedRound(c, b)
	if err != nil {
		return nil, err
	}
	holder, err := decryptedRound(c, b)
	if err != nil {
		return nil, err
	}
	cases := []Case{*plain, *totals, *encrypted, *holder}
	for viewer := range protocol.Role(3) {
		one, err := aidedRound(c, b, viewer)
		if err != nil {
			return nil, err
		}
		cases = append(cases, *one)
	}
	if c == privacy.Proven { // the paper has no noise of key holders
		for _, viewer := range []protocol.Role{0, 1} {
			one, err := openedTotals(b, viewer)
			if err != nil {
				return nil, err
			}
			cases = append(cases, *one)
		}
	}
	return cases, nil
}

// attacked is a case without its trials.
func attacked(c privacy.Calibration, b privacy.Budget) *Case {
	return &Case{Name: "linear equations",
		About:   "Bob's features of one record turn from one corner to the other; Alice solves for his sums",
		Watched: "what Alice solves from one round of the protocol's arithmetic, in the clear", Epsilon: b.Epsilon,
		Delta:     b.Delta,
		Unbounded: c == privacy.Claimed, Distribution: learned, Weight: 1}
}

// plainRound is the arithmetic of one round on eight records.
func plainRound(c privacy.Calibration, b privacy.Budget) (*Case, error) {
	const n, k, d = 8, attackedClusters, attackedColumns
	sigmaCount, sigmaSum, twice, err := ckks.Scales(c, privacy.ReplaceOne, b, 1, n, k, d)
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
	one := attacked(c, b)
	one.Draw = func(_ context.Context, _ *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		count := [k]float64{5, 3}
		sum := [k][d]float64{{-2, 1, 1}, {1.5, 0.5, -0.25}} // Alice's column first
		if !present {
			sum[0][1], sum[0][2] = sum[0][1]-2, sum[0][2]-2
		}
		draw := func(g *privacy.DiscreteGaussian) float64 { return float64(g.Sample(st)) / unit }
		var v aliceView
		for j := range k {
			v.countNoise[j] = draw(counts)
			denominator := count[j] + v.countNoise[j]
			if twice {
				denominator += draw(counts)
			}
			for h := range d {
				v.sumNoise[j][h] = draw(sums)
				total := sum[j][h] + v.sumNoise[j][h]
				if twice {
					total += draw(sums)
				}
				v.quotient[j][h] = total / denominator
			}
		}
		return v.solve(n, sum[0][0]+sum[1][0]), nil
	}
	return one, nil
}

// plainTotals are the counts and sums of one round with the noise of the other party alone, in the clear, many times: a
// record leaves one cluster and another enters the other, which moves them farthest (THEOREMS.md T4).
func plainTotals(c privacy.Calibration, b privacy.Budget) (*Case, error) {
	const n, k, d = 8, attackedClusters, attackedColumns
	sigmaCount, sigmaSum, _, err := ckks.Scales(c, privacy.ReplaceOne, b, 1, n, k, d)
	if err != nil {
		return nil, err
	}
	one := attacked(c, b)
	one.Name, one.Distribution = "totals", gaussianNoise
	one.About = "a record in one corner is replaced by one in the other, in the other cluster; a party looks at the totals"
	one.Watched = "the counts and sums of one round, less the party's own noise, in the clear"
	if c == privacy.Proven {
		if one.Mu, err = privacy.MuOf(b, 0); err != nil {
			return nil, err
		}
	}
	one.Draw = func(_ context.Context, _ *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		side := float64(sideOf(present))
		var out []float64
		for j := range k {
			here := side // in the cluster of the record
			if j == 1 {
				here = side - 1
			}
			out = append(out, here+sigmaCount*st.Normal())
			for range d {
				out = append(out, math.Abs(here)*(1-2*float64(j))+sigmaSum*st.Normal())
			}
		}
		return out, nil
	}
	return one, nil
}

// encryptedPair is a pair for one round of the protocol itself, at full security: the first column tells the
// clusters apart, the others follow it, and a record of cluster 0 turns the columns given. Column by column the
// parties hold what columns has. own is the sum of the first column.
func encryptedPair(c privacy.Calibration, b privacy.Budget, columns [][]int, turned []int, mode ckks.Mode) (
	jobs [2]ckks.Job, own float64, err error) {
	const n, k = 400, attackedClusters
	for side := range jobs {
		grid := make([]float32, 0, n*attackedColumns)
		own = 0
		for i := range n {
			row := []float64{-0.5, 0.375, 0.25}
			if i >= n*5/8 {
				row = []float64{0.5, -0.25, -0.375}
			}
			if i == 0 {
				for _, h := range turned {
					row[h] = float64(2*side - 1)
				}
			}
			own += row[0]
			for _, x := range row {
				grid = append(grid, dataset.Truncate(x, gridBits))
			}
		}
		points := kernels.NewPanels(n, attackedColumns)
		kernels.Pack(points, grid)
		jobs[side] = ckks.Job{Problem: protocol.Problem{Clients: []dataset.Part{{Points: points,
			FractionBits: gridBits}},
			Bounds: box(attackedColumns), Columns: columns, K: k, Iterations: 1, Budget: b, Calibration: c,
			Neighbours: privacy.ReplaceOne, NoQuality: true, Start: []float64{-0.5, 0, 0, 0.5, 0, 0}}, Post: "none", Mode: mode}
		if _, err := jobs[side].Plan(); err != nil {
			return jobs, 0, err
		}
	}
	return jobs, own, nil
}

// closing closes rounds of a pair that each worker opens once for either side: keys, encrypted columns, comparisons,
// totals; then, with new noise in every trial, Alice's noise, decryption, Bob's noise, division.
func closing(jobs *[2]ckks.Job, see func(v *ckks.AliceView, views *protocol.Views, draws *protocol.Draws) ([]float64,
	error)) func(context.Context, *engine.Runtime, *privacy.Stream, bool) ([]float64, error) {
	type state struct{ sides [2]*ckks.Opened }
	workers := newPerWorker(func() (*state, error) { return new(state), nil })
	return func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error) {
		mine, err := workers.of(rt)
		if err != nil {
			return nil, err
		}
		side := sideOf(present)
		if mine.sides[side] == nil {
			// keys from the system: which encryption it is must not decide an outcome
			if mine.sides[side], err = ckks.Open(ctx, &jobs[side], rt); err != nil {
				return nil, err
			}
		}
		var views protocol.Views
		var draws protocol.Draws
		got, err := mine.sides[side].Close(ctx, st.Uint64(), protocol.Options{Views: &views, Draws: &draws})
		if err != nil {
			return nil, err
		}
		return see(got, &views, &draws)
	}
}

// solved is Alice's attack on the protocol itself.
func solved(jobs *[2]ckks.Job, own float64) func(*ckks.AliceView, *protocol.Views, *protocol.Draws) ([]float64, error) {
	return func(got *ckks.AliceView, _ *protocol.Views, _ *protocol.Draws) ([]float64, error) {
		var v aliceView
		for j := range attackedClusters {
			at := got.Noise[j*(1+attackedColumns):]
			v.countNoise[j] = at[0]
			for h := range attackedColumns {
				v.sumNoise[j][h], v.quotient[j][h] = at[1+h], got.Centroids[j][h]
			}
		}
		return v.solve(float64(jobs[0].Clients[0].Points.N), own), nil
	}
}

// encryptedRound is Alice's attack on two parties.
func encryptedRound(c privacy.Calibration, b privacy.Budget) (*Case, error) {
	jobs, own, err := encryptedPair(c, b, held(1), []int{1, 2}, "")
	if err != nil {
		return nil, err
	}
	one := attacked(c, b)
	one.Name, one.Weight = "linear equations, encrypted", 25
	one.Watched = "what Alice solves from one round under encryption, from keys to the centroids that Bob decrypts"
	one.Draw = closing(&jobs, solved(&jobs, own))
	return one, nil
}

// decryptedTotals are those that the key holder decrypts, with Alice's noise alone.
func decryptedTotals(_ *ckks.AliceView, views *protocol.Views, _ *protocol.Draws) ([]float64, error) {
	var out []float64
	for _, x := range views.Seen {
		if x.Viewer == 1 && x.Values != nil {
			for _, v := range x.Values {
				out = append(out, float64(v))
			}
		}
	}
	if len(out) != attackedClusters*(1+attackedColumns) {
		return nil, fault.Failed("audit", "the key holder decrypted nothing", "", nil)
	}
	return out, nil
}

// decryptedRound is what the key holder of two parties sees of the protocol itself. The pair replaces Alice's half of a
// record.
func decryptedRound(c privacy.Calibration, b privacy.Budget) (*Case, error) {
	jobs, _, err := encryptedPair(c, b, [][]int{{0, 1}, {2}}, []int{1}, "")
	if err != nil {
		return nil, err
	}
	one := attacked(c, b)
	one.Name, one.Weight = "decrypted totals", 25
	one.About = "a feature of the computing party's turns from one corner to the other; the key holder looks at the " +
		"totals that he decrypts"
	one.Watched = "the decrypted counts and sums of one round, before the key holder's own noise"
	one.Draw = closing(&jobs, decryptedTotals)
	return one, nil
}

// aidedRound is a round of three parties, of whom the third encrypts under the second's key, as one of them sees it.
// The pair replaces the part of a record that the third has, or, where that one looks, the second.
func aidedRound(c privacy.Calibration, b privacy.Budget, viewer protocol.Role) (*Case, error) {
	turned := 2
	if viewer == 2 {
		turned = 1
	}
	jobs, own, err := encryptedPair(c, b, held(2), []int{turned}, ckks.ServerAided)
	if err != nil {
		return nil, err
	}
	one := attacked(c, b)
	one.Name, one.Weight = "three parties, one holds the key, seen by "+viewer.String(), 25
	one.About = "a feature of " + protocol.Role(turned).String() + "'s turns from one corner to the other"
	switch viewer {
	case 0:
		one.Watched = "what the computing party solves from one round under encryption"
		one.Draw = closing(&jobs, solved(&jobs, own))
	case 1:
		one.Watched = "the counts and sums of one round that the key holder decrypts, before its own noise"
		one.Draw = closing(&jobs, decryptedTotals)
	default:
		one.Watched = "the centroids of one round, which the third party is told"
		one.Draw = closing(&jobs, func(got *ckks.AliceView, _ *protocol.Views, _ *protocol.Draws) ([]float64, error) {
			if len(got.Told) == 0 {
				return nil, fault.Failed("audit", "the third party was told nothing", "", nil)
			}
			return slices.Concat(got.Told...), nil
		})
	}
	return one, nil
}

// openedTotals are the totals that the computing party opens with two key holders, whose shares of the noise and hers
// are in them, as she or one of the key holders sees them. The pair replaces the part of a record that the other key
// holder has.
func openedTotals(b privacy.Budget, viewer protocol.Role) (*Case, error) {
	jobs, _, err := encryptedPair(privacy.Proven, b, held(2), []int{2}, ckks.Multiparty)
	if err != nil {
		return nil, err
	}
	one := attacked(privacy.Proven, b)
	one.Name, one.Weight, one.Distribution = "opened totals, two key holders, seen by "+viewer.String(), 25, gaussianNoise
	one.About = "a feature of the last key holder's turns from one corner to the other; " + viewer.String() +
		" looks at the totals that all open together"
	one.Watched = "the opened counts and sums of one round, less the viewer's own share of the noise"
	one.Draw = closing(&jobs, func(_ *ckks.AliceView, views *protocol.Views, draws *protocol.Draws) ([]float64, error) {
		var out []float64
		for _, x := range views.Seen {
			if x.Viewer == 0 && len(x.Values) == attackedClusters*(1+attackedColumns) {
				for _, v := range x.Values {
					out = append(out, float64(v))
				}
			}
		}
		return out, less(out, viewer, draws)
	})
	return one, nil
}
