package central

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
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

// check checks the fields.
func (j *Balcan) check() error {
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

// balcanPlan is what a run releases.
type balcanPlan struct {
	*frame
	mean, reach, within *stage
	projection          Projection
	dimensions          int // that the records are projected to
	cubes               []*stage
	swaps               int
	exponential         bool
	swap                *stage
	recover             *stage
	rounds              []*stage
}

// Plan implements engine.Job.
func (j *Balcan) Plan() (engine.Plan, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	b, err := j.plan()
	if err != nil {
		return nil, err
	}
	if err := b.planQuality(&j.Data, 1); err != nil {
		return nil, err
	}
	return planned{b.frame, &j.Data, b.run}, nil
}

func (j *Balcan) plan() (*balcanPlan, error) {
	budget := budgetFor(j.Budget, j.records())
	f, err := newFrame(j.Method(), &j.Data, j.K, budget, j.Laplace || budget.Delta == 0, j.Neighbours,
		64+(max(j.Rounds, mostRounds)+2)*(j.Clients[0].Points.D+1), j.Seed)
	if err != nil {
		return nil, err
	}
	l, cubeShare := f.law, treeShare(f.d)
	b := &balcanPlan{frame: f, projection: j.Projection, dimensions: lowDimension(f.N, f.d), exponential: j.Exponential, swaps: max(orDefault(j.Swaps, 2), 0)}
	if b.projection == "" {
		b.projection = Dense
	}
	b.mean, b.reach = f.addMean(l.share(meanShare)), f.addCounts("distances", "histogram of distances", l.share(distanceShare))
	cubes, q := l.share(cubeShare), b.dimensions
	levels := max(int(math.Ceil(log2(float64(f.N)*cubes.mu())/float64(q))), 1) + 2
	levels = min(levels, 62/q, f.bits)
	for level := range levels {
		b.cubes = append(b.cubes, f.addCounts(fmt.Sprintf("cubes of depth %d", level+1), "cube counts per level", cubes.share(1/float64(levels))))
	}
	if b.swaps > 0 {
		b.swap = f.addSwaps(l.share(swapShare), b.swaps, j.Exponential)
	}
	b.recover = f.addRound("recover", l.share(cubeShare/2))
	b.within = f.addCounts("distances", "histogram of distances", l.share(distanceShare))
	rounds := j.Rounds
	if rounds == 0 {
		rounds = f.manyRounds(l)
	}
	left := 1 - meanShare - 2*distanceShare - swapShare - 1.5*cubeShare
	b.rounds = f.addEqualRounds(l.share(left), rounds)
	f.Rounds = len(b.rounds)
	return b, nil
}

// run is what the party does.
func (b *balcanPlan) run(ctx context.Context, p *party) (*protocol.Outcome, error) {
	mean, err := p.privateMean(ctx, b.mean)
	if err != nil {
		return nil, err
	}
	origin, top := gridRow(mean, p.bits), 2*math.Sqrt(float64(p.d))
	reach, err := p.distanceQuantile(ctx, b.reach, origin, top, 0.75)
	if err != nil {
		return nil, err
	}
	low, boxes, err := p.searchCubes(ctx, b, origin, reach)
	if err != nil {
		return nil, err
	}
	if b.swaps > 0 && len(boxes) > 0 {
		if err := p.privateSwaps(ctx, b, low, boxes); err != nil {
			return nil, err
		}
	}
	centroids, _, err := p.recoverHigh(ctx, b.recover, low, origin, reach)
	if err != nil {
		return nil, err
	}
	within, err := p.distanceQuantile(ctx, b.within, centroids, top, 0.4)
	if err != nil {
		return nil, err
	}
	sizes, err := p.equalRounds(ctx, b.rounds, centroids, min(within, reach))
	if err != nil {
		return nil, err
	}
	return p.outcome(centroids, sizes, b.Rounds, map[string]any{"cubes": len(boxes), "dimensions": b.dimensions}), nil
}

// searchCubes projects the records, releases the counts of the cubes of [-1,1]^q,
// depth by depth, and searches the k centres among the cubes that stayed.
//
// A cube is cut when its noisy count passes the threshold of four standard
// deviations and a tenth of a cluster; the depth is where a cube of average
// density would not pass any more, plus two for data in clumps.
func (p *party) searchCubes(ctx context.Context, b *balcanPlan, origin []float32, reach float64) (*lowStart, []synopsis.Box, error) {
	q := b.dimensions
	low, err := p.projectLow(ctx, b.projection, q, origin, reach)
	if err != nil {
		return nil, nil, err
	}
	span := p.Begin(engine.PhaseEncode, p.released)
	paths, err := synopsis.MidpointPaths(ctx, p.Pool(), low.records, p.bits, q, len(b.cubes))
	p.End(span)
	if err != nil {
		return nil, nil, err
	}
	trie, err := p.grow(ctx, q, b.cubes, synopsis.NewWalker(paths),
		func(variance float64) float64 { return max(4*math.Sqrt(variance), float64(p.N)/float64(10*p.k)) })
	if err != nil {
		return nil, nil, err
	}
	if trie.Levels() == 1 {
		p.Note("no cube's noisy count passed the threshold: the %d low-dimensional centres are data-independent; more records or a larger budget would help", p.k)
		low.centers = gridRow(synopsis.Independent(p.k, q), p.bits)
		return low, nil, nil
	}
	trie.Estimate(float64(p.N))
	boxes := trie.Boxes(q)
	found, err := p.search(ctx, synopsis.Spread(boxes, q, 3000), p.k, 0)
	if err != nil {
		return nil, nil, err
	}
	p.noteTopUp(found)
	low.centers = gridRow(found.Centers, p.bits)
	return low, boxes, nil
}

// privateSwaps improves the projected centres by private choices among all
// exchanges of a centre with a candidate (the middle of a heavy cube) and no
// exchange. The score is minus the loss, each record's squared distance cut at
// swapLossCap: adding a record lowers all scores by at most that, so the choice
// is monotone with that sensitivity (THEOREMS.md T5). Scores are exact sums of
// rounded contributions, so this holds for them as computed.
func (p *party) privateSwaps(ctx context.Context, b *balcanPlan, low *lowStart, boxes []synopsis.Box) error {
	span := p.Begin(engine.PhaseSearch, p.released)
	defer p.End(span)
	q := low.records.D
	heavy := slices.Clone(boxes)
	slices.SortStableFunc(heavy, func(a, b synopsis.Box) int { return cmp.Compare(b.Weight, a.Weight) })
	heavy = heavy[:min(len(heavy), max(swapCandidates*p.k, 64))]
	var candidates []float32
	for _, b := range heavy {
		for h := range q {
			candidates = append(candidates, onGrid((b.Lo[h]+b.Hi[h])/2, p.bits))
		}
	}
	selection := privacy.Selection{Epsilon: b.swap.law.share(1 / float64(b.swaps)).pure(), Sensitivity: p.swapBound().L1(), Monotone: true}
	w := newSwapper(p.Pool(), low.records, candidates, p.k, lossKind{squared: true, cap: swapLossCap})
	scores := make([]float64, len(heavy)*p.k+1)
	stream := "swap" // of all choices
	for i := range b.swaps {
		stay := w.set(low.centers)
		if err := w.losses(ctx, scores[:len(scores)-1]); err != nil {
			return err
		}
		scores[len(scores)-1] = stay
		for i := range scores {
			scores[i] = -scores[i]
		}
		chosen, err := p.Choose(b.swap.Release, p.released+i, stream, selection, b.exponential, protocol.NewPrivateReals(scores))
		if err != nil {
			return err
		}
		stream = ""
		if chosen == len(scores)-1 {
			continue
		}
		in, out := chosen/p.k, chosen%p.k
		copy(low.centers[out*q:(out+1)*q], candidates[in*q:(in+1)*q])
	}
	return nil
}

func (f *frame) swapBound() privacy.Bound {
	b := f.bound("scores of swaps", 0)
	b.Shape.Bound = swapLossCap
	return b
}

// addSwaps plans the private swaps. They are charged even without candidates: that
// there are none is an outcome, too.
func (f *frame) addSwaps(l law, swaps int, exponential bool) *stage {
	name := "permute-and-flip"
	if exponential {
		name = "exponential"
	}
	epsilon, bound := l.share(1/float64(swaps)).pure(), f.swapBound()
	e := bound.Entry(fmt.Sprintf("%d private swaps of projected centres", swaps), name, "L1")
	e.Viewers, e.Unit, e.Cost = f.audience, "squared half sides of the cube", privacy.Spec{Family: "pure", Epsilon: epsilon, Rounds: swaps}
	return &stage{purpose: "swap", law: l, Release: f.Add(&protocol.Release{Name: e.What, Makers: protocol.Holder, Times: swaps, Entries: []privacy.Entry{f.charge(l, e)}})}
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
