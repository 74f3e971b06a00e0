package central

import (
	"math"

	"github.com/cohort-engine/cohort/kernels"
)

// lossKind is what a record at distance r from its centre adds to the loss.
type lossKind struct {
	// squared is r^2; else r.
	squared bool
	// cap bounds a record's contribution; 0 means no bound.
	cap float64
}

// of turns a squared distance into a contribution.
func (f lossKind) of(d2 float32) float64 {
	x := float64(d2)
	if !f.squared {
		x = math.Sqrt(x)
	}
	if f.cap > 0 {
		x = min(x, f.cap)
	}
	return x
}

// swapper evaluates exchanges of a centre for a candidate on one party's
// records. It keeps, for every record, the contributions of its nearest and its
// second nearest centre, so all k exchanges with one candidate cost one pass of
// O(n) instead of k passes of O(nk).
type swapper struct {
	s          *session
	points     *kernels.Panels
	kind       lossKind
	candidates []float32 // row-major
	k, q       int
	labels     []uint16
	near, next []float64
	prepared   *kernels.Centroids
	workers    []*swapWorker
}

type swapWorker struct {
	one    *kernels.Centroids
	labels []uint16
	dist   []float32
	gain   []float64
}

func (s *session) newSwapper(points *kernels.Panels, candidates []float32, k int, kind lossKind) *swapper {
	w := &swapper{s: s, points: points, kind: kind, candidates: candidates, k: k, q: points.D, labels: make([]uint16, points.N),
		near: make([]float64, points.N), next: make([]float64, points.N), prepared: kernels.NewCentroids(k, points.D)}
	w.workers = make([]*swapWorker, s.rt.Pool().Workers())
	for i := range w.workers {
		w.workers[i] = &swapWorker{one: kernels.NewCentroids(1, points.D), labels: make([]uint16, swapBlock), dist: make([]float32, swapBlock), gain: make([]float64, k)}
	}
	return w
}

// swapBlock is the number of records that a pass visits at a time: a multiple
// of 16 whose distances stay in the first-level cache.
const swapBlock = 2048

// set makes centers (row-major) the current centres and returns their loss.
func (w *swapper) set(centers []float32) float64 {
	w.prepared.Set(centers)
	near, next := make([]float32, w.points.N), make([]float32, w.points.N)
	kernels.Assign2(*w.points, w.prepared, w.labels, near, next)
	loss := 0.0
	for i := range near {
		w.near[i], w.next[i] = w.kind.of(near[i]), w.kind.of(next[i])
		loss += w.near[i]
	}
	return loss
}

// losses fills after[c*k+j] with the loss when candidate c takes the place of
// centre j.
func (w *swapper) losses(after []float64) error {
	return w.s.rt.Pool().Run(w.s.ctx, len(after)/w.k, func(worker, c int) {
		t := w.workers[worker]
		t.one.Set(w.candidates[c*w.q : (c+1)*w.q])
		// With the candidate added a record pays min(near, own); when its centre
		// goes too, min(next, own).
		clear(t.gain)
		base := 0.0
		for lo := 0; lo < w.points.N; lo += swapBlock {
			hi := min(lo+swapBlock, w.points.N)
			kernels.Assign(w.points.Slice(lo, hi), t.one, t.labels[:hi-lo], t.dist[:hi-lo])
			for i, d2 := range t.dist[:hi-lo] {
				own := w.kind.of(d2)
				near := w.near[lo+i]
				if own < near {
					base += own
					continue
				}
				base += near
				t.gain[w.labels[lo+i]] += min(w.next[lo+i], own) - near
			}
		}
		for j, g := range t.gain {
			after[c*w.k+j] = base + g
		}
	})
}
