package balcan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Job is the pipeline of Balcan et al. with accounting that holds
// (THEOREMS.md T2, T5): project to ln(n)/2 dimensions about a private mean and
// clip to a public cube; one noisy count per cube and depth; swap centres by
// private choices whose scores have their true sensitivity; recover the centres
// in all dimensions and refine them by sums of offsets cut to an L2 length and
// noisy counts.
//
// The split of the budget follows from the dimension: sums get dearer with it,
// counts do not. The start of the swaps is the free search on the counts, so the
// swaps mend it where it is wrong.
type Job struct {
	// Problem's Iterations are the refinement rounds.
	protocol.Problem
	Projection staged.Projection // default Dense
	// Swaps is the number of private swaps, default 2; negative means none.
	Swaps int
	// Exponential chooses by the exponential mechanism, else by permute-and-flip.
	Exponential bool
}

// name is what results call the method.
const name = "balcan"

var takes = protocol.Takes{Private: true, Iterations: true, Replay: true,
	Mechanisms: []protocol.Mechanism{protocol.Gaussian, protocol.Laplace}}

// The shares of the stages other than cubes, recovery and refinement.
const (
	meanShare     = 0.03
	distanceShare = 0.01
	swapShare     = 0.04 // where there are any
	// swapLossCap bounds a record's part in a swap's score, in squared half sides of the cube; see lossKind.cap.
	swapLossCap    = 1
	swapCandidates = 4       // candidates for each cluster, at least 64 in all
	swapScores     = 1 << 24 // exchanges to choose from, where k is large: 128 MiB of scores
)

// plan is what a run releases.
type plan struct {
	*staged.Plan
	mean, reach, within *staged.Release
	projection          staged.Projection
	dimensions          int // that the records are projected to
	cubes               []*staged.Release
	swaps               int
	exponential         bool
	swap                *staged.Release
	recover             *staged.Release
	rounds              *staged.EqualRounds
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) { return staged.Make(j, (*Job).plan) }

func (j *Job) plan() (*plan, error) {
	if err := j.Check(name, takes); err != nil {
		return nil, err
	}
	if err := j.own().Check(); err != nil {
		return nil, err
	}
	if j.Iterations < 0 {
		return nil, fault.Range("iterations", j.Iterations, "0 (the rule) or more")
	}
	f, err := staged.New(name, &j.Problem, j.NoiseOf(protocol.Gaussian),
		64+(max(j.Iterations, staged.MostRounds)+2)*(j.D()+1))
	if err != nil {
		return nil, err
	}
	b := &plan{Plan: f, projection: j.Projection, dimensions: staged.LowDimension(f.N, f.D), exponential: j.Exponential,
		swaps: max(cmp.Or(j.Swaps, 2), 0)}
	if b.projection == "" {
		b.projection = staged.Dense
	}
	swapping := 0.0
	if b.swaps > 0 {
		swapping = swapShare
		f.Share = f.Share.Beside(swapping, b.swaps)
	}
	l, cubeShare := f.Share, staged.TreeShare(f.D)
	b.mean, b.reach = f.AddMean(l.Part(meanShare)), f.AddDistances("the mean", l.Part(distanceShare))
	cubes, q := l.Part(cubeShare), b.dimensions
	levels := max(int(math.Ceil(elementary.Log2(float64(f.N)*cubes.Mu())/float64(q))), 1) + 2
	levels = min(levels, 62/q, f.FractionBits)
	for level := range levels {
		b.cubes = append(b.cubes, f.AddLevel(fmt.Sprintf("cubes of depth %d", level+1), "cube counts per level",
			cubes.Part(1/float64(levels)), q, level))
	}
	if b.swaps > 0 {
		b.swap = b.addSwaps(l.Part(swapping), b.swaps, j.Exponential)
	}
	b.recover = f.AddEqualRound("recover", l.Part(cubeShare/2), f.K)
	b.within = f.AddDistances("the nearest centroid", l.Part(distanceShare))
	rounds := j.Iterations
	if rounds == 0 {
		rounds = f.ManyRounds()
	}
	left := 1 - meanShare - 2*distanceShare - swapping - 1.5*cubeShare
	b.rounds = f.AddEqualRounds(l.Part(left), rounds, f.K, false)
	f.Rounds = b.rounds.Rounds()
	f.Does(1, b.run)
	return b, nil
}

// run is what the party does.
func (b *plan) run(ctx context.Context, p *staged.Party) (*protocol.Outcome, error) {
	mean, err := p.PrivateMean(ctx, b.mean)
	if err != nil {
		return nil, err
	}
	origin, top := staged.GridRow(mean, p.FractionBits), 2*math.Sqrt(float64(p.D))
	reach, err := p.DistanceQuantile(ctx, b.reach, origin, top, 0.75)
	if err != nil {
		return nil, err
	}
	low, boxes, err := b.searchCubes(ctx, p, origin, reach)
	if err != nil {
		return nil, err
	}
	if b.swaps > 0 && len(boxes) > 0 {
		if err := b.privateSwaps(ctx, p, low, boxes); err != nil {
			return nil, err
		}
	}
	centroids, _, err := p.Recover(ctx, b.recover, low, origin, reach)
	if err != nil {
		return nil, err
	}
	within, err := p.DistanceQuantile(ctx, b.within, centroids, top, 0.4)
	if err != nil {
		return nil, err
	}
	sizes, err := p.EqualRounds(ctx, b.rounds, centroids, min(within, reach))
	if err != nil {
		return nil, err
	}
	return p.Outcome(centroids, sizes, b.Rounds, map[string]any{"cubes": len(boxes), "dimensions": b.dimensions}), nil
}

// searchCubes projects the records, releases the counts of the cubes of [-1,1]^q,
// depth by depth, and searches the k centres among the cubes that stayed.
//
// A cube is cut when its noisy count passes the threshold of four standard
// deviations and a tenth of a cluster; the depth is where a cube of average
// density would not pass any more, plus two for data in clumps.
func (b *plan) searchCubes(ctx context.Context, p *staged.Party, origin []float32,
	reach float64) (*staged.Projected, []synopsis.Box, error) {
	q := b.dimensions
	low, err := p.ProjectLow(ctx, b.projection, q, origin, reach)
	if err != nil {
		return nil, nil, err
	}
	span := p.Begin(engine.PhaseEncode, p.Released)
	paths, err := synopsis.MidpointPaths(ctx, p.Pool(), low.Records, p.FractionBits, q, len(b.cubes))
	p.End(span)
	if err != nil {
		return nil, nil, err
	}
	trie, err := p.GrowTrie(ctx, q, b.cubes, synopsis.NewWalker(paths),
		func(variance float64) float64 { return max(4*math.Sqrt(variance), float64(p.N)/float64(10*p.K)) })
	if err != nil {
		return nil, nil, err
	}
	if trie.Levels() == 1 {
		p.Note("no cube's noisy count passed the threshold: the %d low-dimensional centres are data-independent; "+
			"more records or a larger budget would help", p.K)
		low.Centers = staged.GridRow(synopsis.Independent(p.K, q), p.FractionBits)
		return low, nil, nil
	}
	trie.Estimate(float64(p.N))
	boxes := trie.Boxes(q)
	found, err := p.Search(ctx, synopsis.Spread(boxes, q, 3000), p.K, 0)
	if err != nil {
		return nil, nil, err
	}
	p.NoteTopUp(found)
	low.Centers = staged.GridRow(found.Centers, p.FractionBits)
	return low, boxes, nil
}

// privateSwaps improves the projected centres by private choices among all
// exchanges of a centre with a candidate (the middle of a heavy cube) and no
// exchange. The score is minus the loss, each record's squared distance cut at
// swapLossCap: adding a record lowers all scores by at most that, so the choice
// is monotone with that sensitivity (THEOREMS.md T5). Scores are exact sums of
// rounded losses, so this holds for them as computed.
func (b *plan) privateSwaps(ctx context.Context, p *staged.Party, low *staged.Projected, boxes []synopsis.Box) error {
	span := p.Begin(engine.PhaseSearch, p.Released)
	defer p.End(span)
	q := low.Records.D
	heavy := slices.Clone(boxes)
	sort.SliceStable(heavy, func(a, b int) bool { return heavy[a].Weight > heavy[b].Weight })
	heavy = heavy[:min(len(heavy), max(min(swapCandidates*p.K, swapScores/p.K), 64))]
	var candidates []float32
	for _, box := range heavy {
		for h := range q {
			candidates = append(candidates, staged.OnGrid((box.Lo[h]+box.Hi[h])/2, p.FractionBits))
		}
	}
	selection := privacy.Selection{Epsilon: b.swap.Share.Part(1 / float64(b.swaps)).Pure(),
		Sensitivity: b.swapBound().L1(), Monotone: true}
	w := newSwapper(p.Pool(), low.Records, candidates, p.K, lossKind{squared: true, cap: swapLossCap})
	scores := make([]float64, len(heavy)*p.K+1)
	stream := "swap" // of all choices
	for i := range b.swaps {
		stay := w.set(low.Centers)
		if err := w.losses(ctx, scores[:len(scores)-1]); err != nil {
			return err
		}
		scores[len(scores)-1] = stay
		for i := range scores {
			scores[i] = -scores[i]
		}
		chosen, err := p.Choose(b.swap.Release, p.Released+i, stream, selection, b.exponential,
			protocol.NewPrivateReals(scores))
		if err != nil {
			return err
		}
		stream = ""
		if chosen == len(scores)-1 {
			continue
		}
		in, out := chosen/p.K, chosen%p.K
		copy(low.Centers[out*q:(out+1)*q], candidates[in*q:(in+1)*q])
	}
	return nil
}

func (b *plan) swapBound() privacy.Bound {
	bound := b.Bound("scores of swaps", 0)
	bound.Shape.Bound = swapLossCap
	return bound
}

// addSwaps plans the private swaps. They are charged even without candidates: that
// there are none is an outcome, too.
func (b *plan) addSwaps(l staged.Share, swaps int, exponential bool) *staged.Release {
	name := "permute-and-flip"
	if exponential {
		name = "exponential"
	}
	epsilon, bound := l.Part(1/float64(swaps)).Pure(), b.swapBound()
	e := bound.Entry(fault.Count(swaps, "private swap")+" of projected centres", name, "L1")
	e.Viewers, e.Unit, e.Cost = b.Audience, "squared half sides of the cube",
		privacy.Spec{Family: "pure", Epsilon: epsilon, Rounds: swaps}
	return &staged.Release{Purpose: "swap", Share: l,
		Release: b.Add(&protocol.Release{Name: e.What, Makers: protocol.Holder, Times: swaps,
			Entries: []privacy.Entry{b.Charge(l, e)}})}
}
