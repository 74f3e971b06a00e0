package flow

import (
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

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

// handful is some of the points, in blocks. Where points are in order a block is in a small box, and most blocks are
// too far from a cluster to be looked at.
type handful struct {
	rows   []float32
	values []int64   // costs plus prices in their clusters
	boxes  []float32 // the least and the largest of each coordinate of a block
	most   []int64   // the largest value of a block
	low    []int64   // lower bounds of what a block's points are above their values
	costs  []int64   // of a block
	takes  offers    // the points that take a cluster, the dearest first: less what they are above their values
}

// handfulBlock is the number of points of a block.
const handfulBlock = 32

// take takes every so manieth point, with its label and prices.
func (h *handful) take(p *Problem, labels []uint16, prices []int64, each int) {
	h.rows, h.values, h.boxes, h.most = h.rows[:0], h.values[:0], h.boxes[:0], h.most[:0]
	for i := 0; i < p.Points.N; i += each {
		label, from := int(labels[i]), at(int32(i), p.Points.D)
		h.values = append(h.values, p.cost(i, label)+prices[label])
		for c := range p.Points.D {
			h.rows = append(h.rows, p.Points.Data[from+c*kernels.Lanes])
		}
	}
	d := p.Points.D
	for b := range (len(h.values) + handfulBlock - 1) / handfulBlock {
		values := h.block(b)
		rows := h.rows[b*handfulBlock*d:][:len(values)*d]
		box := append(append(h.boxes, rows[:d]...), rows[:d]...)
		lo, hi := box[len(h.boxes):][:d], box[len(h.boxes)+d:]
		for ; len(rows) > 0; rows = rows[d:] {
			for c, x := range rows[:d] {
				lo[c], hi[c] = min(lo[c], x), max(hi[c], x)
			}
		}
		h.boxes, h.most = box, append(h.most, slices.Max(values))
	}
}

// block are the values of block b.
func (h *handful) block(b int) []int64 {
	return h.values[b*handfulBlock : min((b+1)*handfulBlock, len(h.values))]
}

// lower returns by how much the price of cluster j has to fall, at least 0, until all but the last of count+1 points
// come to it, and lets those that come have its value.
func (h *handful) lower(p *Problem, j int, price int64, count int) int64 {
	d, first := p.Points.D, 0
	h.low, h.takes = h.low[:0], h.takes[:0]
	for b, most := range h.most {
		h.low = append(h.low, p.boxCost(h.boxes[2*b*d:][:2*d], j)+price-most)
		if h.low[b] < h.low[first] {
			first = b
		}
	}
	h.look(p, j, price, first, count+1)
	for b, low := range h.low {
		if b != first && (len(h.takes) <= count || low < -h.takes[0].distance) {
			h.look(p, j, price, b, count+1)
		}
	}
	by := max(0, -h.takes[0].distance)
	for _, o := range h.takes {
		b := int(o.node) / handfulBlock
		before := h.values[o.node]
		if h.values[o.node] += min(0, -o.distance-by); before == h.most[b] {
			h.most[b] = slices.Max(h.block(b))
		}
	}
	return by
}

// look lets the points of block b that are least above their values be among those that take cluster j.
func (h *handful) look(p *Problem, j int, price int64, b, count int) {
	from, values := b*handfulBlock, h.block(b)
	h.costs = p.costs(h.rows[from*p.Points.D:][:len(values)*p.Points.D], j, h.costs[:0])
	for q, cost := range h.costs {
		h.takes.keep(count, cost+price-values[q], int32(from+q))
	}
}
