package lloyd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sort"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/kernels"
)

// nonExclusive gives each cluster the records nearest to its centroid, as many
// as the minimum size, whether or not another cluster has them too (Thesis-H
// §4.1.2). Among records at the same distance a keyed hash of the record
// decides, so the choice is a function of the set of records (THEOREMS.md T1).
// A client with fewer records fills up with the old centroid.
type nonExclusive struct {
	c       *client
	key     [16]byte
	ties    privacy.Stream
	scratch []chooser // by worker
	each    func(worker, index int)
}

// chooser is one worker's memory.
type chooser struct {
	centre *kernels.Centroids
	acc    *kernels.Accumulator
	cost   []int64
	order  []int64
	labels []uint16
	tied   []tie
	point  []float32
	record []byte
}

type tie struct {
	hash  [sha256.Size]byte
	index int32
}

func newNonExclusive(c *client) *nonExclusive {
	a := &nonExclusive{c: c, scratch: make([]chooser, c.party.Pool().Workers())}
	n := c.points.N
	for i := range a.scratch {
		a.scratch[i] = chooser{centre: kernels.NewCentroids(1, c.d), acc: kernels.NewAccumulator(1, c.d, c.fraction),
			cost: make([]int64, n), order: make([]int64, n), labels: make([]uint16, n), point: make([]float32, c.d)}
	}
	a.each = func(worker, index int) { a.cluster(&a.scratch[worker], index) }
	return a
}

func (a *nonExclusive) assign(ctx context.Context, t int) error {
	span := a.c.party.Begin(engine.PhaseAssign, t)
	defer a.c.party.End(span)
	a.key = tieKey(a.c.party, t, &a.ties)
	return a.c.party.Pool().Run(ctx, a.c.k, a.each)
}

// cluster chooses and sums the records of cluster j.
func (a *nonExclusive) cluster(w *chooser, j int) {
	c := a.c
	n, d := c.points.N, a.c.d
	least := c.sizes[c.party.Role][0]
	take := min(least, n)
	w.centre.Set(a.c.centres.Row(j))
	cost := w.cost[:n]
	kernels.CostRows(c.points, 0, n, w.centre, a.c.fraction, cost)
	order := w.order[:n]
	copy(order, cost)
	limit := int64(math.MinInt64) // without a record, which under a public number must not show
	if take > 0 {
		limit = selectSmallest(order, take)
	}
	labels, left := w.labels[:n], take
	w.tied = w.tied[:0]
	for i, x := range cost {
		labels[i] = 1
		switch {
		case x < limit:
			labels[i] = 0
			left--
		case x == limit:
			w.tied = append(w.tied, tie{index: int32(i)})
		}
	}
	if left < len(w.tied) {
		a.order(w, j)
	}
	for _, t := range w.tied[:left] {
		labels[t.index] = 0
	}
	w.acc.Reset()
	kernels.Accumulate(c.points, labels, w.acc)
	copy(c.acc.Sums[j*d:(j+1)*d], w.acc.Sums)
	c.acc.Counts[j] = w.acc.Counts[0]
	c.fill(j, least-take, a.c.centres.Row(j))
}

// order sorts the tied records by the hash of (key, cluster, record). Equal
// records may trade places: no sum tells them apart.
func (a *nonExclusive) order(w *chooser, j int) {
	c := a.c
	for i := range w.tied {
		w.record = binary.LittleEndian.AppendUint32(append(w.record[:0], a.key[:]...), uint32(j))
		for _, x := range c.points.Point(int(w.tied[i].index), w.point) {
			w.record = binary.LittleEndian.AppendUint32(w.record, uint32(int32(c.units(x))))
		}
		w.tied[i].hash = sha256.Sum256(w.record)
	}
	// Few are tied: a sort compiled for their type would be ten thousand bytes of every program for them.
	sort.Slice(w.tied, func(i, j int) bool { return bytes.Compare(w.tied[i].hash[:], w.tied[j].hash[:]) < 0 })
}

// selectSmallest reorders x and returns its m-th smallest value, m >= 1
// (Hoare's selection with the median of three as pivot).
func selectSmallest(x []int64, m int) int64 {
	lo, hi := 0, len(x)-1
	for lo < hi {
		a, b, c := x[lo], x[lo+(hi-lo)/2], x[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, k := lo, hi
		for i <= k {
			for x[i] < pivot {
				i++
			}
			for x[k] > pivot {
				k--
			}
			if i <= k {
				x[i], x[k] = x[k], x[i]
				i++
				k--
			}
		}
		switch {
		case m-1 <= k:
			hi = k
		case m-1 >= i:
			lo = i
		default:
			return pivot
		}
	}
	return x[lo]
}
