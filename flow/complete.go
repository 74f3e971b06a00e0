package flow

import (
	"context"
	"math"
)

// infinity is the cost of a move that does not exist, and more than any sum of
// prices.
const infinity = 1 << 62

// bounds is the cost of the outflow of a column: 0 from lo to hi, under for each
// unit missing below lo and over for each unit above hi, up to top. An infinite
// under or over is a hard bound.
type bounds struct {
	lo, hi, top int64
	under, over int64
}

// more returns the cost of one unit more than z and how many have that cost.
func (b *bounds) more(z int64) (cost, units int64) {
	switch {
	case z < b.lo:
		return -b.under, b.lo - z
	case z < b.hi:
		return 0, b.hi - z
	case b.over < infinity:
		return b.over, b.top - z
	}
	return 0, 0
}

// less returns the cost of one unit less than z and how many have that cost.
func (b *bounds) less(z int64) (cost, units int64) {
	switch {
	case z > b.hi:
		return -b.over, z - b.hi
	case z > b.lo:
		return 0, z - b.lo
	case b.under < infinity:
		return b.under, z
	}
	return 0, 0
}

// at returns the least and the largest optimal outflow at a price.
func (b *bounds) at(price int64) (least, most int64) {
	least, most = b.lo, b.hi
	switch {
	case price > 0:
		least = b.hi
	case price < 0:
		most = b.lo
	}
	if b.over < infinity && price >= b.over {
		most = b.top
		if price > b.over {
			least = b.top
		}
	}
	if b.under < infinity && price <= -b.under {
		least = 0
		if price < -b.under {
			most = 0
		}
	}
	return least, most
}

// entry is the cheapest move to a column: its cost, or a lower bound if member is
// stale.
type entry struct {
	cost   int64
	column int32
	member int32
}

const stale = -1

// entryBytes is the memory of an entry.
const entryBytes = 16

// transport is a primal-dual algorithm for minimum-cost flow on the quotient graph:
// the columns (clusters, "unassigned", "escape") and a super-sink. Its arc from
// column u to v is the cheapest move of a unit from u to v; arcs between a column
// and the super-sink change the outflow of the column. A round finds the shortest
// distances from all columns with excess to the deficits (Dijkstra), lowers the
// potentials by them and sends as many units as the arcs of shortest paths hold, depth
// first: an arc moves all members whose reduced cost is 0, as many as all others hold.
//
// With a quantum e > 0 it is a step of cost scaling (Goldberg and Tarjan 1990):
// reduced costs stay at least -e, an arc of reduced cost r has length
// floor(r/e) + 1, and flow goes along the arcs of negative reduced cost, with all
// members that have one. From prices at which some flow has reduced costs of at least
// -a*e, a simple path through the nodes has a length of at most (a+2)*nodes, and each
// round makes the distance of a deficit longer, so there are at most as many rounds.
//
// Moves are not all known: one out of u that is not in rows[u] has a reduced cost
// above limit[u]. A search that gets as far asks for more.
type transport struct {
	columns   int
	sink      int32
	m         *members
	quantum   int64
	bounds    []bounds
	size      []int64 // units that enter a column
	outflow   []int64
	excess    []int64 // of the columns and the super-sink
	potential []int64 // minus the price, up to a constant; only ever falls
	fallen    bool    // since the members saw it
	rows      [][]entry
	limit     []int64

	distance  []int64 // of settled nodes; the least known one of the others
	within    []int64 // what potential and cost add up to, at most, along a way that is no longer
	order     []int32 // settled nodes
	now       int64   // distance of the last settled node
	level     []int32 // nodes at that distance that are to be settled
	queue     offers  // those farther away
	ask       offers  // columns whose unknown moves are asked for
	wanted    int     // deficits to settle
	last      int64   // distance of the last deficit that a search settled
	shut      []bool  // no way on, or on the path
	tight     []int32 // arcs of shortest paths: of node u those at tight[next[u]:end[u]] are left
	next, end []int32
	path      []hop
	where     []int32 // position of a column in the row at hand, plus one

	rounds, paths int
}

// offer is the length of a way to a node.
type offer struct {
	distance int64
	node     int32
}

// hop is a node of a path and the arc that leaves it.
type hop struct{ node, at int32 }

// byOutflow stands for an arc between a column and the super-sink.
const byOutflow int32 = -1

// resize makes room for the given number of columns, without moves.
func (t *transport) resize(columns int) {
	t.columns, t.sink = columns, int32(columns)
	nodes := columns + 1
	t.bounds = sized(t.bounds, columns)
	for _, s := range []*[]int64{&t.size, &t.outflow, &t.excess, &t.potential, &t.limit, &t.distance,
		&t.within} {
		*s = sized(*s, nodes)
		clear(*s)
	}
	for _, s := range []*[]int32{&t.next, &t.end, &t.where} {
		*s = sized(*s, nodes)
		clear(*s)
	}
	t.shut = sized(t.shut, nodes)
	t.rows = atLeast(t.rows, columns)
	for u := range columns {
		t.rows[u] = t.rows[u][:0]
		t.limit[u] = infinity
	}
	t.rounds, t.paths = 0, 0
}

// setOutflows sets the outflows that the prices ask for.
func (t *transport) setOutflows() {
	t.excess[t.sink] = 0
	for j := range t.columns {
		least, most := t.bounds[j].at(t.price(j))
		t.outflow[j] = min(most, max(least, t.size[j]))
		t.excess[j] = t.size[j] - t.outflow[j]
		t.excess[t.sink] -= t.excess[j]
	}
}

// outside returns the number of units in excess.
func (t *transport) outside() int64 {
	var units int64
	for _, e := range t.excess {
		units += max(0, e)
	}
	return units
}

// price returns the price of column j.
func (t *transport) price(j int) int64 { return t.potential[t.sink] - t.potential[j] }

// largest returns the largest cost and price.
func (t *transport) largest() int64 {
	largest := t.m.p.reach()
	for j := range t.columns {
		largest = max(largest, t.price(j), -t.price(j))
	}
	return largest
}

// run augments until at most the given number of units is in excess, and reports
// true, or for the given number of rounds. It reports stuck if no path is left.
func (t *transport) run(ctx context.Context, enough int64, rounds int) (solved, stuck bool, err error) {
	for t.outside() > enough {
		if err := ctx.Err(); err != nil {
			return false, false, err
		}
		if rounds--; rounds < 0 {
			return false, false, nil
		}
		t.rounds++
		if found, err := t.search(ctx); err != nil || !found {
			return false, !found, err
		}
		t.block()
	}
	return true, false, nil
}

// bulk brings a large excess down by steps of scaling. Its first quantum is about the distance of a deficit. Where it
// would begin too small and grow, an excess of some units in each column takes less time by paths.
func (t *transport) bulk(ctx context.Context, enough int64) (stuck bool, err error) {
	var units int64
	for _, x := range t.size {
		units += x
	}
	columns := int64(t.columns)
	if t.outside() <= max(units/64, min(8*columns, max(5*columns, units/32)), enough) {
		return false, nil
	}
	if found, err := t.search(ctx); err != nil || !found {
		return true, err
	}
	largest := t.largest()
	t.quantum = min(max(1, t.last/4), largest)
	return t.scale(ctx, int64(t.columns)/4, enough, largest, t.m.s.tune().bulkRounds)
}

// scale comes down from the quantum at hand by factors of 4, which forgets much of the prices at hand, until a step
// sends no more than few units or at most enough are outside. While the first quantum takes more than the given rounds
// it is too small, unless it is as large as all costs: from there a quantum takes at most 6 rounds for each node, each
// of which looks at no more than all members times all columns, and after the last, 1, distances are at most 3 (k+3).
func (t *transport) scale(ctx context.Context, few, enough, largest int64, rounds int) (stuck bool, err error) {
	const step = 4
	for first := true; t.quantum > 0; first = false {
		before := t.paths
		for solved := false; !solved; {
			if !first || t.quantum >= largest {
				rounds = math.MaxInt
			}
			if solved, stuck, err = t.run(ctx, 0, rounds); err != nil || stuck {
				return stuck, err
			}
			if !solved {
				t.quantum = step * min(t.quantum, largest/step+1)
			}
		}
		if err := t.saturate(ctx); err != nil {
			return false, err
		}
		if t.quantum /= step; int64(t.paths-before) <= few || t.outside() <= enough {
			break
		}
	}
	t.quantum = 0
	return false, nil
}

// saturate moves all units to where their reduced cost is least: no arc has a
// negative one then. Outflows follow the prices.
func (t *transport) saturate(ctx context.Context) error {
	for asked := true; asked; {
		t.ask = t.ask[:0]
		for u := range t.sink {
			if t.limit[u] < 0 {
				t.ask = append(t.ask, offer{0, u})
			}
		}
		if err := t.m.extend(ctx); err != nil {
			return err
		}
		asked = len(t.ask) > 0
	}
	for moved := true; moved; {
		moved = false
		for u := range int32(t.columns) {
			for at := 0; at < len(t.rows[u]); {
				e := &t.rows[u][at]
				apart := t.potential[u] - t.potential[e.column]
				if e.cost < -apart {
					t.refresh(u, e)
				}
				if e.cost >= -apart {
					at++
					continue
				}
				t.carry(u, e.column, e.member, infinity)
				moved = true
			}
		}
	}
	t.setOutflows()
	return nil
}

// dearest returns the cost of the dearest move from u to v that flow goes along.
func (t *transport) dearest(u, v int32) int64 {
	if t.quantum > 0 {
		return t.potential[v] - t.potential[u] - 1
	}
	return t.potential[v] - t.potential[u]
}

// carry moves up to the given number of units from u to v, along an arc whose cheapest
// move is that of the given member.
func (t *transport) carry(u, v, member int32, units int64) {
	cost := t.dearest(u, v)
	units = t.m.room(u, v, member, cost, units)
	t.m.move(u, v, cost, units)
	t.size[u] -= units
	t.size[v] += units
}

// length returns the length of an arc of the given reduced cost.
func (t *transport) length(reduced int64) int64 {
	if t.quantum == 0 {
		return reduced
	}
	q := reduced / t.quantum
	if reduced%t.quantum < 0 {
		q--
	}
	return q + 1
}

// admissible reports whether flow goes along arcs of the given reduced cost.
func (t *transport) admissible(reduced int64) bool {
	return reduced < 0 || reduced == 0 && t.quantum == 0
}

// refresh makes an entry of row u exact.
func (t *transport) refresh(u int32, e *entry) {
	if e.member == stale && e.cost < infinity {
		e.cost, e.member = t.m.cheapest(u, e.column)
	}
}

// search finds the distances from the columns with excess to the deficits, and lowers the
// potentials by them. Where it would need unknown moves it stops at the deficits that it
// has, if these are half of them. It reports false if none can be reached.
func (t *transport) search(ctx context.Context) (found bool, err error) {
	t.depart()
	for half, last := t.wanted/2, int32(-1); ; {
		deficit, horizon := t.settle()
		if deficit >= 0 {
			last = deficit
		}
		if last >= 0 && (horizon == infinity || t.wanted <= half) {
			t.last = t.distance[last]
			t.lower(t.last)
			return true, nil
		}
		if horizon == infinity {
			return false, nil
		}
		t.lookAhead(horizon)
		if err := t.m.extend(ctx); err != nil {
			return false, err
		}
		for _, o := range t.ask {
			t.relax(o.node, t.distance[o.node])
		}
	}
}

// extended is the number of columns whose unknown moves a search asks for at a time, at most: workers share them.
const extended = 16

// lookAhead lists in ask the settled columns that are the first to have unknown moves, up to twice the horizon.
func (t *transport) lookAhead(horizon int64) {
	t.ask = t.ask[:0]
	for _, u := range t.order {
		if far := t.unknown(u); far < infinity && far-horizon <= horizon {
			t.ask.keep(extended, far, u)
		}
	}
}

// depart begins a search.
func (t *transport) depart() {
	t.queue, t.level, t.order, t.tight = t.queue[:0], t.level[:0], t.order[:0], t.tight[:0]
	t.now = 0
	clear(t.next)
	clear(t.end)
	t.wanted = 0
	for u, excess := range t.excess {
		t.distance[u], t.within[u] = infinity, math.MaxInt64
		if excess > 0 {
			t.distance[u], t.within[u] = 0, t.potential[u]
			t.level = append(t.level, int32(u))
		} else if excess < 0 {
			t.wanted++
		}
	}
}

// unknown returns the distance up to which no unknown move of a settled node leads.
func (t *transport) unknown(u int32) int64 {
	if u == t.sink || t.limit[u] == infinity {
		return infinity
	}
	return t.distance[u] + t.length(t.limit[u])
}

// settle goes on to settle nodes in the order of their distance until it has settled
// as many deficits as wanted or would need unknown moves. It returns the last deficit,
// negative if there is none, and the distance up to which no unknown move leads.
func (t *transport) settle() (last int32, horizon int64) {
	last, horizon = -1, infinity
	for _, u := range t.order {
		horizon = min(horizon, t.unknown(u))
	}
	for len(t.level) > 0 || len(t.queue) > 0 && t.queue[0].distance <= horizon {
		var u int32
		if last := len(t.level) - 1; last >= 0 {
			u, t.level = t.level[last], t.level[:last]
		} else {
			o := t.queue.take()
			if o.distance != t.distance[o.node] {
				continue
			}
			u, t.now = o.node, o.distance
		}
		t.order = append(t.order, u)
		if t.excess[u] < 0 {
			last = u
			if t.wanted--; t.wanted == 0 {
				break
			}
		}
		horizon = min(horizon, t.unknown(u))
		t.relax(u, t.now)
	}
	return last, horizon
}

// relax offers the ways on from node u at distance d, and notes those that no known way is
// shorter than.
func (t *transport) relax(u int32, d int64) {
	t.next[u] = int32(len(t.tight))
	if u == t.sink {
		for v := range t.sink {
			if cost, units := t.outlet(u, v); units > 0 {
				t.reach(v, d+t.length(cost+t.potential[u]-t.potential[v]), v)
			}
		}
		t.end[u] = int32(len(t.tight))
		return
	}
	own := t.potential[u]
	if cost, units := t.outlet(u, t.sink); units > 0 {
		t.reach(t.sink, d+t.length(cost+own-t.potential[t.sink]), byOutflow)
	}
	row, base := t.rows[u], own+min(t.span(d), infinity/4)
	for at := range row {
		if e := &row[at]; e.cost+base <= t.within[e.column] {
			t.follow(u, int32(at), d)
		}
	}
	t.end[u] = int32(len(t.tight))
}

// follow offers the way from column u at distance d along the arc at a place in its row.
func (t *transport) follow(u, at int32, d int64) {
	e := &t.rows[u][at]
	v, apart := e.column, t.potential[u]-t.potential[e.column]
	if e.cost == infinity {
		return
	}
	far := d + t.length(e.cost+apart)
	if e.member == stale && far < t.distance[v] {
		if t.refresh(u, e); e.cost == infinity {
			return
		}
		far = d + t.length(e.cost+apart)
	}
	t.reach(v, far, at)
}

// span returns what reduced costs on a way of the given length may add up to; math.MaxInt64 if
// that is more than any do.
func (t *transport) span(distance int64) int64 {
	switch {
	case t.quantum == 0:
		return distance
	case distance > infinity/8/t.quantum:
		return math.MaxInt64
	}
	return distance * t.quantum
}

// reach offers a way of the given length to node v, along an arc.
func (t *transport) reach(v int32, distance int64, arc int32) {
	if distance > t.distance[v] {
		return
	}
	t.tight = append(t.tight, arc)
	if distance == t.distance[v] {
		return
	}
	t.distance[v], t.within[v] = distance, math.MaxInt64
	if span := t.span(distance); span < infinity {
		t.within[v] = t.potential[v] + span
	}
	if distance == t.now {
		t.level = append(t.level, v)
	} else {
		t.queue.add(offer{distance, v})
	}
}

// lower makes the arcs of the shortest paths of up to the given length admissible.
func (t *transport) lower(length int64) {
	t.fallen = true
	for _, v := range t.order {
		fall := length - t.distance[v]
		if fall <= 0 {
			break
		}
		if t.quantum > 0 {
			fall *= t.quantum
		}
		t.potential[v] -= fall
		if v != t.sink && t.limit[v] < infinity {
			t.limit[v] -= fall
		}
	}
}

// block sends units along admissible arcs, depth first, until it finds no way from a
// column with excess to a deficit.
func (t *transport) block() {
	clear(t.shut)
	for u := range t.sink + 1 {
		for t.excess[u] > 0 && !t.shut[u] && t.augment(u) {
		}
	}
}

// outlet returns the cost of an arc between a column and the super-sink, and how many units it holds.
func (t *transport) outlet(u, v int32) (cost, units int64) {
	if u == t.sink {
		return t.bounds[v].less(t.outflow[v])
	}
	return t.bounds[u].more(t.outflow[u])
}

// arc returns the node that the next arc of node u on a shortest path leads to that is still
// admissible, among nodes that are not shut, -1 if there is none, and its place in the row.
func (t *transport) arc(u int32) (v, at int32) {
	for ; t.next[u] < t.end[u]; t.next[u]++ {
		at := t.tight[t.next[u]]
		if u == t.sink || at == byOutflow {
			v := t.sink
			if u == t.sink {
				v = at
			}
			cost, units := t.outlet(u, v)
			if units > 0 && !t.shut[v] && t.admissible(cost+t.potential[u]-t.potential[v]) {
				return v, byOutflow
			}
			continue
		}
		e := &t.rows[u][at]
		apart := t.potential[u] - t.potential[e.column]
		if t.shut[e.column] || !t.admissible(e.cost+apart) {
			continue
		}
		if t.refresh(u, e); t.admissible(e.cost + apart) {
			return e.column, at
		}
	}
	return -1, 0
}

// augment sends units from s to a deficit along admissible arcs between nodes that are
// not shut, if it finds a way. Nodes without a way on stay shut.
func (t *transport) augment(s int32) bool {
	t.path = append(t.path[:0], hop{s, 0})
	t.shut[s] = true
	for len(t.path) > 0 {
		last := &t.path[len(t.path)-1]
		u := last.node
		if t.excess[u] < 0 {
			t.send(s, u)
			for _, h := range t.path {
				t.shut[h.node] = false
			}
			return true
		}
		v, at := t.arc(u)
		if v < 0 {
			t.path = t.path[:len(t.path)-1]
			continue
		}
		last.at = at
		t.path = append(t.path, hop{v, 0})
		t.shut[v] = true
	}
	return false
}

// send sends as many units along the path as its arcs hold.
func (t *transport) send(s, end int32) {
	units := min(t.excess[s], -t.excess[end])
	for i, h := range t.path[:len(t.path)-1] {
		u, v := h.node, t.path[i+1].node
		if u == t.sink || v == t.sink {
			_, room := t.outlet(u, v)
			units = min(units, room)
		} else {
			units = t.m.room(u, v, t.rows[u][h.at].member, t.dearest(u, v), units)
		}
	}
	// From the end on, so that members are still where the search saw them.
	for i := len(t.path) - 2; i >= 0; i-- {
		u, v := t.path[i].node, t.path[i+1].node
		switch {
		case u == t.sink:
			t.outflow[v] -= units
		case v == t.sink:
			t.outflow[u] += units
		default:
			t.carry(u, v, t.rows[u][t.path[i].at].member, units)
		}
	}
	t.excess[s] -= units
	t.excess[end] += units
	t.paths++
}

// offers is a heap, the nearest first.
type offers []offer

func (h *offers) add(o offer) {
	q := append(*h, o)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up].distance <= o.distance {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = o
	*h = q
}

// keep adds a node at a distance to the count nearest, the farthest first: with distances negated.
func (h *offers) keep(count int, distance int64, node int32) {
	if len(*h) == count {
		if distance >= -(*h)[0].distance {
			return
		}
		h.take()
	}
	h.add(offer{-distance, node})
}

// take takes the nearest off the heap.
func (h *offers) take() offer {
	q := *h
	top, last := q[0], len(q)-1
	o := q[last]
	q = q[:last]
	*h = q
	for i := 0; last > 0; {
		c := 2*i + 1
		if c+1 < last && q[c+1].distance < q[c].distance {
			c++
		}
		if c >= last || o.distance <= q[c].distance {
			q[i] = o
			break
		}
		q[i] = q[c]
		i = c
	}
	return top
}
