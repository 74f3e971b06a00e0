package flow

import (
	"cmp"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// refill sets the steps of clusters that want points and have none, or hardly any, for which edges are
// no model: to the price at which they have them, by some of the points. It reports whether there are such clusters.
func (s *Solver) refill(p *Problem, prices []int64) (refilled bool) {
	a := &s.ascent
	n := p.Points.N
	each := max(1, n/min(4096, max(256, 8*p.k())))
	if !a.plain || each < 8 && !s.ordered { // a pass takes no longer
		return false
	}
	const hardly = 0.1 // of the points that it lacks
	for j, size := range a.seen.size[:len(prices)] {
		if lacks := -a.excess[j]; lacks <= 0 || float64(size) > hardly*lacks {
			continue
		}
		if !refilled {
			a.some.take(p, a.seen.labels, prices, each)
			refilled = true
		}
		if count := (int(size) + int(-a.excess[j])) / each; count < len(a.some.values) {
			a.refilled[j] = -float64(a.some.lower(p, j, prices[j], count)) / a.scale
		}
	}
	return refilled
}

// handful is some of the points in runs of runPoints, which are near each other where points are in order.
type handful struct {
	d      int
	rows   []float32
	values []int64   // costs plus prices in their clusters
	boxes  []float32 // around the runs: the least and the largest of each coordinate
	most   []int64   // of the values of a run

	order         []entry // runs by how much lower a price has to be at least
	above, partly []int64
}

const runPoints = kernels.Lanes * 4

// run is the points of a run.
func (h *handful) run(r int) (first, last int) {
	return r * runPoints, min(len(h.values), (r+1)*runPoints)
}

// take takes every so manieth point, with its label and prices.
func (h *handful) take(p *Problem, labels []uint16, prices []int64, each int) {
	d := p.Points.D
	h.d = d
	h.rows, h.values, h.boxes, h.most = h.rows[:0], h.values[:0], h.boxes[:0], h.most[:0]
	for i := 0; i < p.Points.N; i += each {
		label, from := int(labels[i]), at(int32(i), d)
		h.values = append(h.values, p.cost(i, label)+prices[label])
		for c := range d {
			h.rows = append(h.rows, p.Points.Data[from+c*kernels.Lanes])
		}
	}
	for r := 0; r*runPoints < len(h.values); r++ {
		first, last := h.run(r)
		box := append(h.boxes, h.rows[first*d:(first+1)*d]...)
		box = append(box, h.rows[first*d:(first+1)*d]...)
		h.boxes = box
		box = box[r*2*d:]
		for at, x := range h.rows[first*d : last*d] {
			c := at % d
			box[c], box[d+c] = min(box[c], x), max(box[d+c], x)
		}
		h.most = append(h.most, slices.Max(h.values[first:last]))
	}
}

// least returns what is above at place count of the points looked at, at least 0.
func (h *handful) least(count int) int64 {
	h.partly = append(h.partly[:0], h.above...)
	return max(0, nth(h.partly, count))
}

// lower returns by how much the price of cluster j has to fall, at least 0, until all but the last of count+1 points
// come to it, and lets those that come have its value. It looks at the runs that may have such points.
func (h *handful) lower(p *Problem, j int, price int64, count int) int64 {
	d, place := h.d, p.Centroids[j*h.d:(j+1)*h.d]
	perUnit := math.Ldexp(1-1e-9, 2*p.FractionBits)
	h.order = h.order[:0]
	for r, most := range h.most {
		near, _ := extent(h.boxes[r*2*d:(r+1)*2*d], place)
		h.order = append(h.order, entry{int64(near*perUnit) + price - most, int32(r), 0})
	}
	slices.SortFunc(h.order, func(a, b entry) int { return cmp.Compare(a.cost, b.cost) })
	by, looked, known := int64(infinity), 0, 0 // known is the number of points that by is of
	h.above = h.above[:0]
	for ; looked < len(h.order) && h.order[looked].cost < by; looked++ {
		first, last := h.run(int(h.order[looked].column))
		from := len(h.above)
		h.above = p.costs(h.rows[first*d:last*d], j, h.above)
		for q, value := range h.values[first:last] {
			h.above[from+q] += price - value
		}
		if len(h.above) > count && len(h.above) >= 2*known {
			by, known = h.least(count), len(h.above)
		}
	}
	by = h.least(count)
	above := h.above
	for _, e := range h.order[:looked] {
		first, last := h.run(int(e.column))
		for q := range last - first {
			h.values[first+q] += min(0, above[q]-by)
		}
		above = above[last-first:]
		h.most[e.column] = slices.Max(h.values[first:last])
	}
	return by
}
