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
	n, k, e := p.Points.N, p.k(), p.exclusivity()
	g := &network{}
	var supply, demand int64
	for i := range n {
		g.node(int64(e) * p.weight(i))
		supply += int64(e) * p.weight(i)
	}
	centroid, clone := int32(n), int32(n+k)
	for range k {
		g.node(0)
	}
	for j := range k {
		g.node(-int64(p.Lo[j]))
		demand += int64(p.Lo[j])
	}
	if p.Total || p.Penalty != nil {
		supply += demand
	}
	sink := g.node(demand - supply)

	c := kernels.NewCentroids(k, p.Points.D)
	c.Set(p.Centroids)
	hash := newTieHash(p.Key, p.FractionBits)
	reach := p.reach()
	row := make([]int64, k)
	digests := make([]digest, n)
	first := make([]int, n+1) // arcs of point i are first[i] to first[i+1]-1
	for i := range n {
		first[i] = len(g.tail)
		kernels.CostRows(p.Points, i, i+1, c, p.FractionBits, row)
		digests[i] = hash.digest(p, i)
		for j, d := range row {
			if d <= reach {
				h0, h1 := hash.words(digests[i], j)
				g.arc(int32(i), centroid+int32(j), p.weight(i), weight{0, d, h0, h1})
			}
		}
	}
	first[n] = len(g.tail)
	under, over := p.slopes()
	for j := range int32(k) {
		g.arc(centroid+j, clone+j, int64(p.Hi[j]), weight{})
		if p.Penalty != nil {
			g.arc(centroid+j, clone+j, unlimited, weight{distance: over})
		}
		g.arc(clone+j, sink, unlimited, weight{})
	}
	if e > 1 {
		escape := g.node(0)
		for i := range n {
			g.arc(int32(i), escape, int64(e-1)*p.weight(i), weight{})
		}
		g.arc(escape, sink, unlimited, weight{})
	}
	if p.mayLeave() {
		for i := range n {
			g.arc(int32(i), sink, p.weight(i), weight{units: 1})
		}
	}
	firstFiller := len(g.tail)
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

	flow, shortage, err := g.minimise(ctx)
	if err != nil {
		return nil, fmt.Errorf("flow: reference: %w", err)
	}
	res := &Result{Labels: slices.Repeat([]uint16{uint16(k)}, n), Sizes: make([]int, k), Fillers: make([]int, k),
		Units: append([]int32(nil), p.Weights...)}
	reached := make([]int64, k)
	of := make([][]Membership, n)
	for i := range n {
		for a := first[i]; a < first[i+1]; a++ {
			if flow[a] > 0 {
				j := g.head[a] - centroid
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
			res.Fillers[j] = int(flow[firstFiller+j])
		}
	}
	settle(p, digests, of)
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
			p.name(hash, c, of[i], res)
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
