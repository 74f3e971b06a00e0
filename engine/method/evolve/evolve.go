package evolve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// Job is one run. Each generation releases how many records are nearest to each candidate.
// Candidates follow from public randomness and earlier releases, so a record is in one
// count of a generation (THEOREMS.md T5).
type Job struct {
	// Problem's Iterations are the generations, each of which is a histogram; 0 is the rule.
	protocol.Problem
}

// name is what results call the method.
const name = "evolve"

const (
	// mostGenerations and mostCandidates bound a run.
	mostGenerations, mostCandidates = 50, 4000
	// mostWords is how many candidates kernels tell apart.
	mostWords = 65535
	// lastShare is the budget of the last generation in those of another one: its counts
	// are the weights.
	lastShare = 3
	// perNoise is how many standard deviations of the noise a candidate of average weight has.
	perNoise = 3
	// kept is the part of a generation that may live on; the others are offspring.
	kept = 0.5
	// reach is how far offspring moves, in distances of its parent to the nearest candidate.
	reach = 0.6
)

var takes = protocol.Takes{Private: true, Iterations: true, Replay: true, Weights: true,
	Mechanisms: []protocol.Mechanism{protocol.Gaussian, protocol.Laplace}}

// plan is what a run releases.
type plan struct {
	*staged.Plan
	generations []*staged.Release
	candidates  int
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) { return staged.Make(j, (*Job).plan) }

func (j *Job) plan() (*plan, error) {
	if err := j.Check(name, takes); err != nil {
		return nil, err
	}
	if j.Iterations < 0 || j.Iterations > mostGenerations {
		return nil, fault.Range("iterations", j.Iterations, fmt.Sprintf("0 to %d", mostGenerations))
	}
	f, err := staged.New(name, &j.Problem, j.NoiseOf(protocol.Gaussian), mostGenerations)
	if err != nil {
		return nil, err
	}
	o := &plan{Plan: f}
	f.AddTotal()
	f.Does(1, o.run)
	// Every generation divides the room about as a tree's level does.
	f.Rounds = j.Iterations
	if f.Rounds == 0 {
		f.Rounds = min(max(int(elementary.Log2(f.Signal(f.Share))/2), 2), 8)
	}
	parts := float64(f.Rounds - 1 + lastShare)
	for t := range f.Rounds {
		share := f.Share.Part(1 / parts)
		if t == f.Rounds-1 {
			share = f.Share.Part(lastShare / parts)
		}
		o.generations = append(o.generations, f.AddCounts(fmt.Sprintf("generation %d", t+1), "candidate counts", share, 0))
	}
	first := o.generations[0]
	noise := math.Sqrt(first.Share.Variance(first.Scale))
	o.candidates = max(min(int(float64(f.N)/(perNoise*noise)), mostCandidates), min(2*f.K, mostWords), 8)
	for _, s := range o.generations {
		s.Words = o.candidates
	}
	return o, nil
}

// run is what the party does.
func (o *plan) run(ctx context.Context, p *staged.Party) (*protocol.Outcome, error) {
	random := p.Public.Stream(int(protocol.Server), 0, "evolve")
	population := make([]float32, o.candidates*p.D)
	for i := range population {
		population[i] = staged.OnGrid(2*random.Float64()-1, p.FractionBits)
	}
	var weights []float64
	for t, s := range o.generations {
		counts, err := p.ReleaseCounts(ctx, s, len(population)/p.D, func(words []int64) error {
			return nearest(ctx, p, population, words)
		})
		if err != nil {
			return nil, err
		}
		variance := make([]float64, len(counts))
		for i := range variance {
			variance[i] = s.Share.Variance(s.Scale)
		}
		synopsis.ProjectSimplex(counts, variance, float64(p.N))
		weights = counts
		if t < len(o.generations)-1 {
			population = next(population, weights, p.D, o.candidates, p.FractionBits, random)
		}
		if err := p.EndRound(ctx, t, o.Rounds); err != nil {
			return nil, err
		}
	}
	points := &synopsis.Weighted{D: p.D}
	for i, w := range weights {
		if w > 0 {
			points.Append(staged.Widen(population[i*p.D:(i+1)*p.D]), w)
		}
	}
	found, err := p.Search(ctx, points, p.K, 0)
	if err != nil {
		return nil, err
	}
	p.NoteTopUp(found)
	return p.Outcome(staged.GridRow(found.Centers, p.FractionBits), found.Weights, o.Rounds,
		map[string]any{"candidates": o.candidates}), nil
}

// nearest counts the records that are nearest to each candidate, each for its weight.
func nearest(ctx context.Context, p *staged.Party, population []float32, words []int64) error {
	centers := kernels.NewCentroids(len(words), p.D)
	centers.Set(population)
	return p.Pool().Count(ctx, p.Records, words, func(own []int64, s engine.Shard) {
		labels := make([]uint16, s.Hi-s.Lo)
		kernels.Assign(p.Records.Slice(s.Lo, s.Hi), centers, labels, nil)
		for r, l := range labels {
			own[l] += p.Weights.Of(s.Lo + r)
		}
	})
}

// next is the next generation, of so many candidates, given the weights of this one: the
// heaviest, at most the part that is kept, live on, and have offspring in proportion to
// their weights. Released numbers and public randomness alone.
func next(population []float32, weights []float64, d, size, bits int, random *privacy.Stream) []float32 {
	order := make([]int, 0, len(weights))
	for i, w := range weights {
		if w > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	order = order[:min(len(order), int(kept*float64(size)))]
	total := 0.0
	for _, i := range order {
		total += weights[i]
	}
	out := make([]float32, 0, size*d)
	for _, i := range order {
		out = append(out, population[i*d:(i+1)*d]...)
	}
	offspring, due, born := float64(size-len(order)), 0.0, 0
	for _, i := range order {
		due += offspring * weights[i] / total
		gap := -1.0 // measured where there is offspring
		for ; float64(born) < due-0.5; born++ {
			if gap < 0 {
				gap = toNearest(population, weights, i, d)
			}
			step, square := staged.Direction(d, random)
			length := reach * gap / math.Sqrt(square)
			for h, x := range step {
				out = append(out, staged.OnGrid(float64(population[i*d+h])+float64(length*x), bits))
			}
		}
	}
	return out
}

// toNearest is the distance of candidate i to the nearest other one that lives.
func toNearest(population []float32, weights []float64, i, d int) float64 {
	least := math.Inf(1)
	for q, w := range weights {
		if q == i || w <= 0 {
			continue
		}
		if sum := elementary.SquaredDistance(population[i*d:(i+1)*d], population[q*d:]); sum > 0 {
			least = min(least, sum)
		}
	}
	if math.IsInf(least, 1) {
		return math.Sqrt(float64(d)) / 2
	}
	return math.Sqrt(least)
}
