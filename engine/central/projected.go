package central

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// projectedPlan is the plan of the branch on projections.
type projectedPlan struct {
	mean, reach, within *stage
	tree                *treePlan
	recover             *stage
	rounds              []*stage
}

func (f *frame) addProjected(l law, rounds int) *projectedPlan {
	share := treeShare(f.d)
	o := &projectedPlan{mean: f.addMean(l.share(0.03)), reach: f.addCounts("distances", "histogram of distances", l.share(0.01))}
	tree := l.share(share)
	o.tree = f.addTree(tree, min(max(int(log2(float64(f.N)*tree.mu())/2.5), 2), 6, f.d))
	o.recover = f.addRound("recover", l.share(share/2))
	o.within = f.addCounts("distances", "histogram of distances", l.share(0.01))
	if rounds == 0 {
		rounds = f.manyRounds(l)
	}
	o.rounds = f.addEqualRounds(l.share(0.95-1.5*share), rounds)
	return o
}

// projected is the branch for a dimension too high for a tree on all
// axes and a signal that is strong enough: a tree on a few random directions
// finds well-separated clusters, the relative rounds of the high-dimensional
// branch do the rest. The tree's share of the budget falls with the dimension,
// as sums get dearer and counts do not.
func (p *party) projected(ctx context.Context, o *projectedPlan) (centroids []float32, sizes []float64, err error) {
	mean, err := p.privateMean(ctx, o.mean)
	if err != nil {
		return nil, nil, err
	}
	top := 2 * math.Sqrt(float64(p.d))
	reach, err := p.distanceQuantile(ctx, o.reach, gridRow(mean, p.bits), top, 0.75)
	if err != nil {
		return nil, nil, err
	}
	centroids, err = p.overseeded(ctx, o, mean, reach)
	if err != nil {
		return nil, nil, err
	}
	within, err := p.distanceQuantile(ctx, o.within, centroids, top, 0.4)
	if err != nil {
		return nil, nil, err
	}
	sizes, err = p.equalRounds(ctx, o.rounds, centroids, min(within, reach))
	return centroids, sizes, err
}

// overseed is how many times more clusters than asked for are looked for on the
// projections, where clusters lie in front of each other.
const overseed = 1.5

// overseeded finds more clusters than k in the tree on projections, releases
// their means and counts in all dimensions, and merges them to k by weighted
// k-means. That costs little noise, and a wrong start that the rounds could not
// leave is rarer.
func (p *party) overseeded(ctx context.Context, o *projectedPlan, mean []float64, reach float64) ([]float32, error) {
	k := min(int(math.Ceil(overseed*float64(p.k))), p.N, math.MaxUint16-1)
	origin := gridRow(mean, p.bits)
	low, err := p.projectedStart(ctx, o.tree, k, origin, reach)
	if err != nil {
		return nil, err
	}
	centroids, counts, err := p.recoverHigh(ctx, o.recover, low, origin, reach)
	if err != nil {
		return nil, err
	}
	if missing := low.topUp - (k - p.k); missing > 0 {
		p.Note("the tree on projections has fewer weighted points than k: %d of the %d centroids start data-independent", missing, p.k)
	}
	points := &synopsis.Weighted{D: p.d, Points: widen(centroids)}
	for _, n := range counts {
		points.Weights = append(points.Weights, max(n, 1))
	}
	found, err := p.search(ctx, points, p.k, 1)
	if err != nil {
		return nil, err
	}
	return gridRow(found.Centers, p.bits), nil
}

// search is the free search for k centres on released numbers, the number-th of
// the run.
func (p *party) search(ctx context.Context, points *synopsis.Weighted, k, number int) (*synopsis.Solution, error) {
	return protocol.Once(p.Party, "search", number, func() (*synopsis.Solution, error) {
		span := p.Begin(engine.PhaseSearch, p.released)
		defer p.End(span)
		return synopsis.Search(ctx, p.Pool(), points, k, p.searching, p.Public.Stream(int(protocol.Server), number, "search"))
	})
}

// treeShare is the share of the budget that counts get beside sums in d
// dimensions.
func treeShare(d int) float64 { return 0.45 / (1 + math.Sqrt(float64(d))/20) }

// lowStart is a clustering of the projected records.
type lowStart struct {
	records *kernels.Panels // of one party
	centers []float32
	topUp   int // how many of them are data-independent
}

// projectLow projects the party's records about a public point onto q random
// directions, so that nearly all of those within reach land in [-1,1]^q, and
// clips the others.
func (p *party) projectLow(ctx context.Context, kind Projection, q int, origin []float32, reach float64) (*lowStart, error) {
	// A coordinate of G(x - origin) has a standard deviation of at most the
	// distance; three times the reach hold nearly all records.
	rows := randomProjection(kind, q, p.d, 1/(3*reach), p.Public.Stream(int(protocol.Server), 0, "projection"))
	span := p.Begin(engine.PhaseEncode, p.released)
	defer p.End(span)
	records, err := project(ctx, p.Pool(), p.records, kernels.NewMatrix(q, p.d, rows), origin, p.bits)
	return &lowStart{records: records}, err
}

// projectedStart projects the records about a public point onto a few random
// directions, releases a tree there, and searches k centres on it.
func (p *party) projectedStart(ctx context.Context, tree *treePlan, k int, origin []float32, reach float64) (*lowStart, error) {
	low, err := p.projectLow(ctx, Dense, tree.d, origin, reach)
	if err != nil {
		return nil, err
	}
	trie, err := p.tree(ctx, tree, low.records)
	if err != nil {
		return nil, err
	}
	found, err := p.search(ctx, synopsis.Spread(trie.Boxes(tree.d), tree.d, 3000), k, 0)
	if err != nil {
		return nil, err
	}
	low.centers, low.topUp = gridRow(found.Centers, p.bits), found.TopUp
	return low, nil
}

// recoverHigh releases, for the clusters of projected records, the sums of the
// offsets of the records themselves from origin, cut to length reach, and the
// counts, and returns the centroids in all dimensions and the counts.
func (p *party) recoverHigh(ctx context.Context, s *stage, low *lowStart, origin []float32, reach float64) (centroids []float32, counts []float64, err error) {
	k := len(low.centers) / low.records.D
	for range k {
		centroids = append(centroids, origin...)
	}
	o := newOffsets(p.Pool(), k, p.d, p.bits)
	centers := kernels.NewCentroids(k, low.records.D)
	centers.Set(low.centers)
	o.labels = func() ([]uint16, error) {
		records := low.records
		labels := make([]uint16, records.N)
		shards := engine.Shards([]int{records.N}, records.D)
		err := p.Pool().Run(ctx, len(shards), func(_, i int) {
			lo, hi := shards[i].Lo, shards[i].Hi
			kernels.Assign(records.Slice(lo, hi), centers, labels[lo:hi], nil)
		})
		return labels, err
	}
	counts, err = p.equalRound(ctx, o, s, centroids, reach)
	return centroids, counts, err
}
