package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// isFree is the gap of a free point.
const isFree = math.MaxFloat32

// wider supplies arcs that a pass left out, one column at a time. It works on
// points with one cluster.
type wider struct {
	s      *Solver
	p      *Problem
	points kernels.Panels
	labels []uint16
	widen  func(column int32) error // add, bound once

	width  []int64 // what was last asked for in each column
	start  []int64 // potentials at the pass
	begins []int32 // points of column j: members[begins[j]:begins[j+1]]
	member []int32
	sorted bool
	reach  int64
	fresh  []arc
	stamps []int64 // last point of replace with an arc to each column
	stamp  int64

	ctx  context.Context
	run  Runner
	k    int
	todo []need
	rows []int64 // costs of todo
	size int     // points in a chunk
	work func(worker, index int)
}

// need is a point to compute costs for; q is its number if it is free, else -1.
type need struct{ point, q int32 }

// begin prepares for the flow that the last pass left in levels[0].
func (w *wider) begin(ctx context.Context, run Runner, s *Solver, p *Problem, points kernels.Panels, labels []uint16, window int64) {
	if w.widen == nil {
		w.widen = w.add
	}
	w.s, w.p, w.points, w.labels, w.sorted = s, p, points, labels, false
	columns := s.columns(p)
	w.width = slices.Grow(w.width[:0], columns)[:columns]
	w.start = slices.Grow(w.start[:0], columns)[:columns]
	if len(w.stamps) < columns {
		w.stamps = make([]int64, columns)
	}
	for j := range columns {
		w.width[j], w.start[j] = window, -s.prices[j]
	}
	w.reach = absent
	if p.mayLeave() {
		w.reach = p.reach()
	}
	w.ctx, w.run, w.k, w.size = ctx, run, p.k(), math.MaxInt32
}

// sort lists the points of each column (counting sort).
func (w *wider) sort() {
	columns := len(w.width)
	w.begins = slices.Grow(w.begins[:0], columns+2)[:columns+2]
	clear(w.begins)
	for _, j := range w.labels[:w.points.N] {
		w.begins[j+2]++
	}
	for j := range columns {
		w.begins[j+2] += w.begins[j+1]
	}
	w.member = slices.Grow(w.member[:0], w.points.N)[:w.points.N]
	for i, j := range w.labels[:w.points.N] {
		w.member[w.begins[j+1]] = int32(i)
		w.begins[j+1]++
	}
	w.sorted = true
}

// add doubles the window of column u: it frees the points of u that have another
// column within it and completes the arcs of those that are free already.
func (w *wider) add(u int32) error {
	if !w.sorted {
		w.sort()
	}
	s := w.s
	r := &s.levels[0]
	width := max(w.width[u], 1)
	for width <= r.bound[u] || width == w.width[u] {
		width *= 2
	}
	all := width >= maxPrice/(2*s.tune().wide)
	w.width[u] = width
	price := -r.potential[u]
	s.stats.Widenings++
	// A point that is not free was at least its gap away from another column;
	// since then only its own price has risen.
	most := float32(float64(width+w.start[u]+price) * s.unit * (1 + 1e-6))
	w.todo = w.todo[:0]
	for _, i := range w.member[w.begins[u]:w.begins[u+1]] {
		if gap := s.gap[i]; gap != isFree && (gap <= most || all) {
			w.todo = append(w.todo, need{i, -1})
		}
	}
	w.incomplete(u, width, all)
	if err := w.cost(); err != nil {
		return err
	}
	for t, n := range w.todo {
		row := w.rows[t*w.k : t*w.k+w.k]
		if n.q >= 0 {
			value := r.arcs[r.own(n.q)].cost + price
			w.collect(row, value, width, all)
			w.replace(n.q, u, w.beyond(value, width, all))
			continue
		}
		s.gap[n.point] = isFree
		value := w.p.Price() + price
		if int(u) < w.k {
			value = row[u] + price
		}
		w.collect(row, value, width, all)
		for _, c := range w.fresh {
			if c.column == u {
				c.count = 1
			}
			r.arcs = append(r.arcs, c)
		}
		r.close(w.beyond(value, width, all))
		s.free = append(s.free, n.point)
		r.offer(int32(len(r.first) - 1))
	}
	r.bound[u] = width
	if all {
		r.bound[u] = absent
	}
	return nil
}

// incomplete lists the free points in column u that lack arcs within the width.
func (w *wider) incomplete(u int32, width int64, all bool) {
	r := &w.s.levels[0]
	price := -r.potential[u]
	inside := r.inside[u]
	kept := 0
	for _, q := range inside {
		a := r.own(q)
		if r.arcs[a].column != u {
			continue
		}
		if r.beyond[q] < absent && (all || r.beyond[q]-r.arcs[a].cost-price < width) {
			// It comes back when its new arcs are offered, and must not be
			// listed twice.
			r.beyond[q] = absent
			w.todo = append(w.todo, need{w.s.free[q], q})
			continue
		}
		inside[kept] = q
		kept++
	}
	r.inside[u] = inside[:kept]
}

// cost computes the costs of the listed points, on all workers if that pays.
func (w *wider) cost() error {
	w.rows = slices.Grow(w.rows[:0], len(w.todo)*w.k)[:len(w.todo)*w.k]
	const worthwhile = 1 << 17 // multiply-adds
	if len(w.todo)*w.k*w.points.D < worthwhile {
		w.chunk(0, 0)
		return nil
	}
	w.size = max(1, (len(w.todo)+4*w.run.Workers()-1)/(4*w.run.Workers()))
	if w.work == nil {
		w.work = w.chunk
	}
	err := w.run.Run(w.ctx, (len(w.todo)+w.size-1)/w.size, w.work)
	w.size = math.MaxInt32
	return err
}

// chunk computes the costs of the chunk of listed points with the given index.
func (w *wider) chunk(_, index int) {
	lo := index * w.size
	hi := min(len(w.todo), lo+w.size)
	for t := lo; t < hi; t++ {
		i := int(w.todo[t].point)
		kernels.CostRows(w.points, i, i+1, w.s.centroids, w.p.FractionBits, w.rows[t*w.k:t*w.k+w.k])
	}
}

// beyond returns the bound that collect leaves for the missing arcs.
func (w *wider) beyond(value, width int64, all bool) int64 {
	if all {
		return absent
	}
	return value + w.s.tune().wide*width
}

// collect gathers the arcs of the point with the given costs whose cost plus price
// is near value.
func (w *wider) collect(row []int64, value, width int64, all bool) {
	r := &w.s.levels[0]
	limit := w.beyond(value, width, all)
	w.fresh = w.fresh[:0]
	potential := r.potential[:len(row)]
	for j, c := range row {
		if c-potential[j] <= limit && c <= w.reach {
			w.fresh = append(w.fresh, arc{c, int32(j), 0})
		}
	}
	if j := int32(len(row)); int(j) < len(w.width) && w.p.Price()-r.potential[j] <= limit {
		w.fresh = append(w.fresh, arc{w.p.Price(), j, 0})
	}
}

// replace gives free point q, which is in column u, the collected arcs.
func (w *wider) replace(q, u int32, beyond int64) {
	r := &w.s.levels[0]
	lo, hi := r.first[q], r.end[q]
	w.stamp++
	for _, c := range r.arcs[lo:hi] {
		w.stamps[c.column] = w.stamp
	}
	if !slices.ContainsFunc(w.fresh, func(c arc) bool { return w.stamps[c.column] != w.stamp }) {
		r.beyond[q] = beyond
		r.inside[u] = append(r.inside[u], q)
		return
	}
	r.first[q] = int32(len(r.arcs))
	for _, c := range w.fresh {
		if c.column == u {
			c.count = 1
		}
		r.arcs = append(r.arcs, c)
		r.owner = append(r.owner, q)
	}
	r.end[q], r.beyond[q] = int32(len(r.arcs)), beyond
	r.offer(q)
	// The moves of the old arcs are void now.
	for a := lo; a < hi; a++ {
		r.arcs[a].count = 0
	}
	for a := lo; a < hi; a++ {
		if l := r.arcs[a].column; l != u {
			r.refresh(r.find(u, l))
		}
	}
}
