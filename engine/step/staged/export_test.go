package staged

import "context"

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
