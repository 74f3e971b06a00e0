package central

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// highPlan is the plan of the branch for many dimensions.
type highPlan struct {
	mean, distances *stage
	rounds          []*stage
}

func (f *frame) addHigh(l law, rounds int) *highPlan {
	h := &highPlan{mean: f.addMean(l.share(0.03)), distances: f.addCounts("distances", "histogram of distances", l.share(0.01))}
	if rounds == 0 {
		rounds = f.manyRounds(l)
	}
	h.rounds = f.addEqualRounds(l.share(0.96), rounds)
	return h
}

// high is the branch for many dimensions.
func (p *party) high(ctx context.Context, h *highPlan) (centroids []float32, sizes []float64, err error) {
	mean, err := p.privateMean(ctx, h.mean)
	if err != nil {
		return nil, nil, err
	}
	radius, err := p.distanceQuantile(ctx, h.distances, gridRow(mean, p.bits), 2*math.Sqrt(float64(p.d)), 0.25)
	if err != nil {
		return nil, nil, err
	}
	centroids = make([]float32, p.k*p.d)
	stream := p.Public.Stream(int(protocol.Server), 0, "start")
	for c := range p.k {
		direction := make([]float64, p.d)
		norm := 0.0
		for h := range direction {
			direction[h] = stream.Normal()
			norm += float64(direction[h] * direction[h])
		}
		norm = math.Sqrt(norm)
		for h, x := range direction {
			centroids[c*p.d+h] = onGrid(mean[h]+float64(0.3*radius*x)/norm, p.bits)
		}
	}
	sizes, err = p.equalRounds(ctx, h.rounds, centroids, radius)
	return centroids, sizes, err
}

// mostRounds bounds the rounds of a rule.
const mostRounds = 20

// manyRounds is the number of relative rounds without a synopsis of all
// dimensions.
func (f *frame) manyRounds(l law) int {
	return min(max(int(math.Round(1.6*pow(f.snr(l), 0.6))), 2), mostRounds)
}

// addEqualRounds plans relative rounds with one radius for all clusters. The last
// round gets three times the budget of each other one; negative rounds are none.
func (f *frame) addEqualRounds(l law, rounds int) []*stage {
	var stages []*stage
	for r := range rounds {
		own := l.share(1 / float64(rounds+2))
		if r == rounds-1 {
			own = l.share(3 / float64(rounds+2))
		}
		stages = append(stages, f.addRound(fmt.Sprintf("round %d", r+1), own))
	}
	return stages
}

// equalRounds runs relative rounds with one radius for all clusters, each
// followed by James-Stein shrinkage; in a round 2% goes to the counts. It returns
// the noisy counts of the last.
func (p *party) equalRounds(ctx context.Context, rounds []*stage, centroids []float32, radius float64) (counts []float64, err error) {
	o := newOffsets(p.Pool(), p.k, p.d, p.bits)
	for r, s := range rounds {
		if counts, err = p.equalRound(ctx, o, s, centroids, radius); err != nil {
			return nil, err
		}
		if len(centroids) == p.k*p.d { // not those that are still to be merged
			p.Show(s.Release, widen(centroids), math.NaN())
		}
		if err := p.EndRound(ctx, r, len(rounds)); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// equalRound is one relative round with a common radius; it returns the
// noisy counts.
func (p *party) equalRound(ctx context.Context, o *offsets, s *stage, centroids []float32, radius float64) ([]float64, error) {
	k, l := len(centroids)/p.d, s.law
	radii, scales := make([]float64, k), make([]roundScales, k)
	for c := range radii {
		radii[c] = radius
		scales[c] = roundScales{sums: l.share(0.98).scale(p.bound("relative sums", radius)), counts: l.share(0.02).scale(p.bound("relative counts", 0))}
	}
	sums, counts, err := p.relativeRound(ctx, o, s, centroids, radii, scales)
	if err != nil {
		return nil, err
	}
	span := p.Begin(engine.PhasePostprocess, p.released)
	defer p.End(span)
	moved(l, centroids, sums, counts, radii, scales, p.d, p.bits)
	variance := make([]float64, k)
	for c := range variance {
		size := max(counts[c], 2*scales[c].counts, 1)
		variance[c] = l.variance(scales[c].sums) / (size * size)
	}
	jamesStein(centroids, variance, k, p.d, p.bits)
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

// addMean plans the release of the sum of all records, whose length is at most
// sqrt d.
func (f *frame) addMean(l law) *stage {
	return f.add("mean", "sum of all records", "sum of all records", l, f.d)
}

// privateMean releases the sum of all records and divides it by the public n.
func (p *party) privateMean(ctx context.Context, s *stage) ([]float64, error) {
	own := protocol.NewPrivate(p.d)
	span := p.Begin(engine.PhaseAccumulate, p.released)
	err := own.Fill(func(words []int64) error {
		return sumByLabel(ctx, p.Pool(), p.records, make([]uint16, p.records.N), 1, p.bits, words, nil)
	})
	p.End(span)
	if err != nil {
		return nil, err
	}
	mean, err := p.release(ctx, s, []noiseGroup{{p.d, p.bits, s.scale}}, own)
	if err != nil {
		return nil, err
	}
	for h, x := range mean {
		mean[h] = min(max(x/float64(p.N), -1), 1)
	}
	return mean, nil
}

// distanceQuantile releases the histogram of the distances of records to the
// nearest of some public points (row-major, on the grid) in 64 bins of [0, top]
// and returns the upper edge of the bin where the quantile q of its projection
// on the simplex lies.
func (p *party) distanceQuantile(ctx context.Context, s *stage, points []float32, top, q float64) (float64, error) {
	const bins = 64
	width := top / bins
	center := kernels.NewCentroids(len(points)/p.d, p.d)
	center.Set(points)
	pool, records := p.Pool(), p.records
	noisy, err := p.releaseCounts(ctx, s, bins, func(words []int64) error {
		shards := engine.Shards([]int{records.N}, p.d)
		counts := make([][bins]int64, pool.Workers())
		labels, dist := make([]uint16, records.N), make([]float32, records.N)
		err := pool.Run(ctx, len(shards), func(worker, i int) {
			lo, hi := shards[i].Lo, shards[i].Hi
			shard := records.Slice(lo, hi)
			if center.K > 1 {
				kernels.Assign(shard, center, labels[lo:hi], nil)
			}
			kernels.Distances(shard, center, labels[lo:hi], dist[lo:hi])
			for _, x := range dist[lo:hi] {
				counts[worker][min(int(math.Sqrt(float64(x))/width), bins-1)]++
			}
		})
		for _, c := range counts {
			for b, x := range c {
				words[b] += x
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	variance := make([]float64, bins)
	for b := range variance {
		variance[b] = s.law.variance(s.scale)
	}
	synopsis.ProjectSimplex(noisy, variance, float64(p.N))
	below := 0.0
	for b, x := range noisy {
		if below += x; below >= q*float64(p.N) {
			return float64(b+1) * width, nil
		}
	}
	return top, nil
}

// sumByLabel adds the sums of the records of each of k labels, in grid units, to
// sums, and the counts to counts unless it is nil.
func sumByLabel(ctx context.Context, pool *engine.Pool, records *kernels.Panels, labels []uint16, k, bits int, sums, counts []int64) error {
	accs := make([]*kernels.Accumulator, pool.Workers())
	for i := range accs {
		accs[i] = kernels.NewAccumulator(k, records.D, bits)
	}
	shards := engine.Shards([]int{records.N}, records.D)
	err := pool.Run(ctx, len(shards), func(worker, i int) {
		lo, hi := shards[i].Lo, shards[i].Hi
		kernels.Accumulate(records.Slice(lo, hi), labels[lo:hi], accs[worker])
	})
	for _, a := range accs {
		for i, x := range a.Sums {
			sums[i] += x
		}
		for j, n := range a.Counts {
			if counts != nil {
				counts[j] += n
			}
		}
	}
	return err
}
