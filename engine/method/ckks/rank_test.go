package ckks

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// smallRank is a chain for ranks of k clusters in a small ring.
func smallRank(k int) *Chain {
	c := rankChain(k)
	c.LogN = 12
	return &c
}

// softRanks are the memberships that a round by rank computes, in floating point.
func softRanks(r *rankPlan, x []float64) []float64 {
	k := len(r.pairs)
	out := make([]float64, k)
	for j := range out {
		var rank float64
		for i := range k {
			rank += 0.5 + r.sign.at(r.pairs[i][j].at(x))
		}
		out[j] = indicator(k, (rank-float64(k)*(1-r.drawn())/2)/r.drawn())
	}
	return out
}

// planar makes n records in the box from -1 to 1.
func planar(t *testing.T, n int, record func(i int) []float64) *dataset.Normalised {
	t.Helper()
	table := &dataset.Table{N: n, D: 2}
	for i := range n {
		table.Rows = append(table.Rows, record(i)...)
	}
	data, err := dataset.Normalise(table, dataset.Bounds{Lo: []float64{-1, -1}, Hi: []float64{1, 1}}, 16)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Two groups of records are far from each other, and each has half of the centroids. One scale for all comparisons left
// most records without a cluster, and the first round ended in the check of totals.
func TestCrowdedCentroidsByRank(t *testing.T) {
	const k = 12
	r := rand.New(rand.NewPCG(1, 2))
	data := planar(t, 150, func(i int) []float64 {
		x := 0.75 * float64(i%2*2-1)
		return []float64{x + 0.05*r.NormFloat64(), x + 0.05*r.NormFloat64()}
	})
	var start [][]float64
	for j := range k {
		start = append(start, row(data, j))
	}
	want := loss(data, lloyd(data, start, 3))
	var last Round
	j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}}, K: k,
		Iterations: 3, Calibration: privacy.None, Seed: seed(1), Start: slices.Concat(start...)}, Argmin: Rank,
		chain: smallRank(k), OnRound: func(r Round) { last = r }}
	res := runJob(t, j, 2)
	got := loss(data, last.Centroids)
	t.Logf("loss %g, plaintext %g, notes %q", got, want, res.Notes[:len(res.Notes)-1])
	if got > 1.03*want {
		t.Errorf("loss %g, plaintext Lloyd %g", got, want)
	}
}

// Runs by rank end whatever the records are: all the same one, few that are there many times, in a column that is
// constant, midway between centroids, and with centroids that are equal.
func TestAnyRecordsByRank(t *testing.T) {
	const k, n = 10, 60
	corners := [][]float64{{-0.5, 0}, {0.5, 0}, {0, 0.5}, {0, -0.5}, {0.9, 0.9}, {0.9, 0.9}, {-0.9, 0.9}, {-0.9, -0.9},
		{0.9, -0.9}, {0.9, -0.9}}
	for name, x := range map[string]func(i int) []float64{
		"one record":            func(int) []float64 { return []float64{0.3, 0.3} },
		"between two centroids": func(int) []float64 { return []float64{0.2, 0.2} },
		"between four":          func(int) []float64 { return []float64{0, 0} },
		"four records":          func(i int) []float64 { return []float64{float64(i%2) - 0.5, float64(i/2%2) - 0.5} },
		"a constant column":     func(i int) []float64 { return []float64{float64(i)/n*2 - 1, 0} },
	} {
		data := planar(t, n, x)
		var last Round
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}}, K: k,
			Iterations: 3, Calibration: privacy.None, Seed: seed(1), Start: slices.Concat(corners...)}, Argmin: Rank,
			chain: smallRank(k), OnRound: func(r Round) { last = r }}
		res := runJob(t, j, 2)
		got, want := loss(data, last.Centroids), loss(data, lloyd(data, corners, 3))
		t.Logf("%s: loss %.4g, of Lloyd %.4g, notes %q", name, got, want, res.Notes[:len(res.Notes)-1])
		if got > 1.03*want+1e-6 {
			t.Errorf("%s: loss %g, plaintext Lloyd %g", name, got, want)
		}
	}
}

// least is the comparison of a record that is the nearest to being undecided.
func (r *rankPlan) least(x []float64) float64 {
	least := math.Inf(1)
	for i := range r.pairs {
		for j := range i {
			least = min(least, math.Abs(r.pairs[i][j].at(x)))
		}
	}
	return least
}

// Memberships are those of the formula where comparisons are decided, also with equal centroids, of which the first one
// has the records; roundings are a thousandth of a membership.
func TestRanksMatchTheSoftFormula(t *testing.T) {
	for _, k := range []int{3, 10} {
		data := sample(t, "blobs", 100, 3, 3, 5)
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1, 2}}, K: k,
			Calibration: privacy.None, Seed: seed(2)}, Argmin: Rank, chain: smallRank(k)}
		pool := engine.NewPool(2)
		s, roles := setUp(t, j, pool)
		start := s.start
		start[2] = slices.Clone(start[1])
		r := planRank(s.params, s.cols, start)
		members, err := roles.alice.computer.rankMembers(context.Background(), pool, r)
		if err != nil {
			t.Fatal(err)
		}
		var worst, equal float64
		decided := 0
		for c := range members {
			for g, ct := range members[c] {
				values := decode(t, s.params, ct, roles.key(s.params))
				s.lay.rank.points(g, s.lay.n, func(p, record int) {
					if x := row(data, record); r.least(x) > 1.2*r.sign.undecided {
						worst = max(worst, math.Abs(values[p*k+c]-softRanks(r, x)[c]))
						decided++
					}
					if c == 2 {
						equal = max(equal, math.Abs(values[p*k+c]))
					}
				})
			}
		}
		t.Logf("k %d: %d memberships off by %.3g at most, the second of equal centroids' %.3g", k, decided, worst, equal)
		if worst > 0.005 || decided == 0 {
			t.Errorf("k %d: %d memberships are off by up to %g", k, decided, worst)
		}
		if bound := -leastIndicator(k) + 0.05; equal > bound {
			t.Errorf("k %d: a membership in the second of equal centroids is %g", k, equal)
		}
		pool.Close()
	}
}

// Whatever comparisons leave undecided, a record's memberships by rank sum to no less than the check of totals takes
// for the least; of three nearest ones that no comparison decides nothing is left.
func TestLeastSumOfRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{3, 10, 17, maxRankClusters} {
		most, least := (&Job{Argmin: Rank, Problem: protocol.Problem{K: k}}).leastMemberships(), math.Inf(1)
		for range 2000 {
			ranks := make([]float64, k)
			width := 3 * r.Float64()
			for i := range k {
				ranks[i] += 1
				for j := range i {
					win := min(max(0.5+(r.Float64()-0.5)*width+float64(i-j)*r.Float64(), 0), 1)
					ranks[i] += 1 - win
					ranks[j] += win
				}
			}
			var sum float64
			for _, x := range ranks {
				sum += indicator(k, x)
			}
			least = min(least, sum)
		}
		if least < most.sum {
			t.Errorf("k %d: memberships sum to %g, less than %g", k, least, most.sum)
		}
		if three := 3 * indicator(k, 2); three != 0 {
			t.Errorf("k %d: of three nearest ones %g is left", k, three)
		}
		t.Logf("k %d: sums from %.3g, bound %.3g", k, least, most.sum)
	}
}
