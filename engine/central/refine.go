package central

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// roundScales are the noise scales, in data units, of one cluster in a round of
// relative refinement: of the sum of offsets and of the count.
type roundScales struct{ sums, counts float64 }

// relativeScales splits a round's budget between the sum of offsets cut to
// length radius and the count of a cluster of about `size` records (THEOREMS.md
// T2). With Gaussian noise radius^2/sums^2 + 1/counts^2 = mu^2, so
// clusters may differ in their scales: a record touches one of them. With
// Laplace noise the sums get four fifths of epsilon.
func (s *session) relativeScales(l law, radius, size float64) roundScales {
	sum, count := s.bound("relative sums", radius), s.bound("relative counts", 0)
	if !l.gaussian {
		return roundScales{sums: l.share(0.8).scale(sum), counts: l.share(0.2).scale(count)}
	}
	return splitGaussian(l.total, sum.L2(), size, s.d)
}

// splitGaussian is relativeScales for Gaussian noise, of a count of sensitivity 1.
func splitGaussian(mu2, radius, size float64, d int) roundScales {
	root := math.Sqrt(float64(d))
	guess := radius / 4 // of the length of the move
	move := guess
	var s roundScales
	for range 4 {
		counts2 := (radius*root + move) / (mu2 * move)
		counts2 = min(counts2, max(size*size/36, 2/mu2))
		sums2 := radius * radius / (mu2 - 1/counts2)
		s = roundScales{max(math.Sqrt(sums2), minScale), max(math.Sqrt(counts2), minScale)}
		move = min(math.Sqrt(guess*guess+3*float64(d)*sums2/(size*size)), 3*radius)
	}
	return s
}

// relativeRound releases, for each cluster, the sum of the offsets of its
// records from its centroid, cut to length radius[j], and the count, both in
// data units. centroids are row-major and on the grid.
func (s *session) relativeRound(o *offsets, what string, l law, centroids []float32, radius []float64, scales []roundScales) (sums, counts []float64, err error) {
	k, d := s.k, s.d
	parts := s.partSums(k*d + k)
	for p, part := range s.parties {
		span := s.rt.Begin(engine.PhaseAccumulate, s.rounds, p)
		err := o.add(s.ctx, p, part.Points, centroids, radius, offsetSums{parts[p][:k*d], parts[p][k*d:]})
		s.rt.End(span)
		if err != nil {
			return nil, nil, err
		}
	}
	groups := make([]noiseGroup, 0, 2*k)
	for j := range k {
		groups = append(groups, noiseGroup{d, s.bits, scales[j].sums})
	}
	for j := range k {
		groups = append(groups, noiseGroup{1, 0, scales[j].counts})
	}
	released, err := s.release(what, parts, l, groups)
	if err != nil {
		return nil, nil, err
	}
	if err := s.enterRound(what, l, radius, scales); err != nil {
		return nil, nil, err
	}
	s.sizes = released[k*d:]
	return released[:k*d], s.sizes, nil
}

// enterRound writes a round of relative sums and counts into the ledger: the
// dearest cluster counts.
func (s *session) enterRound(what string, l law, radius []float64, scales []roundScales) error {
	if s.data.Tape != nil {
		return nil
	}
	worst, at, least := 0.0, 0, math.Inf(1)
	count := s.bound("relative counts", 0)
	for j, r := range radius {
		sum := s.bound("relative sums", r)
		cost := sum.L1()/scales[j].sums + count.L1()/scales[j].counts
		if l.gaussian {
			cost = math.Hypot(sum.L2()/scales[j].sums, count.L2()/scales[j].counts)
		}
		if cost > worst {
			worst, at = cost, j
		}
		least = min(least, scales[j].sums, scales[j].counts)
	}
	e := l.entry(what+": sums of cut offsets and counts of each cluster", s.viewers(), scales[at].sums, s.bound("relative sums", radius[at]), s.d+1)
	e.Beside = &count
	e.Unit = fmt.Sprintf("for the sums of cluster %d, the dearest; %.4g for its count", at+1, scales[at].counts)
	e.Cost.Scale = 1 / worst
	if l.gaussian {
		e.Cost.Slack = privacy.GaussianSlack(least*(1<<releaseBits), s.d+1)
	}
	return s.enter(l, e)
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
