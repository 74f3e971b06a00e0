package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// isMember is the gap of a point that stays a member.
const isMember = -math.MaxFloat32

// noGap is less than any gap between costs on the grid, and more than what
// [kernels.TopTwo] makes of none.
const noGap = 1e-30

// members makes the moves of a transport from the points. A column keeps the
// coordinates of its groups together, and its cheapest move to another column is a
// minimum of a linear function over them:
//
//	|x-v|^2 - |x-u|^2 = |v|^2 - |u|^2 - 2 x.(v-u)
//
// in float64, where it is exact; the columns "unassigned" and "escape" have a
// constant cost, so that |x|^2, one more coordinate, does not cancel.
//
// Of the points only the members take part, those that are nearly as well off in
// another column; identical ones are one group with a multiplicity, which may be
// divided among columns. A move of another point of column u has a reduced cost
// above known[u].
type members struct {
	s      *Solver
	t      transport
	p      *Problem
	points kernels.Panels
	run    Runner
	v      *view
	unit   float64
	scale  float64 // grid units in a unit

	k, d, dims      int
	escape, outside int32 // columns, -1 if there is none
	leave, reach    int64 // cost of "unassigned", longest arc
	exclusive       int64
	exact           bool      // linear functions are exact in float64
	centre          []float64 // k*d centroids in grid units
	norm            []float64 // their squares
	blocks          blocks
	known, listed   []int64 // lower bounds of unknown moves: of points, of columns

	columns []column
	// A group is named by one of its points. It has one slot, spot, in the column of its label, or, if spot is
	// negative, the slots in a list of links that begins at ^spot.
	spot      []int32
	labels    []uint16
	links     []link  // links[0] ends all lists
	free      int32   // a list of links that no group has
	count     int     // groups
	after     []int32 // the next point of the same group or, of a point that is no member, of the same column; -1: none
	arcs      []entry // of groups of ties, with a word of the hash: those of q are arcs[first[q]:first[q+1]]
	first     []int32
	origins   []origin
	fresh     []int32 // points that become members, ascending: the end of after, until they are
	horizon   float32
	lookahead float32 // how many times the gap that is asked for the next pass tells
	apart     float64 // no gap between two clusters is larger
	laid      bool    // the columns are laid out
	least     float32 // gap up to which points are listed
	near      int64   // reduced cost up to which a new row lists
	lay       func(worker, column int)
	find      func(worker, part int)
	digest    func(worker, part int)
	more      func(worker, index int)
	found     []int // of the parts
	laying    []laying
	table     []uint64     // of groups: their hash, and the point that names them, plus one
	deals     []int32      // records of a group
	shares    []Membership // its columns
	coef      []float64    // of a linear function
	going     []int32      // slots that can move
}

// column holds the groups that have units in a column.
type column struct {
	x      []float64 // x[c*stride+slot] is coordinate c in grid units
	stride int
	slots  []slot
	rest   int32 // the first of its points with a gap of at most members.horizon that are no members, -1: none
}

// slot is a part of a group, which is all identical members: its units in a column.
type slot struct{ group, units int32 }

// link is a slot of a column, none if that is -1, and the next one of the same group.
type link struct{ column, slot, next int32 }

// laying is the memory of a worker that lays columns out.
type laying struct {
	mean, apart []float64
	place       []float64 // the mean in units
	some        []int32   // clusters
	reach, away float64   // of the column's groups from their mean, at most, and of its centroid from it, squared
	listed      []bool    // columns
}

// begin takes the points as v sees them at s.prices: points with a gap of at most
// window, points that the view is not certain of and those with several columns
// become members. A window of +Inf takes all.
func (m *members) begin(ctx context.Context, run Runner, s *Solver, p *Problem, v *view, window float64) error {
	m.s, m.p, m.points, m.v, m.run, m.unit = s, p, p.Points, v, run, s.unit
	m.shape(s.columns)
	t := &m.t
	t.m, t.quantum = m, 0
	s.setRanges(p)
	copy(t.bounds, s.ascent.ranges)
	for _, e := range v.extra {
		v.gap[e.Point] = isMember
	}
	if err := m.collect(ctx, window); err != nil {
		return err
	}
	m.certify()
	prices := s.prices[:p.k()]
	m.apart = float64(p.reach()+slices.Max(prices)-slices.Min(prices)) * m.unit
	copy(t.size, v.size)
	for j, price := range s.prices {
		t.potential[j] = -price
	}
	t.setOutflows()
	return m.admit(ctx)
}

// shape sets what depends on the problem and not on the records.
func (m *members) shape(columns int) {
	p, k, d := m.p, m.p.k(), m.points.D
	m.t.resize(columns)
	m.k, m.d, m.dims = k, d, d
	m.outside, m.escape, m.leave, m.reach = int32(m.s.outside), int32(m.s.escape), p.UnassignedCost(), infinity
	if columns > k {
		m.dims, m.reach = d+1, p.reach()
	}
	m.exclusive = int64(p.exclusivity())
	m.exact = math.Ldexp(float64(d), 2*p.FractionBits+3) < 1<<53 && p.UnassignedCost() < 1<<52
	for _, x := range []*[]int64{&m.known, &m.listed} {
		*x = sized(*x, columns+1)
	}
	m.centre, m.norm = sized(m.centre, k*d), sized(m.norm, k)
	m.scale = math.Ldexp(1, p.FractionBits)
	for j := range k {
		var norm float64
		for c, y := range p.Centroids[j*d : j*d+d] {
			y := float64(y) * m.scale
			m.centre[j*d+c] = y
			norm += y * y // exact, fused or not, where it is used
		}
		m.norm[j] = norm
	}
	m.blocks.set(p, m.s.tune().blockClusters, m.norm)
	m.columns, m.laying = atLeast(m.columns, columns), atLeast(m.laying, m.run.Workers())
}

// certify gives the points that single precision cannot tell the cheapest column of
// their exact one.
func (m *members) certify() {
	v := m.v
	if v.exact {
		return
	}
	for _, i := range m.fresh {
		if v.gap[i] > noGap {
			continue
		}
		label, _, _, _ := m.s.topTwoOf(&m.s.scratch[0], m.p, m.s.prices, int(i))
		units := m.p.weight(int(i))
		v.size[v.labels[i]] -= units
		v.size[label] += units
		v.labels[i] = uint16(label)
	}
}

// collect lists the points with a gap of at most window in fresh.
func (m *members) collect(ctx context.Context, window float64) error {
	if window > m.v.certain {
		if err := m.sharpen(ctx, window); err != nil {
			return err
		}
	}
	m.least = float32(min(max(window, noGap), math.MaxFloat32/2))
	m.near = max(1, m.inGrid(m.least))
	n := m.points.N
	m.after, m.found = sized(m.after, n), sized(m.found, (n+listPoints-1)/listPoints)
	if err := m.run.Run(ctx, len(m.found), m.find); err != nil {
		return err
	}
	at := n
	for part := len(m.found) - 1; part >= 0; part-- {
		at -= m.found[part]
		copy(m.after[at:], m.after[part*listPoints:][:m.found[part]])
	}
	m.fresh = m.after[at:] // none is before its own place, so that join leaves those that are still to come
	return nil
}

// inGrid returns a gap in squared grid units, rounded down: larger gaps are more than that.
func (m *members) inGrid(gap float32) int64 { return int64(min(float64(gap)/m.unit, infinity/8)) }

// listPoints is the number of points that one call of listPart goes through.
const listPoints = 1 << 12

// listPart lists those of one part, without branches, and sets how many they are.
func (m *members) listPart(_, part int) {
	first, last := part*listPoints, min(m.points.N, (part+1)*listPoints)
	to, at, least := m.after[first:last], 0, m.least
	for i, gap := range m.v.gap[first:last] {
		to[at] = int32(first + i)
		if gap <= least {
			at++
		}
	}
	m.found[part] = at
}

// admit makes the listed points members, groups them and lays their columns out, on all workers if that pays.
func (m *members) admit(ctx context.Context) error {
	for u := range m.t.columns {
		m.known[u] = m.inGrid(m.least) + m.s.prices[u] // as in the pass that gave the gaps
		if len(m.fresh) == m.points.N {
			m.known[u] = infinity
		}
		c := &m.columns[u]
		c.slots, c.stride, c.rest = c.slots[:0], 0, -1
	}
	m.spot, m.labels = sized(m.spot, m.points.N), m.v.labels
	m.horizon, m.lookahead, m.laid = m.least, 1, false
	m.unlink()
	size := 2*len(m.fresh) + 16
	m.table = sized(m.table, size)
	clear(m.table)
	if err := m.run.Run(ctx, (len(m.fresh)+digestPoints-1)/digestPoints, m.digest); err != nil {
		return err
	}
	for _, i := range m.fresh {
		m.join(i, uint32(m.spot[i]))
	}
	m.laid = true
	m.see()
	const worthwhile = 1 << 13
	columns := m.t.columns
	return crewOf(m.run, len(m.fresh)*m.dims+columns*columns >= worthwhile).Run(ctx, columns, m.lay)
}

// digestPoints is the number of points that one call of digestPart hashes.
const digestPoints = 512

// digestPart hashes some of the listed points, and leaves the hashes where their slots will be.
func (m *members) digestPart(_, part int) {
	for _, i := range m.fresh[part*digestPoints : min(len(m.fresh), (part+1)*digestPoints)] {
		m.spot[i] = int32(m.hash(i))
	}
}

// foresee lists the points with a gap of at most horizon that are no members by their columns.
func (m *members) foresee(horizon float32) {
	m.horizon = horizon
	for u := range m.t.columns {
		m.columns[u].rest = -1
	}
	for i := len(m.after) - 1; i >= 0; i-- {
		if gap := m.v.gap[i]; gap <= horizon && gap != isMember {
			c := &m.columns[m.v.labels[i]]
			m.after[i], c.rest = c.rest, int32(i)
		}
	}
}

// widen makes the points of column u with a gap in a window that is twice as wide members.
func (m *members) widen(ctx context.Context, u int32) error {
	m.s.stats.Widenings++
	before := m.known[u]
	const widest = math.MaxFloat32 / 2 // no point has a larger gap
	least := float32(widest)
	if reach := 2 * max(before-m.s.prices[u], 1); reach < infinity/16 {
		least = float32(float64(reach) * m.unit)
	}
	const ahead = 16 // a pass takes longer than looking at a few gaps too many
	if float64(least) > m.v.certain && float64(least) < m.apart {
		if err := m.sharpen(ctx, float64(min(m.lookahead*least, widest))); err != nil {
			return err
		}
		m.lookahead *= ahead
	}
	if least > m.horizon {
		m.foresee(min(ahead*least, widest))
	}
	from := m.columns[u : u+1]
	if u == m.escape { // where all points have units
		from = m.columns[:m.t.columns]
	}
	next := float32(math.MaxFloat32) // the least gap of those that are left
	if m.horizon < widest {
		next = m.horizon
	}
	for at := range from {
		for link := &from[at].rest; *link >= 0; {
			i := *link
			if gap := m.v.gap[i]; gap <= least {
				*link = m.after[i]
				m.join(i, m.hash(i))
			} else {
				next, link = min(next, gap), &m.after[i]
			}
		}
	}
	m.known[u] = infinity
	if next < math.MaxFloat32 {
		m.known[u] = m.inGrid(max(least, math.Nextafter32(next, 0))) + m.s.prices[u]
	}
	// What the new members add to known moves.
	for at := range m.t.rows[u] {
		e := &m.t.rows[u][at]
		if bound := before - m.s.prices[e.column]; bound < e.cost {
			e.cost, e.member = bound, stale
		}
	}
	return ctx.Err()
}

// sharpen tells gaps of up to the given window.
func (m *members) sharpen(ctx context.Context, window float64) error {
	again := &m.s.ascent.trial
	if err := m.s.look(ctx, m.run, m.p, m.s.prices[:m.k], again, window); err != nil {
		return err
	}
	for i, gap := range again.gap {
		if m.v.gap[i] != isMember {
			m.v.gap[i] = max(m.v.gap[i], gap)
		}
	}
	m.v.certain = again.certain
	return nil
}

// join makes point i, of the given hash, a member: it adds its units to the group of all identical members and to the
// columns that it is in, and the rest to "escape".
func (m *members) join(i int32, hash uint32) {
	q, units := m.groupOf(i, hash), m.p.weight(int(i))
	m.v.gap[i] = isMember
	left := units * m.exclusive
	put := func(u int32, units int64) {
		s := m.put(q, u, units)
		if c := &m.columns[u]; m.laid && int(s) == len(c.slots)-1 {
			m.locate(c, int(s))
		}
		left -= units
	}
	held := m.v.held(i)
	for _, h := range held {
		put(int32(h.Cluster), int64(h.Units))
	}
	if len(held) == 0 {
		put(int32(m.v.labels[i]), units)
	}
	if left > 0 {
		put(m.escape, left)
	}
}

// groupOf returns the group of the members that are identical to point i, a new one if there are none, and puts it
// among them.
func (m *members) groupOf(i int32, hash uint32) int32 {
	if 3*m.count >= 2*len(m.table) {
		m.rehash(2*m.count + m.count/4)
	}
	at := m.place(i, hash)
	if q := int32(m.table[at]) - 1; q >= 0 {
		m.after[i], m.after[q] = m.after[q], i
		return q
	}
	m.table[at] = uint64(hash)<<32 | uint64(i+1)
	m.count++
	m.after[i], m.spot[i] = -1, -1
	return i
}

// place returns where the table has the group of point i, or has room for it.
func (m *members) place(i int32, hash uint32) int {
	at := int(uint64(hash) * uint64(len(m.table)) >> 32)
	for e := m.table[at]; e != 0 && (uint32(e>>32) != hash || !m.same(i, int32(e)-1)); e = m.table[at] {
		if at++; at == len(m.table) {
			at = 0
		}
	}
	return at
}

// rehash makes a table of the given size for the groups that there are.
func (m *members) rehash(size int) {
	before := m.table
	m.table = make([]uint64, size)
	for _, e := range before {
		if e != 0 {
			hash := uint32(e >> 32)
			m.table[m.place(int32(e)-1, hash)] = e
		}
	}
}

// at returns the index of the first coordinate of point i; the next is a panel's
// width further.
func at(i int32, d int) int {
	panel, lane := int(uint32(i)/kernels.Lanes), int(uint32(i)%kernels.Lanes) // unsigned divisions are shifts alone
	return panel*d*kernels.Lanes + lane
}

func (m *members) hash(i int32) uint32 {
	h, from := uint64(0x9e3779b97f4a7c15), at(i, m.d)
	for range m.d {
		h = (h ^ uint64(math.Float32bits(m.points.Data[from]))) * 0xd6e8feb86659fd93
		h ^= h >> 32
		from += kernels.Lanes
	}
	return uint32(h >> 32)
}

func (m *members) same(i, j int32) bool {
	a, b := at(i, m.d), at(j, m.d)
	for range m.d {
		if m.points.Data[a] != m.points.Data[b] {
			return false
		}
		a, b = a+kernels.Lanes, b+kernels.Lanes
	}
	return true
}

// unlink forgets all groups.
func (m *members) unlink() {
	m.links, m.free, m.count = append(m.links[:0], link{column: -1, slot: -1}), 0, 0
}

// head returns the first link of group q.
func (m *members) head(q int32) link {
	if s := m.spot[q]; s < 0 {
		return m.links[^s]
	}
	return link{int32(m.labels[q]), m.spot[q], 0}
}

// slotOf returns the slot of group q in column u, -1 if it has none.
func (m *members) slotOf(q, u int32) int32 {
	for at := m.head(q); at.column >= 0; at = m.links[at.next] {
		if at.column == u {
			return at.slot
		}
	}
	return -1
}

// put adds units of group q to column u and returns its slot.
func (m *members) put(q, u int32, units int64) int32 {
	c := &m.columns[u]
	s := m.slotOf(q, u)
	if s >= 0 {
		c.slots[s].units += int32(units)
		return s
	}
	s = int32(len(c.slots))
	if n := len(c.slots); n == cap(c.slots) {
		c.slots = append(slices.Grow([]slot(nil), n+n/8+4), c.slots...)
	}
	c.slots = append(c.slots, slot{q, int32(units)})
	m.attach(q, u, s)
	return s
}

// attach makes slot s of column u one of group q.
func (m *members) attach(q, u, s int32) {
	if only := m.spot[q]; only >= 0 {
		m.spot[q] = ^m.hold(link{int32(m.labels[q]), only, 0})
	} else if only == -1 && u <= math.MaxUint16 {
		m.labels[q], m.spot[q] = uint16(u), s
		return
	}
	m.spot[q] = ^m.hold(link{u, s, ^m.spot[q]})
}

// hold returns where in links it has put a link.
func (m *members) hold(l link) int32 {
	at := m.free
	if at == 0 {
		m.links = append(m.links, l)
		return int32(len(m.links) - 1)
	}
	m.free, m.links[at] = m.links[at].next, l
	return at
}

// detach takes the slot in column u from group q, which has several.
func (m *members) detach(q, u int32) {
	before, at := int32(0), ^m.spot[q]
	for m.links[at].column != u {
		before, at = at, m.links[at].next
	}
	next := m.links[at].next
	m.links[at].next, m.free = m.free, at
	if before > 0 {
		m.links[before].next = next
	} else {
		m.spot[q] = ^next
	}
	at = ^m.spot[q]
	if only := &m.links[at]; only.next == 0 && 0 <= only.column && only.column <= math.MaxUint16 {
		m.labels[q], m.spot[q] = uint16(only.column), only.slot
		only.next, m.free = m.free, at
	}
}

// rename makes slot s of a group in column u slot to.
func (m *members) rename(q, u, to int32) {
	at := ^m.spot[q]
	if at < 0 {
		m.spot[q] = to
		return
	}
	for m.links[at].column != u {
		at = m.links[at].next
	}
	m.links[at].slot = to
}

// layOut copies the coordinates of the groups in column u and lists its moves.
func (m *members) layOut(worker, u int) {
	c := &m.columns[u]
	for s := range c.slots {
		m.locate(c, s)
	}
	m.t.rows[u] = m.t.rows[u][:0]
	m.enlist(worker, int32(u), m.near)
}

// locate copies the coordinates of the group in a slot.
func (m *members) locate(c *column, s int) {
	m.fit(c)
	scale, norm := m.scale, 0.0
	from, to := at(c.slots[s].group, m.d), s
	for range m.d {
		y := float64(m.points.Data[from]) * scale
		c.x[to] = y
		norm += y * y // exact where it is used
		from += kernels.Lanes
		to += c.stride
	}
	if m.dims > m.d {
		c.x[to] = norm
	}
}

// fit makes room for the coordinates of all slots of a column.
func (m *members) fit(c *column) {
	n := len(c.slots)
	if n <= c.stride {
		return
	}
	x := c.x
	if cap(x) < m.dims*n {
		x = slices.Grow([]float64(nil), m.dims*(n+n/8+4))
	}
	stride := cap(x) / max(1, m.dims)
	x = x[:m.dims*stride]
	for h := range m.dims {
		copy(x[h*stride:], c.x[h*c.stride:(h+1)*c.stride])
	}
	c.x, c.stride = x, stride
}

// restrict sets the limit of column u.
func (m *members) restrict(u int32) {
	m.t.limit[u] = infinity
	if least := min(m.known[u], m.listed[u]); least < infinity {
		m.t.limit[u] = least + m.t.potential[u]
	}
}

// extend lowers the number of unknown moves of the columns that are asked for: it makes more points members where
// these come first, and appends to their rows, on all workers if that pays.
func (m *members) extend(ctx context.Context) error {
	const worthwhile = 1 << 12
	columns := m.t.ask
	for _, o := range columns {
		if m.known[o.node] <= m.listed[o.node] {
			if err := m.widen(ctx, o.node); err != nil {
				return err
			}
		}
	}
	if m.t.fallen {
		m.see()
	}
	return crewOf(m.run, len(columns)*m.t.columns >= worthwhile).Run(ctx, len(columns), m.more)
}

// enlistNext lists more moves of a column that is asked for.
func (m *members) enlistNext(worker, index int) {
	u := m.t.ask[index].node
	m.enlist(worker, u, 4*max(m.near, min(m.t.limit[u], infinity/8)))
}

// value returns the cost of column w for the group in slot s of column u.
func (m *members) value(u, s, w int32) int64 {
	if m.arcs != nil {
		for _, a := range m.arcsOf(m.columns[u].slots[s].group) {
			if a.column == w {
				return a.cost
			}
		}
		return infinity
	}
	if int(w) >= m.k {
		if w == m.outside {
			return m.leave
		}
		return 0
	}
	c, d := &m.columns[u], m.d
	at := int(s)
	var sum int64
	for _, y := range m.centre[int(w)*d : int(w)*d+d] {
		t := int64(c.x[at] - y)
		sum += t * t
		at += c.stride
	}
	return sum
}

// accepts returns how many more units of the group in slot s of column u column v
// takes.
func (m *members) accepts(u, s, v int32) int64 {
	if m.reach < infinity && (int(v) < m.k || m.arcs != nil) && m.value(u, s, v) > m.reach {
		return 0
	}
	if m.exclusive == 1 {
		return infinity
	}
	q := m.columns[u].slots[s].group
	room := m.capacity(q, v)
	if other := m.slotOf(q, v); other >= 0 {
		room -= int64(m.columns[v].slots[other].units)
	}
	return room
}

// capacity returns how many units of group q column v takes at most.
func (m *members) capacity(q, v int32) int64 {
	if v == m.escape {
		return m.copies(q) * (m.exclusive - 1)
	}
	return m.copies(q)
}

// copies returns the multiplicity of group q.
func (m *members) copies(q int32) (units int64) {
	if m.arcs != nil {
		return int64(m.origins[q].units)
	}
	for at := m.head(q); at.column >= 0; at = m.links[at.next] {
		units += int64(m.columns[at.column].slots[at.slot].units)
	}
	return units / m.exclusive
}

// room returns how many units of column u can move to column v at no more than the given cost,
// up to as many as are enough, and lists their slots in going: slot s if it has enough, and
// where a point may be in several columns.
func (m *members) room(u, v, s int32, cost, enough int64) int64 {
	if units := min(int64(m.columns[u].slots[s].units), m.accepts(u, s, v)); units >= enough || m.exclusive > 1 {
		m.going = append(m.going[:0], s)
		return min(units, enough)
	}
	return m.gather(u, v, cost, enough)
}

// gather lists the slots of column u that can move to column v at no more than the given
// cost, until they have enough units, and returns how many they have, at most that.
func (m *members) gather(u, v int32, cost, enough int64) (units int64) {
	c := &m.columns[u]
	m.going = m.going[:0]
	var coef []float64
	var most float64
	if m.exact {
		dims, constant := m.slope(u, v)
		coef, most = m.coef[:dims], float64(cost-constant)
	}
	for i := range int32(len(c.slots)) {
		if m.exact {
			sum, at := 0.0, int(i)
			for _, y := range coef {
				sum += y * c.x[at] // exact, fused or not
				at += c.stride
			}
			if sum > most {
				continue
			}
		} else if m.value(u, i, v)-m.value(u, i, u) > cost {
			continue
		}
		if m.accepts(u, i, v) > 0 {
			m.going = append(m.going, i)
			if units += int64(c.slots[i].units); units >= enough {
				return enough
			}
		}
	}
	return units
}

// cheapest returns the least cost of a move from column u to column v and the slot of u
// that has it; infinity if there is none.
func (m *members) cheapest(u, v int32) (int64, int32) {
	c := &m.columns[u]
	if len(c.slots) == 0 {
		return infinity, stale
	}
	if m.exact {
		dims, constant := m.slope(u, v)
		least, s := kernels.LeastDot(c.x, c.stride, len(c.slots), m.coef[:dims])
		if m.accepts(u, int32(s), v) > 0 {
			return int64(least) + constant, int32(s)
		}
	}
	best, member := int64(infinity), int32(stale)
	for s := range int32(len(c.slots)) {
		if cost := m.value(u, s, v) - m.value(u, s, u); cost < best && m.accepts(u, s, v) > 0 {
			best, member = cost, s
		}
	}
	return best, member
}

// slope sets coef to the gradient of the cost of v less that of u, and returns its
// length and the constant term.
func (m *members) slope(u, v int32) (dims int, constant int64) {
	d := m.d
	m.coef = sized(m.coef, d+1)
	coef := m.coef
	clear(coef)
	part := func(w int32, sign float64) {
		switch {
		case int(w) < m.k:
			for h, y := range m.centre[int(w)*d : int(w)*d+d] {
				coef[h] -= 2 * sign * y
			}
			coef[d] += sign
			constant += int64(sign * m.norm[w])
		case w == m.outside:
			constant += int64(sign) * m.leave
		}
	}
	part(v, 1)
	part(u, -1)
	if coef[d] == 0 {
		return d, constant
	}
	return d + 1, constant
}

// move moves units of the slots in going from column u to column v, and offers the moves
// that this makes possible. None of the slots costs more than the given cost.
func (m *members) move(u, v int32, cost, units int64) {
	row, slots := m.t.rows[u], m.columns[u].slots
	if len(m.going) == 1 {
		s, last := m.going[0], int32(len(slots)-1)
		q := slots[s].group
		to, gone := m.transfer(u, v, s, units)
		m.offerAll(u, v, to)
		if m.exclusive > 1 {
			m.reopen(q, u, v)
		}
		if !gone {
			return
		}
		for i := range m.t.rows[u] {
			if e := &m.t.rows[u][i]; e.member == s {
				e.member = stale
			} else if e.member == last {
				e.member = s
			}
		}
		return
	}
	for i := len(m.going) - 1; i >= 0 && units > 0; i-- { // the last slot takes the place of one that goes
		part := min(units, int64(slots[m.going[i]].units))
		m.transfer(u, v, m.going[i], part)
		units -= part
	}
	left := int32(len(m.columns[u].slots))
	for i := range row {
		if _, moved := slices.BinarySearch(m.going, row[i].member); moved || row[i].member >= left {
			row[i].member = stale // what is left costs no less
		}
	}
	m.inherit(u, v, cost)
}

// transfer moves units of slot s of column u to column v. It returns their slot there and
// reports whether slot s is gone.
func (m *members) transfer(u, v, s int32, units int64) (to int32, gone bool) {
	from, c := &m.columns[u], &m.columns[v]
	had := len(c.slots)
	if to = m.put(from.slots[s].group, v, units); len(c.slots) > had {
		m.fit(c)
		for h := range m.dims {
			c.x[h*c.stride+int(to)] = from.x[h*from.stride+int(s)]
		}
	}
	if from.slots[s].units -= int32(units); from.slots[s].units > 0 {
		return to, false
	}
	m.drop(u, s)
	return to, true
}

// drop removes the empty slot s of column u; the last one takes its place.
func (m *members) drop(u, s int32) {
	c := &m.columns[u]
	last := int32(len(c.slots) - 1)
	m.detach(c.slots[s].group, u)
	if s != last {
		m.rename(c.slots[last].group, u, s)
		c.slots[s] = c.slots[last]
		for h := range m.dims {
			c.x[h*c.stride+int(s)] = c.x[h*c.stride+int(last)]
		}
	}
	c.slots = c.slots[:last]
}

// offerAll adds the moves of the group that has come from column u into slot s of
// column v to the row of v. The move was along an arc of reduced cost at most 0, so
// those of its moves that are in neither row exceed what those of u exceed.
func (m *members) offerAll(u, v, s int32) {
	t := &m.t
	m.forget(u, v)
	own, row := m.value(v, s, v), t.rows[v]
	for i := range row {
		e := &row[i]
		t.where[e.column] = 1
		cost := m.value(v, s, e.column) - own
		if cost < e.cost && m.accepts(v, s, e.column) > 0 {
			e.cost, e.member = cost, s
		}
	}
	for _, e := range t.rows[u] {
		if e.column != v && t.where[e.column] == 0 {
			m.offer(v, e.column, s, own)
		}
	}
	if t.where[u] == 0 {
		m.offer(v, u, s, own)
	}
	for _, e := range row {
		t.where[e.column] = 0
	}
}

// forget makes column v know no more than column u of moves that are in neither row.
func (m *members) forget(u, v int32) {
	if t := &m.t; m.listed[u] < infinity && len(t.rows[v]) < t.columns-1 {
		m.listed[v] = min(m.listed[v], m.listed[u]+t.potential[u]-t.potential[v])
		m.restrict(v)
	}
}

// inherit lowers the row of column v to bounds of the moves of groups that have come from
// column u at no more than the given cost: to another column they cost at least what the
// moves from u did, less that.
func (m *members) inherit(u, v int32, cost int64) {
	t := &m.t
	m.forget(u, v)
	from := t.rows[u]
	for i, e := range from {
		t.where[e.column] = int32(i) + 1
	}
	known := false
	for i := range t.rows[v] {
		e := &t.rows[v][i]
		bound := int64(infinity)
		switch at := t.where[e.column]; {
		case e.column == u:
			bound, known = -cost, true
		case at > 0:
			bound = from[at-1].cost
		case m.listed[u] < infinity:
			bound = m.listed[u] + t.potential[e.column]
		}
		if e.column != u && bound < infinity {
			bound -= cost
		}
		if bound < e.cost {
			e.cost, e.member = bound, stale
		}
		t.where[e.column] = 0
	}
	for _, e := range from {
		if t.where[e.column] > 0 && e.column != v && e.cost < infinity && e.cost-cost-t.potential[e.column] <= m.listed[v] {
			t.rows[v] = append(t.rows[v], entry{e.cost - cost, e.column, stale})
		}
		t.where[e.column] = 0
	}
	if !known && -cost-t.potential[u] <= m.listed[v] {
		t.rows[v] = append(t.rows[v], entry{-cost, u, stale})
	}
}

// offer adds the move from slot s of column v, where its group costs own, to column
// w, which is not in the row of v, unless it exceeds what such moves exceed.
func (m *members) offer(v, w, s int32, own int64) {
	t := &m.t
	cost := m.value(v, s, w) - own
	if cost-t.potential[w] <= m.listed[v] && m.accepts(v, s, w) > 0 {
		t.rows[v] = append(t.rows[v], entry{cost, w, s})
	}
}

// reopen does what a move of group q from column u to v changes for its units in
// other columns: they can move to u now, and perhaps no longer to v.
func (m *members) reopen(q, u, v int32) {
	t := &m.t
	for at := m.head(q); at.column >= 0; at = m.links[at.next] {
		x := at.column
		own, known := m.value(x, at.slot, x), x == u
		row := t.rows[x]
		for i := range row {
			e := &row[i]
			if e.column == v && e.member == at.slot && m.accepts(x, at.slot, v) == 0 {
				e.member = stale
			}
			if e.column == u {
				known = true
				if cost := m.value(x, at.slot, u) - own; cost < e.cost && m.accepts(x, at.slot, u) > 0 {
					e.cost, e.member = cost, at.slot
				}
			}
		}
		if !known {
			m.offer(x, u, at.slot, own)
		}
	}
}

// release gives the units of the groups back to their points: the columns of a
// group, in ascending order, are dealt out in turn to its records in the order of
// the points.
func (m *members) release() {
	v := m.v
	v.extra = v.extra[:0]
	for u := range m.columns[:m.t.columns] {
		for _, x := range m.columns[u].slots {
			q := x.group
			if m.spot[q] >= 0 {
				for i := m.after[q]; i >= 0; i = m.after[i] {
					v.labels[i] = v.labels[q]
				}
			} else if int(m.head(q).column) == u {
				m.share(q)
			}
		}
	}
	slices.SortFunc(v.extra, byPoint)
}

// share gives the units of group q back to its points.
func (m *members) share(q int32) {
	v, columns, copies := m.v, m.shares[:0], m.copies(q)
	for at := m.head(q); at.column >= 0; at = m.links[at.next] {
		if units := m.columns[at.column].slots[at.slot].units; at.column != m.escape && units > 0 {
			columns = append(columns, Membership{Cluster: uint16(at.column), Units: units})
		}
	}
	m.shares = columns
	if len(columns) == 1 && int64(columns[0].Units) == copies {
		for i := q; i >= 0; i = m.after[i] {
			v.labels[i] = columns[0].Cluster
		}
		return
	}
	m.deals = m.deals[:0]
	for i := q; i >= 0; i = m.after[i] {
		m.deals = append(m.deals, i)
	}
	slices.SortFunc(columns, func(a, b Membership) int { return int(a.Cluster) - int(b.Cluster) })
	slices.SortFunc(m.deals, func(a, b int32) int {
		if ids := m.s.order.ids; m.s.ordered {
			a, b = ids[a], ids[b]
		}
		return int(a - b)
	})
	m.p.deal(columns, m.deals, copies, func(i int32, held []Membership) {
		v.labels[i] = held[0].Cluster
		if len(held) > 1 || int64(held[0].Units) < m.p.weight(int(i)) {
			v.extra = append(v.extra, held...)
		}
	})
}

func byPoint(a, b Membership) int {
	if a.Point != b.Point {
		return int(a.Point - b.Point)
	}
	return int(a.Cluster) - int(b.Cluster)
}

// deal gives records their share of columns, in ascending order, of which one of
// the given number of copies takes one unit in turn.
func (p *Problem) deal(columns []Membership, records []int32, copies int64, give func(i int32, held []Membership)) {
	var held []Membership
	first := int64(0)
	for _, i := range records {
		own := p.weight(int(i))
		// The number of turns before t that are this record's.
		turns := func(t int64) int64 { return t/copies*own + min(own, max(0, t%copies-first)) }
		held = held[:0]
		turn := int64(0)
		for _, c := range columns {
			next := turn + int64(c.Units)
			if units := turns(next) - turns(turn); units > 0 {
				held = append(held, Membership{i, c.Cluster, int32(units)})
			}
			turn = next
		}
		first += own
		give(i, held)
	}
}
