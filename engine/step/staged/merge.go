package staged

import (
	"context"

	"github.com/cohort-engine/cohort/engine/synopsis"
)

// measuring is what equal rounds carry from one to the next: the clusters, the lengths to which their offsets are cut,
// and the sums of their noisy counts.
type measuring struct {
	centroids   []float32
	radii, sums []float64
}

// merge makes p.K clusters of more: k-means on their centroids, each of the weight of what rounds have counted. The
// offsets of one are cut to the longest length of those that it is made of. It is post-processing of released values.
func (p *Party) merge(ctx context.Context, m *measuring) error {
	points := &synopsis.Weighted{D: p.D, Points: Widen(m.centroids)}
	for _, n := range m.sums {
		points.Weights = append(points.Weights, max(n, 1))
	}
	found, err := p.Search(ctx, points, p.K, 1)
	if err != nil {
		return err
	}
	merged := &measuring{GridRow(found.Centers, p.FractionBits), make([]float64, p.K), make([]float64, p.K)}
	for c, n := range m.sums {
		j := found.Labels[c]
		merged.sums[j] += n
		merged.radii[j] = max(merged.radii[j], m.radii[c])
	}
	*m = *merged
	return nil
}
