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

func (a weight) negated() weight {
	return weight{-a.units, -a.distance, -a.hash0, -a.hash1}
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
// parent links with doubly linked lists of children.
type simplex struct {
	g     *network
	flow  []int64
	state []int8
	root  int32

	parent   []int32
	up       []bool // the arc to the parent points to the parent
	treeArc  []int32
	depth    []int32
	child    []int32 // first child, -1 if none
	next     []int32
	previous []int32
	price    []weight

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
		parent: make([]int32, nodes+1), up: make([]bool, nodes+1), treeArc: make([]int32, nodes+1),
		depth: make([]int32, nodes+1), child: make([]int32, nodes+1), next: make([]int32, nodes+1),
		previous: make([]int32, nodes+1), price: make([]weight, nodes+1),
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
		var e int
		if g.supply[v] >= 0 {
			e = g.arc(v, s.root, unlimited, weight{units: artificialUnits})
			s.up[v], s.flow[e] = true, g.supply[v]
			s.price[v] = weight{units: -artificialUnits}
		} else {
			e = g.arc(s.root, v, unlimited, weight{units: artificialUnits})
			s.flow[e] = -g.supply[v]
			s.price[v] = weight{units: artificialUnits}
		}
		s.treeArc[v] = int32(e)
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

func (s *simplex) link(v, parent int32) {
	first := s.child[parent]
	s.next[v], s.previous[v] = first, -1
	if first >= 0 {
		s.previous[first] = v
	}
	s.child[parent] = v
}

func (s *simplex) unlink(v, parent int32) {
	n, p := s.next[v], s.previous[v]
	if n >= 0 {
		s.previous[n] = p
	}
	if p >= 0 {
		s.next[p] = n
	} else {
		s.child[parent] = n
	}
}

// enter returns the arc of most negative reduced cost in the first block of
// arcs that has one, -1 if no arc has one (the flow is optimal).
func (s *simplex) enter(block int) int {
	g, arcs := s.g, len(s.g.tail)
	best, bestCost := -1, weight{}
	left := block
	for range arcs {
		e := s.scan
		if s.scan++; s.scan == arcs {
			s.scan = 0
		}
		if st := s.state[e]; st != inTree {
			c, a, b := &g.cost[e], &s.price[g.tail[e]], &s.price[g.head[e]]
			sign := int64(st)
			units := (c.units + a.units - b.units) * sign
			if units < bestCost.units || units == bestCost.units {
				distance := (c.distance + a.distance - b.distance) * sign
				if units < bestCost.units || distance <= bestCost.distance {
					r := weight{units, distance, (c.hash0 + a.hash0 - b.hash0) * sign, (c.hash1 + a.hash1 - b.hash1) * sign}
					if r.less(bestCost) {
						best, bestCost = e, r
					}
				}
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
		room := s.flow[s.treeArc[v]]
		if !s.up[v] {
			room = g.capacity[s.treeArc[v]] - room
		}
		if room < delta {
			delta, out, side = room, v, 1
		}
	}
	for v := second; v != apex; v = s.parent[v] {
		room := s.flow[s.treeArc[v]]
		if s.up[v] {
			room = g.capacity[s.treeArc[v]] - room
		}
		if room <= delta {
			delta, out, side = room, v, 2
		}
	}
	if delta > 0 {
		push := delta * int64(s.state[e])
		s.flow[e] += push
		for v := tail; v != apex; v = s.parent[v] {
			if s.up[v] {
				s.flow[s.treeArc[v]] -= push
			} else {
				s.flow[s.treeArc[v]] += push
			}
		}
		for v := head; v != apex; v = s.parent[v] {
			if s.up[v] {
				s.flow[s.treeArc[v]] += push
			} else {
				s.flow[s.treeArc[v]] -= push
			}
		}
	}
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
	g := s.g
	v, parent, arc, up := in, under, e, g.tail[e] == in
	for {
		oldParent, oldArc, oldUp := s.parent[v], s.treeArc[v], s.up[v]
		s.unlink(v, oldParent)
		s.parent[v], s.treeArc[v], s.up[v] = parent, arc, up
		s.link(v, parent)
		if v == out {
			break
		}
		v, parent, arc, up = oldParent, v, oldArc, !oldUp
	}
	reduced := g.cost[e].plus(s.price[g.tail[e]]).minus(s.price[g.head[e]])
	if s.up[in] {
		reduced = reduced.negated()
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
