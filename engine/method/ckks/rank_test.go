package ckks

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
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
	for name, c := range map[string]struct {
		record func(i int) []float64
		tied   int // notes
	}{
		"one record":            {func(int) []float64 { return []float64{0.3, 0.3} }, 1},
		"between two centroids": {func(int) []float64 { return []float64{0.2, 0.2} }, 1},
		"between four":          {func(int) []float64 { return []float64{0, 0} }, 1},
		"four records":          {func(i int) []float64 { return []float64{float64(i%2) - 0.5, float64(i/2%2) - 0.5} }, 1},
		"a constant column":     {func(i int) []float64 { return []float64{float64(i)/n*2 - 1, 0} }, 0},
	} {
		data := planar(t, n, c.record)
		var last Round
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}}, K: k,
			Iterations: 3, Calibration: privacy.None, Seed: seed(1), Start: slices.Concat(corners...)}, Argmin: Rank,
			chain: smallRank(k), OnRound: func(r Round) { last = r }}
		res := runJob(t, j, 2)
		got, want := loss(data, last.Centroids), loss(data, lloyd(data, corners, 3))
		t.Logf("%s: loss %.4g, of Lloyd %.4g, notes %q", name, got, want, res.Notes[:len(res.Notes)-1])
		if notes := strings.Count(strings.Join(res.Notes, "\n"), "no comparison tells apart"); notes != c.tied {
			t.Errorf("%s: %d notes of records without a cluster, want %d", name, notes, c.tied)
		}
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
		if least, _ := indicatorRange(k); equal > 0.05-least {
			t.Errorf("k %d: a membership in the second of equal centroids is %g", k, equal)
		}
		pool.Close()
	}
}

// Whatever comparisons leave undecided, a record's memberships by rank sum to no less and no more than the check of
// totals takes for the least and the most; of three nearest ones that no comparison decides nothing is left.
func TestSumsOfRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{2, 3, 4, 5, 6, 10, 17, maxRankClusters} {
		bounds := (&Job{Argmin: Rank, Problem: protocol.Problem{K: k}}).memberships()
		least, most, norm := math.Inf(1), 0.0, 0.0
		for i := range 4000 {
			ranks := softTies(r, k)
			if i%2 == 0 {
				ranks = someRanks(r, k)
			}
			var sum, squares float64
			for _, x := range ranks {
				y := indicator(k, x)
				sum += y
				squares += y * y
			}
			least, most, norm = min(least, sum), max(most, sum), max(norm, math.Sqrt(squares))
		}
		t.Logf("k %d: sums from %.3g to %.4g, bounds %.3g and %.4g", k, least, most, bounds.sum, 1+bounds.more)
		if least < bounds.sum || most > 1+bounds.more+1e-9 {
			t.Errorf("k %d: memberships sum to %g and to %g, bounds are %g and %g", k, least, most, bounds.sum, 1+bounds.more)
		}
		if norm > rankNorm(k)+1e-9 || k == 3 && norm < 0.999*rankNorm(k) {
			t.Errorf("k %d: memberships have a 2-norm of up to %g, and the ledger says %g", k, norm, rankNorm(k))
		}
		if k == 5 && most < 1+0.99*bounds.more {
			t.Errorf("k %d: memberships sum to %g at most, and may to %g", k, most, 1+bounds.more)
		}
		if three := 3 * indicator(k, 2); three != 0 {
			t.Errorf("k %d: of three nearest ones %g is left", k, three)
		}
	}
}

// someRanks are ranks that follow from any comparisons of k centroids with each other.
func someRanks(r *rand.Rand, k int) []float64 {
	ranks, width := make([]float64, k), 3*r.Float64()
	for i := range k {
		ranks[i]++
		for j := range i {
			win := min(max(0.5+(r.Float64()-0.5)*width+float64(i-j)*r.Float64(), 0), 1)
			ranks[i] += 1 - win
			ranks[j] += win
		}
	}
	return ranks
}

// softTies are ranks of k centroids of which no comparison decides between some that follow each other.
func softTies(r *rand.Rand, k int) []float64 {
	var ranks []float64
	for len(ranks) < k {
		tied := min(1+r.IntN(5), k-len(ranks))
		middle, width := float64(len(ranks))+float64(tied+1)/2, max(r.Float64()-0.5, 0)
		for i := range tied {
			ranks = append(ranks, middle+(float64(i)-float64(tied-1)/2)*width)
		}
	}
	return ranks
}

// Without noise who sees the centroids of a run by rank sees in them, and in its notes, whether most records count.
func TestLedgersOfRanks(t *testing.T) {
	data := sample(t, "blobs", 100, 2, 3, 5)
	for argmin, want := range map[Argmin]bool{Rank: true, Pairs: false} {
		pl, err := (&Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
			K: 3, Calibration: privacy.None}, Argmin: argmin}).plan()
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := pl.Ledger(nil)
		if err != nil {
			t.Fatal(err)
		}
		if is := slices.ContainsFunc(ledger.Entries(), func(e privacy.Entry) bool {
			return strings.Contains(e.What, "whether most records count") && slices.Contains(e.Viewers, privacy.Outsider)
		}); is != want {
			t.Errorf("%s: the ledger tells outsiders whether most records count: %v", argmin, is)
		}
	}
}

// Where centroids that stay are moved to follows from the public seed and from no secret.
func TestTiesAreBrokenInPublic(t *testing.T) {
	pool := engine.NewPool(2)
	defer pool.Close()
	data := planar(t, 100, func(int) []float64 { return []float64{0, 0} })
	moved := func(secrets, public uint64) []float64 {
		pl, err := (&Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
			K: 4, Iterations: 2, Calibration: privacy.None, Seed: seed(secrets),
			Start: []float64{-0.5, 0, 0.5, 0, 0, 0.5, 0, -0.5}}, Argmin: Rank, chain: smallRank(4)}).plan()
		if err != nil {
			t.Fatal(err)
		}
		pl.PublicSeed = protocol.NewPublicSeed(&public)
		res, err := pl.Run(context.Background(), engine.NewRuntime(pool))
		if err != nil {
			t.Fatal(err)
		}
		return slices.Concat(res.Centroids...)
	}
	distance := func(a, b []float64) float64 {
		var most float64
		for i := range a {
			most = max(most, math.Abs(a[i]-b[i]))
		}
		return most
	}
	one, same, other := moved(1, 1), moved(2, 1), moved(1, 2)
	if distance(one, same) > 1e-3 || distance(one, other) < 1e-2 {
		t.Errorf("the direction in which ties are broken is not public: %v and %v with other secrets, %v with another seed",
			one, same, other)
	}
}

// Records have a nearest centroid, but are as far from one of the farthest two as from the other: their memberships sum
// to more than 1, which is sound.
func TestTiesBehindTheNearestByRank(t *testing.T) {
	start := []float64{-0.6, 0, 0, 0, 0.6, 0.5, 0.6, -0.5}
	data := planar(t, 300, func(i int) []float64 { return []float64{float64(i)/3000 - 0.65, 0} })
	runJob(t, &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}}, K: 4,
		Iterations: 1, Calibration: privacy.None, Seed: seed(1), Start: start}, Argmin: Rank, chain: smallRank(4)}, 2)
}

// Centroids that hardly differ count as equal: gains are numbers, and every round ends.
func TestCentroidsThatHardlyDiffer(t *testing.T) {
	cols := columns{d: 2, encrypted: []bool{false, true}}
	for _, x := range []float64{5e-324, 1e-320, 1e-310, 1e-299, 1e-17} {
		p := newPair(0, 1, []float64{0, 0}, []float64{x, 0}, cols, undecided, math.Inf(1))
		if size := p.size(); size != 0 && math.Abs(size-cols.domain()) > 1e-9 {
			t.Errorf("centroids at a distance of %g: a comparison of up to %g in the box", x, size)
		}
	}
	data := planar(t, 100, func(i int) []float64 { return []float64{float64(i%2) - 0.5, 0} })
	pairs := Chain{LogN: 10, Levels: signDepth + 1, LogLevel: 29, LogP: []int{30, 30, 30}}
	for argmin, chain := range map[Argmin]*Chain{Rank: smallRank(3), Pairs: &pairs} {
		runJob(t, &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, Columns: [][]int{{0}, {1}},
			K: 3, Iterations: 1, Calibration: privacy.None, Seed: seed(1), Start: []float64{0, 0, 1e-320, 0, 0.6, 0}},
			Argmin: argmin, chain: chain}, 2)
	}
}

// The more holders a key has, the more room comparisons keep for the errors of columns and of spreading.
func TestRankSpareCovers(t *testing.T) {
	for _, c := range []struct{ holders, k int }{{1, 10}, {3, 7}} {
		data := sample(t, "blobs", 100, 3, 3, 5)
		j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, K: c.k, Calibration: privacy.None,
			Seed: seed(2), Columns: append(make([][]int, c.holders), []int{0, 1, 2})}, Mode: Multiparty, Argmin: Rank}
		chain := rankChain(c.k)
		j.chain = &chain
		pool := engine.NewPool(2)
		s, roles := setUp(t, j, pool)
		r := planRank(s.params, s.cols, s.start)
		var worst float64
		err := roles.alice.computer.each(context.Background(), pool, 1, func(w *scratch, _ int) error {
			values := decode(t, s.params, roles.alice.computer.distances(w, r, 0), roles.key(s.params))
			s.lay.rank.points(0, s.lay.n, func(p, record int) {
				for i := range c.k {
					for h := range c.k {
						worst = max(worst, math.Abs(values[(i*s.lay.rank.m+p)*c.k+h]-r.pairs[i][h].at(row(data, record))))
					}
				}
			})
			return nil
		})
		pool.Close()
		t.Logf("%d holders, k = %d: comparisons are off by %.3g at most, %.3g is kept", c.holders, c.k, worst, s.cols.spare)
		if err != nil || worst > s.cols.spare || worst < s.cols.spare/10 {
			t.Errorf("%d holders, k = %d: comparisons are off by %g, %g is kept (%v)", c.holders, c.k, worst, s.cols.spare, err)
		}
	}
}
