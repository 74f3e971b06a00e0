package flow

import "github.com/cohort-engine/cohort/kernels"

// refill sets the steps of clusters that want points and have none, or hardly any, for which edges are
// no model: to the price at which they have them, by some of the points. It reports whether there are such clusters.
func (s *Solver) refill(p *Problem, prices []int64) (refilled bool) {
	a := &s.ascent
	n := p.Points.N
	each := max(1, n/min(4096, max(256, 5*p.k())))
	if !a.plain || each < 8 && !s.ordered && !a.refills { // a pass takes no longer
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

// handful is some of the points.
type handful struct {
	rows         []float32
	values       []int64 // costs plus prices in their clusters
	above, order []int64
}

// take takes every so manieth point, with its label and prices.
func (h *handful) take(p *Problem, labels []uint16, prices []int64, each int) {
	h.rows, h.values = h.rows[:0], h.values[:0]
	for i := 0; i < p.Points.N; i += each {
		label, from := int(labels[i]), at(int32(i), p.Points.D)
		h.values = append(h.values, p.cost(i, label)+prices[label])
		for c := range p.Points.D {
			h.rows = append(h.rows, p.Points.Data[from+c*kernels.Lanes])
		}
	}
}

// lower returns by how much the price of cluster j has to fall, at least 0, until all but the last of count+1 points
// come to it, and lets those that come have its value.
func (h *handful) lower(p *Problem, j int, price int64, count int) int64 {
	h.above = p.costs(h.rows, j, h.above[:0])
	for q, value := range h.values {
		h.above[q] += price - value
	}
	h.order = append(h.order[:0], h.above...)
	by := max(0, nth(h.order, count))
	for q, above := range h.above {
		h.values[q] += min(0, above-by)
	}
	return by
}
