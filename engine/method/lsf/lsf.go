package lsf

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Job is the LSH-forest coreset as a central method (DPLSF, Sketch-V sections
// 3.2 and B.1): a trie over the signs of random hyperplanes, counted level by
// level; the noisy sums of the records of each leaf; weighted k-means on the
// leaf means. Half of the budget goes to the counts, half to the sums. Unlike the
// paper's, the counts are made consistent with the public number of records.
type Job struct {
	protocol.Problem
	// Levels is the number of hyperplanes, at most 64; 0 means 12.
	Levels int
}

// name is what results call the method.
const name = "lsf"

var takes = protocol.Takes{Private: true, Replay: true, Weights: true,
	Mechanisms: []protocol.Mechanism{protocol.Gaussian, protocol.Laplace}}

// plan is what a run releases.
type plan struct {
	*staged.Plan
	counts []*staged.Release // by level
	sums   *staged.Release
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) { return staged.Make(j, (*Job).plan) }

func (j *Job) plan() (*plan, error) {
	if err := j.Check(name, takes); err != nil {
		return nil, err
	}
	if j.Levels < 0 || j.Levels > 64 {
		return nil, fault.Range("levels", j.Levels, "1 to 64")
	}
	levels := cmp.Or(j.Levels, 12)
	f, err := staged.New(name, &j.Problem, j.NoiseOf(protocol.Gaussian), levels+j.D())
	if err != nil {
		return nil, err
	}
	o := &plan{Plan: f}
	f.AddTotal()
	f.Does(1, o.run)
	f.Rounds = 1
	for level := range levels {
		o.counts = append(o.counts, f.AddLevel(fmt.Sprintf("forest level %d", level+1), "counts per level",
			f.Share.Part(0.5/float64(levels)), 1, level))
	}
	o.sums = f.AddRelease("leaf sums", "sums of the records of each leaf", "leaf sums", f.Share.Part(0.5), f.D,
		staged.Cells(1, levels-1)*f.D)
	o.sums.AtMost = true
	return o, nil
}

// run is what the party does.
func (o *plan) run(ctx context.Context, p *staged.Party) (*protocol.Outcome, error) {
	points, err := o.forest(ctx, p)
	if err != nil || p.Replay != nil {
		return nil, err
	}
	found, err := p.Search(ctx, points, p.K, 0)
	if err != nil {
		return nil, err
	}
	p.NoteTopUp(found)
	return p.Outcome(staged.GridRow(found.Centers, p.FractionBits), found.Weights, 1,
		map[string]any{"leaves": points.Len()}), nil
}

// forest releases an LSH forest and returns the leaf means with their counts.
func (o *plan) forest(ctx context.Context, p *staged.Party) (*synopsis.Weighted, error) {
	span := p.Begin(engine.PhaseEncode, 0)
	planes := synopsis.NewHyperplanes(p.D, len(o.counts), p.Public.Stream(int(protocol.Server), 0, "hyperplanes"))
	paths, err := synopsis.HyperplanePaths(ctx, p.Pool(), p.Records, planes)
	p.End(span)
	if err != nil {
		return nil, err
	}
	theta := min(10*math.Sqrt(o.sums.Share.Variance(o.sums.Scale)*float64(p.D)), math.Floor(float64(p.N)/float64(2*p.K)))
	forest := synopsis.Forest{
		Threshold: 3 * theta,
		Records:   float64(p.N),
		Units:     p.Weights,
		Counts: func(level, cells int, w *synopsis.Walker) ([]float64, float64, error) {
			s := o.counts[level]
			noisy, err := p.ReleaseCounts(ctx, s, cells, func(words []int64) error { return w.Count(ctx, p.Pool(), words) })
			return noisy, s.Share.Variance(s.Scale), err
		},
		Sums: func(leaves int, w *synopsis.Walker) ([]float64, error) {
			layout := []staged.Group{{Values: leaves * p.D, Bits: p.FractionBits, Scale: o.sums.Scale}}
			return p.Release(ctx, o.sums, layout, func(words []int64) error {
				return w.LeafSums(ctx, p.Pool(), p.Records, p.FractionBits, p.Weights.Bits(), words)
			})
		},
	}
	return forest.Release(paths, p.D)
}
