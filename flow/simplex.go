package flow

import (
	"context"
	"math"
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

// unlimited is the capacity of an arc without one.
const unlimited = math.MaxInt64 / 4

// network is a directed graph with supplies at the nodes (negative: demands)
// and arcs from 0 units up to a capacity.
type network struct {
	supply   []int64
	tail     []int32
	head     []int32
	capacity []int64
	cost     []weight
}

func (g *network) node(supply int64) int32 {
	g.supply = append(g.supply, supply)
	return int32(len(g.supply) - 1)
}

func (g *network) arc(tail, head int32, capacity int64, cost weight) int {
	g.tail = append(g.tail, tail)
	g.head = append(g.head, head)
	g.capacity = append(g.capacity, capacity)
	g.cost = append(g.cost, cost)
	return len(g.tail) - 1
}

// States of an arc in the simplex: at its lower bound 0, in the spanning tree,
// at its capacity.
const (
	atLower int8 = 1
	inTree  int8 = 0
	atUpper int8 = -1
)

// simplex is the primal network simplex method on strongly feasible spanning
// trees with block-search pricing. Node root is artificial; the tree is kept as
// parent links with linked lists of children.
type simplex struct {
	g     *network
	flow  []int64
	state []int8
	root  int32

	parent  []int32
	treeArc []int32
	depth   []int32
	child   []int32 // first child, -1 if none
	next    []int32 // the parent's next child
	price   []weight

	stack []int32
	scan  int // where the next block search begins
}

// artificialUnits prices an arc to the artificial root above every other path.
const artificialUnits = 1 << 20

// minimise finds a minimum-cost flow of g. It returns the flow of each arc and
// the units that no feasible flow carries, summed per node (all zero if the
// network is feasible; then the flow is a minimum-cost one).
func (g *network) minimise(ctx context.Context) (flow, shortage []int64, err error) {
	nodes, arcs := len(g.supply), len(g.tail)
	s := &simplex{
		g: g, root: int32(nodes),
		parent: make([]int32, nodes+1), treeArc: make([]int32, nodes+1), depth: make([]int32, nodes+1),
		child: make([]int32, nodes+1), next: make([]int32, nodes+1), price: make([]weight, nodes+1),
		flow: make([]int64, arcs+nodes), state: make([]int8, arcs+nodes),
	}
	for e := range arcs {
		s.state[e] = atLower
	}
	g.supply = append(g.supply, 0)
	for v := range s.child {
		s.child[v] = -1
	}
	s.parent[s.root] = -1
	for v := range int32(nodes) {
		s.parent[v], s.depth[v] = s.root, 1
		s.link(v, s.root)
		tail, head, units := v, s.root, g.supply[v]
		if units < 0 {
			tail, head, units = s.root, v, -units
		}
		e := g.arc(tail, head, unlimited, weight{units: artificialUnits})
		s.treeArc[v], s.flow[e] = int32(e), units
		s.price[v] = s.reduced(e)
		if s.up(v) {
			s.price[v] = weight{}.minus(s.price[v])
		}
	}
	block := max(10, int(math.Sqrt(float64(arcs+nodes))))
	for pivots := 0; ; pivots++ {
		if pivots&1023 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
		}
		e := s.enter(block)
		if e < 0 {
			break
		}
		s.pivot(e)
	}
	shortage = make([]int64, nodes)
	for v := range nodes {
		shortage[v] = s.flow[arcs+v]
	}
	return s.flow[:arcs], shortage, nil
}

func (s *simplex) link(v, parent int32) { s.next[v], s.child[parent] = s.child[parent], v }

func (s *simplex) unlink(v, parent int32) {
	at := &s.child[parent]
	for *at != v {
		at = &s.next[*at]
	}
	*at = s.next[v]
}

// up reports whether the arc between node v and its parent points to the parent.
func (s *simplex) up(v int32) bool { return s.g.tail[s.treeArc[v]] == v }

// room returns how much more the arc between node v and its parent can carry, upwards or downwards.
func (s *simplex) room(v int32, upwards bool) int64 {
	e := s.treeArc[v]
	if s.up(v) == upwards {
		return s.g.capacity[e] - s.flow[e]
	}
	return s.flow[e]
}

// send adds units to the flow from node v up to the apex.
func (s *simplex) send(v, apex int32, units int64) {
	for ; v != apex; v = s.parent[v] {
		if s.up(v) {
			s.flow[s.treeArc[v]] += units
		} else {
			s.flow[s.treeArc[v]] -= units
		}
	}
}

// reduced returns the reduced cost of arc e.
func (s *simplex) reduced(e int) weight {
	return s.g.cost[e].plus(s.price[s.g.tail[e]]).minus(s.price[s.g.head[e]])
}

// enter returns the arc of most negative reduced cost in the first block of
// arcs that has one, -1 if no arc has one (the flow is optimal).
func (s *simplex) enter(block int) int {
	arcs := len(s.g.tail)
	best, bestCost := -1, weight{}
	left := block
	for range arcs {
		e := s.scan
		if s.scan++; s.scan == arcs {
			s.scan = 0
		}
		if st := s.state[e]; st != inTree {
			r := s.reduced(e)
			if st == atUpper {
				r = weight{}.minus(r)
			}
			if r.less(bestCost) {
				best, bestCost = e, r
			}
		}
		if left--; left == 0 {
			if best >= 0 {
				break
			}
			left = block
		}
	}
	return best
}

// pivot brings arc e into the tree. The leaving arc is the last blocking one
// along the cycle from its apex, which keeps the tree strongly feasible and so
// rules out cycling.
func (s *simplex) pivot(e int) {
	g := s.g
	tail, head := g.tail[e], g.head[e]
	first, second := tail, head
	if s.state[e] == atUpper {
		first, second = head, tail
	}
	apex := first
	for v := second; apex != v; {
		if s.depth[apex] >= s.depth[v] {
			apex = s.parent[apex]
		} else {
			v = s.parent[v]
		}
	}
	delta, side := g.capacity[e], 0
	var out int32
	for v := first; v != apex; v = s.parent[v] {
		if room := s.room(v, false); room < delta {
			delta, out, side = room, v, 1
		}
	}
	for v := second; v != apex; v = s.parent[v] {
		if room := s.room(v, true); room <= delta {
			delta, out, side = room, v, 2
		}
	}
	push := delta * int64(s.state[e])
	s.flow[e] += push
	s.send(tail, apex, -push)
	s.send(head, apex, push)
	if side == 0 {
		s.state[e] = -s.state[e]
		return
	}
	s.state[e] = inTree
	if leaving := s.treeArc[out]; s.flow[leaving] == 0 {
		s.state[leaving] = atLower
	} else {
		s.state[leaving] = atUpper
	}
	in, under := first, second
	if side == 2 {
		in, under = second, first
	}
	s.hang(in, under, out, int32(e))
}

// hang moves the subtree cut off at out below node under: arc e joins node in
// of the subtree to it, and the links between in and out turn round.
func (s *simplex) hang(in, under, out, e int32) {
	v, parent, arc := in, under, e
	for {
		oldParent, oldArc := s.parent[v], s.treeArc[v]
		s.unlink(v, oldParent)
		s.parent[v], s.treeArc[v] = parent, arc
		s.link(v, parent)
		if v == out {
			break
		}
		v, parent, arc = oldParent, v, oldArc
	}
	reduced := s.reduced(int(e))
	if s.up(in) {
		reduced = weight{}.minus(reduced)
	}
	s.stack = append(s.stack[:0], in)
	for len(s.stack) > 0 {
		v := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		s.price[v] = s.price[v].plus(reduced)
		s.depth[v] = s.depth[s.parent[v]] + 1
		for c := s.child[v]; c >= 0; c = s.next[c] {
			s.stack = append(s.stack, c)
		}
	}
}
