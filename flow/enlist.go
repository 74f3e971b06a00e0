package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/internal/parallel"
)

// blocks are the clusters in blocks of so many, or fewer in the last, that are near each other: the leaves of a k-d
// tree. A column lists its moves by looking at the clusters of those blocks alone that may have some.
type blocks struct {
	order     order
	clusters  int
	boxes     []float64 // around the centroids of a block, in grid units: the least and the largest of each coordinate
	potential []int64   // the largest of a block
	norm      float64   // the largest square
}

// of returns the clusters of a block.
func (b *blocks) of(index int) []int32 {
	return b.order.ids[index*b.clusters : min(len(b.order.ids), (index+1)*b.clusters)]
}

// set makes the blocks of the centroids, which are centre in grid units and have such squares.
func (b *blocks) set(p *Problem, clusters int, centre, norm []float64) {
	k, d, o := p.k(), p.Points.D, &b.order
	b.clusters = clusters
	o.rows = append(o.rows[:0], p.Centroids...)
	_ = o.halve(context.Background(), parallel.Serial{}, k, d, clusters) // the background does not end
	b.norm, b.boxes, b.potential = slices.Max(norm), b.boxes[:0], b.potential[:0]
	for first := 0; first < k; first += clusters {
		at := len(b.boxes)
		for range 2 {
			b.boxes = append(b.boxes, centre[int(o.ids[first])*d:][:d]...)
		}
		lo, hi := b.boxes[at:at+d], b.boxes[at+d:]
		for _, j := range b.of(len(b.potential)) {
			for h, x := range centre[int(j)*d:][:d] {
				lo[h], hi[h] = min(lo[h], x), max(hi[h], x)
			}
		}
		b.potential = append(b.potential, 0)
	}
}

// see notes the largest potential of each block.
func (m *members) see() {
	m.t.fallen = false
	for index := range m.blocks.potential {
		most := int64(math.MinInt64)
		for _, j := range m.blocks.of(index) {
			most = max(most, m.t.potential[j])
		}
		m.blocks.potential[index] = most
	}
}

// enlist adds to the row of column u the other moves whose reduced cost may be at most the
// given one, at least 0, and sets what the rest exceeds. It comes after see.
func (m *members) enlist(worker int, u int32, most int64) {
	t, w := &m.t, &m.laying[worker]
	m.listed[u] = infinity
	if len(m.columns[u].slots) == 0 {
		m.restrict(u)
		return
	}
	w.listed = slices.Grow(w.listed[:0], t.columns)[:t.columns]
	clear(w.listed)
	w.listed[u] = true
	for _, e := range t.rows[u] {
		w.listed[e.column] = true
	}
	least := int64(infinity) // of the reduced costs that are not in the row
	take := func(v int32, bound int64) {
		switch bound = max(bound, -t.quantum); { // no reduced cost is below
		case w.listed[v]:
		case bound <= most:
			t.rows[u] = append(t.rows[u], entry{bound + t.potential[v] - t.potential[u], v, stale})
		case bound < least:
			least = bound
		}
	}
	if int(u) >= m.k {
		for v := range int32(m.k) {
			take(v, -t.quantum)
		}
	} else {
		m.gauge(u, w)
		for index := range m.blocks.potential {
			if bound := m.blockBound(u, index, w); bound > most {
				least = min(least, bound)
				continue
			}
			for _, v := range m.blocks.of(index) {
				take(v, m.moveBound(u, v, w))
			}
		}
	}
	for v := m.k; v < t.columns; v++ {
		take(int32(v), -t.quantum)
	}
	if least < infinity {
		m.listed[u] = least - 1 - t.potential[u]
	}
	m.restrict(u)
}

// gauge sets what the bounds of moves out of column u need.
func (m *members) gauge(u int32, w *laying) {
	c, d := &m.columns[u], m.d
	n := len(c.slots)
	w.apart = slices.Grow(w.apart[:0], n)[:n]
	w.mean = slices.Grow(w.mean[:0], d)[:d]
	clear(w.apart)
	w.away = 0
	for h, own := range m.centre[int(u)*d : int(u)*d+d] {
		row, sum := c.x[h*c.stride:h*c.stride+n], 0.0
		for _, y := range row {
			sum += y
		}
		a := sum / float64(n)
		w.mean[h] = a
		w.away += (own - a) * (own - a)
		for s, y := range row {
			w.apart[s] += (y - a) * (y - a)
		}
	}
	const spare = 1 + 1e-9 // for rounding
	w.reach = math.Sqrt(slices.Max(w.apart)) * spare
}

// moveBound returns a lower bound of the reduced cost of moves from column u to v: with a the
// mean of u's groups, none of them farther than r from it, one costs at least
// |v|^2 - |u|^2 - 2 a.(v-u) - 2 r |v-u|.
func (m *members) moveBound(u, v int32, w *laying) int64 {
	d, dot, apart := m.d, 0.0, 0.0
	from := m.centre[int(u)*d : int(u)*d+d]
	for h, y := range m.centre[int(v)*d : int(v)*d+d] {
		x := y - from[h]
		dot += w.mean[h] * x
		apart += x * x
	}
	middle, margin := m.norm[v]-m.norm[u]-2*dot, 2*w.reach*math.Sqrt(apart)
	bound := middle - margin - 1e-9*(math.Abs(middle)+margin+m.norm[u]+m.norm[v]) - 2
	return int64(bound) + m.t.potential[u] - m.t.potential[v]
}

// blockBound returns a lower bound of moveBound for the clusters of a block: what stands there is
// |v-a|^2 - |u-a|^2 - 2 r |v-u|, too.
func (m *members) blockBound(u int32, index int, w *laying) int64 {
	d := m.d
	box := m.blocks.boxes[index*2*d : (index+1)*2*d]
	near, _ := extent(box, w.mean)
	_, far := extent(box, m.centre[int(u)*d:int(u)*d+d])
	margin := 2 * w.reach * math.Sqrt(far)
	bound := near - w.away - margin - 1e-9*(near+w.away+margin+m.norm[u]+m.blocks.norm) - 2
	return int64(bound) + m.t.potential[u] - m.blocks.potential[index]
}
