package ckks

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// What a result tells of a round's work follows from the centroids before it, which are released: from those of a run,
// the rounds of records that have nothing in common with that run's take the same work.
func TestWorkFollowsFromReleasedCentroids(t *testing.T) {
	chain := &Chain{LogN: 10, Levels: signDepth + 2, LogLevel: 29, LogP: []int{30, 30, 30}}
	rank := rankChain(3)
	rank.LogN = 12
	had := map[[2]int]bool{} // degrees and pairs of rounds
	for _, c := range []struct {
		name string
		k    int
		job  Job
	}{
		{"two-party", 4, Job{Problem: protocol.Problem{Columns: [][]int{{0, 2}, {1}}}, chain: chain}},
		{"far apart", 2, Job{Problem: protocol.Problem{Columns: [][]int{{0, 2}, {1}}}, chain: chain}},
		{"many", 5, Job{Problem: protocol.Problem{Columns: [][]int{{0, 1}, {2}}}, chain: chain}},
		{"all pairs", 4, Job{Problem: protocol.Problem{Columns: [][]int{{0, 2}, {1}}}, chain: chain, KeepPairs: true}},
		{"server-aided", 4, Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, chain: chain}},
		{"multiparty", 3, Job{Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, Mode: Multiparty, chain: chain}},
		{"rank", 3, Job{Problem: protocol.Problem{Columns: [][]int{{0, 2}, {1}}, Calibration: privacy.Claimed}, Argmin: Rank,
			chain: &rank}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const rounds = 5
			data := sample(t, "blobs", 600, 3, c.k, 5)
			j := c.job
			j.Clients, j.Bounds, j.K, j.Iterations, j.Seed = data.Table(), data.Bounds, c.k, rounds, seed(7)
			j.Budget, j.NoQuality = privacy.Budget{Epsilon: 20, Delta: 1e-5}, true
			other := j
			var held []Round
			j.OnRound = func(r Round) { held = append(held, r) }
			want := runJob(t, &j, 1).Details["rounds"].([]Round)
			other.Clients, other.Seed = corner(t, data).Table(), seed(8)
			other.Start = slices.Concat(planned(t, &j).start...)
			for i, got := range replayed(t, &other, held) {
				got.Index = i
				told := want[i]
				if told.Centroids = nil; !reflect.DeepEqual(got, told) {
					t.Errorf("round %d tells %+v, other records at its centroids %+v", i+1, told, got)
				}
				had[[2]int{got.Degree, got.Pairs}] = true
			}
		})
	}
	if len(had) < 6 {
		t.Errorf("all rounds took nearly the same work: %v", had)
	}
}

// corner has as many records, all of which are the same.
func corner(t *testing.T, data *dataset.Normalised) *dataset.Normalised {
	t.Helper()
	table := &dataset.Table{N: data.Points.N, D: data.Points.D}
	for range table.N {
		table.Rows = append(table.Rows, slices.Repeat([]float64{1}, table.D)...)
	}
	n, err := dataset.Normalise(table, dataset.SameBounds(table.D, -1, 1), dataset.DefaultFractionBits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// replayed are the rounds of a job up to their totals, each from the centroids of the released one before it.
func replayed(t *testing.T, j *Job, released []Round) (out []Round) {
	t.Helper()
	pool := engine.NewPool(1)
	defer pool.Close()
	s, roles := setUp(t, j, pool)
	current := s.start
	for i, r := range released {
		members, done, err := roles.alice.compareAll(context.Background(), i, current)
		if err == nil {
			_, err = roles.alice.totals(context.Background(), pool, i, members)
		}
		if err != nil {
			t.Fatal(err)
		}
		done.Operations = roles.alice.operations()
		out, current = append(out, done), r.Centroids
	}
	return out
}
