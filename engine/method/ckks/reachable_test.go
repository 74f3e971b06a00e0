package ckks

import (
	"math"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// wheel is a cluster in the middle of five others, which all border on it.
func wheel(radius float64) [][]float64 {
	out := [][]float64{{0, 0}}
	for i := range 5 {
		a := 2 * math.Pi * float64(i) / 5
		out = append(out, []float64{radius * math.Cos(a), radius * math.Sin(a)})
	}
	return out
}

// A round whose centroids would need a deeper product than the chain has begins on the way to
// them, and the run goes on; where the chain has room it begins at them.
func TestCentroidsStayWithinTheChain(t *testing.T) {
	chain := &Chain{LogN: 11, Levels: signDepth + 2, LogLevel: 29, LogP: []int{30, 30, 30}}
	table := &dataset.Table{N: 1200, D: 2}
	for i := range table.N {
		c := wheel(0.7)[i%6]
		table.Rows = append(table.Rows, c[0]+0.01*float64(i%11-5), c[1]+0.01*float64(i%7-3))
	}
	norm, err := dataset.Normalise(table, dataset.Bounds{Lo: []float64{-1, -1}, Hi: []float64{1, 1}},
		dataset.DefaultFractionBits)
	if err != nil {
		t.Fatal(err)
	}
	line := [][]float64{{0.05, 0}, {0.9, 0.05}, {0.45, 0.1}, {-0.45, 0.05}, {-0.9, -0.05}, {-0.2, -0.1}}
	job := &Job{Problem: protocol.Problem{Clients: norm.Table(), Bounds: norm.Bounds, Columns: [][]int{{0}, {1}}, K: 6,
		Iterations: 3, Calibration: privacy.None, Seed: seed(1), Start: slices.Concat(line...)}, chain: chain}
	s := planned(t, job)
	if _, err := planRound(s.params, s.cols, s.lay, wheel(0.7), true, pairSign); err == nil {
		t.Fatal("the chain has room for a cluster with five neighbours")
	}
	to, held := s.reachable(line, wheel(0.7))
	if !held {
		t.Error("centroids that the chain has no room for are not held back")
	}
	if _, err := planRound(s.params, s.cols, s.lay, to, true, pairSign); err != nil {
		t.Errorf("after it: %v", err)
	}
	if to, held := s.reachable(wheel(0.7), line); held || to[0][0] != line[0][0] {
		t.Errorf("centroids that the chain has room for are held back at %v", to)
	}
	res := runJob(t, job, 2)
	if len(res.Details["rounds"].([]Round)) != 3 {
		t.Errorf("%d rounds were run", len(res.Details["rounds"].([]Round)))
	}
}

// In the plane the chain has room for the pairs that pruning leaves, elsewhere for all.
func TestChainOfThePlane(t *testing.T) {
	for _, c := range []struct {
		d, k int
		edit func(*Job)
		logN int
	}{
		{2, 18, nil, 14}, {2, 50, nil, 14}, {2, 51, nil, 15}, {3, 18, nil, 15}, {2, 17, nil, 14},
		{2, 18, func(j *Job) { j.KeepPairs = true }, 15}, {2, 18, func(j *Job) { j.Init = "random" }, 15},
	} {
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 200, c.d, 4, 1).Table(),
			Columns: [][]int{{0}, {1}}, K: c.k, Calibration: privacy.None, Seed: seed(1)}}
		if c.d == 3 {
			j.Columns[1] = []int{1, 2}
		}
		if c.edit != nil {
			c.edit(j)
		}
		pl := planOf(t, j)
		if pl.params.Chain.LogN != c.logN {
			t.Errorf("d %d, k %d: LogN %d, want %d", c.d, c.k, pl.params.Chain.LogN, c.logN)
		}
	}
}

// Sphere packings of the plane, from which runs start, fit the chain.
func TestPlanarStartsFitTheChain(t *testing.T) {
	for _, k := range []int{18, 33, planarClusters} {
		j := &Job{Problem: protocol.Problem{Clients: sample(t, "blobs", 200, 2, 4, 1).Table(),
			Columns: [][]int{{0}, {1}}, K: k, Calibration: privacy.None, Seed: seed(uint64(k))}}
		s := planned(t, j)
		if _, err := planRound(s.params, s.cols, s.lay, s.start, true, pairSign); err != nil {
			t.Errorf("k %d: %v", k, err)
		}
	}
}
