package staged

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// TreeShare is the share of the budget that counts get beside sums in d
// dimensions.
func TreeShare(d int) float64 { return 0.45 / (1 + math.Sqrt(float64(d))/20) }

// Projected is a clustering of the projected records.
type Projected struct {
	Records *kernels.Panels // of one party
	Centers []float32
	TopUp   int // how many of them are data-independent
}

// ProjectLow projects the party's records about a public point onto q random
// directions, so that nearly all of those within reach land in [-1,1]^q, and
// clips the others.
func (p *Party) ProjectLow(ctx context.Context, kind Projection, q int, origin []float32,
	reach float64) (*Projected, error) {
	// A coordinate of G(x - origin) has a standard deviation of at most the
	// distance; three times the reach hold nearly all records.
	rows := RandomProjection(kind, q, p.D, 1/(3*reach), p.Public.Stream(int(protocol.Server), 0, "projection"))
	span := p.Begin(engine.PhaseEncode, p.Released)
	defer p.End(span)
	records, err := Project(ctx, p.Pool(), p.Records, kernels.NewMatrix(q, p.D, rows), origin, p.FractionBits)
	return &Projected{Records: records}, err
}

// ProjectedStart projects the records about a public point onto a few random
// directions, releases a tree there, and searches k centres on it.
func (p *Party) ProjectedStart(ctx context.Context, tree *Tree, k int, origin []float32,
	reach float64) (*Projected, error) {
	low, err := p.ProjectLow(ctx, Dense, tree.d, origin, reach)
	if err != nil {
		return nil, err
	}
	trie, err := p.releaseTree(ctx, tree, low.Records)
	if err != nil {
		return nil, err
	}
	found, err := p.Search(ctx, synopsis.Spread(trie.Boxes(tree.d), tree.d, 3000), k, 0)
	if err != nil {
		return nil, err
	}
	low.Centers, low.TopUp = GridRow(found.Centers, p.FractionBits), found.TopUp
	return low, nil
}

// Recover releases, for the clusters of projected records, the sums of the
// offsets of the records themselves from origin, cut to length reach, and the
// counts, and returns the centroids in all dimensions and the counts.
func (p *Party) Recover(ctx context.Context, s *Release, low *Projected, origin []float32,
	reach float64) (centroids []float32, counts []float64, err error) {
	k := len(low.Centers) / low.Records.D
	for range k {
		centroids = append(centroids, origin...)
	}
	o := NewOffsets(p.Pool(), k, p.D, p.FractionBits)
	centers := kernels.NewCentroids(k, low.Records.D)
	centers.Set(low.Centers)
	o.labels = func() ([]uint16, error) {
		labels := make([]uint16, low.Records.N)
		return labels, p.Pool().Assign(ctx, low.Records, centers, labels, nil)
	}
	counts, err = p.equalRound(ctx, o, s, centroids, slices.Repeat([]float64{reach}, k), true, nil)
	return centroids, counts, err
}
