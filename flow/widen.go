package flow

import (
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
	widen  func(column int32) // add, bound once

	width  []int64 // what was last asked for in each column
	start  []int64 // potentials at the pass
	begins []int32 // points of column j: members[begins[j]:begins[j+1]]
	member []int32
	sorted bool
	reach  int64
	row    []int64
	fresh  []arc
}

// begin prepares for the flow that the last pass left in levels[0].
func (w *wider) begin(s *Solver, p *Problem, points kernels.Panels, labels []uint16, window int64) {
	if w.widen == nil {
		w.widen = w.add
	}
	w.s, w.p, w.points, w.labels, w.sorted = s, p, points, labels, false
	columns := s.columns(p)
	w.width = slices.Grow(w.width[:0], columns)[:columns]
	w.start = slices.Grow(w.start[:0], columns)[:columns]
	for j := range columns {
		w.width[j], w.start[j] = window, -s.prices[j]
	}
	w.reach = absent
	if p.mayLeave() {
		w.reach = p.reach()
	}
	w.row = slices.Grow(w.row[:0], p.k())[:p.k()]
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
func (w *wider) add(u int32) {
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
	w.complete(u, width, all)
	before := len(r.first)
	// A point that is not free was at least its gap away from another column;
	// since then only its own price has risen.
	most := float32(float64(width+w.start[u]+price) * s.unit * (1 + 1e-6))
	for _, i := range w.member[w.begins[u]:w.begins[u+1]] {
		if gap := s.gap[i]; gap != isFree && (gap <= most || all) {
			s.gap[i] = isFree
			w.costs(i)
			own := w.cost(u)
			w.collect(own+price, width, all)
			for _, c := range w.fresh {
				if c.column == u {
					c.count = 1
				}
				r.arcs = append(r.arcs, c)
			}
			r.close(w.beyond(own+price, width, all))
			s.free = append(s.free, i)
		}
	}
	for q := before; q < len(r.first); q++ {
		r.offer(q)
	}
	r.bound[u] = width
	if all {
		r.bound[u] = absent
	}
}

// complete gives the free points in column u their arcs within the new width.
func (w *wider) complete(u int32, width int64, all bool) {
	r := &w.s.levels[0]
	price := -r.potential[u]
	old := r.inside[u]
	kept := 0
	for _, q := range old {
		a := r.first[q]
		for r.arcs[a].count == 0 {
			a++
		}
		if r.arcs[a].column != u {
			continue
		}
		value := r.arcs[a].cost + price
		if r.beyond[q] < absent && (all || r.beyond[q]-value < width) {
			w.costs(w.s.free[q])
			w.collect(value, width, all)
			w.replace(q, u, w.beyond(value, width, all))
		}
		old[kept] = q
		kept++
	}
	r.inside[u] = old[:kept]
}

func (w *wider) costs(i int32) {
	kernels.CostRows(w.points, int(i), int(i)+1, w.s.centroids, w.p.FractionBits, w.row)
}

// cost returns the cost of column j to the point of the last call of costs.
func (w *wider) cost(j int32) int64 {
	if int(j) < len(w.row) {
		return w.row[j]
	}
	return w.p.Price()
}

// beyond returns the bound that collect leaves for the missing arcs.
func (w *wider) beyond(value, width int64, all bool) int64 {
	if all {
		return absent
	}
	return value + w.s.tune().wide*width
}

// collect gathers the arcs of that point whose cost plus price is near value.
func (w *wider) collect(value, width int64, all bool) {
	r := &w.s.levels[0]
	limit := w.beyond(value, width, all)
	w.fresh = w.fresh[:0]
	potential := r.potential[:len(w.row)]
	for j, c := range w.row {
		if c-potential[j] <= limit && c <= w.reach {
			w.fresh = append(w.fresh, arc{c, int32(j), 0})
		}
	}
	if j := int32(len(w.row)); int(j) < len(w.width) && w.p.Price()-r.potential[j] <= limit {
		w.fresh = append(w.fresh, arc{w.p.Price(), j, 0})
	}
}

// replace gives free point q, which is in column u, the collected arcs.
func (w *wider) replace(q, u int32, beyond int64) {
	r := &w.s.levels[0]
	lo, hi := r.first[q], r.end[q]
	r.first[q] = int32(len(r.arcs))
	for _, c := range w.fresh {
		if c.column == u {
			c.count = 1
		}
		r.arcs = append(r.arcs, c)
		r.owner = append(r.owner, q)
	}
	r.end[q], r.beyond[q] = int32(len(r.arcs)), beyond
	r.offer(int(q))
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
