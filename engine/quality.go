package engine

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/metrics"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// Evaluation is the private data that a result is measured against.
type Evaluation struct {
	// Part has the points, normalised to [-1,1]^D.
	Part dataset.Part
	// Labels has the true class of each row of the table; nil if unknown. The
	// Rows of Part index it.
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
	d := e.Part.Points.D
	if len(centroids) != k*d {
		return Quality{}, fmt.Errorf("engine: Measure: %d centroid coordinates for k = %d, d = %d", len(centroids), k, d)
	}
	counts := make([]int64, k)
	var predicted []int32
	if e.Labels != nil {
		predicted = make([]int32, len(e.Labels))
	}
	var mu sync.Mutex
	losses, err := nearest(ctx, pool, e.Part, centroids, k, func(s Shard, labels []uint16, _ []float64) {
		mu.Lock()
		defer mu.Unlock()
		for i, j := range labels {
			counts[j]++
			if predicted != nil {
				predicted[e.Part.Row(s.Lo+i)] = int32(j)
			}
		}
	})
	if err != nil {
		return Quality{}, err
	}
	wcss, n, empty := 0.0, 0, 0
	for _, loss := range losses {
		wcss += loss
	}
	for _, c := range counts {
		n += int(c)
		if c == 0 {
			empty++
		}
	}
	nicv := wcss / float64(max(n, 1)) // 0 of no records
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

// MeasureSeparation compares the clusters of the nearest centroids (k rows of D,
// row-major, normalised units) with each other, all points together: silhouette,
// Dunn, Davies-Bouldin and BCSS. The time is quadratic in the points, up to
// [metrics.ExactPoints] of them. No budget covers it.
func MeasureSeparation(ctx context.Context, pool *Pool, part dataset.Part, centroids []float64,
	k int) (Separation, error) {
	if len(centroids) != k*part.Points.D {
		return Separation{}, fmt.Errorf("engine: MeasureSeparation: %d centroid coordinates for k = %d, d = %d",
			len(centroids), k, part.Points.D)
	}
	c := metrics.Clustering{Points: part.Points, Labels: make([]uint16, part.Points.N), Centroids: centroids, K: k,
		FractionBits: part.FractionBits}
	_, err := nearest(ctx, pool, part, centroids, k, func(s Shard, own []uint16, _ []float64) {
		copy(c.Labels[s.Lo:], own)
	})
	if err != nil {
		return Separation{}, err
	}
	const sampleSeed = 1
	pairs, err := c.Pairwise(ctx, pool, sampleSeed, metrics.ExactPoints)
	if err != nil {
		return Separation{}, err
	}
	daviesBouldin, bcss := c.DaviesBouldin(), c.BCSS()
	return Separation{Silhouette: finite(pairs.Silhouette), Dunn: finite(pairs.Dunn),
		DaviesBouldin: finite(daviesBouldin), BCSS: &bcss, Sample: pairs.Sample}, nil
}

// finite is nil for what JSON cannot say.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// Nearest writes the index of the nearest centroid (k rows of D, row-major, normalised units) of each
// point to labels, and its squared distance in those units to squared. Points must be on the grid of
// fractionBits.
func Nearest(ctx context.Context, pool *Pool, points *kernels.Panels, fractionBits int, centroids []float64, k int,
	labels []int32, squared []float64) error {
	part := dataset.Part{Points: points, FractionBits: fractionBits}
	_, err := nearest(ctx, pool, part, centroids, k, func(s Shard, own []uint16, distances []float64) {
		for i, j := range own {
			labels[s.Lo+i], squared[s.Lo+i] = int32(j), distances[i]
		}
	})
	return err
}

// Sizes returns the number of points whose nearest centroid is each of k, without a
// label for every point.
func Sizes(ctx context.Context, pool *Pool, points *kernels.Panels, fractionBits int, centroids []float64,
	k int) ([]float64, error) {
	part := dataset.Part{Points: points, FractionBits: fractionBits}
	sizes := make([]float64, k)
	var mu sync.Mutex
	_, err := nearest(ctx, pool, part, centroids, k, func(_ Shard, own []uint16, _ []float64) {
		mu.Lock()
		defer mu.Unlock()
		for _, j := range own {
			sizes[j]++
		}
	})
	return sizes, err
}

// nearest hands each shard's labels and squared distances to visit, from several workers at once, and
// returns the shards' sums of distances.
func nearest(ctx context.Context, pool *Pool, part dataset.Part, centroids []float64, k int,
	visit func(Shard, []uint16, []float64)) ([]float64, error) {
	d := part.Points.D
	inBox, prepared := onGrid(part.Points, centroids, k, part.FractionBits)
	losses := make([]float64, len(Shards(part.Points.N, d)))
	type scratch struct {
		labels   []uint16
		distance []float64
		row      []float32
	}
	own := make([]scratch, pool.Workers())
	err := pool.Scan(ctx, part.Points, func(worker int, s Shard) {
		w := &own[worker]
		if n := s.Hi - s.Lo; len(w.labels) < n {
			*w = scratch{make([]uint16, n), make([]float64, n), make([]float32, d)}
		}
		labels, distance := w.labels[:s.Hi-s.Lo], w.distance[:s.Hi-s.Lo]
		view := inBox.Slice(s.Lo, s.Hi)
		kernels.Assign(view, prepared, labels, nil)
		for i, j := range labels {
			distance[i] = elementary.SquaredDistance(view.Point(i, w.row), centroids[int(j)*d:])
			losses[s.Index] += distance[i]
		}
		visit(s, labels, distance)
	})
	return losses, err
}
