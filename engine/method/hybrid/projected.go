package hybrid

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
)

// projectedPlan is the plan of the branch on projections.
type projectedPlan struct {
	mean, reach, within *staged.Release
	tree                *staged.Tree
	recover             *staged.Release
	rounds              *staged.EqualRounds
}

func (h *plan) addProjected(rounds, k int) *projectedPlan {
	f, l := h.Plan, h.Share
	share := staged.TreeShare(f.D)
	o := &projectedPlan{mean: f.AddMean(l.Part(0.03)),
		reach: f.AddDistances("the mean", l.Part(0.01))}
	tree := l.Part(share)
	o.tree = f.AddTree(tree, min(max(int(elementary.Log2(float64(f.N)*tree.Mu())/2.5), 2), 6, f.D))
	o.recover = f.AddEqualRound("recover", l.Part(share/2), overseeds(overseed, k, f.N))
	o.within = f.AddDistances("the nearest centroid", l.Part(0.01))
	if rounds == 0 {
		rounds = f.ManyRounds()
	}
	o.rounds = f.AddEqualRounds(l.Part(0.95-1.5*share), rounds, k, true)
	return o
}

// runProjected is the branch for a dimension too high for a tree on all
// axes and a signal that is strong enough: a tree on a few random directions
// finds well-separated clusters, the relative rounds of the high-dimensional
// branch do the rest. The tree's share of the budget falls with the dimension,
// as sums get dearer and counts do not.
func (h *plan) runProjected(ctx context.Context, p *staged.Party) (centroids []float32, sizes []float64,
	curve []engine.KFit, err error) {
	o := h.projected
	mean, err := p.PrivateMean(ctx, o.mean)
	if err != nil {
		return nil, nil, nil, err
	}
	top := 2 * math.Sqrt(float64(p.D))
	distances, err := p.ReleaseDistances(ctx, o.reach, staged.GridRow(mean, p.FractionBits), top)
	if err != nil {
		return nil, nil, nil, err
	}
	reach := projectedReach(distances)
	far := 0
	if h.least == 0 {
		far = farClusters(mean, meanVariance(o.mean, p), distances, p.K)
	}
	if centroids, curve, err = h.overseeded(ctx, p, mean, reach, far); err != nil {
		return nil, nil, nil, err
	}
	if far > 0 {
		stream := p.Public.Stream(int(protocol.Server), 0, "start")
		centroids = append(centroids, staged.Directions(stream, make([]float64, p.D), startLength*reach, far,
			p.FractionBits)...)
	}
	p = h.chosen(p, curve, len(centroids)/p.D)
	within, err := p.DistanceQuantile(ctx, o.within, centroids, top, 0.4)
	if err != nil {
		return nil, nil, nil, err
	}
	sizes, err = p.EqualRounds(ctx, o.rounds, centroids, min(within, reach))
	return centroids, sizes, curve, err
}

// projectedReach is how far from the mean the tree on projections reaches: most records lie within it, and nearly all
// where these are much farther, as a few records beside a heavy corner are, and noise does not make them up.
func projectedReach(distances *staged.Distances) float64 {
	reach := distances.Quantile(0.75)
	if far := distances.Quantile(0.95); distances.Noise < 0.1 && far > 2*reach {
		return far
	}
	return reach
}

// overseed is how many times more clusters than asked for are looked for on the
// projections, where clusters lie in front of each other.
const overseed = 1.5

// overseeds is how many clusters of n records are looked for where k are asked for, so many times more.
func overseeds(times float64, k, n int) int {
	return min(int(math.Ceil(times*float64(k))), n, math.MaxUint16-1)
}

// overseeded finds more clusters than k in the tree on projections, releases
// their means and counts in all dimensions, and merges them to k by weighted
// k-means. That costs little noise, and a wrong start that the rounds could not
// leave is rarer.
// Where clusters are far from all these, so many fewer are merged to.
func (h *plan) overseeded(ctx context.Context, p *staged.Party, mean []float64,
	reach float64, far int) ([]float32, []engine.KFit, error) {
	o, number := h.projected, &numbered{k: p.K - far}
	origin := staged.GridRow(mean, p.FractionBits)
	k := overseeds(overseed, p.K, p.N)
	low, err := p.ProjectedStart(ctx, o.tree, k, origin, reach)
	if err != nil {
		return nil, nil, err
	}
	centroids, counts, err := p.Recover(ctx, o.recover, low, origin, reach)
	if err != nil {
		return nil, nil, err
	}
	if missing := low.TopUp - (k - p.K); missing > 0 {
		p.Note("the tree on projections has fewer weighted points than k: %d of the %d centroids start data-independent",
			missing, p.K)
	}
	points := &synopsis.Weighted{D: p.D, Points: staged.Widen(centroids)}
	for _, n := range counts {
		points.Weights = append(points.Weights, max(n, 1))
	}
	if h.least > 0 {
		if number, err = protocol.Once(p.Party, "number", 0, func() (*numbered, error) {
			return h.chooseK(ctx, p, points)
		}); err != nil {
			return nil, nil, err
		}
	}
	found, err := p.Search(ctx, points, number.k, 1)
	if err != nil {
		return nil, nil, err
	}
	return staged.GridRow(found.Centers, p.FractionBits), number.curve, nil
}
