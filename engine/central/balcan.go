package central

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/synopsis"
)

// Balcan is the pipeline of Balcan et al. with accounting that holds
// (THEOREMS.md T2, T5): project to ln(n)/2 dimensions about a private mean and
// clip to a public cube; one noisy count per cube and depth; swap centres by
// private choices whose scores have their true sensitivity; recover the centres
// in all dimensions and refine them by sums of offsets cut to an L2 length and
// noisy counts.
//
// The split of the budget follows from the dimension: sums get dearer with it,
// counts do not. The start of the swaps is the free search on the counts, so the
// swaps mend it where it is wrong.
type Balcan struct {
	Data
	K int
	// Budget is what the run may spend; a negative Delta means 1/(n ln n).
	Budget privacy.Budget
	// Laplace asks for pure epsilon; it is also chosen when Budget.Delta is 0.
	Laplace    bool
	Neighbours privacy.Neighbours // default add-remove
	Projection Projection         // default Dense
	// Swaps is the number of private swaps, default 2; negative means none.
	Swaps int
	// Exponential chooses by the exponential mechanism, else by permute-and-flip.
	Exponential bool
	// Rounds is the number of refinement rounds, 0 for a rule.
	Rounds int
	// Seed makes the run a simulation; nil takes noise from the system.
	Seed *uint64
}

// Method is "balcan".
func (j *Balcan) Method() string { return "balcan" }

// Plan implements engine.Job.
func (j *Balcan) Plan() (engine.Plan, error) { return j, j.Validate() }

// Validate checks the fields.
func (j *Balcan) Validate() error {
	if err := j.validate(j.K); err != nil {
		return err
	}
	if len(j.Clients) != 1 {
		return fault.Range("clients", len(j.Clients), "1: balcan is a central method")
	}
	if err := j.Projection.validate(); err != nil {
		return err
	}
	return validateBudget(j.Budget, j.records())
}

// The shares of the stages other than cubes, recovery and refinement.
const (
	meanShare      = 0.03
	distanceShare  = 0.01
	swapShare      = 0.04
	swapLossCap    = 1 // bound of a record's part in a swap's score, squared half sides of the cube; see lossKind.cap
	swapCandidates = 4 // candidates for each cluster, at least 64 in all
)

// Run runs the method.
func (j *Balcan) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	budget := budgetFor(j.Budget, j.records())
	s := newSession(ctx, rt, &j.Data, j.K, j.Seed, budget.Delta)
	s.method = j.Method()
	rounds := j.Rounds
	l, err := newLaw(budget, j.Laplace || budget.Delta == 0, j.Neighbours, 64+(max(j.Rounds, mostRounds)+2)*(s.d+1))
	if err != nil {
		return nil, fault.Request("balcan", err.Error(), "raise --delta, or give --delta 0 for Laplace noise")
	}
	if rounds == 0 {
		rounds = s.manyRounds(l)
	}
	mean, err := s.privateMean(l.share(meanShare))
	if err != nil {
		return nil, err
	}
	origin, top := gridRow(mean, s.bits), 2*math.Sqrt(float64(s.d))
	reach, err := s.distanceQuantile(l.share(distanceShare), origin, top, 0.75)
	if err != nil {
		return nil, err
	}
	cubeShare := treeShare(s.d)
	low, boxes, err := s.cubes(l.share(cubeShare), j.Projection, origin, reach)
	if err != nil {
		return nil, err
	}
	swaps := max(orDefault(j.Swaps, 2), 0)
	if swaps > 0 {
		if len(boxes) > 0 {
			if err := s.privateSwaps(l.share(swapShare), low, boxes, swaps, j.Exponential); err != nil {
				return nil, err
			}
		}
		// charged even without candidates: that there are none is an outcome, too
		if err := s.enterSwaps(l.share(swapShare), swaps, j.Exponential); err != nil {
			return nil, err
		}
	}
	centroids, _, err := s.recoverHigh(l.share(cubeShare/2), low, origin, reach)
	if err != nil {
		return nil, err
	}
	within, err := s.distanceQuantile(l.share(distanceShare), centroids, top, 0.4)
	if err != nil {
		return nil, err
	}
	left := 1 - meanShare - 2*distanceShare - swapShare - 1.5*cubeShare
	if err := s.equalRounds(l.share(left), centroids, min(within, reach), rounds); err != nil {
		return nil, err
	}
	res, err := s.result(j.Method(), privacy.Proven, widen(centroids), budget, rounds)
	if err != nil {
		return nil, err
	}
	res.Details = map[string]any{"cubes": len(boxes), "dimensions": low.parts[0].D}
	return res, nil
}

// cubes projects the records, releases the counts of the cubes of [-1,1]^q,
// depth by depth, and searches the k centres among the cubes that stayed.
//
// A cube is cut when its noisy count passes the threshold of four standard
// deviations and a tenth of a cluster; the depth is where a cube of average
// density would not pass any more, plus two for data in clumps.
func (s *session) cubes(l law, kind Projection, origin []float32, reach float64) (*lowStart, []synopsis.Box, error) {
	q := lowDimension(s.n, s.d)
	if kind == "" {
		kind = Dense
	}
	low, err := s.projectAll(kind, q, origin, reach)
	if err != nil {
		return nil, nil, err
	}
	levels := max(int(math.Ceil(log2(float64(s.n)*l.mu())/float64(q))), 1) + 2
	levels = min(levels, 62/q, s.bits)
	span := s.rt.Begin(engine.PhaseEncode, s.rounds, 0)
	paths, err := synopsis.MidpointPaths(s.ctx, s.rt.Pool(), low.parts[0], s.bits, q, levels)
	s.rt.End(span)
	if err != nil {
		return nil, nil, err
	}
	walkers := []*synopsis.Walker{synopsis.NewWalker(paths)}
	levelCounts := trieLevels{line: "cube counts per level", levels: levels, law: func(int) law { return l.share(1 / float64(levels)) },
		name: func(level int) string { return fmt.Sprintf("cubes of depth %d", level+1) }}
	trie, err := synopsis.Grow(q, levels, walkers, func(level, cells int) ([]float64, float64, error) {
		return s.countLevel(&levelCounts, level, walkers, cells)
	}, func(variance float64) float64 { return max(4*math.Sqrt(variance), float64(s.n)/float64(10*s.k)) })
	if err != nil {
		return nil, nil, err
	}
	if err := s.enterUnreached(&levelCounts); err != nil {
		return nil, nil, err
	}
	if trie.Levels() == 1 {
		s.note("no cube's noisy count passed the threshold: the %d low-dimensional centres are data-independent; more records or a larger budget would help", s.k)
		low.centers = gridRow(synopsis.Independent(s.k, q), s.bits)
		return low, nil, nil
	}
	span = s.rt.Begin(engine.PhaseSearch, s.rounds, engine.Server)
	defer s.rt.End(span)
	trie.Estimate(float64(s.n))
	boxes := trie.Boxes(q)
	found, err := synopsis.Search(s.ctx, s.rt.Pool(), synopsis.Spread(boxes, q, 3000), s.k, s.searching(), s.streams.Stream(engine.Server, 0, "search"))
	if err != nil {
		return nil, nil, err
	}
	s.noteTopUp(found)
	low.centers = gridRow(found.Centers, s.bits)
	return low, boxes, nil
}

// privateSwaps improves the projected centres by private choices among all
// exchanges of a centre with a candidate (the middle of a heavy cube) and no
// exchange. The score is minus the loss, each record's squared distance cut at
// swapLossCap: adding a record lowers all scores by at most that, so the choice
// is monotone with that sensitivity (THEOREMS.md T5). Scores are exact sums of
// rounded contributions, so this holds for them as computed.
func (s *session) privateSwaps(l law, low *lowStart, boxes []synopsis.Box, swaps int, exponential bool) error {
	span := s.rt.Begin(engine.PhaseSearch, s.rounds, 0)
	defer s.rt.End(span)
	q := low.parts[0].D
	heavy := slices.Clone(boxes)
	slices.SortStableFunc(heavy, func(a, b synopsis.Box) int {
		switch {
		case a.Weight > b.Weight:
			return -1
		case a.Weight < b.Weight:
			return 1
		}
		return 0
	})
	heavy = heavy[:min(len(heavy), max(swapCandidates*s.k, 64))]
	var candidates []float32
	for _, b := range heavy {
		for h := range q {
			candidates = append(candidates, onGrid((b.Lo[h]+b.Hi[h])/2, s.bits))
		}
	}
	epsilon, bound := l.share(1/float64(swaps)).pure(), s.swapBound()
	selection := privacy.Selection{Epsilon: epsilon, Sensitivity: bound.L1(), Monotone: true}
	w := s.newSwapper(low.parts[0], candidates, s.k, lossKind{squared: true, cap: swapLossCap})
	scores := make([]float64, len(heavy)*s.k+1)
	stream := s.streams.Stream(engine.Server, s.rounds, "swap")
	for range swaps {
		stay := w.set(low.centers)
		if err := w.losses(scores[:len(scores)-1]); err != nil {
			return err
		}
		scores[len(scores)-1] = stay
		for i := range scores {
			scores[i] = -scores[i]
		}
		choose := selection.PermuteAndFlip
		if exponential {
			choose = selection.ExponentialMechanism
		}
		chosen, err := choose(stream, scores)
		if err != nil {
			return err
		}
		if chosen, err = s.data.Tape.Choose(chosen, scores, epsilon/bound.L1()); err != nil {
			return err
		}
		if chosen == len(scores)-1 {
			continue
		}
		in, out := chosen/s.k, chosen%s.k
		copy(low.centers[out*q:(out+1)*q], candidates[in*q:(in+1)*q])
	}
	return nil
}

func (s *session) swapBound() privacy.Bound {
	b := s.bound("scores of swaps", 0)
	b.Shape.Bound = swapLossCap
	return b
}

func (s *session) enterSwaps(l law, swaps int, exponential bool) error {
	name := "permute-and-flip"
	if exponential {
		name = "exponential"
	}
	epsilon, bound := l.share(1/float64(swaps)).pure(), s.swapBound()
	e := bound.Entry(fmt.Sprintf("%d private swaps of projected centres", swaps), name, "L1")
	e.Viewers, e.Unit, e.Cost = s.viewers(), "squared half sides of the cube", privacy.Spec{Family: "pure", Epsilon: epsilon, Rounds: swaps}
	return s.enter(l, e)
}

// pure is the epsilon of a pure mechanism that the whole law pays for: with
// Gaussian accounting, one whose trade-off curve lies above that of the Gaussian
// mechanism (THEOREMS.md T8).
func (l law) pure() float64 {
	if !l.gaussian {
		return l.total
	}
	return coarse(2 * math.Atanh(math.Erf(math.Sqrt(l.total)/(2*math.Sqrt2))))
}
