package ckks

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
)

type benchedCell struct {
	n, k, parties, threshold int
	all                      bool // pairs have room in the chain
	depth, logN              int
	dear                     bool // takes seconds: a round is for make test-cells alone
}

// benchedCells are the sizes that `cohort bench he` prints, with the depth of their product trees and their ring.
// Those by rank have no bound: their plans refuse a calibration that is proven.
var benchedCells = []benchedCell{
	{n: 1000, k: 2, depth: 0, logN: 14},
	{n: 1000, k: 5, depth: 2, logN: 14},
	{n: 1000, k: 8, depth: 3, logN: 14},
	{n: 10000, k: 2, depth: 0, logN: 14},
	{n: 10000, k: 5, depth: 2, logN: 14},
	{n: 10000, k: 8, depth: 3, logN: 14, dear: true},
	{n: 100000, k: 2, depth: 0, logN: 14, dear: true},
	{n: 100000, k: 5, depth: 2, logN: 14, dear: true},
	{n: 100000, k: 8, depth: 3, logN: 14, dear: true},
	{n: 1000, k: 20, depth: 4, logN: 14, dear: true},
	{n: 1000, k: 20, all: true, depth: 5, logN: 15, dear: true},
	{n: 5000, k: 15, depth: 4, logN: 14, dear: true},
	{n: 1000000, k: 5, depth: 2, logN: 14, dear: true},
	{n: 100000, k: 32, depth: 4, logN: 14, dear: true},
	{n: 10000, k: 5, parties: 3, threshold: 2, depth: 2, logN: 14, dear: true},
	{n: 10000, k: 5, parties: 3, threshold: 1, depth: 2, logN: 14, dear: true},
	{n: 10000, k: 5, parties: 5, threshold: 4, depth: 2, logN: 14, dear: true},
	{n: 10000, k: 5, parties: 5, threshold: 2, depth: 2, logN: 14, dear: true},
}

// job is the job of a cell, with its records or without any.
func (c benchedCell) job(t *testing.T, records bool) *Job {
	d := max(c.parties, 2)
	box := dataset.Bounds{Lo: slices.Repeat([]float64{-1}, d), Hi: slices.Repeat([]float64{1}, d)}
	data := dataset.Shape(c.n, box, dataset.DefaultFractionBits)
	if records {
		g := dataset.Generator{N: c.n, D: d, K: c.k, Seed: 20240227}
		table, err := dataset.Generate(context.Background(), "timesynth", g)
		if err != nil {
			t.Fatal(err)
		}
		data = datasettest.Normalised(t, table)
	}
	j := &Job{Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds, K: c.k, Iterations: 10, Seed: seed(1),
		Budget: privacy.Budget{Epsilon: 5, Delta: 1e-5}}}
	for h := range d {
		j.Columns = append(j.Columns, []int{h})
	}
	if c.parties > 0 {
		j.Mode, j.Threshold = Multiparty, c.threshold
	}
	if c.all { // a given start takes the chain for all pairs
		j.Start = slices.Concat(j.StartCentroids()...)
	}
	return j
}

// In each cell of `cohort bench he` noise outweighs a proved bound of what roundings add to the totals of ten rounds,
// and what they add to a round's is within the root of the variance proxies that the bound is made of.
func TestErrorOfEachCell(t *testing.T) {
	for _, c := range benchedCells {
		t.Run(fmt.Sprintf("n=%d k=%d parties=%d threshold=%d logN=%d", c.n, c.k, c.parties, c.threshold, c.logN),
			func(t *testing.T) {
				run := !c.dear || os.Getenv("COHORT_CELLS") != ""
				j := c.job(t, run)
				pl := planOf(t, j)
				a, deviation := pl.noise.proved, min(pl.noise.count, pl.noise.sum)
				if a == nil || a.most() > deviation {
					t.Fatalf("no bound is proved that noise of deviation %.3g outweighs: %+v", deviation, a)
				}
				if depth, logN := pl.params.maxDepth(), pl.params.LogN(); depth != c.depth || logN != c.logN {
					t.Errorf("a chain of depth %d and LogN %d, want %d and %d", depth, logN, c.depth, c.logN)
				}
				root := math.Sqrt(a.fresh + a.once)
				t.Logf("root of the proxies %.3g, bound %.3g, noise %.3g", root, a.most(), deviation)
				if !run {
					return
				}
				got, r, s, roles := oneRound(t, j, pairSign)
				off := norm(got, softTotals(t, s, roles, r, false))
				t.Logf("%d pairs at depth %d: error %.3g", len(r.pairs), r.depth, off)
				if off > root {
					t.Errorf("error %g, the proxies have %g", off, root)
				}
			})
	}
}

// norm is the 2-norm of the difference of a and b.
func norm(a, b []float64) float64 {
	var squares float64
	for i, x := range a {
		squares += (x - b[i]) * (x - b[i])
	}
	return math.Sqrt(squares)
}
