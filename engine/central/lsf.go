package central

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
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

// Plan implements engine.Job.
func (j *LSF) Plan() (engine.Plan, error) { return j, j.Validate() }

// Validate checks the fields.
func (j *LSF) Validate() error {
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

// Run runs the method.
func (j *LSF) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	budget := budgetFor(j.Budget, j.records())
	s := newSession(ctx, rt, &j.Data, j.K, j.Seed, budget.Delta)
	s.method = j.Method()
	levels := j.Levels
	if levels == 0 {
		levels = 12
	}
	l, err := newLaw(budget, j.Laplace || budget.Delta == 0, j.Neighbours, levels+s.d)
	if err != nil {
		return nil, fault.Request("lsf", err.Error(), "raise --delta, or give --delta 0 for Laplace noise")
	}
	points, err := s.forest(l, levels)
	if err != nil || j.Tape != nil {
		return &engine.Result{}, err
	}
	span := rt.Begin(engine.PhaseSearch, s.rounds, engine.Server)
	found, err := synopsis.Search(ctx, rt.Pool(), points, j.K, synopsis.SearchOptions{}, s.streams.Stream(engine.Server, 0, "search"))
	rt.End(span)
	if err != nil {
		return nil, err
	}
	s.noteTopUp(found)
	s.sizes = found.Weights
	centroids := gridRow(found.Centers, s.bits)
	res, err := s.result(j.Method(), privacy.Proven, widen(centroids), budget, 1)
	if err != nil {
		return nil, err
	}
	res.Details = map[string]any{"leaves": points.Len()}
	return res, nil
}

func (s *session) noteTopUp(found *synopsis.Solution) {
	switch {
	case found.TopUp == s.k:
		s.note("no cell of the synopsis has a positive weight: all %d centroids are data-independent; more records or a larger budget would help", s.k)
	case found.TopUp > 0:
		s.note("the synopsis has fewer weighted points than k: %d of the %d centroids are data-independent", found.TopUp, s.k)
	}
}

// forest releases an LSH forest of one party and returns the leaf means with
// their counts.
func (s *session) forest(l law, levels int) (*synopsis.Weighted, error) {
	records := s.parties[0].Points
	span := s.rt.Begin(engine.PhaseEncode, 0, 0)
	planes := synopsis.NewHyperplanes(s.d, levels, s.streams.Stream(engine.Server, 0, "hyperplanes"))
	paths, err := synopsis.HyperplanePaths(s.ctx, s.rt.Pool(), records, planes)
	s.rt.End(span)
	if err != nil {
		return nil, err
	}
	sumLaw, sumBound := l.share(0.5), s.bound("leaf sums", 0)
	sumScale := sumLaw.scale(sumBound)
	theta := min(10*math.Sqrt(sumLaw.variance(sumScale)*float64(s.d)), math.Floor(float64(s.n)/float64(2*s.k)))
	levelCounts := trieLevels{line: "counts per level", levels: levels, law: func(int) law { return l.share(0.5 / float64(levels)) },
		name: func(level int) string { return fmt.Sprintf("forest level %d", level+1) }}
	forest := synopsis.Forest{
		Threshold: 3 * theta,
		Records:   float64(s.n),
		Counts: func(level, cells int, w *synopsis.Walker) ([]float64, float64, error) {
			return s.countLevel(&levelCounts, level, []*synopsis.Walker{w}, cells)
		},
		Sums: func(leaves int, w *synopsis.Walker) ([]float64, error) {
			span := s.rt.Begin(engine.PhaseAccumulate, s.rounds, 0)
			sums, err := w.LeafSums(s.ctx, s.rt.Pool(), records, leaves, s.bits)
			s.rt.End(span)
			if err != nil {
				return nil, err
			}
			noisy, err := s.release("leaf sums", [][]int64{sums}, sumLaw, []noiseGroup{{len(sums), s.bits, sumScale}})
			if err != nil {
				return nil, err
			}
			return noisy, s.enter(sumLaw, sumLaw.entry("sums of the records of each leaf", s.viewers(), sumScale, sumBound, s.d))
		},
	}
	points, err := forest.Release(paths, s.d)
	if err != nil {
		return nil, err
	}
	return points, s.enterUnreached(&levelCounts)
}

// sumByLabel returns the sums of the records of each of k labels, in grid units,
// and adds the counts to counts unless it is nil.
func (s *session) sumByLabel(records *kernels.Panels, labels []uint16, k int, counts []int64) ([]int64, error) {
	pool := s.rt.Pool()
	accs := make([]*kernels.Accumulator, pool.Workers())
	for i := range accs {
		accs[i] = kernels.NewAccumulator(k, s.d, s.bits)
	}
	shards := engine.Shards([]int{records.N}, s.d)
	err := pool.Run(s.ctx, len(shards), func(worker, i int) {
		lo, hi := shards[i].Lo, shards[i].Hi
		kernels.Accumulate(records.Slice(lo, hi), labels[lo:hi], accs[worker])
	})
	sums := make([]int64, k*s.d)
	for _, a := range accs {
		for i, x := range a.Sums {
			sums[i] += x
		}
		for j, n := range a.Counts {
			if counts != nil {
				counts[j] += n
			}
		}
	}
	return sums, err
}
