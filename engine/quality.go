package engine

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/metrics"
	"github.com/cohort-engine/cohort/kernels"
)

// Evaluation is the private data that a result is measured against.
type Evaluation struct {
	// Parts are the clients' points, normalised to [-1,1]^D.
	Parts []dataset.Part
	// Labels has the true class of each row of the table; nil if unknown. The
	// Rows of Parts index it.
	Labels []int32
	// Clamped counts coordinates that were outside the bounds.
	Clamped int
}

// Measure assigns every point to the nearest centroid (k rows of D, row-major,
// normalised units) and returns the quality of the clustering: NICV, WCSS,
// empty clusters, and scores against the labels where there are any. The
// result depends neither on the number of workers nor on the instruction set.
// It is computed from the private data: no budget covers it.
func Measure(ctx context.Context, pool *Pool, e Evaluation, centroids []float64, k int) (Quality, error) {
	d := e.Parts[0].Points.D
	if len(centroids) != k*d {
		return Quality{}, fmt.Errorf("engine: Measure: %d centroid coordinates for k = %d, d = %d", len(centroids), k, d)
	}
	grid := make([]float32, k*d)
	for i, c := range centroids {
		grid[i] = dataset.Truncate(c, e.Parts[0].FractionBits)
	}
	prepared := kernels.NewCentroids(k, d)
	prepared.Set(grid)

	sizes := make([]int, len(e.Parts))
	for p := range e.Parts {
		sizes[p] = e.Parts[p].Points.N
	}
	shards := Shards(sizes, d)
	type partial struct {
		wcss   float64
		counts []int64
	}
	partials := make([]partial, len(shards))
	scratch := make([][]uint16, pool.Workers())
	var predicted []int32
	if e.Labels != nil {
		predicted = make([]int32, len(e.Labels))
	}
	err := pool.Run(ctx, len(shards), func(worker, index int) {
		s := shards[index]
		part := &e.Parts[s.Party]
		if len(scratch[worker]) < s.Hi-s.Lo {
			scratch[worker] = make([]uint16, s.Hi-s.Lo)
		}
		labels := scratch[worker][:s.Hi-s.Lo]
		view := part.Points.Slice(s.Lo, s.Hi)
		kernels.Assign(view, prepared, labels, nil)
		r := partial{counts: make([]int64, k)}
		row := make([]float32, d)
		for i, j := range labels {
			r.counts[j]++
			r.wcss += squaredDistance(view.Point(i, row), centroids[int(j)*d:])
			if predicted != nil {
				predicted[part.Rows[s.Lo+i]] = int32(j)
			}
		}
		partials[index] = r
	})
	if err != nil {
		return Quality{}, err
	}
	wcss, n, empty := 0.0, 0, k
	counts := make([]int64, k)
	for _, r := range partials {
		wcss += r.wcss
		for j, c := range r.counts {
			if counts[j] == 0 && c > 0 {
				empty--
			}
			counts[j] += c
			n += int(c)
		}
	}
	nicv := wcss / float64(n)
	q := Quality{NICV: &nicv, WCSS: &wcss, EmptyClusters: &empty, Clamped: &e.Clamped}
	if predicted != nil {
		a, err := metrics.Compare(e.Labels, predicted)
		if err != nil {
			return Quality{}, err
		}
		q.ARI, q.NMI, q.FMI, q.VMeasure, q.Accuracy = &a.ARI, &a.NMI, &a.FMI, &a.VMeasure, &a.Accuracy
	}
	return q, nil
}

// squaredDistance is the squared Euclidean distance of a point to a centroid.
// The explicit conversion keeps the product from being fused with the sum, so
// that the result is the same on every architecture.
func squaredDistance(x []float32, c []float64) float64 {
	sum := 0.0
	for h, v := range x {
		t := float64(v) - c[h]
		sum += float64(t * t)
	}
	return sum
}
