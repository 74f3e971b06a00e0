package engine

import (
	"context"
	"sync"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/kernels"
)

// Label writes the index of the nearest centroid (k rows of D, row-major, normalised units) of each point to labels. It
// measures with centroids on the grid, in float32 for each point. The result depends neither on the number of workers
// nor on the instruction set.
func Label(ctx context.Context, pool *Pool, points *kernels.Panels, fractionBits int, centroids []float64, k int,
	labels []int32) error {
	inBox, prepared := onGrid(points, centroids, k, fractionBits)
	return labelEach(ctx, pool, inBox, prepared, labels, nil)
}

// LabelCost is Label that returns the sum of the squared distances in those units, too, each times the point's weight
// where there are weights.
func LabelCost(ctx context.Context, pool *Pool, points *kernels.Panels, fractionBits int, centroids []float64, k int,
	weights []float64, labels []int32) (float64, error) {
	inBox, prepared := onGrid(points, centroids, k, fractionBits)
	costs := make([]float64, len(Shards(points.N, points.D)))
	err := labelEach(ctx, pool, inBox, prepared, labels, func(s Shard, view kernels.Panels, w *labelScratch) {
		l, dist := w.labels[:view.N], w.dist[:view.N]
		kernels.Distances(view, prepared, l, dist) // those of Assign cancel in many dimensions
		sum := 0.0
		for i, x := range dist {
			if weights == nil {
				sum += float64(x)
			} else {
				sum += float64(weights[s.Lo+i] * float64(x))
			}
		}
		costs[s.Index] = sum
	})
	total := 0.0
	for _, c := range costs {
		total += c
	}
	return total, err
}

// labelEach labels all points, and hands each shard's to more, unless it is nil.
func labelEach(ctx context.Context, pool *Pool, points kernels.Panels, prepared *kernels.Centroids, labels []int32,
	more func(Shard, kernels.Panels, *labelScratch)) error {
	scratch := sync.Pool{New: func() any { return new(labelScratch) }}
	return pool.Scan(ctx, &points, func(_ int, s Shard) {
		w := scratch.Get().(*labelScratch)
		defer scratch.Put(w)
		l := w.room(s.Hi - s.Lo)
		view := points.Slice(s.Lo, s.Hi)
		kernels.Assign(view, prepared, l, nil)
		to := labels[s.Lo:s.Hi]
		for i, j := range l {
			to[i] = int32(j)
		}
		if more != nil {
			more(s, view, w)
		}
	})
}

// labelScratch is a worker's memory for the points of a shard.
type labelScratch struct {
	labels []uint16
	dist   []float32
}

func (w *labelScratch) room(n int) []uint16 {
	if len(w.labels) < n {
		w.labels, w.dist = make([]uint16, n), make([]float32, n)
	}
	return w.labels[:n]
}

// onGrid are points, which are in the box, and centroids as they enter distances: truncated onto the grid.
func onGrid(points *kernels.Panels, centroids []float64, k, fractionBits int) (kernels.Panels, *kernels.Centroids) {
	inBox, grid := *points, make([]float32, k*points.D)
	for i, c := range centroids {
		grid[i] = dataset.Truncate(c, fractionBits)
	}
	inBox.InBox()
	prepared := kernels.NewCentroids(k, points.D)
	prepared.PrepareFilter(&inBox)
	prepared.Set(grid)
	return inBox, prepared
}
