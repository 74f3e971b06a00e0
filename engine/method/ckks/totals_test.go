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
// with the memberships that the polynomials define. Comparisons and sums see the
// encrypted columns with the error that their encryption gave them: that error
// belongs to a record and moves its part, whatever the other records are,
// so it is no error of the release (THEOREMS.md T4). With exact columns instead
// the result is what a plaintext run computes.
func softTotals(t *testing.T, s *run, roles *parties, r *roundPlan, exact bool) []float64 {
	p := s.job.Clients[0].Points
	key := roles.key(s.params)
	k, slots, blocks := len(r.factors), s.lay.slots, s.lay.blocks
	// value is what column c holds at a slot of a batch, in its copy for comparisons or for the sums.
	decoded := make(map[*cipher][]float64)
	value := func(c, batch, slot int, top bool) float64 {
		if s.cols.encrypted[c] && !exact {
			ct := roles.alice.lows[c][batch]
			if top {
				ct = roles.alice.tops[c][batch]
			}
			if decoded[ct] == nil {
				decoded[ct] = decode(t, s.params, ct, key)
				if top {
					subtracted := plainCipher(s.params, roles.alice.its(0), roles.alice.slots[c][batch])
					for i, v := range decode(t, s.params, subtracted, key) {
						decoded[ct][i] += v
					}
				}
			}
			return decoded[ct][slot]
		}
		if record := batch*slots + slot/blocks; record < p.N && (top || slot%blocks == 0) {
			return float64(p.Point(record, nil)[c])
		}
		return 0
	}
	var group []int // of each pair
	for g := range r.groups {
		for range r.groups[g].pairs {
			group = append(group, g)
		}
	}
	out := make([]float64, k*(1+p.D))
	for batch := range s.lay.batches {
		h := make([][]float64, len(r.groups))
		for g, group := range r.groups {
			h[g] = make([]float64, slots)
			for slot := range h[g] {
				if slot%blocks >= len(group.pairs) {
					continue // of no comparison that is looked at, but by slots beside records
				}
				q := group.pairs[slot%blocks]
				v := q.offset
				for c := range p.D {
					v += q.gain[c] * value(c, batch, slot, true)
				}
				h[g][slot] = r.sign.at(v)
			}
		}
		for slot := range slots {
			own := batch*slots+slot/blocks < p.N && slot%blocks == 0
			if !own && exact {
				continue
			}
			for j, fs := range r.factors {
				w := 1.0
				for _, f := range fs {
					g := group[f.pair]
					x := h[g][(slot+f.pair-r.groups[g].first)%slots]
					w *= 0.5 + float64(2*f.side-1)*x
				}
				if own {
					out[j*(1+p.D)] += w
				}
				for c := range p.D {
					out[j*(1+p.D)+1+c] += w * value(c, batch, slot, false)
				}
			}
		}
	}
	return out
}

// oneRound returns a round's decrypted totals, in records, and its plan.
func oneRound(t *testing.T, j *Job, sign *composite) ([]float64, *roundPlan, *run, *parties) {
	t.Helper()
	pool := engine.NewPool(2)
	defer pool.Close()
	ctx := context.Background()
	s, roles := setUp(t, j, pool)
	r, err := planRound(s.params, s.cols, s.lay, s.start, true, sign)
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
	out, small := make([]float64, len(totals)), newSmallSecret(s.params, roles.key(s.params).small)
	for i := range totals {
		x := productOf(t, s.params, &small, totals[i].Aggregate)
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
		sign    *composite
	}{
		{200, 2, 2, [][]int{{0}, {1}}, pairSign},
		{200, 2, 2, [][]int{{0}, {1}}, earlySign},
		{1000, 5, 2, [][]int{{0}, {1}}, earlySign},
		{1600, 9, 3, [][]int{{1}, {0, 2}}, pairSign},
		{17000, 3, 2, [][]int{{0}, {1}}, pairSign},
		{17000, 3, 2, [][]int{{0}, {1}}, earlySign},
		{900, 12, 4, [][]int{{0, 1}, {2, 3}}, pairSign},
	} {
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", c.n, c.d, c.k, 5).Table(),
			Columns: c.cols, K: c.k, Calibration: privacy.None, Seed: seed(2)}}
		got, r, s, roles := oneRound(t, j, c.sign)
		release, exact := norm(got, softTotals(t, s, roles, r, false)), norm(got, softTotals(t, s, roles, r, true))
		a, ok := j.setting(s.params, 1, 1e-7).bound()
		bound := math.Sqrt(a.fresh+a.once) + a.rest
		if !ok {
			t.Errorf("n %d k %d: no bound is proved", c.n, c.k)
		}
		t.Logf("n %d k %d d %d, degree %d: pairs %d depth %d blocks %d, error of the release %.4f "+
			"(bound %.4f), with that of the encryption %.4f",
			c.n, c.k, c.d, r.sign.degree(), len(r.pairs), r.depth, s.lay.blocks, release, bound, exact)
		if release > bound {
			t.Errorf("n %d k %d: error %g above the bound %g", c.n, c.k, release, bound)
		}
	}
}
