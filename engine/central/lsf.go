package central

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
)

// LSF is the LSH-forest coreset as a central method (DPLSF, Sketch-V sections
// 3.2 and B.1): a trie over the signs of random hyperplanes, counted level by
// level; the noisy sums of the records of each leaf; weighted k-means on the
// leaf means. Half of the budget goes to the counts, half to the sums. Unlike the
// paper's, the counts are made consistent with the public number of records.
type LSF struct {
	Data
	K int
	// Budget is what the run may spend; a negative Delta means 1/(n ln n).
	Budget privacy.Budget
	// Laplace asks for pure epsilon; it is also chosen when Budget.Delta is 0.
	Laplace    bool
	Neighbours privacy.Neighbours // default add-remove
	// Levels is the number of hyperplanes, at most 64; 0 means 12.
	Levels int
	// Seed makes the run a simulation; nil takes noise from the system.
	Seed *uint64
}

// Method is "lsf".
func (j *LSF) Method() string { return "lsf" }

// check checks the fields.
func (j *LSF) check() error {
	if err := j.validate(j.K); err != nil {
		return err
	}
	if len(j.Clients) != 1 {
		return fault.Range("clients", len(j.Clients), "1: lsf is a central method")
	}
	if j.Levels < 0 || j.Levels > 64 {
		return fault.Range("levels", j.Levels, "1 to 64")
	}
	return validateBudget(j.Budget, j.records())
}

func validateBudget(b privacy.Budget, n int) error {
	if err := budgetFor(b, n).Validate(); err != nil {
		return fault.Request("budget", err.Error(), "give a positive --epsilon and a --delta below 1")
	}
	return nil
}

// lsfPlan is what a run releases.
type lsfPlan struct {
	*frame
	counts []*stage // by level
	sums   *stage
}

// Plan implements engine.Job.
func (j *LSF) Plan() (engine.Plan, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	o, err := j.plan()
	if err != nil {
		return nil, err
	}
	if err := o.planQuality(&j.Data, 1); err != nil {
		return nil, err
	}
	return planned{o.frame, &j.Data, o.run}, nil
}

func (j *LSF) plan() (*lsfPlan, error) {
	budget, levels := budgetFor(j.Budget, j.records()), orDefault(j.Levels, 12)
	f, err := newFrame(j.Method(), &j.Data, j.K, budget, j.Laplace || budget.Delta == 0, j.Neighbours, levels+j.Clients[0].Points.D, j.Seed)
	if err != nil {
		return nil, err
	}
	o := &lsfPlan{frame: f}
	f.Rounds = 1
	for level := range levels {
		o.counts = append(o.counts, f.addCounts(fmt.Sprintf("forest level %d", level+1), "counts per level", f.law.share(0.5/float64(levels))))
	}
	o.sums = f.add("leaf sums", "sums of the records of each leaf", "leaf sums", f.law.share(0.5), f.d)
	return o, nil
}

// run is what the party does.
func (o *lsfPlan) run(ctx context.Context, p *party) (*protocol.Outcome, error) {
	points, err := p.forest(ctx, o)
	if err != nil || p.Replay != nil {
		return nil, err
	}
	found, err := p.search(ctx, points, p.k, 0)
	if err != nil {
		return nil, err
	}
	p.noteTopUp(found)
	return p.outcome(gridRow(found.Centers, p.bits), found.Weights, 1, map[string]any{"leaves": points.Len()}), nil
}

// forest releases an LSH forest and returns the leaf means with their counts.
func (p *party) forest(ctx context.Context, o *lsfPlan) (*synopsis.Weighted, error) {
	span := p.Begin(engine.PhaseEncode, 0)
	planes := synopsis.NewHyperplanes(p.d, len(o.counts), p.Public.Stream(int(protocol.Server), 0, "hyperplanes"))
	paths, err := synopsis.HyperplanePaths(ctx, p.Pool(), p.records, planes)
	p.End(span)
	if err != nil {
		return nil, err
	}
	theta := min(10*math.Sqrt(o.sums.law.variance(o.sums.scale)*float64(p.d)), math.Floor(float64(p.N)/float64(2*p.k)))
	forest := synopsis.Forest{
		Threshold: 3 * theta,
		Records:   float64(p.N),
		Counts: func(level, cells int, w *synopsis.Walker) ([]float64, float64, error) {
			s := o.counts[level]
			noisy, err := p.releaseCounts(ctx, s, cells, func(words []int64) error { return w.Count(ctx, p.Pool(), words) })
			return noisy, s.law.variance(s.scale), err
		},
		Sums: func(leaves int, w *synopsis.Walker) ([]float64, error) {
			own := protocol.NewPrivate(leaves * p.d)
			span := p.Begin(engine.PhaseAccumulate, p.released)
			err := own.Fill(func(words []int64) error { return w.LeafSums(ctx, p.Pool(), p.records, p.bits, words) })
			p.End(span)
			if err != nil {
				return nil, err
			}
			return p.release(ctx, o.sums, []noiseGroup{{own.Len(), p.bits, o.sums.scale}}, own)
		},
	}
	return forest.Release(paths, p.d)
}
