package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// exchange is the exact solver for problems in which every point has one cluster,
// any of them: successive shortest paths on the clusters and a hub, as in
// [residual], but without arcs. Each cluster keeps the coordinates of its points
// together, and the cheapest move from cluster u to v is a minimum of a linear
// function over them:
//
//	|x-v|^2 - |x-u|^2 = |v|^2 - |u|^2 - 2 x.(v-u)
//
// in float64, where it is exact. A minimum is looked for when a search needs it.
// Until then its entry is stale: a lower bound, because points have left since.
//
// Of the points of a cluster only the members take part, those near another
// cluster. A move of another point of cluster u has a reduced cost of at least
// bound[u]; a search that gets as far as that asks for more members.
type exchange struct {
	k, d    int
	centre  []float64 // k*d centroids in grid units
	norm    []float64 // their squares
	points  kernels.Panels
	labels  []uint16
	gap     []float32 // of all points; isMember where they are members
	window  float64   // up to which points are members
	unit    float64
	bits    int
	offset  []int64   // potentials at the pass that gave the gaps
	begin   []int32   // members of cluster u: slots begin[u] to begin[u]+count[u]-1
	count   []int32   // of members
	id      []int32   // points of the slots
	x       []float64 // x[c*stride+slot] is coordinate c, in grid units
	stride  int
	fresh   []int32   // members, ascending, when they were laid out
	parts   [][]int32 // of fresh
	limit   float32
	ctx     context.Context
	run     Runner
	work    func(worker, index int) // collect's, bound once
	weight  []int64                 // weight[u*k+v] is the cost of the cheapest move from u to v, or less
	mover   []int32                 // its slot, -1 if stale
	bound   []int64
	size    []int64
	lo, hi  []int64
	outflow []int64
	excess  []int64 // of the clusters and the hub

	potential []int64
	distance  []int64
	via       []int32
	open      []int64 // distance of the nodes that are not settled
	order     []int32
	coef      []float64
	scratch   []laying                  // per worker
	lay       func(worker, cluster int) // layOut, bound once
	nearest   int64                     // distance of the closest node that lacks a unit, so far
	paths     int
	widenings int
}

// laying is what a worker needs to lay a cluster out: the mean of the members and
// their squared distances to it.
type laying struct{ mean, apart []float64 }

// isMember is the gap of a member.
const isMember = math.MaxFloat32

// noGap is less than any gap between costs on the grid, and more than what
// [kernels.TopTwo] makes of none.
const noGap = 1e-30

// far is more than any distance in a search.
const far = 1 << 61

// worksOn reports whether exchange and ascent apply to p: every point must find a
// place among any of the clusters, their table must be small, and the linear
// functions exact.
func worksOn(p *Problem) bool {
	const largestTable = 512
	if k := p.k(); p.exclusivity() > 1 || p.Radius > 0 || k < 2 || k > largestTable || p.Points.N == 0 {
		return false
	}
	if math.Ldexp(float64(p.Points.D), 2*p.FractionBits+3) >= 1<<53 {
		return false
	}
	if p.Total {
		var lo, hi int
		for j := range p.Lo {
			lo += min(p.Lo[j], p.Points.N)
			hi += min(p.Hi[j], p.Points.N)
		}
		return lo <= p.Points.N && p.Points.N <= hi
	}
	return true
}

// beginExchange takes the points as v sees them at the given prices, which it makes exact.
// Points with a gap of at most window become members; a window of +Inf takes all.
func (s *Solver) beginExchange(ctx context.Context, run Runner, p *Problem, v *view, window float64) error {
	x := &s.exchange
	k, d := p.k(), p.Points.D
	x.ctx, x.run = ctx, run
	for len(x.scratch) < run.Workers() {
		x.scratch = append(x.scratch, laying{})
	}
	x.resize(k, d)
	x.points, x.labels, x.gap = p.Points, v.labels, v.gap
	x.unit, x.bits = s.unit, p.FractionBits
	scale := math.Ldexp(1, p.FractionBits)
	for j := range k {
		var norm float64
		for c, y := range p.Centroids[j*d : j*d+d] {
			y := float64(y) * scale
			x.centre[j*d+c] = y
			norm += y * y // exact, fused or not
		}
		x.norm[j] = norm
	}
	for j := range k {
		x.potential[j] = -s.prices[j]
		x.offset[j] = -s.prices[j]
		x.lo[j], x.hi[j] = int64(min(p.Lo[j], p.Points.N)), int64(min(p.Hi[j], p.Points.N))
	}
	x.potential[k] = 0
	row := s.scratch[0].grow(k)
	clear(x.size)
	for j, c := range v.size {
		x.size[j] = int64(c)
	}
	if err := x.collect(noGap); err != nil {
		return err
	}
	for _, i := range x.fresh {
		// Single precision does not tell which cluster is the cheapest.
		kernels.CostRows(p.Points, int(i), int(i)+1, s.centroids, p.FractionBits, row)
		best, label := int64(absent), 0
		for j, c := range row {
			if value := c + s.prices[j]; value < best {
				best, label = value, j
			}
		}
		x.size[v.labels[i]]--
		x.size[label]++
		v.labels[i] = uint16(label)
		v.gap[i] = 0
	}
	x.excess[k] = 0
	for j := range k {
		switch price := s.prices[j]; {
		case price > 0:
			x.outflow[j] = x.hi[j]
		case price == 0:
			x.outflow[j] = min(x.hi[j], max(x.lo[j], x.size[j]))
		default:
			x.outflow[j] = x.lo[j]
		}
		x.excess[j] = x.size[j] - x.outflow[j]
		x.excess[k] -= x.excess[j]
	}
	x.paths, x.widenings = 0, 0
	clear(x.count)
	return x.admit(window)
}

func (x *exchange) resize(k, d int) {
	x.k, x.d = k, d
	grow64 := func(s []int64, n int) []int64 { return slices.Grow(s[:0], n)[:n] }
	grow32 := func(s []int32, n int) []int32 { return slices.Grow(s[:0], n)[:n] }
	x.centre = slices.Grow(x.centre[:0], k*d)[:k*d]
	x.norm = slices.Grow(x.norm[:0], k)[:k]
	x.coef = slices.Grow(x.coef[:0], d)[:d]
	x.begin, x.count = grow32(x.begin, k+1), grow32(x.count, k)
	x.weight, x.mover = grow64(x.weight, k*k), grow32(x.mover, k*k)
	x.bound, x.size, x.offset = grow64(x.bound, k), grow64(x.size, k), grow64(x.offset, k)
	x.lo, x.hi, x.outflow = grow64(x.lo, k), grow64(x.hi, k), grow64(x.outflow, k)
	x.excess, x.potential, x.distance = grow64(x.excess, k+1), grow64(x.potential, k+1), grow64(x.distance, k+1)
	x.via = grow32(x.via, k+1)
	x.open = grow64(x.open, k+1)
}

// collect lists the members and the points with a gap of at most limit in fresh.
func (x *exchange) collect(limit float32) error {
	x.limit = limit
	x.fresh = x.fresh[:0]
	const part = 1 << 14
	n := len(x.gap)
	if n <= 4*part || x.run.Workers() == 1 {
		x.fresh = x.list(x.fresh, 0, n)
		return x.ctx.Err()
	}
	count := (n + part - 1) / part
	for len(x.parts) < count {
		x.parts = append(x.parts, nil)
	}
	if x.work == nil {
		x.work = func(_, index int) {
			x.parts[index] = x.list(x.parts[index][:0], index*part, min((index+1)*part, len(x.gap)))
		}
	}
	if err := x.run.Run(x.ctx, count, x.work); err != nil {
		return err
	}
	for _, p := range x.parts[:count] {
		x.fresh = append(x.fresh, p...)
	}
	return nil
}

// list appends those of the points [first, last) that collect looks for.
func (x *exchange) list(points []int32, first, last int) []int32 {
	for i, gap := range x.gap[first:last] {
		if gap <= x.limit || gap == isMember {
			points = append(points, int32(first+i))
		}
	}
	return points
}

// admit makes the points with a gap of at most window members, beside those that
// are, lays the members out by cluster, each with room for what it may gain, and
// sets what is known of the moves.
func (x *exchange) admit(window float64) error {
	k, d := x.k, x.d
	limit := float32(min(max(window, noGap), math.MaxFloat32/2))
	if err := x.collect(limit); err != nil {
		return err
	}
	if 2*len(x.fresh) > len(x.gap) { // nearly all: spare the bounds
		window, limit = math.Inf(1), math.MaxFloat32/2
		if err := x.collect(limit); err != nil {
			return err
		}
	}
	clear(x.count)
	for _, i := range x.fresh {
		x.count[x.labels[i]]++
	}
	left := int64(0) // paths to come, each of which adds a point at most
	for _, e := range x.excess {
		left += max(0, e)
	}
	total := int32(0)
	for u := range k {
		x.begin[u] = total
		// Its size is its outflow, at most hi, and its excess, which only tends to 0.
		total += x.count[u] + int32(min(left, x.hi[u]-x.outflow[u]+max(0, -x.excess[u]))) + 1
	}
	x.begin[k] = total
	clear(x.count)
	x.id = slices.Grow(x.id[:0], int(total))[:total]
	x.stride = int(total)
	x.x = slices.Grow(x.x[:0], d*x.stride)[:d*x.stride]
	for _, i := range x.fresh {
		x.gap[i] = isMember
		u := x.labels[i]
		x.id[x.begin[u]+x.count[u]] = i
		x.count[u]++
	}
	const worthwhile = 1 << 16 // coordinates
	if len(x.fresh)*d < worthwhile || x.run.Workers() == 1 {
		for u := range k {
			x.layOut(0, u)
		}
	} else {
		if x.lay == nil {
			x.lay = x.layOut
		}
		if err := x.run.Run(x.ctx, k, x.lay); err != nil {
			return err
		}
	}
	x.window = window
	for u := range k {
		x.bound[u] = absent
		if float64(limit) < math.MaxFloat32/4 {
			x.bound[u] = int64(float64(limit)/x.unit) + x.potential[u] - x.offset[u]
		}
	}
	return nil
}

// layOut copies the coordinates of the members of cluster u and sets lower bounds
// of the moves out of it: with m their mean, none of them farther than r from it, a
// move to v costs at least |v|^2 - |u|^2 - 2 m.(v-u) - 2 r |v-u|; and no reduced
// cost is negative.
func (x *exchange) layOut(worker, u int) {
	k, d := x.k, x.d
	first, last := int(x.begin[u]), int(x.begin[u]+x.count[u])
	cu := x.centre[u*d : u*d+d]
	w := &x.scratch[worker]
	w.apart = slices.Grow(w.apart[:0], last-first)[:last-first]
	w.mean = slices.Grow(w.mean[:0], d)[:d]
	clear(w.apart)
	mean, scale := w.mean, math.Ldexp(1, x.bits)
	for slot := first; slot < last; slot++ {
		i := int(x.id[slot])
		from, to := i/kernels.Lanes*d*kernels.Lanes+i%kernels.Lanes, slot
		for range d {
			x.x[to] = float64(x.points.Data[from]) * scale
			from += kernels.Lanes
			to += x.stride
		}
	}
	for c := range d {
		row := x.x[c*x.stride+first : c*x.stride+last]
		sum := 0.0
		for _, y := range row {
			sum += y
		}
		m := sum / float64(max(1, last-first))
		mean[c] = m
		for at, y := range row {
			w.apart[at] += (y - m) * (y - m)
		}
	}
	reach := 0.0
	for _, r := range w.apart {
		reach = max(reach, r)
	}
	const spare = 1 + 1e-9 // for rounding
	reach = 2 * math.Sqrt(reach) * spare
	for v := range k {
		at := u*k + v
		if u == v {
			x.weight[at], x.mover[at] = absent, 0
			continue
		}
		cv := x.centre[v*d : v*d+d]
		dot, apart := 0.0, 0.0
		for c, y := range cv {
			t := y - cu[c]
			dot += mean[c] * t
			apart += t * t
		}
		middle, margin := x.norm[v]-x.norm[u]-2*dot, reach*math.Sqrt(apart)
		bound := middle - margin - 1e-9*(math.Abs(middle)+margin+x.norm[u]+x.norm[v]) - 2
		x.weight[at] = max(x.potential[v]-x.potential[u], int64(bound))
		x.mover[at] = -1
	}
}

// refresh finds the cheapest move from u to v.
func (x *exchange) refresh(u, v int32) int64 {
	at := int(u)*x.k + int(v)
	count := x.count[u]
	if count == 0 {
		x.weight[at], x.mover[at] = absent, 0
		return absent
	}
	x.direct(u, v)
	begin := x.begin[u]
	least, slot := kernels.LeastDot(x.x[begin:], x.stride, int(count), x.coef)
	weight := int64(least + x.norm[v] - x.norm[u])
	x.weight[at], x.mover[at] = weight, begin+int32(slot)
	return weight
}

// direct sets coef to -2 (v-u).
func (x *exchange) direct(u, v int32) {
	d := x.d
	cu, cv := x.centre[int(u)*d:int(u)*d+d], x.centre[int(v)*d:int(v)*d+d]
	for c := range x.coef {
		x.coef[c] = -2 * (cv[c] - cu[c])
	}
}

// move sends the point in the given slot of cluster u to cluster v.
func (x *exchange) move(u, v, slot int32) {
	k, d := x.k, x.d
	last := x.begin[u] + x.count[u] - 1
	point := x.id[slot]
	to := x.begin[v] + x.count[v]
	x.id[to] = point
	for c := range d {
		row := x.x[c*x.stride : (c+1)*x.stride]
		row[to] = row[slot]
		row[slot] = row[last]
	}
	x.id[slot] = x.id[last]
	row := x.mover[int(u)*k : int(u)*k+k]
	for w, m := range row {
		if m == slot {
			row[w] = -1
		} else if m == last {
			row[w] = slot
		}
	}
	row[u] = 0
	x.count[u]--
	x.count[v]++
	x.size[u]--
	x.size[v]++
	x.labels[point] = uint16(v)
	own := x.value(v, to)
	weights, movers := x.weight[int(v)*k:int(v)*k+k], x.mover[int(v)*k:int(v)*k+k]
	for w := range int32(k) {
		if w == v {
			continue
		}
		if cost := x.value(w, to) - own; cost < weights[w] {
			weights[w], movers[w] = cost, to
		}
	}
}

// value returns |w|^2 - 2 x.w for centroid w and the point x in a slot.
func (x *exchange) value(w, slot int32) int64 {
	d := x.d
	sum := 0.0
	for c, y := range x.centre[int(w)*d : int(w)*d+d] {
		sum += y * x.x[c*x.stride+int(slot)]
	}
	return int64(x.norm[w] - 2*sum)
}

// solve augments until no unit is in excess.
func (x *exchange) solve() error {
	for s := range int32(x.k + 1) {
		for x.excess[s] > 0 {
			if x.paths&63 == 0 {
				if err := x.ctx.Err(); err != nil {
					return err
				}
			}
			if err := x.augment(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// augment sends one unit from s along a shortest path to a node that lacks one.
// There is one, because the bounds leave room for all points.
func (x *exchange) augment(s int32) error {
	k, hub := x.k, int32(x.k)
	target, found := x.search(s)
	for !found {
		if len(x.fresh) == len(x.gap) {
			panic("flow: no path although all points are members")
		}
		x.widenings++
		if err := x.admit(x.wider()); err != nil {
			return err
		}
		target, found = x.search(s)
	}
	for _, v := range x.order {
		if fall := x.distance[target] - x.distance[v]; fall > 0 {
			x.potential[v] -= fall
			if v < hub && x.bound[v] < absent {
				x.bound[v] -= fall
			}
		}
	}
	// From the end on, so that slots are still what the search saw.
	for v := target; v != s; v = x.via[v] {
		switch u := x.via[v]; {
		case u == hub:
			x.outflow[v]--
		case v == hub:
			x.outflow[u]++
		default:
			x.move(u, v, x.mover[int(u)*k+int(v)])
		}
	}
	x.excess[s]--
	x.excess[target]++
	x.paths++
	return nil
}

// search looks for the nearest node that lacks a unit (Dijkstra). It reports false
// where it needs more members.
func (x *exchange) search(s int32) (target int32, found bool) {
	hub := int32(x.k)
	for v := range x.distance {
		x.distance[v], x.open[v] = far, far
	}
	x.order = x.order[:0]
	x.distance[s], x.via[s] = 0, -1
	x.nearest = far
	horizon := int64(absent)
	for u := s; ; {
		d := x.distance[u]
		switch {
		case d > horizon || d == far:
			return u, false
		case x.excess[u] < 0:
			return u, true
		}
		x.open[u] = absent
		x.order = append(x.order, u)
		if u == hub {
			for v := range hub {
				if x.outflow[v] > x.lo[v] {
					x.reach(hub, v, d+x.potential[hub]-x.potential[v])
				}
			}
			u = x.closest()
			continue
		}
		if x.outflow[u] < x.hi[u] {
			x.reach(u, hub, d+x.potential[u]-x.potential[hub])
		}
		if x.bound[u] < absent {
			horizon = min(horizon, d+x.bound[u])
		}
		u = x.relax(u, d)
	}
}

// reach offers node v the way through u of length d.
func (x *exchange) reach(u, v int32, d int64) {
	if d < x.distance[v] && d < x.nearest {
		x.distance[v], x.open[v], x.via[v] = d, d, u
		if x.excess[v] < 0 {
			x.nearest = d
		}
	}
}

// relax offers all moves out of u at distance d and returns the closest open node.
func (x *exchange) relax(u int32, d int64) int32 {
	k := x.k
	base := d + x.potential[u]
	weights, movers := x.weight[int(u)*k:int(u)*k+k], x.mover[int(u)*k:int(u)*k+k]
	potential, distance, open := x.potential[:k], x.distance[:k], x.open[:k]
	closest, least := int32(k), x.open[k]
	for v, weight := range weights {
		if d := base + weight - potential[v]; d < distance[v] && d < x.nearest {
			if movers[v] < 0 {
				weight = x.refresh(u, int32(v))
			}
			if weight != absent {
				x.reach(u, int32(v), base+weight-potential[v])
			}
		}
		if open[v] < least {
			closest, least = int32(v), open[v]
		}
	}
	return closest
}

// closest returns the open node of least distance, any if none was reached.
func (x *exchange) closest() int32 {
	u, least := int32(0), x.open[0]
	for v, d := range x.open {
		if d < least {
			u, least = int32(v), d
		}
	}
	return u
}

// wider returns the next window.
func (x *exchange) wider() float64 { return 4 * max(x.window, x.unit) }

// price returns the price of cluster j.
func (x *exchange) price(j int) int64 { return x.potential[x.k] - x.potential[j] }

// tie is a point in one cluster that is as cheap in another.
type tie struct{ point, in, other int32 }

// tied appends all ties. Points that are not members have none: their bounds are
// positive.
func (x *exchange) tied(ties []tie) []tie {
	k, d := x.k, x.d
	for u := range int32(k) {
		for v := range int32(k) {
			// An entry that is too low is lower than this, too: see layOut.
			at := int(u)*k + int(v)
			tight := x.potential[v] - x.potential[u]
			if u == v || x.weight[at] != tight || x.mover[at] < 0 && x.refresh(u, v) != tight {
				continue
			}
			x.direct(u, v)
			equal := float64(tight) - x.norm[v] + x.norm[u]
			for i := x.begin[u]; i < x.begin[u]+x.count[u]; i++ {
				sum := 0.0
				for c, w := range x.coef[:d] {
					sum += w * x.x[c*x.stride+int(i)] // exact, fused or not
				}
				if sum == equal {
					ties = append(ties, tie{x.id[i], u, v})
				}
			}
		}
	}
	return ties
}
