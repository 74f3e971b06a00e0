package eugkm

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Job is one run of EUGkM. Its counts are those of a public grid (THEOREMS.md T5), its
// rounds sums of offsets cut at the half diagonal of the box, and counts (T2).
type Job struct {
	// Problem's Iterations are noisy rounds after the grid, which share half of the budget;
	// 0 means none. Its Mechanism is Laplace by default, as in the paper.
	protocol.Problem
}

// name is what results call the method.
const name = "eugkm"

// mostRounds bounds Iterations.
const mostRounds = 100

var takes = protocol.Takes{Private: true, Iterations: true, Replay: true, Weights: true,
	Mechanisms: []protocol.Mechanism{protocol.Laplace, protocol.Gaussian}}

// plan is what a run releases.
type plan struct {
	*staged.Plan
	grid   synopsis.Grid
	counts *staged.Release
	rounds []*staged.Release
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) { return staged.Make(j, (*Job).plan) }

func (j *Job) plan() (*plan, error) {
	if err := j.Check(name, takes); err != nil {
		return nil, err
	}
	if j.Iterations < 0 || j.Iterations > mostRounds {
		return nil, fault.Range("iterations", j.Iterations, fmt.Sprintf("0 to %d", mostRounds))
	}
	f, err := staged.New(name, &j.Problem, j.NoiseOf(protocol.Laplace), 1+j.Iterations*(j.D()+1))
	if err != nil {
		return nil, err
	}
	f.AddTotal()
	o, l := &plan{Plan: f, grid: gridFor(f.N, f.D, f.Budget.Epsilon)}, f.Share
	f.Does(1, o.run)
	f.Rounds = 1 + j.Iterations
	if j.Iterations > 0 {
		l = l.Part(0.5)
	}
	o.counts = f.AddCounts("grid", "grid counts", l, o.grid.Cells())
	for r := range j.Iterations {
		o.rounds = append(o.rounds, f.AddRound(fmt.Sprintf("round %d", r+1), l.Part(1/float64(j.Iterations)), j.K))
	}
	return o, nil
}

// mostCells bounds the grid, as the search visits every cell.
const mostCells = 1 << 17

// gridFor is the paper's grid: (n epsilon/10)^(2/(2+d)) cells a side, at least one and at
// most mostCells in all. In many dimensions that is the box itself.
func gridFor(n, d int, epsilon float64) synopsis.Grid {
	side := elementary.Pow(max(float64(n)*epsilon/10, 1), 2/float64(2+d))
	return synopsis.NewGrid(d, mostCells, 1, int(min(side, math.MaxInt32)))
}

// run is what the party does.
func (o *plan) run(ctx context.Context, p *staged.Party) (*protocol.Outcome, error) {
	noisy, err := p.ReleaseCounts(ctx, o.counts, o.grid.Cells(), func(words []int64) error {
		return o.grid.Count(ctx, p.Pool(), p.Records, p.Weights, words)
	})
	if err != nil {
		return nil, err
	}
	found, err := p.Search(ctx, centres(o.grid, noisy), p.K, 0)
	if err != nil {
		return nil, err
	}
	p.NoteTopUp(found)
	centroids, sizes := staged.GridRow(found.Centers, p.FractionBits), found.Weights
	if err := p.EndRound(ctx, 0, o.Rounds); err != nil {
		return nil, err
	}
	offsets := staged.NewOffsets(p.Pool(), p.K, p.D, p.FractionBits)
	for r, s := range o.rounds {
		radius, scales := make([]float64, p.K), make([]staged.Scales, p.K)
		for c := range radius {
			radius[c] = p.CutRadius(s.Share, math.Sqrt(float64(p.D)))
			scales[c] = p.RelativeScales(s.Share, radius[c], float64(p.N)/float64(p.K))
		}
		sums, counts, err := p.RelativeRound(ctx, offsets, s, centroids, radius, scales)
		if err != nil {
			return nil, err
		}
		staged.Move(s.Share, centroids, sums, counts, radius, scales, p.D, p.FractionBits, true)
		sizes = counts
		if err := p.EndRound(ctx, r+1, o.Rounds); err != nil {
			return nil, err
		}
	}
	return p.Outcome(centroids, sizes, o.Rounds, map[string]any{"cells": o.grid.Cells()}), nil
}

// centres are the middles of the cells with positive noisy counts.
func centres(g synopsis.Grid, counts []float64) *synopsis.Weighted {
	points, at := &synopsis.Weighted{D: g.D}, make([]float64, g.D)
	for cell, weight := range counts {
		if weight <= 0 {
			continue
		}
		for h, left := g.D-1, cell; h >= 0; h, left = h-1, left/g.Side {
			at[h] = (2*float64(left%g.Side)+1)/float64(g.Side) - 1
		}
		points.Append(at, weight)
	}
	return points
}
