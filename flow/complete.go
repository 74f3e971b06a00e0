package flow

import (
	"context"
	"math"
	"slices"
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

// moves is what a transport moves units of between columns.
type moves interface {
	// cheapest returns the least cost of a move from column u to column v and the
	// member of u that has it; infinity if there is none.
	cheapest(u, v int32) (cost int64, member int32)
	// room returns how many units of a member of u can move to v.
	room(u, v, member int32) int64
	// move moves units, and offers the moves that it makes possible.
	move(u, v, member int32, units int64)
	// extend lowers the number of unknown moves of column u: it appends to its row or,
	// and then says so, makes all rows anew.
	extend(u int32) (relaid bool, err error)
}

// entry is the cheapest move to a column: its cost, or a lower bound if member is
// stale.
type entry struct {
	cost   int64
	column int32
	member int32
}

const stale = -1

// transport is a primal-dual algorithm for minimum-cost flow on the quotient graph:
// the columns (clusters, "unassigned", "escape") and a super-sink. Its arc from
// column u to v is the cheapest move of a unit from u to v; arcs between a column
// and the super-sink change the outflow of the column. A round finds the shortest
// distances from a column with excess to a deficit (Dijkstra), lowers the potentials
// by them and sends as many units along the path as its arcs hold. Where the
// distance is 0 it sends as many as all arcs of reduced cost 0 hold, by blocking
// flows (Dinic 1970).
//
// With a quantum e > 0 it is a step of cost scaling (Goldberg and Tarjan 1990):
// reduced costs stay at least -e, an arc of reduced cost r has length
// floor(r/e) + 1, distances are those from all columns with excess, and a blocking
// flow goes along the arcs of negative reduced cost. From prices at
// which some flow has reduced costs of at least -a*e, a simple path through the
// nodes has a length of at most (a+2)*nodes, and each round makes the distance of a
// deficit longer, so there are at most as many rounds.
//
// Moves are not all known: one out of u that is not in rows[u] has a reduced cost
// above limit[u]. A search that gets as far asks for more.
type transport struct {
	columns   int
	sink      int32
	moves     moves
	quantum   int64
	bounds    []bounds
	size      []int64 // units that enter a column
	outflow   []int64
	excess    []int64 // of the columns and the super-sink
	potential []int64 // minus the price, up to a constant; only ever falls
	rows      [][]entry
	limit     []int64

	distance  []int64 // of settled nodes
	tentative []int64 // least known distance of the others
	settled   []bool
	via       []offer // by which nodes are settled
	order     []int32
	queue     []offer
	nearest   int64 // distance of a deficit
	level     []int32
	next      []int32 // next arc to look at
	path      []hop
	where     []int32 // position of a column in the row at hand, plus one

	rounds, paths int
}

// offer is a way to reach a node: by entry at of the row of from, or, if at is
// negative, by an arc of the super-sink.
type offer struct {
	distance       int64
	node, from, at int32
}

// hop is a node of a path and the arc that leaves it.
type hop struct{ node, at int32 }

// byOutflow stands for an arc of the super-sink.
const byOutflow int32 = -1

// resize makes room for the given number of columns, without moves.
func (t *transport) resize(columns int) {
	t.columns, t.sink = columns, int32(columns)
	nodes := columns + 1
	t.bounds = slices.Grow(t.bounds[:0], columns)[:columns]
	for _, s := range []*[]int64{&t.size, &t.outflow, &t.excess, &t.potential, &t.limit, &t.distance, &t.tentative} {
		*s = slices.Grow((*s)[:0], nodes)[:nodes]
		clear(*s)
	}
	for _, s := range []*[]int32{&t.level, &t.next, &t.where} {
		*s = slices.Grow((*s)[:0], nodes)[:nodes]
		clear(*s)
	}
	t.settled = slices.Grow(t.settled[:0], nodes)[:nodes]
	t.via = slices.Grow(t.via[:0], nodes)[:nodes]
	for len(t.rows) < columns {
		t.rows = append(t.rows, nil)
	}
	for u := range columns {
		t.rows[u] = t.rows[u][:0]
		t.limit[u] = infinity
	}
	t.rounds, t.paths = 0, 0
}

// start takes the units that enter the columns, which must be optimal at the given
// prices without bounds, and sets the outflows that the prices ask for.
func (t *transport) start(prices []int64) {
	t.excess[t.sink], t.potential[t.sink] = 0, 0
	for j := range t.columns {
		least, most := t.bounds[j].at(prices[j])
		t.outflow[j] = min(most, max(least, t.size[j]))
		t.excess[j] = t.size[j] - t.outflow[j]
		t.excess[t.sink] -= t.excess[j]
		t.potential[j] = -prices[j]
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

// run augments until at most the given number of units is in excess, and reports
// true, or for the given number of rounds. It reports stuck if no path is left.
func (t *transport) run(ctx context.Context, enough int64, rounds int) (solved, stuck bool, err error) {
	left := t.outside()
	for s := int32(0); left > enough; {
		if rounds--; rounds < 0 {
			return false, false, nil
		}
		if t.rounds&63 == 0 {
			if err := ctx.Err(); err != nil {
				return false, false, err
			}
		}
		for t.excess[s] <= 0 {
			s = (s + 1) % (t.sink + 1)
		}
		from := s
		if t.quantum > 0 {
			from = all
		}
		t.rounds++
		target, err := t.search(from)
		if err != nil {
			return false, false, err
		}
		switch {
		case target < 0:
			return false, true, nil
		case from == all:
			for u := range t.level {
				t.level[u], t.next[u] = open, 0
			}
			for u := range t.sink + 1 {
				for t.excess[u] > 0 && t.level[u] == open && t.augment(u) {
				}
			}
		case t.distance[target] > 0:
			t.trace(target)
			t.send(s, target)
		default:
			for t.layer(s) {
				for t.excess[s] > 0 && t.level[s] == 0 && t.augment(s) {
				}
			}
		}
		left = t.outside()
	}
	return true, false, nil
}

// bulk brings a large excess down by steps of scaling. Its first quantum is about the
// distance of a deficit; while that takes many rounds, it is too small.
func (t *transport) bulk(ctx context.Context, enough int64) (stuck bool, err error) {
	const many, step = 16, 8
	few := int64(t.columns) / 4
	if t.outside() <= max(4*few, enough) {
		return false, nil
	}
	from := int32(0)
	for t.excess[from] <= 0 {
		from++
	}
	target, err := t.search(from)
	if err != nil || target < 0 {
		return true, err
	}
	t.quantum = max(1, t.distance[target]/4)
	for first, sent := true, few+1; t.quantum > 0 && sent > few && t.outside() > enough; t.quantum /= step {
		before := t.paths
		for solved := false; !solved; {
			rounds := many
			if !first {
				rounds = math.MaxInt
			}
			if solved, stuck, err = t.run(ctx, 0, rounds); err != nil || stuck {
				return stuck, err
			}
			if !solved {
				t.quantum *= step
			}
		}
		first, sent = false, int64(t.paths-before)
		if err := t.saturate(); err != nil {
			return false, err
		}
	}
	t.quantum = 0
	return false, nil
}

// saturate moves all units to where their reduced cost is least: no arc has a
// negative one then. Outflows follow the prices.
func (t *transport) saturate() error {
	for u := int32(0); u < t.sink; u++ {
		for t.limit[u] < 0 {
			relaid, err := t.moves.extend(u)
			if err != nil {
				return err
			}
			if relaid {
				u = 0
			}
		}
	}
	for moved := true; moved; {
		moved = false
		for u := range int32(t.columns) {
			for at := 0; at < len(t.rows[u]); at++ {
				for t.relieve(u, at) {
					moved = true
				}
			}
		}
	}
	t.excess[t.sink] = 0
	for j := range t.columns {
		least, most := t.bounds[j].at(t.price(j))
		t.outflow[j] = min(most, max(least, t.size[j]))
		t.excess[j] = t.size[j] - t.outflow[j]
		t.excess[t.sink] -= t.excess[j]
	}
	return nil
}

// relieve moves units along an arc of negative reduced cost, and reports whether it
// was one.
func (t *transport) relieve(u int32, at int) bool {
	e := &t.rows[u][at]
	v := e.column
	apart := t.potential[u] - t.potential[v]
	if e.cost == infinity || e.cost+apart >= 0 {
		return false
	}
	t.refresh(u, e)
	if e.cost == infinity || e.cost+apart >= 0 {
		return false
	}
	units := t.moves.room(u, v, e.member)
	t.moves.move(u, v, e.member, units)
	t.size[u] -= units
	t.size[v] += units
	return true
}

// all stands for all columns with excess.
const all int32 = -1

// trace makes the path of the last search that ends in target the path.
func (t *transport) trace(target int32) {
	t.path = append(t.path[:0], hop{target, 0})
	for v := target; t.via[v].from >= 0; v = t.via[v].from {
		t.path = append(t.path, hop{t.via[v].from, t.via[v].at})
	}
	slices.Reverse(t.path)
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
		e.cost, e.member = t.moves.cheapest(u, e.column)
	}
}

// search finds the distances from a column, or all with excess, to the nearest
// deficit, and lowers the potentials by them. It returns the deficit, negative if
// none can be reached.
func (t *transport) search(from int32) (int32, error) {
	for {
		t.depart(from)
		for {
			target, unknown := t.settle()
			if target >= 0 {
				t.lower(t.distance[target])
				return target, nil
			}
			if unknown < 0 {
				return -1, nil
			}
			relaid, err := t.moves.extend(unknown)
			if err != nil {
				return -1, err
			}
			if relaid {
				break
			}
			t.relax(unknown, t.distance[unknown])
		}
	}
}

// depart begins a search.
func (t *transport) depart(from int32) {
	t.queue, t.order, t.nearest = t.queue[:0], t.order[:0], infinity
	for u := range t.settled {
		t.settled[u], t.tentative[u] = false, infinity
		if int32(u) == from || from == all && t.excess[u] > 0 {
			t.tentative[u] = 0
			t.enqueue(offer{0, int32(u), -1, byOutflow})
		}
	}
}

// horizon returns the distance up to which no unknown move of the settled nodes
// leads, and the column that has the first one, negative if there is none.
func (t *transport) horizon() (distance int64, unknown int32) {
	distance, unknown = infinity, -1
	for _, u := range t.order {
		if u != t.sink && t.limit[u] < infinity {
			if far := t.distance[u] + t.length(t.limit[u]); far < distance {
				distance, unknown = far, u
			}
		}
	}
	return distance, unknown
}

// settle goes on to settle nodes in the order of their distance until it has settled
// a deficit, which it returns, or would need unknown moves: it returns the column
// whose unknown moves it needs first, negative if it needs none.
func (t *transport) settle() (target, unknown int32) {
	horizon, unknown := t.horizon()
	for len(t.queue) > 0 && t.queue[0].distance <= horizon {
		o := t.dequeue()
		u := o.node
		if t.settled[u] || !t.certain(o) {
			continue
		}
		t.settled[u], t.distance[u], t.via[u] = true, o.distance, o
		t.order = append(t.order, u)
		if t.excess[u] < 0 {
			return u, -1
		}
		if u != t.sink && t.limit[u] < infinity {
			if far := o.distance + t.length(t.limit[u]); far < horizon {
				horizon, unknown = far, u
			}
		}
		t.relax(u, o.distance)
	}
	return -1, unknown
}

// certain reports whether the move of an offer costs what the offer says; else it
// makes the offer that it allows.
func (t *transport) certain(o offer) bool {
	if o.at < 0 {
		return true
	}
	e := &t.rows[o.from][o.at]
	t.refresh(o.from, e)
	if e.cost == infinity {
		return false
	}
	d := t.distance[o.from] + t.length(e.cost+t.potential[o.from]-t.potential[o.node])
	if d <= o.distance {
		return true
	}
	t.reach(offer{d, o.node, o.from, o.at}, true)
	return false
}

// relax offers the ways on from node u at distance d, but those beyond a deficit.
func (t *transport) relax(u int32, d int64) {
	if u == t.sink {
		for v := range t.sink {
			if cost, units := t.bounds[v].less(t.outflow[v]); units > 0 && !t.settled[v] {
				t.reach(offer{d + t.length(cost+t.potential[u]-t.potential[v]), v, u, byOutflow}, true)
			}
		}
		return
	}
	if cost, units := t.bounds[u].more(t.outflow[u]); units > 0 && !t.settled[t.sink] {
		t.reach(offer{d + t.length(cost+t.potential[u]-t.potential[t.sink]), t.sink, u, byOutflow}, true)
	}
	for at := range t.rows[u] {
		e := &t.rows[u][at]
		if v := e.column; e.cost < infinity && !t.settled[v] {
			t.reach(offer{d + t.length(e.cost+t.potential[u]-t.potential[v]), v, u, int32(at)}, e.member != stale)
		}
	}
}

// reach makes an offer unless a shorter one is certain.
func (t *transport) reach(o offer, certain bool) {
	if o.distance >= t.tentative[o.node] || o.distance > t.nearest {
		return
	}
	if certain {
		t.tentative[o.node] = o.distance
		if t.excess[o.node] < 0 {
			t.nearest = o.distance
		}
	}
	t.enqueue(o)
}

// lower makes the arcs of the shortest paths of up to the given length admissible.
func (t *transport) lower(length int64) {
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

// layer numbers the nodes by how many admissible arcs lead to them from a column, as
// far as the first deficit, and reports whether there is one.
func (t *transport) layer(from int32) bool {
	t.order = t.order[:0]
	for u := range t.level {
		t.level[u], t.next[u] = math.MaxInt32, 0
		if t.excess[u] > 0 && from == int32(u) {
			t.level[u] = 0
			t.order = append(t.order, int32(u))
		}
	}
	last := int32(math.MaxInt32 - 1)
	for i := 0; i < len(t.order); i++ {
		u := t.order[i]
		l := t.level[u] + 1
		if l > last {
			break
		}
		for arc := int32(0); ; arc++ {
			v, _, more := t.arc(u, arc, l)
			if !more {
				break
			}
			if v >= 0 && t.level[v] == math.MaxInt32 {
				t.level[v] = l
				t.order = append(t.order, v)
				if t.excess[v] < 0 {
					last = l
				}
			}
		}
	}
	for u, l := range t.level {
		if l > last || l == last && t.excess[u] >= 0 {
			t.level[u] = -1 // no way on
		}
	}
	return last < math.MaxInt32-1
}

// arc returns the node v that arc number arc of node u leads to, -1 if the arc is
// not admissible or the level of v is not above or, if known, not the wanted one.
// It reports false if there is no such arc.
func (t *transport) arc(u, arc, level int32) (v, at int32, more bool) {
	if u == t.sink {
		if arc == t.sink {
			return -1, 0, false
		}
		if t.level[arc] >= level {
			cost, units := t.bounds[arc].less(t.outflow[arc])
			if units > 0 && t.admissible(cost+t.potential[u]-t.potential[arc]) {
				return arc, byOutflow, true
			}
		}
		return -1, 0, true
	}
	if arc == 0 {
		if t.level[t.sink] >= level {
			cost, units := t.bounds[u].more(t.outflow[u])
			if units > 0 && t.admissible(cost+t.potential[u]-t.potential[t.sink]) {
				return t.sink, byOutflow, true
			}
		}
		return -1, 0, true
	}
	at = arc - 1
	if int(at) >= len(t.rows[u]) {
		return -1, 0, false
	}
	e := &t.rows[u][at]
	if t.level[e.column] < level || e.cost == infinity {
		return -1, 0, true
	}
	apart := t.potential[u] - t.potential[e.column]
	if t.admissible(e.cost + apart) {
		t.refresh(u, e)
		if e.cost < infinity && t.admissible(e.cost+apart) {
			return e.column, at, true
		}
	}
	return -1, 0, true
}

// Levels of nodes while scaling.
const (
	open = math.MaxInt32
	shut = -1 // no way on, or on the path
)

// augment sends units from s to a deficit along admissible arcs that lead up one
// level each or, while scaling, to open nodes. It reports whether it found a way.
func (t *transport) augment(s int32) bool {
	t.path = append(t.path[:0], hop{s, 0})
	for len(t.path) > 0 {
		last := &t.path[len(t.path)-1]
		u := last.node
		if t.excess[u] < 0 {
			t.send(s, u)
			if t.quantum > 0 {
				for _, h := range t.path {
					t.level[h.node] = open
				}
			}
			return true
		}
		level := t.level[u] + 1
		if t.quantum > 0 {
			level = open
			t.level[u] = shut
		}
		found := false
		for !found {
			v, at, more := t.arc(u, t.next[u], level)
			if !more {
				break
			}
			if v >= 0 && t.level[v] == level {
				last.at = at
				t.path = append(t.path, hop{v, 0})
				found = true
			} else {
				t.next[u]++
			}
		}
		if !found {
			t.level[u] = shut
			t.path = t.path[:len(t.path)-1]
		}
	}
	return false
}

// send sends as many units along the path as its arcs hold.
func (t *transport) send(s, end int32) {
	units := min(t.excess[s], -t.excess[end])
	for i, h := range t.path[:len(t.path)-1] {
		u, v := h.node, t.path[i+1].node
		var room int64
		switch {
		case u == t.sink:
			_, room = t.bounds[v].less(t.outflow[v])
		case v == t.sink:
			_, room = t.bounds[u].more(t.outflow[u])
		default:
			room = t.moves.room(u, v, t.rows[u][h.at].member)
		}
		units = min(units, room)
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
			t.moves.move(u, v, t.rows[u][t.path[i].at].member, units)
			t.size[u] -= units
			t.size[v] += units
		}
	}
	t.excess[s] -= units
	t.excess[end] += units
	t.paths++
}

// enqueue adds an offer to the heap.
func (t *transport) enqueue(o offer) {
	i := len(t.queue)
	t.queue = append(t.queue, o)
	for i > 0 {
		up := (i - 1) / 2
		if t.queue[up].distance <= o.distance {
			break
		}
		t.queue[i] = t.queue[up]
		i = up
	}
	t.queue[i] = o
}

// dequeue takes the nearest offer off the heap.
func (t *transport) dequeue() offer {
	q := t.queue
	top, last := q[0], len(q)-1
	o := q[last]
	q = q[:last]
	t.queue = q
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
