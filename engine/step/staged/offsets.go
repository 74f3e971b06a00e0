package staged

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/kernels"
)

// offsetSums holds integer sums of the offsets of records from the centroid of
// their cluster, in grid units, and counts.
type offsetSums struct {
	sums   []int64 // [k][d]
	counts []int64 // [k]
}

// Offsets computes, over one party's records, the sums of x - c for the nearest
// centroid c, each offset cut to length radius[j] and truncated toward zero on
// the grid, and the counts. It keeps scratch between calls and is used by one
// goroutine at a time.
//
// The cut is rigorous (engine/step/clip.go): a record inside the radius
// contributes its exact integer offset, the others a multiple of it that is not
// longer, truncated toward zero. So one record changes sum j by at most radius[j]*2^fractionBits in L2
// and count j by 1 (THEOREMS.md T2, T6).
type Offsets struct {
	pool         *engine.Pool
	fractionBits int
	centroids    *kernels.Centroids
	workers      []*offsetWorker
	// labels, if not nil, gives the cluster of each record in place
	// of the nearest centroid: a function of the record and public data.
	labels func() ([]uint16, error)
}

type offsetWorker struct {
	labels       []uint16
	dist         []float32            // squared, then the factors that shorten offsets
	acc, offsets *kernels.Accumulator // of records and of offsets
}

// NewOffsets makes them for k centroids of d coordinates.
func NewOffsets(pool *engine.Pool, k, d, fractionBits int) *Offsets {
	o := &Offsets{pool: pool, fractionBits: fractionBits, centroids: kernels.NewCentroids(k, d),
		workers: make([]*offsetWorker, pool.Workers())}
	for i := range o.workers {
		o.workers[i] = &offsetWorker{acc: kernels.NewAccumulator(k, d, fractionBits),
			offsets: kernels.NewAccumulator(k, d, fractionBits)}
	}
	return o
}

// add adds p's sums and counts about the given centroids (row-major, on the
// grid) to out, each record for its weight. radius has one length per cluster; +Inf means no cut.
func (o *Offsets) add(ctx context.Context, p *kernels.Panels, weights Weights, centroids []float32, radius []float64,
	out offsetSums) error {
	k, d := o.centroids.K, o.centroids.D
	records := *p
	records.InBox()
	o.centroids.PrepareFilter(&records)
	o.centroids.Set(centroids)
	limit := make([]float32, k) // squared distance up to which an offset is surely within the radius
	for j, r := range radius {
		limit[j] = step.NearSquared(r, d)
	}
	for _, w := range o.workers {
		w.acc.Reset()
		w.offsets.Reset()
	}
	var given []uint16
	if o.labels != nil {
		var err error
		if given, err = o.labels(); err != nil {
			return err
		}
	}
	err := o.pool.Scan(ctx, p, func(worker int, s engine.Shard) {
		w, lo, hi := o.workers[worker], s.Lo, s.Hi
		part := records.Slice(lo, hi)
		w.room(part.N)
		if given != nil {
			copy(w.labels, given[lo:hi])
		} else {
			kernels.Assign(part, o.centroids, w.labels, nil)
		}
		if weights != nil {
			w.weigh(part, weights[lo:hi], o.centroids, radius, limit, o.fractionBits)
		} else {
			w.shard(part, o.centroids, radius, limit, o.fractionBits)
		}
	})
	if err != nil {
		return err
	}
	scale := float32(math.Ldexp(1, o.fractionBits))
	for _, w := range o.workers {
		for j := range k {
			n := w.acc.Counts[j]
			out.counts[j] += n + w.offsets.Counts[j]
			for h, x := range o.centroids.Row(j) {
				i := j*d + h
				out.sums[i] += w.acc.Sums[i] - n*int64(x*scale) + w.offsets.Sums[i]
			}
		}
	}
	return nil
}

// room makes the scratch n records long.
func (w *offsetWorker) room(n int) {
	if cap(w.labels) < n {
		w.labels, w.dist = make([]uint16, n), make([]float32, n)
	}
	w.labels, w.dist = w.labels[:n], w.dist[:n]
}

// shard adds the records of one shard, whose labels are set: as they are where all are within the radius.
func (w *offsetWorker) shard(p kernels.Panels, c *kernels.Centroids, radius []float64, limit []float32,
	fractionBits int) {
	kernels.Distances(p, c, w.labels, w.dist)
	grid, far := math.Ldexp(1, fractionBits), false
	for i, l := range w.labels {
		factor := float32(grid)
		if w.dist[i] > limit[l] {
			factor, far = step.Shorten(radius[l], w.dist[i], p.D, grid), true
		}
		w.dist[i] = factor
	}
	if far {
		kernels.AccumulateOffsets(p, c, w.labels, w.dist, w.offsets)
	} else {
		kernels.Accumulate(p, w.labels, w.acc)
	}
}
