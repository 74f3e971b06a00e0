package flow

import (
	"context"
	"fmt"
	"slices"
)

// digestOf returns the digest of point i, computed once per Solve.
func (s *Solver) digestOf(p *Problem, i int32) digest {
	if d, ok := s.digests[i]; ok {
		return d
	}
	if s.digests == nil {
		s.digests = make(map[int32]digest)
	}
	d := s.hash.digest(p, int(i))
	s.digests[i] = d
	return d
}

// breakTies replaces the flow in levels[0], optimal in distance, by the one that
// is also optimal in the tie hash. Optimal flows differ only along tight arcs
// (complementary slackness: prices are optimal for all of them), so each word of
// the hash is minimised by the same solver over the tight arcs of the level
// before, with the sizes that its prices leave open. Where the tight arcs have no
// cycle the optimum is unique already, and nothing is hashed.
func (s *Solver) breakTies(ctx context.Context, p *Problem) error {
	clear(s.digests)
	deepest := 0
	for level := 1; level < len(s.levels); level++ {
		cyclic := s.tighten(level)
		if !cyclic {
			break
		}
		deepest = level
		if err := s.rehash(ctx, p, level); err != nil {
			return err
		}
		if level == 1 {
			s.stats.Tied = len(s.levels[1].first)
		}
	}
	for level := deepest; level > 0; level-- {
		upper, lower := &s.levels[level-1], &s.levels[level]
		for a, from := range s.origin[level] {
			c := &upper.arcs[from]
			upper.size[c.column] += int64(lower.arcs[a].count - c.count)
			c.count = lower.arcs[a].count
		}
	}
	if deepest > 0 {
		s.settle(p)
	}
	return nil
}

// tighten fills the given level with the points that could change columns at no
// cost in the level before, and with their tight arcs. It reports whether the
// tight arcs have a cycle, through the hub if prices leave sizes open.
func (s *Solver) tighten(level int) bool {
	upper, lower := &s.levels[level-1], &s.levels[level]
	lower.resize(upper.columns)
	lower.filler, lower.widen = 0, nil
	copy(lower.room, upper.room)
	copy(lower.size, upper.size)
	s.origin[level] = s.origin[level][:0]
	hub := int32(upper.columns)
	s.union = s.union[:0]
	for j := range hub + 1 {
		s.union = append(s.union, j)
	}
	cyclic := false
	for j := range int(hub) {
		lower.lo[j], lower.hi[j] = upper.lo[j], upper.hi[j]
		switch price := upper.price(j); {
		case price > 0:
			lower.lo[j] = upper.hi[j]
		case price < 0 && upper.filler > 0 && price < -upper.filler:
			lower.lo[j], lower.hi[j] = 0, 0
		case price < 0 && upper.filler > 0 && price == -upper.filler:
			lower.lo[j], lower.hi[j] = 0, upper.lo[j]
		case price < 0:
			lower.hi[j] = upper.lo[j]
		}
		if lower.lo[j] < lower.hi[j] && s.unite(int32(j), hub) {
			cyclic = true
		}
	}
	for q := range upper.first {
		lo, hi := upper.first[q], upper.end[q]
		last, next := int64(-absent), int64(absent) // dearest used, cheapest with room
		for a := lo; a < hi; a++ {
			c := &upper.arcs[a]
			v := c.cost + upper.price(int(c.column))
			if c.count > 0 {
				last = max(last, v)
			}
			if c.count < upper.room[c.column] {
				next = min(next, v)
			}
		}
		if last < next {
			continue
		}
		previous := int32(-1)
		for a := lo; a < hi; a++ {
			c := upper.arcs[a]
			if c.cost+upper.price(int(c.column)) != last {
				continue
			}
			if previous >= 0 && s.unite(previous, c.column) {
				cyclic = true
			}
			previous = c.column
			lower.arcs = append(lower.arcs, arc{0, c.column, c.count})
			s.origin[level] = append(s.origin[level], a)
		}
		lower.close(absent)
	}
	return cyclic
}

// unite joins two sets of columns and reports whether they were one.
func (s *Solver) unite(a, b int32) bool {
	for s.union[a] != a {
		s.union[a] = s.union[s.union[a]]
		a = s.union[a]
	}
	for s.union[b] != b {
		s.union[b] = s.union[s.union[b]]
		b = s.union[b]
	}
	s.union[a] = b
	return a == b
}

// pointOf returns the point that arc a of a level belongs to.
func (s *Solver) pointOf(level int, a int32) int32 {
	for ; level > 0; level-- {
		a = s.origin[level][a]
	}
	return s.free[s.levels[0].owner[a]]
}

// rehash minimises word level-1 of the tie hash over the arcs of the level.
func (s *Solver) rehash(ctx context.Context, p *Problem, level int) error {
	r := &s.levels[level]
	k := int32(p.k())
	var order []int32
	for q := range r.first {
		lo, hi := r.first[q], r.end[q]
		d := s.digestOf(p, s.pointOf(level, lo))
		units := int32(0)
		order = order[:0]
		for a := lo; a < hi; a++ {
			c := &r.arcs[a]
			if c.column < k {
				hash0, hash1 := s.hash.words(d, int(c.column))
				c.cost = hash0
				if level == 2 {
					c.cost = hash1
				}
			}
			units += c.count
			r.size[c.column] -= int64(c.count)
			order = append(order, a)
		}
		slices.SortFunc(order, func(a, b int32) int {
			switch x, y := r.arcs[a].cost, r.arcs[b].cost; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return int(a - b)
		})
		for _, a := range order {
			c := &r.arcs[a]
			c.count = min(units, r.room[c.column])
			units -= c.count
			r.size[c.column] += int64(c.count)
		}
	}
	r.start(make([]int64, r.columns), absent)
	o, err := r.run(ctx, 0)
	if err != nil {
		return err
	}
	if o != solved {
		panic(fmt.Sprintf("flow: tie level %d ended with outcome %d: the level before was not optimal", level, o))
	}
	return nil
}

// settle deals out the columns of identical records among the tied points.
func (s *Solver) settle(p *Problem) {
	r := &s.levels[0]
	k := int32(p.k())
	var points []int32
	var digests []digest
	at := make(map[int32]int32)
	for level, a := 1, int32(0); a < int32(len(s.origin[1])); a++ {
		i := s.pointOf(level, a)
		if _, ok := at[i]; ok {
			continue
		}
		at[i] = r.owner[s.origin[1][a]]
		points = append(points, i)
		digests = append(digests, s.digestOf(p, i))
	}
	of := func(i int32) []int32 {
		var clusters []int32
		for a := r.first[at[i]]; a < r.end[at[i]]; a++ {
			if c := &r.arcs[a]; c.count > 0 && c.column < k {
				clusters = append(clusters, c.column)
			}
		}
		return clusters
	}
	set := func(i int32, clusters []int32) {
		for a := r.first[at[i]]; a < r.end[at[i]]; a++ {
			if c := &r.arcs[a]; c.column < k {
				c.count = 0
				if slices.Contains(clusters, c.column) {
					c.count = 1
				}
			}
		}
	}
	settle(points, digests, of, set)
}
