package flow

import "context"

// arc is a candidate arc of a free point: its cost, the column it leads to and
// the units it carries.
type arc struct {
	cost   int64
	column int32
	count  int32
}

// move is an exchange of one unit of a point from arc from to arc to.
type move struct {
	key      int64 // cost[to] - cost[from]
	from, to int32
}

// pair holds the moves from one column to another. moves[0] is the cheapest and
// is valid; the rest is a binary heap if sorted, else in no order, and may hold
// moves that the flow no longer allows.
type pair struct {
	moves  []move
	sorted bool
	column int32 // the column the moves leave
	slot   int32 // its edge in edges[column]
}

// edge is an arc of the residual graph on the columns.
type edge struct {
	weight int64
	column int32
	pair   int32
}

// absent is the weight of an edge without moves, the cost of an arc that does not
// exist, and more than any sum of prices.
const absent = 1 << 62

// dense is the largest number of columns for which pairs are found in a table.
const dense = 2048

// residual is a small exact solver: successive shortest paths on the residual
// graph of the columns (clusters, "unassigned", "escape") and a hub, which stands
// for the sink. Its arc from column i to column j is the cheapest move of a unit
// from i to j. It reaches column j at weight 0 while j may lose a unit of its
// outflow, and is reached from it while j may gain one, which is how minimum and
// maximum sizes enter. Potentials are minus the prices, up to a constant, and only
// ever fall.
//
// Most arcs are missing, but not without trace: an arc of free point q that is
// missing has cost plus price of at least beyond[q], now and later, and every
// missing move out of column u, be it of a free point or another, has a reduced
// cost of at least bound[u]. A search that gets as far as a bound asks for more
// arcs, so that its path is a shortest one of the whole problem.
type residual struct {
	columns int
	arcs    []arc
	owner   []int32 // the point of an arc
	first   []int32 // arcs of point q are arcs[first[q]:end[q]]
	end     []int32
	beyond  []int64
	bound   []int64
	inside  [][]int32                // free points that came into each column; some have left
	widen   func(column int32) error // raises the bound of a column; nil: cannot
	room    []int32                  // capacity of an arc into each column
	lo, hi  []int64                  // range of the outflow of each column at price 0
	filler  int64                    // price of outflow that is missing below lo; 0: none may be missing
	size    []int64                  // units that enter each column
	outflow []int64

	excess    []int64
	potential []int64

	pairs []pair
	table []int32         // columns*columns, index of the pair plus one
	index map[int64]int32 // the same beyond dense columns
	edges [][]edge

	distance []int64
	epoch    []uint32
	settled  []uint32
	round    uint32
	via      []int32 // column before, on the shortest path
	viaEdge  []int32 // pair used, -1 for an arc of the hub
	order    []int32
	queue    []queued
	path     []int32
	nearest  int64 // tentative distance of the nearest column that lacks a unit
	paths    int
}

type queued struct {
	distance int64
	column   int32
}

// outcome tells how a run ended.
type outcome int

const (
	solved    outcome = iota
	exhausted         // a search needs more arcs
	stuck             // no path although no arc is missing
)

// resize makes room for the given number of columns and empties the solver.
func (r *residual) resize(columns int) {
	if r.columns != columns {
		r.columns = columns
		nodes := columns + 1
		r.room = make([]int32, columns)
		r.lo, r.hi = make([]int64, columns), make([]int64, columns)
		r.size, r.outflow = make([]int64, columns), make([]int64, columns)
		r.excess, r.potential = make([]int64, nodes), make([]int64, nodes)
		r.bound = make([]int64, columns)
		r.distance = make([]int64, nodes)
		r.epoch, r.settled = make([]uint32, nodes), make([]uint32, nodes)
		r.round = 0
		r.via, r.viaEdge = make([]int32, nodes), make([]int32, nodes)
		r.edges = make([][]edge, columns)
		r.inside = make([][]int32, columns)
		r.pairs = nil
		r.table, r.index = nil, nil
		if columns <= dense {
			r.table = make([]int32, columns*columns)
		} else {
			r.index = make(map[int64]int32)
		}
	}
	r.arcs, r.owner = r.arcs[:0], r.owner[:0]
	r.first, r.end, r.beyond = r.first[:0], r.end[:0], r.beyond[:0]
}

// close makes the arcs after the last point a point.
func (r *residual) close(beyond int64) {
	q := int32(len(r.first))
	r.first = append(r.first, int32(len(r.owner)))
	for len(r.owner) < len(r.arcs) {
		r.owner = append(r.owner, q)
	}
	r.end = append(r.end, int32(len(r.arcs)))
	r.beyond = append(r.beyond, beyond)
}

// find returns the pair of moves from column u to column v.
func (r *residual) find(u, v int32) *pair {
	if r.table != nil {
		if i := r.table[int(u)*r.columns+int(v)]; i > 0 {
			return &r.pairs[i-1]
		}
	} else if i := r.index[int64(u)<<32|int64(v)]; i > 0 {
		return &r.pairs[i-1]
	}
	if len(r.pairs) < cap(r.pairs) {
		r.pairs = r.pairs[:len(r.pairs)+1]
	} else {
		r.pairs = append(r.pairs, pair{})
	}
	i := int32(len(r.pairs))
	p := &r.pairs[i-1]
	p.moves, p.sorted, p.column, p.slot = p.moves[:0], false, u, int32(len(r.edges[u]))
	r.edges[u] = append(r.edges[u], edge{absent, v, i - 1})
	if r.table != nil {
		r.table[int(u)*r.columns+int(v)] = i
	} else {
		r.index[int64(u)<<32|int64(v)] = i
	}
	return p
}

// clear forgets all pairs but keeps their memory.
func (r *residual) clear() {
	for u := range r.edges {
		if r.table != nil {
			for _, e := range r.edges[u] {
				r.table[u*r.columns+int(e.column)] = 0
			}
		}
		r.edges[u] = r.edges[u][:0]
	}
	if r.table == nil {
		clear(r.index)
	}
	r.pairs = r.pairs[:0]
}

// start takes the flow in arcs and size, which must be optimal at the given
// prices without the bounds, and sets outflows and potentials so that every
// residual arc has a reduced cost of at least 0. bound is that of every column.
func (r *residual) start(prices []int64, bound int64) {
	r.clear()
	r.paths = 0
	hub := r.columns
	r.excess[hub], r.potential[hub] = 0, 0
	for j := range r.inside {
		r.inside[j] = r.inside[j][:0]
	}
	for j := range r.columns {
		switch price := prices[j]; {
		case price > 0:
			r.outflow[j] = r.hi[j]
		case price == 0:
			r.outflow[j] = min(r.hi[j], max(r.lo[j], r.size[j]))
		case r.filler > 0 && price <= -r.filler:
			r.outflow[j] = min(r.lo[j], r.size[j])
		default:
			r.outflow[j] = r.lo[j]
		}
		r.excess[j] = r.size[j] - r.outflow[j]
		r.excess[hub] -= r.excess[j]
		r.potential[j], r.bound[j] = -prices[j], bound
	}
	for q := range r.first {
		r.offer(int32(q))
	}
}

// own returns the arc of point q that carries its unit, of its one cluster.
func (r *residual) own(q int32) int32 {
	a := r.first[q]
	for r.arcs[a].count == 0 {
		a++
	}
	return a
}

// offer records the moves of point q.
func (r *residual) offer(q int32) {
	lo, hi := r.first[q], r.end[q]
	for a := lo; a < hi; a++ {
		if r.arcs[a].count == 0 {
			continue
		}
		u := r.arcs[a].column
		r.inside[u] = append(r.inside[u], q)
		for b := lo; b < hi; b++ {
			if b != a && r.arcs[b].count < r.room[r.arcs[b].column] {
				r.add(a, b)
			}
		}
	}
}

// outside returns the number of units in excess.
func (r *residual) outside() int64 {
	var units int64
	for _, e := range r.excess {
		units += max(0, e)
	}
	return units
}

// price returns the price of column j.
func (r *residual) price(j int) int64 { return r.potential[r.columns] - r.potential[j] }

// add records the move from arc a to arc b.
func (r *residual) add(a, b int32) {
	from, to := &r.arcs[a], &r.arcs[b]
	p := r.find(from.column, to.column)
	m := move{to.cost - from.cost, a, b}
	i := len(p.moves)
	p.moves = append(p.moves, m)
	if p.sorted {
		for i > 0 {
			up := (i - 1) / 2
			if p.moves[up].key <= m.key {
				break
			}
			p.moves[i] = p.moves[up]
			i = up
		}
		p.moves[i] = m
	} else if i > 0 && m.key < p.moves[0].key {
		p.moves[0], p.moves[i] = m, p.moves[0]
		i = 0
	}
	if i == 0 {
		r.edges[p.column][p.slot].weight = m.key
	}
}

// valid reports whether the flow allows m.
func (r *residual) valid(m move) bool {
	to := &r.arcs[m.to]
	return r.arcs[m.from].count > 0 && to.count < r.room[to.column]
}

// refresh restores the cheapest valid move of p to its front.
func (r *residual) refresh(p *pair) {
	if len(p.moves) == 0 || r.valid(p.moves[0]) {
		return
	}
	if !p.sorted {
		kept := p.moves[:0]
		for _, m := range p.moves {
			if r.valid(m) {
				kept = append(kept, m)
			}
		}
		p.moves, p.sorted = kept, true
		for i := len(kept)/2 - 1; i >= 0; i-- {
			sink(kept, i)
		}
	}
	for len(p.moves) > 0 && !r.valid(p.moves[0]) {
		last := len(p.moves) - 1
		p.moves[0] = p.moves[last]
		p.moves = p.moves[:last]
		sink(p.moves, 0)
	}
	weight := int64(absent)
	if len(p.moves) > 0 {
		weight = p.moves[0].key
	}
	r.edges[p.column][p.slot].weight = weight
}

// sink moves entry i down the heap to its place.
func sink(h []move, i int) {
	if i >= len(h) {
		return
	}
	m := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].key < h[c].key {
			c++
		}
		if m.key <= h[c].key {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = m
}

// apply sends one unit of a point from arc m.from to arc m.to.
func (r *residual) apply(m move) {
	from, to := &r.arcs[m.from], &r.arcs[m.to]
	u, v := from.column, to.column
	q := r.owner[m.from]
	lo, hi := r.first[q], r.end[q]
	if r.beyond[q] < absent {
		r.bound[v] = min(r.bound[v], r.beyond[q]-to.cost+r.potential[v])
	}
	r.inside[v] = append(r.inside[v], q)
	freed := from.count == r.room[u] // u had no room, now it has
	opened := to.count == 0          // v could not be left, now it can
	from.count--
	to.count++
	r.size[u]--
	r.size[v]++
	for b := lo; b < hi; b++ {
		l := &r.arcs[b]
		if opened && b != m.to && l.count < r.room[l.column] {
			r.add(m.to, b)
		}
		if freed && b != m.from && l.count > 0 && !(opened && b == m.to) {
			r.add(b, m.from)
		}
	}
	empty, full := from.count == 0, to.count == r.room[v]
	for b := lo; b < hi; b++ {
		l := r.arcs[b].column
		if empty && b != m.from {
			r.refresh(r.find(u, l))
		}
		if full && b != m.to && r.arcs[b].count > 0 {
			r.refresh(r.find(l, v))
		}
	}
}

// run augments until at most the given number of units is in excess.
func (r *residual) run(ctx context.Context, enough int64) (outcome, error) {
	left := r.outside()
	for s := range int32(r.columns + 1) {
		for ; r.excess[s] > 0 && left > enough; left-- {
			if r.paths&255 == 0 {
				if err := ctx.Err(); err != nil {
					return exhausted, err
				}
			}
			if o, err := r.augment(s); o != solved || err != nil {
				return o, err
			}
		}
	}
	return solved, nil
}

// reached lowers the tentative distance of column v to d, unless a column that
// lacks a unit is nearer.
func (r *residual) reached(v int32, d int64, via, edge int32) {
	if d >= r.nearest || r.epoch[v] == r.round && r.distance[v] <= d {
		return
	}
	if r.excess[v] < 0 {
		r.nearest = d
	}
	r.epoch[v], r.distance[v], r.via[v], r.viaEdge[v] = r.round, d, via, edge
	i := len(r.queue)
	r.queue = append(r.queue, queued{})
	for i > 0 {
		up := (i - 1) / 2
		if r.queue[up].distance <= d {
			break
		}
		r.queue[i] = r.queue[up]
		i = up
	}
	r.queue[i] = queued{d, v}
}

// pop takes the nearest column off the queue.
func (r *residual) pop() queued {
	q := r.queue
	top := q[0]
	last := len(q) - 1
	m := q[last]
	q = q[:last]
	r.queue = q
	if last == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && q[c+1].distance < q[c].distance {
			c++
		}
		if m.distance <= q[c].distance {
			break
		}
		q[i] = q[c]
		i = c
	}
	q[i] = m
	return top
}

// relax offers ways on from column u at distance d.
func (r *residual) relax(u int32, d int64) {
	hub := int32(r.columns)
	if u == hub {
		for v := range hub {
			weight := int64(0)
			if r.outflow[v] <= r.lo[v] {
				if r.filler == 0 || r.outflow[v] == 0 {
					continue
				}
				weight = r.filler
			}
			r.reached(v, d+weight+r.potential[hub]-r.potential[v], hub, -1)
		}
		return
	}
	base := d + r.potential[u]
	if r.outflow[u] < r.hi[u] {
		weight := int64(0)
		if r.outflow[u] < r.lo[u] {
			weight = -r.filler
		}
		r.reached(hub, base+weight-r.potential[hub], u, -1)
	}
	potential := r.potential
	for _, e := range r.edges[u] {
		if d := base + e.weight - potential[e.column]; d < r.nearest && e.weight != absent {
			r.reached(e.column, d, u, e.pair)
		}
	}
}

// augment sends one unit from s along a shortest path to a column that lacks one.
func (r *residual) augment(s int32) (outcome, error) {
	r.round++
	r.queue, r.order, r.nearest = r.queue[:0], r.order[:0], absent
	r.reached(s, 0, -1, -1)
	hub := int32(r.columns)
	target, length := int32(-1), int64(0)
	horizon, nearest := int64(absent), int32(-1) // where missing arcs begin, and of which column
	for target < 0 {
		if len(r.queue) == 0 && horizon == absent {
			return stuck, nil
		}
		if len(r.queue) == 0 || r.queue[0].distance > horizon {
			if r.widen == nil {
				r.lower(horizon)
				return exhausted, nil
			}
			if err := r.widen(nearest); err != nil {
				return exhausted, err
			}
			r.relax(nearest, r.distance[nearest])
			horizon = absent
			for _, u := range r.order {
				if u != hub && r.bound[u] < absent && r.distance[u]+r.bound[u] < horizon {
					horizon, nearest = r.distance[u]+r.bound[u], u
				}
			}
			continue
		}
		top := r.pop()
		u, d := top.column, top.distance
		if r.settled[u] == r.round {
			continue
		}
		r.settled[u] = r.round
		if r.excess[u] < 0 {
			target, length = u, d
			break
		}
		r.order = append(r.order, u)
		if u != hub && r.bound[u] < absent && d+r.bound[u] < horizon {
			horizon, nearest = d+r.bound[u], u
		}
		r.relax(u, d)
	}
	r.lower(length)
	r.path = r.path[:0]
	for v := target; v != s; v = r.via[v] {
		r.path = append(r.path, v)
	}
	for i := len(r.path) - 1; i >= 0; i-- {
		v := r.path[i]
		switch u := r.via[v]; {
		case u == hub:
			r.outflow[v]--
		case v == hub:
			r.outflow[u]++
		default:
			r.apply(r.pairs[r.viaEdge[v]].moves[0])
		}
	}
	r.excess[s]--
	r.excess[target]++
	r.paths++
	return solved, nil
}

// lower makes the arcs of the shortest paths of the given length tight: each
// settled column falls by what its distance lacks to length.
func (r *residual) lower(length int64) {
	for _, v := range r.order {
		if fall := length - r.distance[v]; fall > 0 {
			r.potential[v] -= fall
			if v < int32(r.columns) && r.bound[v] < absent {
				r.bound[v] -= fall
			}
		}
	}
}
