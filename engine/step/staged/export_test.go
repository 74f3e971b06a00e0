package staged

import (
	"context"
	"math"
)

// SpreadsOf releases the histograms of distances around centroids and returns their cells, those that noise may have
// filled being empty.
func (p *Party) SpreadsOf(ctx context.Context, s *Release, centroids []float32) ([]float64, error) {
	h, err := p.releaseSpreads(ctx, s, centroids, p.widest())
	if err != nil {
		return nil, err
	}
	return h.counts, nil
}

// AddSpreads plans them for k clusters.
func (f *Plan) AddSpreads(l Share, k int) *Release {
	return f.addSpreads("distances before round 1", l, k)
}

// FirstOffset is the sum of cut offsets that the first step of a mean releases, over n.
func (p *Party) FirstOffset(ctx context.Context, m *SteppedMean) ([]float64, error) {
	return p.meanOffset(ctx, m.steps[0], make([]float32, p.D), m.radii[0])
}

// NoisyDistances are those of a release of counts of so many records within the box of so many columns, with noise of a
// deviation.
func NoisyDistances(noisy []float64, n, deviation, d float64) *Distances {
	return newDistances(noisy, n, deviation*deviation, 2*math.Sqrt(d))
}

// DistanceBin is the bin of a distance.
func DistanceBin(x, d float64) int { return distanceBin(x / (2 * math.Sqrt(d) / wideBins)) }

// DistanceBins is the number of bins.
const DistanceBins = distanceBins
