package hybrid

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// measured is what a round has released of its clusters: it moved them, and counted their records, with noise of these
// deviations.
type measured struct {
	from, to      []float32
	counts, noise []float64
}

// A tree is searched again on what a round has measured where a cluster of the mean size stands againSignal deviations
// above the noise of a count, up to three quarters of the rounds, as those after it have to settle what changes, and
// until what is found does not have less than againGain of the loss of the clusters that there are.
const (
	againSignal = 20
	againGain   = 0.95
)

// again tells whether clusters that round r has measured are to be looked for again, on so many points. A search knows
// nothing of where in a cell its records are, and takes them to fill it: a heavy cell whose records are close together
// gets several clusters, which no round leaves, and others get too few. The rounds tell that those lie close to each
// other, or have no records.
func (h *plan) again(p *staged.Party, points, r int) bool {
	return h.sure(p) && 4*(r+1) <= 3*len(h.rounds) && p.K > 1 && p.K < points && points*p.K*p.D <= lossMost
}

// sure tells whether counts of clusters tell how close together records lie.
func (h *plan) sure(p *staged.Party) bool {
	return h.balance == 0 && h.Signal(h.Share) >= float64(againSignal*p.K)
}

// startGain is the gain of a step by which it shows what a start comes to, where more are measured than asked for.
const startGain = 1e-3

// refound are clusters that go on, and the points that they were found on; settled says that they are those that were
// measured.
type refound struct {
	centroids []float32
	sizes     []float64
	points    *synopsis.Weighted
	settled   bool
}

// search finds the clusters that the run asks for on the points as round r has measured them, those of the round being
// among them if they are as many and nothing better is found. It is post-processing of released values, as are the
// points. narrow says whether clusters that lie closer together than the points do draw these together.
func (m *measured) search(ctx context.Context, p *staged.Party, r int, w *synopsis.Weighted,
	narrow bool) (*refound, error) {
	return protocol.Once(p.Party, "search", r+1, func() (*refound, error) {
		span := p.Begin(engine.PhaseSearch, p.Released)
		defer p.End(span)
		// The points lie about what was measured: few starts, with few swaps, come as far as many.
		how := p.Searching
		how.Starts, how.Swaps, how.Gain = cmp.Or(how.Starts, 4), cmp.Or(how.Swaps, max(2*p.K, 20)), startGain
		points := m.points(w, narrow)
		found, err := synopsis.Search(ctx, p.Pool(), points, p.K, how, p.Public.Stream(int(protocol.Server), r+1, "search"))
		if err != nil {
			return nil, err
		}
		if len(m.counts) == p.K && found.Loss >= float64(againGain*lossOf(points, m.to)) {
			return &refound{m.to, m.counts, w, true}, nil
		}
		return &refound{staged.GridRow(found.Centers, p.FractionBits), found.Weights, points, false}, nil
	})
}

// points are points as the round has measured them: those of each cluster all moved alike, so that their mean is the
// one that was measured, and weighed so that they have together what its count is expected to be, given the noisy one
// and what they weighed, at least 1: by the noisy one alone, one that noise left without records would be dropped, and
// one that noise gave some would cost another. Where narrow says so, they are drawn toward that mean, too, as nearness
// tells.
func (m *measured) points(w *synopsis.Weighted, narrow bool) *synopsis.Weighted {
	d, k := w.D, len(m.counts)
	labels, weights, means := m.pieces(w)
	factors := make([]float64, k)
	for j := range factors {
		factors[j] = 1
	}
	if narrow && k > 1 {
		m.nearness(factors, w, labels, weights, means)
	}
	out := &synopsis.Weighted{D: d, Points: slices.Clone(w.Points), Weights: slices.Clone(w.Weights)}
	ratio := make([]float64, k)
	for j, weight := range weights {
		before := max(weight, 1)
		ratio[j] = max(expectedCount(m.counts[j], m.noise[j], before), 1) / before
	}
	for i, label := range labels {
		j := int(label)
		out.Weights[i] *= ratio[j]
		for h := range d {
			x := float64(m.to[j*d+h]) + float64(factors[j]*(w.Points[i*d+h]-means[j*d+h]))
			out.Points[i*d+h] = min(max(x, -1), 1)
		}
	}
	return out
}

// pieces are the clusters that the points were nearest to, and their weights and means.
func (m *measured) pieces(w *synopsis.Weighted) (labels []uint16, weights, means []float64) {
	d, k := w.D, len(m.counts)
	rows, panels, clusters := make([]float32, len(w.Points)), kernels.NewPanels(w.Len(), d), kernels.NewCentroids(k, d)
	for i, x := range w.Points {
		rows[i] = float32(x)
	}
	kernels.Pack(panels, rows)
	clusters.Set(m.from)
	labels, weights, means = make([]uint16, w.Len()), make([]float64, k), make([]float64, k*d)
	kernels.Assign(*panels, clusters, labels, nil)
	for i, j := range labels {
		weight := max(w.Weights[i], 0)
		weights[j] += weight
		for h, x := range w.Points[i*d : (i+1)*d] {
			means[int(j)*d+h] += float64(weight * x)
		}
	}
	for i := range means {
		if weight := weights[i/d]; weight > 0 {
			means[i] /= weight
		} else {
			means[i] = float64(m.from[i])
		}
	}
	return labels, weights, means
}

// nearness is by how much records lie closer together than points, cluster by cluster: the deviation that a cluster and
// the one that is second nearest to its points have between them, as measured and as the points have it, their squares
// weighed by the points; at most 1. Of two clusters, one of which has no records, it is 0.
func (m *measured) nearness(factors []float64, w *synopsis.Weighted, labels []uint16, weights, means []float64) {
	d, k := w.D, len(m.counts)
	expected, seen := make([]float64, k), make([]float64, k)
	for i, label := range labels {
		j, s := int(label), m.second(w.Points[i*d:(i+1)*d], int(label))
		if w.Weights[i] <= 0 || weights[s] <= 0 {
			continue
		}
		expected[j] += float64(w.Weights[i] * between(weights[j], weights[s]) *
			elementary.SquaredDistance(means[j*d:(j+1)*d], means[s*d:]))
		to := elementary.SquaredDistance(m.to[j*d:(j+1)*d], m.to[s*d:])
		seen[j] += float64(w.Weights[i] * between(max(m.counts[j], 1), max(m.counts[s], 1)) * to)
	}
	for j := range factors {
		if seen[j] < expected[j] {
			factors[j] = math.Sqrt(seen[j] / expected[j])
		}
	}
}

// between is the variance of so many records at 0 and 1.
func between(a, b float64) float64 { return a / (a + b) * (b / (a + b)) }

// second is the cluster that is nearest to a point beside the one that is.
func (m *measured) second(x []float64, first int) int {
	at, least := first, math.Inf(1)
	for j := range m.counts {
		if square := elementary.SquaredDistance(x, m.from[j*len(x):]); j != first && square < least {
			at, least = j, square
		}
	}
	return at
}

// lossOf is the loss of centroids on points.
func lossOf(w *synopsis.Weighted, centroids []float32) (sum float64) {
	for i, weight := range w.Weights {
		x, least := w.Points[i*w.D:(i+1)*w.D], math.Inf(1)
		for at := 0; at < len(centroids); at += w.D {
			least = min(least, elementary.SquaredDistance(x, centroids[at:]))
		}
		sum += float64(max(weight, 0) * least)
	}
	return sum
}
