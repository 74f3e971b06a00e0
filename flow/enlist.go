package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/flow/tree"
	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// blocks are the clusters in runs of so many, or fewer in the last, that are near each other, the leaves of a k-d tree,
// and in the larger runs of a cover. A column lists its moves by looking at the clusters of those leaves alone that may
// have some.
type blocks struct {
	halves    tree.Halves
	ids       []int32 // of the clusters in order
	rows      []float32
	points    kernels.Panels // the centroids in order
	clusters  int
	cover     tree.Cover
	potential []int64 // in order
	norm      float64 // the largest square, in grid units
}

// of returns the clusters of a leaf.
func (b *blocks) of(index int) []int32 {
	return b.ids[index*b.clusters : min(len(b.ids), (index+1)*b.clusters)]
}

// set makes the blocks of the centroids, which have such squares.
func (b *blocks) set(p *Problem, clusters int, norm []float64) {
	k, d := p.k(), p.Points.D
	b.clusters, b.norm = clusters, slices.Max(norm)
	b.rows = append(b.rows[:0], p.Centroids...)
	b.ids, _ = b.halves.Order(context.Background(), parallel.Serial{}, b.rows, d, clusters) // the background does not end
	if b.points.N != k || b.points.D != d {
		b.points = *kernels.NewPanels(k, d)
	}
	kernels.Pack(&b.points, b.rows)
	b.cover.Set(b.points, clusters)
}

// see notes the largest potential of each block.
func (m *members) see() {
	m.t.fallen = false
	b := &m.blocks
	b.potential = b.potential[:0]
	for _, j := range b.ids {
		b.potential = append(b.potential, m.t.potential[j])
	}
	b.cover.Note(b.potential, b.clusters)
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
	w.listed = sized(w.listed, t.columns)
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
		w.some = w.some[:0]
		least = m.within(u, len(tree.Runs)-1, 0, len(m.blocks.cover.Most[len(tree.Runs)-1]), most, w)
		for _, v := range w.some {
			take(v, m.moveBound(u, v, w))
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

// within lists the clusters of the leaves in so many blocks of a level, from the first on, that may have moves
// out of column u of at most the given reduced cost, and returns a lower bound of those of the others.
func (m *members) within(u int32, level, first, count int, most int64, w *laying) (least int64) {
	b := &m.blocks
	least = infinity
	for index := first; index < min(first+count, len(b.cover.Most[level])); index++ {
		switch bound := m.blockBound(u, level, index, w); {
		case bound > most:
			least = min(least, bound)
		case level > 0:
			least = min(least, m.within(u, level-1, index*tree.Ratio, tree.Ratio, most, w))
		default:
			w.some = append(w.some, b.of(index)...)
		}
	}
	return least
}

// gauge sets what the bounds of moves out of column u need.
func (m *members) gauge(u int32, w *laying) {
	c, d := &m.columns[u], m.d
	n := len(c.slots)
	w.apart = sized(w.apart, n)
	w.mean, w.place = sized(w.mean, d), sized(w.place, d)
	clear(w.apart)
	w.away = 0
	for h, own := range m.centre[int(u)*d : int(u)*d+d] {
		row, sum := c.x[h*c.stride:h*c.stride+n], 0.0
		for _, y := range row {
			sum += y
		}
		a := sum / float64(n)
		w.mean[h], w.place[h] = a, a/m.scale
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
func (m *members) blockBound(u int32, level, index int, w *laying) int64 {
	d, square := m.d, m.scale*m.scale
	box := m.blocks.cover.Boxes[level][index*2*d : (index+1)*2*d]
	near, _ := tree.Extent(box, w.place)
	_, far := tree.Extent(box, m.p.Centroids[int(u)*d:int(u)*d+d])
	near *= square
	margin := 2 * w.reach * math.Sqrt(far*square)
	bound := near - w.away - margin - 1e-9*(near+w.away+margin+m.norm[u]+m.blocks.norm) - 2
	return int64(bound) + m.t.potential[u] - m.blocks.cover.Most[level][index]
}
