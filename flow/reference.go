package flow

import (
	"context"
	"fmt"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// Reference solves p by network simplex on the explicit graph of the papers, for
// reading and for checking [Solver], whose assignments it reproduces. It builds
// n*k arcs with four-word costs (48 bytes each); 12,500 points and 100 clusters
// take a few seconds.
//
// The graph (FastLloyd, Figure 1): a node per point with supply 1; per cluster a
// centroid node, joined to its clone by an arc of capacity hi_j; the clone demands
// lo_j, behind that arc so that the cluster takes hi_j units in all; a sink that
// demands the rest. With a radius (Figure 8) the arcs beyond it are missing, and
// points have an arc to the sink whose cost counts units, before any distance.
// With exclusivity E (Thesis-H, section 4.1.4) points supply E and have an arc of
// capacity E-1 to an escape node, which leads to the sink. In a total problem a
// node of fillers has arcs of capacity lo_j to the clones, again at one unit each.
func Reference(ctx context.Context, p *Problem) (*Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	g := newGraph(p)
	flow, shortage, err := g.minimise(ctx)
	if err != nil {
		return nil, fmt.Errorf("flow: reference: %w", err)
	}
	return g.result(flow, shortage)
}

// graph is the explicit graph of a problem.
type graph struct {
	network
	p         *Problem
	centroids *kernels.Centroids
	hash      *tieHash
	digests   []digest // of the points
	centroid  int32    // the first centroid node
	first     []int    // arcs of point i to clusters are first[i] to first[i+1]-1
	filler    int      // the first arc of the fillers
}

func newGraph(p *Problem) *graph {
	n, k, e := p.Points.N, p.k(), int64(p.exclusivity())
	g := &graph{p: p, centroids: kernels.NewCentroids(k, p.Points.D), hash: newTieHash(p.Key, p.FractionBits),
		digests: make([]digest, n), centroid: int32(n), first: make([]int, n+1)}
	g.centroids.Set(p.Centroids)
	var supply, demand int64
	for i := range n {
		g.node(e * p.weight(i))
		supply += e * p.weight(i)
	}
	for range k {
		g.node(0)
	}
	clone := int32(n + k)
	for _, lo := range p.Lo {
		g.node(-int64(lo))
		demand += int64(lo)
	}
	if p.Total || p.Penalty != nil {
		supply += demand
	}
	sink := g.node(demand - supply)
	g.pairs()
	under, over := p.slopes()
	for j := range int32(k) {
		g.arc(g.centroid+j, clone+j, int64(p.Hi[j]), weight{})
		if p.Penalty != nil {
			g.arc(g.centroid+j, clone+j, unlimited, weight{distance: over})
		}
		g.arc(clone+j, sink, unlimited, weight{})
	}
	if e > 1 {
		escape := g.node(0)
		for i := range n {
			g.arc(int32(i), escape, (e-1)*p.weight(i), weight{})
		}
		g.arc(escape, sink, unlimited, weight{})
	}
	if p.mayLeave() {
		for i := range n {
			g.arc(int32(i), sink, p.weight(i), weight{units: 1})
		}
	}
	g.filler = len(g.tail)
	if p.Total || p.Penalty != nil {
		price := weight{units: 1}
		if p.Penalty != nil {
			price = weight{distance: under}
		}
		fillers := g.node(demand)
		for j := range int32(k) {
			g.arc(fillers, clone+j, int64(p.Lo[j]), price)
		}
		g.arc(fillers, sink, unlimited, weight{})
	}
	return g
}

// pairs adds the arcs of the points to the clusters within reach.
func (g *graph) pairs() {
	p, row, reach := g.p, make([]int64, g.p.k()), g.p.reach()
	for i := range g.digests {
		g.first[i] = len(g.tail)
		kernels.CostRows(p.Points, i, i+1, g.centroids, p.FractionBits, row)
		g.digests[i] = g.hash.digest(p, i)
		for j, d := range row {
			if d <= reach {
				h0, h1 := g.hash.words(g.digests[i], j)
				g.arc(int32(i), g.centroid+int32(j), p.weight(i), weight{0, d, h0, h1})
			}
		}
	}
	g.first[len(g.digests)] = len(g.tail)
}

// result is the assignment that a flow of the graph stands for.
func (g *graph) result(flow, shortage []int64) (*Result, error) {
	p, n, k := g.p, len(g.digests), g.p.k()
	res := &Result{Labels: slices.Repeat([]uint16{uint16(k)}, n), Sizes: make([]int, k), Fillers: make([]int, k),
		Units: append([]int32(nil), p.Weights...)}
	reached := make([]int64, k)
	of := make([][]Membership, n)
	for i := range n {
		for a := g.first[i]; a < g.first[i+1]; a++ {
			if flow[a] > 0 {
				j := g.head[a] - g.centroid
				of[i] = append(of[i], Membership{int32(i), uint16(j), int32(flow[a])})
				reached[j] += flow[a]
				res.Sizes[j] += int(flow[a])
			}
		}
	}
	if slices.Max(shortage) > 0 {
		return nil, p.outOfReach(reached)
	}
	if p.Total && p.Penalty == nil {
		for j := range k {
			res.Fillers[j] = int(flow[g.filler+j])
		}
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
			p.name(g.hash, g.centroids, of[i], res)
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

// nearer reports whether cluster a is before cluster b by (distance, tie hash).
func nearer(hash *tieHash, d digest, row []int64, a, b int32) bool {
	if row[a] != row[b] {
		return row[a] < row[b]
	}
	a0, a1 := hash.words(d, int(a))
	b0, b1 := hash.words(d, int(b))
	if a0 != b0 {
		return a0 < b0
	}
	return a1 < b1
}
