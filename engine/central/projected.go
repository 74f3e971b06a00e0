package central

import (
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// projectedBranch is the branch for a dimension too high for a tree on all
// axes and a signal that is strong enough: a tree on a few random directions
// finds well-separated clusters, the relative rounds of the high-dimensional
// branch do the rest. The tree's share of the budget falls with the dimension,
// as sums get dearer and counts do not.
func (s *session) projectedBranch(j *Hybrid, l law) ([]float32, int, error) {
	mean, err := s.privateMean(l.share(0.03))
	if err != nil {
		return nil, 0, err
	}
	top := 2 * math.Sqrt(float64(s.d))
	reach, err := s.distanceQuantile(l.share(0.01), gridRow(mean, s.bits), top, 0.75)
	if err != nil {
		return nil, 0, err
	}
	share := treeShare(s.d)
	centroids, err := s.overseeded(l.share(share), l.share(share/2), mean, reach)
	if err != nil {
		return nil, 0, err
	}
	within, err := s.distanceQuantile(l.share(0.01), centroids, top, 0.4)
	if err != nil {
		return nil, 0, err
	}
	rounds := j.Rounds
	if rounds == 0 {
		rounds = s.manyRounds(l)
	}
	return centroids, rounds, s.equalRounds(l.share(0.95-1.5*share), centroids, min(within, reach), rounds)
}

// overseed is how many times more clusters than asked for are looked for on the
// projections, where clusters lie in front of each other.
const overseed = 1.5

// overseeded finds more clusters than k in the tree on projections, releases
// their means and counts in all dimensions, and merges them to k by weighted
// k-means. That costs little noise, and a wrong start that the rounds could not
// leave is rarer.
func (s *session) overseeded(tree, recover law, mean []float64, reach float64) ([]float32, error) {
	k := s.k
	s.k = min(int(math.Ceil(overseed*float64(k))), s.n, math.MaxUint16-1)
	defer func() { s.k = k }()
	origin := gridRow(mean, s.bits)
	low, err := s.projectedStart(tree, origin, reach)
	if err != nil {
		return nil, err
	}
	centroids, counts, err := s.recoverHigh(recover, low, origin, reach)
	if err != nil {
		return nil, err
	}
	if missing := low.topUp - (s.k - k); missing > 0 {
		s.note("the tree on projections has fewer weighted points than k: %d of the %d centroids start data-independent", missing, k)
	}
	span := s.rt.Begin(engine.PhaseSearch, s.rounds, engine.Server)
	defer s.rt.End(span)
	points := &synopsis.Weighted{D: s.d, Points: widen(centroids)}
	for _, n := range counts {
		points.Weights = append(points.Weights, max(n, 1))
	}
	found, err := synopsis.Search(s.ctx, s.rt.Pool(), points, k, s.searching(), s.streams.Stream(engine.Server, 1, "search"))
	if err != nil {
		return nil, err
	}
	return gridRow(found.Centers, s.bits), nil
}

// treeShare is the share of the budget that counts get beside sums in d
// dimensions.
func treeShare(d int) float64 { return 0.45 / (1 + math.Sqrt(float64(d))/20) }

// lowStart is a clustering of the projected records.
type lowStart struct {
	parts   []*kernels.Panels
	centers []float32
	topUp   int // how many of them are data-independent
}

// projectAll projects all parties' records about a public point onto q random
// directions, so that nearly all of those within reach land in [-1,1]^q, and
// clips the others.
func (s *session) projectAll(kind Projection, q int, origin []float32, reach float64) (*lowStart, error) {
	// A coordinate of G(x - origin) has a standard deviation of at most the
	// distance; three times the reach hold nearly all records.
	rows := randomProjection(kind, q, s.d, 1/(3*reach), s.streams.Stream(engine.Server, 0, "projection"))
	m := kernels.NewMatrix(q, s.d, rows)
	low := &lowStart{parts: make([]*kernels.Panels, len(s.parties))}
	for p, part := range s.parties {
		span := s.rt.Begin(engine.PhaseEncode, s.rounds, p)
		var err error
		low.parts[p], err = s.project(part.Points, m, origin, s.bits)
		s.rt.End(span)
		if err != nil {
			return nil, err
		}
	}
	return low, nil
}

// projectedStart projects the records about a public point onto a few random
// directions, releases a tree there with the whole of l, and searches it.
func (s *session) projectedStart(l law, origin []float32, reach float64) (*lowStart, error) {
	q := min(max(int(log2(float64(s.n)*l.mu())/2.5), 2), 6, s.d)
	low, err := s.projectAll(Dense, q, origin, reach)
	if err != nil {
		return nil, err
	}
	trie, err := s.tree(l, low.parts)
	if err != nil {
		return nil, err
	}
	span := s.rt.Begin(engine.PhaseSearch, s.rounds, engine.Server)
	defer s.rt.End(span)
	points := synopsis.Spread(trie.Boxes(q), q, 3000)
	found, err := synopsis.Search(s.ctx, s.rt.Pool(), points, s.k, s.searching(), s.streams.Stream(engine.Server, 0, "search"))
	if err != nil {
		return nil, err
	}
	low.centers, low.topUp = gridRow(found.Centers, s.bits), found.TopUp
	return low, nil
}

// recoverHigh releases, for the clusters of projected records, the sums of the
// offsets of the records themselves from origin, cut to length reach, and the
// counts, and returns the centroids in all dimensions and the counts.
func (s *session) recoverHigh(l law, low *lowStart, origin []float32, reach float64) (centroids []float32, counts []float64, err error) {
	for range s.k {
		centroids = append(centroids, origin...)
	}
	o := newOffsets(s.rt.Pool(), s.k, s.d, s.bits)
	centers := kernels.NewCentroids(s.k, low.parts[0].D)
	centers.Set(low.centers)
	o.labels = func(p int) ([]uint16, error) {
		records := low.parts[p]
		labels := make([]uint16, records.N)
		shards := engine.Shards([]int{records.N}, records.D)
		err := s.rt.Pool().Run(s.ctx, len(shards), func(_, i int) {
			lo, hi := shards[i].Lo, shards[i].Hi
			kernels.Assign(records.Slice(lo, hi), centers, labels[lo:hi], nil)
		})
		return labels, err
	}
	counts, err = s.equalRound(o, "recover", l, centroids, reach)
	return centroids, counts, err
}
