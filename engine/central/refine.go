package central

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

// roundScales are the noise scales, in data units, of one cluster in a round of
// relative refinement: of the sum of offsets and of the count.
type roundScales struct{ sums, counts float64 }

// relativeScales splits a round's budget between the sum of offsets cut to
// length radius and the count of a cluster of about `size` records (THEOREMS.md
// T2). With Gaussian noise radius^2/sums^2 + 1/counts^2 = mu^2, so
// clusters may differ in their scales: a record touches one of them. With
// Laplace noise the sums get four fifths of epsilon.
func (f *frame) relativeScales(l law, radius, size float64) roundScales {
	sum, count := f.bound("relative sums", radius), f.bound("relative counts", 0)
	if !l.gaussian {
		return roundScales{sums: l.share(0.8).scale(sum), counts: l.share(0.2).scale(count)}
	}
	return splitGaussian(l.total, sum.L2(), size, f.d)
}

// splitGaussian is relativeScales for Gaussian noise, of a count of sensitivity 1:
// a move of a quarter of the radius is expected.
func splitGaussian(mu2, radius, size float64, d int) roundScales {
	sums, counts := step.SplitGaussian(radius, radius/4, size, d, mu2)
	return roundScales{max(sums, minScale), max(counts, minScale)}
}

// addRound plans a round of relative sums and counts, whose radii and scales
// follow from what was released before within the share of the budget.
func (f *frame) addRound(purpose string, l law) *stage {
	s := &stage{purpose: purpose, law: l}
	widest := 2 * math.Sqrt(float64(f.d))
	e := f.roundEntry(s, widest, l.scale(f.bound("relative sums", widest)))
	e.Unit = "at most, for the sums of a cluster; the radii follow from what was released before"
	e.Cost.Scale = 1 / l.total
	if l.gaussian {
		e.Cost.Scale = 1 / math.Sqrt(l.total)
		e.Cost.Slack = privacy.GaussianSlack(minScale*(1<<releaseBits), f.d+1)
	}
	s.Release = f.Add(&protocol.Release{Name: purpose, Makers: f.makers, Entries: []privacy.Entry{f.charge(l, e)}})
	return s
}

// roundEntry begins the ledger entry of a round.
func (f *frame) roundEntry(s *stage, radius, scale float64) privacy.Entry {
	count := f.bound("relative counts", 0)
	e := s.law.entry(s.purpose+": sums of cut offsets and counts of each cluster", f.audience, scale, f.bound("relative sums", radius), f.d+1)
	e.Beside = &count
	return e
}

// relativeRound releases, for each cluster, the sum of the offsets of its
// records from its centroid, cut to length radius[j], and the count, both in
// data units. centroids are row-major and on the grid; there may be more of them
// than clusters asked for.
func (p *party) relativeRound(ctx context.Context, o *offsets, s *stage, centroids []float32, radius []float64, scales []roundScales) (sums, counts []float64, err error) {
	k, d := len(radius), p.d
	own := protocol.NewPrivate(k*d + k)
	span := p.Begin(engine.PhaseAccumulate, p.released)
	err = own.Fill(func(words []int64) error {
		return o.add(ctx, p.records, centroids, radius, offsetSums{words[:k*d], words[k*d:]})
	})
	p.End(span)
	if err != nil {
		return nil, nil, err
	}
	groups := make([]noiseGroup, 0, 2*k)
	for j := range k {
		groups = append(groups, noiseGroup{d, p.bits, scales[j].sums})
	}
	for j := range k {
		groups = append(groups, noiseGroup{1, 0, scales[j].counts})
	}
	released, err := p.release(ctx, s, groups, own)
	if err != nil {
		return nil, nil, err
	}
	return released[:k*d], released[k*d:], p.bookRound(s, radius, scales)
}

// bookRound writes what a round came to into the ledger: the dearest cluster
// counts.
func (p *party) bookRound(s *stage, radius []float64, scales []roundScales) error {
	worst, at, least := 0.0, 0, math.Inf(1)
	count := p.bound("relative counts", 0)
	for j, r := range radius {
		sum := p.bound("relative sums", r)
		cost := sum.L1()/scales[j].sums + count.L1()/scales[j].counts
		if s.law.gaussian {
			cost = math.Hypot(sum.L2()/scales[j].sums, count.L2()/scales[j].counts)
		}
		if cost > worst {
			worst, at = cost, j
		}
		least = min(least, scales[j].sums, scales[j].counts)
	}
	e := p.roundEntry(s, radius[at], scales[at].sums)
	e.Unit = fmt.Sprintf("for the sums of cluster %d, the dearest; %.4g for its count", at+1, scales[at].counts)
	e.Cost.Scale = 1 / worst
	if s.law.gaussian {
		e.Cost.Slack = privacy.GaussianSlack(least*(1<<releaseBits), p.d+1)
	}
	return p.Book(s.Release, p.charge(s.law, e))
}

// moved adds noisy relative sums to centroids: divide by the count (at least
// twice its noise scale and 1), shrink by the positive part of
// 1 - 0.5 d sigma^2/|sum|^2, cut to the radius, clip to the box, truncate onto
// the grid.
func moved(l law, centroids []float32, sums, counts, radius []float64, scales []roundScales, d, bits int) {
	for j, count := range counts {
		sum := sums[j*d : (j+1)*d]
		norm2 := 0.0
		for _, x := range sum {
			norm2 += float64(x * x)
		}
		size := max(count, 2*scales[j].counts, 1)
		factor := 0.0
		if norm2 > 0 {
			factor = max(0, 1-0.5*float64(d)*l.variance(scales[j].sums)/norm2) / size
		}
		if length := factor * math.Sqrt(norm2); length > radius[j] {
			factor *= radius[j] / length
		}
		for h, x := range sum {
			i := j*d + h
			centroids[i] = onGrid(float64(centroids[i])+float64(x*factor), bits)
		}
	}
}

// onGrid clips a coordinate to [-1,1] and truncates it onto the grid.
func onGrid(x float64, bits int) float32 {
	return dataset.Truncate(min(max(x, -1), 1), bits)
}
