package balcan

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
)

// lossKind is what a record at distance r from its centre adds to the loss.
type lossKind struct {
	// squared is r^2; else r.
	squared bool
	// cap, a power of two, bounds a record's contribution, which is then rounded to
	// a multiple of cap/2^23, so that sums over up to 2^30 records are exact; 0 means
	// no bound.
	cap float32
}

// apply turns squared distances into point losses.
func (f lossKind) apply(dist []float32) {
	if f.cap == 0 {
		kernels.PointLosses(dist, !f.squared, float32(math.Inf(1)))
		return
	}
	kernels.PointLosses(dist, !f.squared, f.cap)
	for i, x := range dist {
		dist[i] = float32(x+f.cap) - f.cap
	}
}

// swapper evaluates exchanges of a centre for a candidate on one party's
// records. It keeps, for every record, the point losses of its nearest and its
// second nearest centre, so all k exchanges with one candidate cost one pass of
// O(n) instead of k passes of O(nk).
type swapper struct {
	pool       *engine.Pool
	points     *kernels.Panels
	kind       lossKind
	candidates []float32 // row-major
	k, q       int
	labels     []uint16
	near, next []float32
	prepared   *kernels.Centroids
	block      int // records that a pass visits at a time: the order of the sums depends on it
	workers    []*swapWorker
}

type swapWorker struct {
	one    *kernels.Centroids
	labels []uint16
	dist   []float32
	sums   *kernels.Exchanges
}

func newSwapper(pool *engine.Pool, points *kernels.Panels, candidates []float32, k int, kind lossKind) *swapper {
	w := &swapper{pool: pool, points: points, kind: kind, candidates: candidates, k: k, q: points.D,
		labels: make([]uint16, points.N), block: max(swapBlock, (k+15)/16*16),
		near: make([]float32, points.N), next: make([]float32, points.N), prepared: kernels.NewCentroids(k, points.D)}
	w.workers = make([]*swapWorker, pool.Workers())
	for i := range w.workers {
		w.workers[i] = &swapWorker{one: kernels.NewCentroids(1, points.D), labels: make([]uint16, w.block),
			dist: make([]float32, w.block), sums: kernels.NewExchanges(k)}
	}
	return w
}

// swapBlock is the least number of records that a pass visits at a time: a multiple of 16 whose distances stay in the
// first-level cache. More clusters visit more, since each block folds the chains of all clusters.
const swapBlock = 2048

// set makes centers (row-major) the current centres and returns their loss.
func (w *swapper) set(centers []float32) float64 {
	w.prepared.Set(centers)
	kernels.Assign2(*w.points, w.prepared, w.labels, w.near, w.next)
	w.kind.apply(w.near)
	w.kind.apply(w.next)
	loss := 0.0
	for _, x := range w.near {
		loss += float64(x)
	}
	return loss
}

// losses fills after[c*k+j] with the loss when candidate c takes the place of
// centre j.
func (w *swapper) losses(ctx context.Context, after []float64) error {
	return w.pool.Run(ctx, len(after)/w.k, func(worker, c int) {
		t := w.workers[worker]
		t.one.Set(w.candidates[c*w.q : (c+1)*w.q])
		t.sums.Reset()
		for lo := 0; lo < w.points.N; lo += w.block {
			hi := min(lo+w.block, w.points.N)
			dist := t.dist[:hi-lo]
			kernels.Assign(w.points.Slice(lo, hi), t.one, t.labels[:hi-lo], dist)
			w.kind.apply(dist)
			kernels.Exchange(dist, w.near[lo:hi], w.next[lo:hi], w.labels[lo:hi], nil, t.sums)
		}
		for j, gain := range t.sums.Gains {
			after[c*w.k+j] = t.sums.Base + gain
		}
	})
}
