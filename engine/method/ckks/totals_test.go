package ckks

import (
	"context"
	"math"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// softTotals evaluates the round's formula in floating point: counts and sums
// with the memberships that the polynomials define. The comparisons see the
// encrypted columns with the error that their encryption gave them: that error
// belongs to a record and moves its memberships, whatever the other records are,
// so it is no error of the release (THEOREMS.md T4). With exact columns instead
// the result is what a plaintext run computes.
func softTotals(t *testing.T, s *run, roles *parties, r *roundPlan, exact bool) []float64 {
	p := s.job.Clients[0].Points
	k := len(r.factors)
	out := make([]float64, k*(1+p.D))
	seen := make(map[int][][]float64)
	for c, enc := range s.cols.encrypted {
		if enc {
			for _, ct := range roles.alice.tops[c] {
				seen[c] = append(seen[c], decode(t, s.params, ct, roles.bob.secret))
			}
		}
	}
	_, per := s.lay.grouping(len(r.pairs))
	row := make([]float32, p.D)
	h := make([]float64, len(r.pairs))
	for i := range p.N {
		row = p.Point(i, row)
		for n, q := range r.pairs {
			u := n % per
			v := q.offset
			for c, x := range row {
				x := float64(x)
				if !s.cols.encrypted[c] || exact {
					v += q.gain[c] * x
					continue
				}
				// The other copies of the column are zero here, up to their error.
				for o := range min(per, len(r.pairs)-(n-u)) {
					v += r.pairs[n-u+o].gain[c] * seen[c][i/s.lay.slots*s.lay.blocks+o][i%s.lay.slots+u*s.lay.n]
				}
			}
			h[n] = halfSign(v)
		}
		for j, fs := range r.factors {
			w := 1.0
			for _, f := range fs {
				if f.side == 0 {
					w *= 0.5 - h[f.pair]
				} else {
					w *= 0.5 + h[f.pair]
				}
			}
			out[j*(1+p.D)] += w
			for c, x := range row {
				out[j*(1+p.D)+1+c] += w * float64(x)
			}
		}
	}
	return out
}

// oneRound returns a round's decrypted totals, in records, and its plan.
func oneRound(t *testing.T, j *Job) ([]float64, *roundPlan, *run, *parties) {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	ctx := context.Background()
	s, roles := setUp(t, j, pool)
	r, err := planRound(s.params, s.cols, s.start, true)
	if err != nil {
		t.Fatal(err)
	}
	w, err := roles.alice.computer.members(ctx, pool, r)
	if err != nil {
		t.Fatal(err)
	}
	totals, err := roles.alice.computer.totals(ctx, pool, 0, w)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(totals))
	for i := range totals {
		x := roles.bob.small.product(s.params, &totals[i].Aggregate)
		for c := range x {
			x[c] = (x[c] + totals[i].C0[c]) % s.params.Q()[c]
		}
		out[i] = float64(crt(s.params, x)) / totals[i].unit
	}
	return out, r, s, roles
}

// The 2-norm of the error of all totals of a round stays below the bound that
// the noise calibration counts as sensitivity.
func TestTotalsMatchTheSoftFormula(t *testing.T) {
	for _, c := range []struct {
		n, k, d int
		cols    [][]int
	}{
		{200, 2, 2, [][]int{{0}, {1}}},
		{1000, 5, 2, [][]int{{0}, {1}}},
		{1600, 9, 3, [][]int{{1}, {0, 2}}},
		{17000, 3, 2, [][]int{{0}, {1}}},
		{900, 12, 4, [][]int{{0, 1}, {2, 3}}},
	} {
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", c.n, c.d, c.k, 5).Table(),
			Columns: c.cols, K: c.k, Calibration: privacy.None, Seed: seed(2)}}
		got, r, s, roles := oneRound(t, j)
		distance := func(exact bool) float64 {
			want := softTotals(t, s, roles, r, exact)
			var err2 float64
			for i := range got {
				err2 += (got[i] - want[i]) * (got[i] - want[i])
			}
			return math.Sqrt(err2)
		}
		release, exact := distance(false), distance(true)
		bound := assumedError(c.n, c.k, c.d)
		t.Logf("n %d k %d d %d: pairs %d depth %d blocks %d, error of the release %.4f (bound %.4f), with that of the "+
			"encryption %.4f",
			c.n, c.k, c.d, len(r.pairs), r.depth, s.lay.blocks, release, bound, exact)
		if release > bound {
			t.Errorf("n %d k %d: error %g above the bound %g", c.n, c.k, release, bound)
		}
	}
}
