package central

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

func roundName(r int) string { return fmt.Sprintf("round %d", r+1) }

// highBranch is the branch for many dimensions.
func (s *session) highBranch(j *Hybrid, l law) ([]float32, int, error) {
	mean, err := s.privateMean(l.share(0.03))
	if err != nil {
		return nil, 0, err
	}
	radius, err := s.distanceQuantile(l.share(0.01), gridRow(mean, s.bits), 2*math.Sqrt(float64(s.d)), 0.25)
	if err != nil {
		return nil, 0, err
	}
	centroids := make([]float32, s.k*s.d)
	stream := s.streams.Stream(engine.Server, 0, "start")
	for c := range s.k {
		direction := make([]float64, s.d)
		norm := 0.0
		for h := range direction {
			direction[h] = stream.Normal()
			norm += float64(direction[h] * direction[h])
		}
		norm = math.Sqrt(norm)
		for h, x := range direction {
			centroids[c*s.d+h] = onGrid(mean[h]+float64(0.3*radius*x)/norm, s.bits)
		}
	}
	rounds := j.Rounds
	if rounds == 0 {
		rounds = s.manyRounds(l)
	}
	return centroids, rounds, s.equalRounds(l.share(0.96), centroids, radius, rounds)
}

// mostRounds bounds the rounds of a rule.
const mostRounds = 20

// manyRounds is the number of relative rounds without a synopsis of all
// dimensions.
func (s *session) manyRounds(l law) int {
	return min(max(int(math.Round(1.6*pow(s.snr(l), 0.6))), 2), mostRounds)
}

// equalRounds runs relative rounds with one radius for all clusters, each
// followed by James-Stein shrinkage. The last round gets three times the budget
// of each other one; in a round 2% goes to the counts.
func (s *session) equalRounds(l law, centroids []float32, radius float64, rounds int) error {
	o := newOffsets(s.rt.Pool(), s.k, s.d, s.bits)
	for r := range rounds {
		own := l.share(1 / float64(rounds+2))
		if r == rounds-1 {
			own = l.share(3 / float64(rounds+2))
		}
		if _, err := s.equalRound(o, roundName(r), own, centroids, radius); err != nil {
			return err
		}
		s.rt.IterationEnd(r, rounds)
	}
	return nil
}

// equalRound is one relative round with a common radius; it returns the
// noisy counts.
func (s *session) equalRound(o *offsets, what string, l law, centroids []float32, radius float64) ([]float64, error) {
	radii, scales := make([]float64, s.k), make([]roundScales, s.k)
	for c := range radii {
		radii[c] = radius
		scales[c] = roundScales{sums: l.share(0.98).scale(s.bound("relative sums", radius)), counts: l.share(0.02).scale(s.bound("relative counts", 0))}
	}
	sums, counts, err := s.relativeRound(o, what, l, centroids, radii, scales)
	if err != nil {
		return nil, err
	}
	span := s.rt.Begin(engine.PhasePostprocess, s.rounds, engine.Server)
	defer s.rt.End(span)
	moved(l, centroids, sums, counts, radii, scales, s.d, s.bits)
	variance := make([]float64, s.k)
	for c := range variance {
		size := max(counts[c], 2*scales[c].counts, 1)
		variance[c] = l.variance(scales[c].sums) / (size * size)
	}
	jamesStein(centroids, variance, s.k, s.d, s.bits)
	return counts, nil
}

// gridRow puts a point on the grid.
func gridRow(x []float64, bits int) []float32 {
	row := make([]float32, len(x))
	for h, v := range x {
		row[h] = onGrid(v, bits)
	}
	return row
}

// jamesStein shrinks, coordinate by coordinate, the centroids toward their
// precision-weighted mean by the positive-part James-Stein factor 1 - 1/A, where
// A compares their spread with the known noise variance.
func jamesStein(centroids []float32, variance []float64, k, d, bits int) {
	if k < 2 {
		return
	}
	for h := range d {
		var sum, weight float64
		for j := range k {
			sum += float64(centroids[j*d+h]) / variance[j]
			weight += 1 / variance[j]
		}
		mean, spread := sum/weight, 0.0
		for j := range k {
			t := float64(centroids[j*d+h]) - mean
			spread += float64(t*t) / variance[j]
		}
		spread /= float64(k - 1)
		factor := 0.0
		if spread > 1 {
			factor = 1 - 1/spread
		}
		for j := range k {
			i := j*d + h
			centroids[i] = onGrid(mean+float64((float64(centroids[i])-mean)*factor), bits)
		}
	}
}

// privateMean releases the sum of all records, whose length is at most sqrt d,
// and divides it by the public n.
func (s *session) privateMean(l law) ([]float64, error) {
	parts := make([][]int64, len(s.parties))
	for p, part := range s.parties {
		span := s.rt.Begin(engine.PhaseAccumulate, s.rounds, p)
		sums, err := s.sumByLabel(part.Points, make([]uint16, part.Points.N), 1, nil)
		s.rt.End(span)
		if err != nil {
			return nil, err
		}
		parts[p] = sums
	}
	bound := s.bound("sum of all records", 0)
	scale := l.scale(bound)
	mean, err := s.release("mean", parts, l, []noiseGroup{{s.d, s.bits, scale}})
	if err != nil {
		return nil, err
	}
	for h, x := range mean {
		mean[h] = min(max(x/float64(s.n), -1), 1)
	}
	return mean, s.enter(l, l.entry("sum of all records", s.viewers(), scale, bound, s.d))
}

// distanceQuantile releases the histogram of the distances of records to the
// nearest of some public points (row-major, on the grid) in 64 bins of [0, top]
// and returns the upper edge of the bin where the quantile q of its projection
// on the simplex lies.
func (s *session) distanceQuantile(l law, points []float32, top, q float64) (float64, error) {
	const bins = 64
	width := top / bins
	center := kernels.NewCentroids(len(points)/s.d, s.d)
	center.Set(points)
	parts := s.partSums(bins)
	pool := s.rt.Pool()
	for p, part := range s.parties {
		span := s.rt.Begin(engine.PhaseAccumulate, s.rounds, p)
		shards := engine.Shards([]int{part.Points.N}, s.d)
		counts := make([][bins]int64, pool.Workers())
		labels, dist := make([]uint16, part.Points.N), make([]float32, part.Points.N)
		err := pool.Run(s.ctx, len(shards), func(worker, i int) {
			lo, hi := shards[i].Lo, shards[i].Hi
			shard := part.Points.Slice(lo, hi)
			if center.K > 1 {
				kernels.Assign(shard, center, labels[lo:hi], nil)
			}
			kernels.Distances(shard, center, labels[lo:hi], dist[lo:hi])
			for _, x := range dist[lo:hi] {
				counts[worker][min(int(math.Sqrt(float64(x))/width), bins-1)]++
			}
		})
		s.rt.End(span)
		if err != nil {
			return 0, err
		}
		for _, c := range counts {
			for b, x := range c {
				parts[p][b] += x
			}
		}
	}
	noisy, scale, err := s.releaseCounts(parts, l, "distances", "histogram of distances")
	if err != nil {
		return 0, err
	}
	variance := make([]float64, bins)
	for b := range variance {
		variance[b] = l.variance(scale)
	}
	synopsis.ProjectSimplex(noisy, variance, float64(s.n))
	below := 0.0
	for b, x := range noisy {
		if below += x; below >= q*float64(s.n) {
			return float64(b+1) * width, nil
		}
	}
	return top, nil
}
