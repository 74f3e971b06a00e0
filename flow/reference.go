package flow

import (
	"context"
	"fmt"
	"slices"
)

// weight is an arc cost of the explicit network, compared word by word: units
// left unassigned or filled up, squared grid distance, and the two words of the
// tie hash. Sums stay word by word too, so weights form an ordered group and
// every theorem on minimum-cost flows holds for them.
type weight struct{ units, distance, hash0, hash1 int64 }

func (a weight) plus(b weight) weight {
	return weight{a.units + b.units, a.distance + b.distance, a.hash0 + b.hash0, a.hash1 + b.hash1}
}

func (a weight) minus(b weight) weight {
	return weight{a.units - b.units, a.distance - b.distance, a.hash0 - b.hash0, a.hash1 - b.hash1}
}

func (a weight) less(b weight) bool {
	switch {
	case a.units != b.units:
		return a.units < b.units
	case a.distance != b.distance:
		return a.distance < b.distance
	case a.hash0 != b.hash0:
		return a.hash0 < b.hash0
	}
	return a.hash1 < b.hash1
}

// Reference solves p by shortest augmenting paths in the network of the papers, for reading and for checking
// [Solver], whose assignments it reproduces. It keeps a cost of four words and two counts for every point and
// cluster; 12,500 points and 100 clusters take some seconds.
//
// The network (FastLloyd, Figure 1) leads from each point to the clusters and from a cluster to the sink, lo_j
// units first and hi_j in all. With a radius (Figure 8) the arcs beyond it are missing, and points have an arc to
// the sink whose cost counts units, before any distance. With exclusivity E (Thesis-H, section 4.1.4) points supply
// E units each and have an arc of capacity E-1 to an escape node, which leads to the sink. A unit that a minimum
// lacks costs a filler in a total problem, the penalty of a soft size, and else more than all other costs.
func Reference(ctx context.Context, p *Problem) (*Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	g := newNetwork(p)
	for i := range p.Points.N {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("flow: reference: %w", err)
		}
		for left := p.weight(i) * int64(p.exclusivity()); left > 0; {
			left -= g.send(i, left)
		}
	}
	return g.result()
}

// network is the network of a problem and its flow. Columns are the clusters, "unassigned" and "escape".
type network struct {
	p       *Problem
	hash    *tieHash
	digests []digest // of the points
	columns int

	cost       []weight  // of point i in column c at i*columns+c
	room       []int64   // units that it could have more there
	held       [][]int64 // units of column c and point i
	size       []int64   // of the columns
	under, top weight    // of a unit below the minimum, and above the maximum
	moves      []move    // the cheapest from column u to v, at u*columns+v
	paths      []move    // the shortest to each column, by its last move
}

// move takes a point from a column, -1 if it is not in one yet, and its cost or that of the path which it ends.
// Point -1 stands for none.
type move struct {
	point, from int
	cost        weight
}

func newNetwork(p *Problem) *network {
	n, k, e := p.Points.N, p.k(), int64(p.exclusivity())
	columns, outside, escape := p.columns(false)
	g := &network{p: p, hash: newTieHash(p), digests: make([]digest, n), columns: columns,
		cost: make([]weight, n*columns), room: make([]int64, n*columns), held: make([][]int64, columns),
		size: make([]int64, columns), moves: make([]move, columns*columns), paths: make([]move, columns)}
	const unfilled = 1 << 20 // more units than a path may leave unassigned
	g.under = weight{units: unfilled}
	if under, over := p.slopes(); p.Penalty != nil {
		g.under, g.top = weight{distance: under}, weight{distance: over}
	} else if p.Total {
		g.under = weight{units: 1}
	}
	for c := range columns {
		g.held[c] = make([]int64, n)
		g.survey(c)
	}
	reach := p.reach()
	for i := range n {
		cost, room := g.cost[i*columns:(i+1)*columns], g.room[i*columns:(i+1)*columns]
		g.digests[i] = g.hash.digest(p, i)
		for j := range k {
			if d := p.cost(i, j); d <= reach {
				h0, h1 := g.hash.words(g.digests[i], j)
				cost[j], room[j] = weight{0, d, h0, h1}, p.weight(i)
			}
		}
		if outside >= 0 {
			cost[outside], room[outside] = weight{units: 1}, p.weight(i)
		}
		if escape >= 0 {
			room[escape] = (e - 1) * p.weight(i)
		}
	}
	return g
}

// survey finds the cheapest moves out of column u.
func (g *network) survey(u int) {
	for v := range g.columns {
		g.moves[u*g.columns+v] = move{point: -1}
	}
	for i, units := range g.held[u] {
		if units > 0 {
			g.offer(i, u)
		}
	}
}

// offer offers the moves of point i out of column u.
func (g *network) offer(i, u int) {
	at, moves := i*g.columns, g.moves[u*g.columns:(u+1)*g.columns]
	own := g.cost[at+u]
	for v, room := range g.room[at : at+g.columns] {
		if m, cost := &moves[v], g.cost[at+v].minus(own); v != u && room > 0 && (m.point < 0 || cost.less(m.cost)) {
			*m = move{i, u, cost}
		}
	}
}

// outlet returns the cost of one unit more in column c and how many have that cost.
func (g *network) outlet(c int) (weight, int64) {
	const unlimited = 1 << 60
	if c >= g.p.k() {
		return weight{}, unlimited
	}
	switch lo, hi, z := int64(g.p.Lo[c]), int64(g.p.Hi[c]), g.size[c]; {
	case z < lo:
		return weight{}.minus(g.under), lo - z
	case z < hi:
		return weight{}, hi - z
	case g.p.Penalty != nil:
		return g.top, unlimited
	}
	return weight{}, 0
}

// send sends units of point i, at most the given number, along a shortest path to the sink, and returns how many.
func (g *network) send(i int, units int64) int64 {
	end, least := g.search(i)
	if end < 0 {
		panic("flow: reference: a point has no place") // the sizes are checked
	}
	units = min(units, least)
	for c := end; c >= 0; {
		h := g.paths[c]
		units = min(units, g.room[h.point*g.columns+c])
		if c = h.from; c >= 0 {
			units = min(units, g.held[c][h.point])
		}
	}
	g.size[end] += units
	for c := end; c >= 0; {
		h := g.paths[c]
		g.held[c][h.point] += units
		g.room[h.point*g.columns+c] -= units
		if c = h.from; c >= 0 {
			g.held[c][h.point] -= units
			g.room[h.point*g.columns+c] += units
		}
	}
	changed := make([]bool, g.columns)
	for c := end; c >= 0; c = g.paths[c].from {
		changed[c] = changed[c] || c != end
		for other := range changed { // its point has more or less room to move to from here
			changed[other] = changed[other] || other != c && g.held[other][g.paths[c].point] > 0
		}
	}
	if !changed[end] {
		g.offer(g.paths[end].point, end)
	}
	for u := range changed {
		if changed[u] {
			g.survey(u)
		}
	}
	return units
}

// search finds the shortest paths of point i (Bellman and Ford). It returns the column from which the one to the sink
// comes, -1 if there is none, and how many units that takes.
func (g *network) search(i int) (end int, units int64) {
	var queue []int
	queued := make([]bool, g.columns)
	reach := func(c int, h move) {
		if p := &g.paths[c]; p.point < 0 || h.cost.less(p.cost) {
			*p = h
			if !queued[c] {
				queue, queued[c] = append(queue, c), true
			}
		}
	}
	for c := range g.paths {
		g.paths[c] = move{point: -1}
		if g.room[i*g.columns+c] > 0 {
			reach(c, move{i, -1, g.cost[i*g.columns+c]})
		}
	}
	for len(queue) > 0 {
		u := queue[0]
		queue, queued[u] = queue[1:], false
		for v, m := range g.moves[u*g.columns : (u+1)*g.columns] {
			if m.point >= 0 {
				reach(v, move{m.point, u, g.paths[u].cost.plus(m.cost)})
			}
		}
	}
	end = -1
	var best weight
	for c, h := range g.paths {
		if cost, room := g.outlet(c); h.point >= 0 && room > 0 {
			if cost = cost.plus(h.cost); end < 0 || cost.less(best) {
				end, units, best = c, room, cost
			}
		}
	}
	return end, units
}

// result is the assignment that the flow stands for.
func (g *network) result() (*Result, error) {
	p, n, k := g.p, g.p.Points.N, g.p.k()
	res := &Result{Labels: slices.Repeat([]uint16{uint16(k)}, n), Sizes: make([]int, k), Fillers: make([]int, k),
		Units: append([]int32(nil), p.Weights...)}
	short := false
	of := make([][]Membership, n)
	for j, held := range g.held[:k] {
		for i, units := range held {
			if units > 0 {
				of[i] = append(of[i], Membership{int32(i), uint16(j), int32(units)})
			}
		}
		res.Sizes[j] = int(g.size[j])
		if missing := p.Lo[j] - res.Sizes[j]; missing > 0 && p.Penalty == nil {
			res.Fillers[j], short = missing, !p.Total
		}
	}
	if short {
		return nil, p.outOfReach(g.size)
	}
	settle(p, g.digests, of)
	for i := range n {
		placed := int64(0)
		for _, m := range of[i] {
			placed += int64(m.Units)
		}
		res.Unassigned += int(max(0, p.weight(i)-placed))
		if p.Weights != nil {
			res.Units[i] = 0
		}
		if len(of[i]) > 0 {
			p.name(g.hash, of[i], res)
		}
	}
	return res, nil
}

// settle deals the clusters of identical records out again in the fixed order of
// [Problem.deal].
func settle(p *Problem, digests []digest, of [][]Membership) {
	groups := make(map[digest][]int32)
	for i, d := range digests {
		groups[d] = append(groups[d], int32(i))
	}
	for _, group := range groups {
		count, copies := map[uint16]int32{}, int64(0)
		for _, i := range group {
			copies += p.weight(int(i))
			for _, m := range of[i] {
				count[m.Cluster] += m.Units
			}
			of[i] = nil
		}
		var columns []Membership
		for j, units := range count {
			columns = append(columns, Membership{Cluster: j, Units: units})
		}
		slices.SortFunc(columns, func(a, b Membership) int { return int(a.Cluster) - int(b.Cluster) })
		p.deal(columns, group, copies, func(i int32, held []Membership) { of[i] = slices.Clone(held) })
	}
}
