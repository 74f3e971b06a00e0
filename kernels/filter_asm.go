package kernels

import (
	"math"
	"math/bits"
)

const (
	filterPanels = 3    // panels at a time at most
	filterTiles  = 32   // tiles at a time at most
	filterRoom   = 1024 // entries of a group's list
	// filterWork is the number of coordinates of centroids that a call visits at
	// most, so that it takes some tens of microseconds.
	filterWork = 1 << 18
)

// filterScratch is what the filter keeps of a group of points.
type filterScratch struct {
	scores         [filterTiles * filterTile * filterPanels * Lanes]int32
	least          [filterTiles * filterPanels * Lanes]int32
	best, before   [filterPanels * Lanes]int32
	labels, counts [filterPanels * Lanes]int32
	list           [filterRoom]uint64
	kept           [filterRoom][Lanes]int32 // the scores of each entry
	limit          [filterPanels * Lanes]int32
	exact          [filterPanels * Lanes]float32
	pair           [4]uint64 // point<<32 | centroid
	points, rows   [4]*float32
	chains         [4]float32
	found, waiting int
}

// assignFiltered labels points by way of the candidate filter; it reports false,
// having done nothing, where there is none for these points and centroids.
func assignFiltered(p *Panels, c *Centroids, labels []uint16) bool {
	if p.filter == nil || c.filter == nil {
		return false
	}
	call, ok := p.filter.call(c)
	if !ok {
		return false
	}
	var s filterScratch
	panels := panelCount(p.N)
	for at := 0; at < panels; {
		group := 1
		if panels-at >= filterPanels && filterTakesPanels() {
			group = filterPanels
		}
		lo := at * Lanes
		part := Panels{N: min(group*Lanes, p.N-lo), D: p.D, Data: p.Data[lo*p.D:]}
		if !s.group(&part, p.filter, p.firstPanel+at, group, c, &call, labels[lo:lo+part.N]) {
			assignExact(&part, c, labels[lo:lo+part.N], nil, nil)
		}
		at += group
	}
	return true
}

// group labels the points of panels panels, the first of which is first in f. It
// reports false where there are more candidates than it has room for.
func (s *filterScratch) group(p *Panels, f *filterPoints, first, panels int, c *Centroids, call *filterCall,
	labels []uint16) bool {
	for i := range panels * Lanes {
		s.best[i], s.before[i], s.counts[i] = math.MaxInt32, math.MaxInt32, 0
	}
	size := f.words * wordBytes // of a point
	x := &f.data[first*size*Lanes]
	step := min(filterTiles, max(1, filterWork/(filterTile*call.d)))
	s.found = 0
	for tile := 0; tile < call.c.tiles; tile += step {
		tiles := min(step, call.c.tiles-tile)
		g, at := call.c, tile*filterTile
		filterScores(f.group, panels, x, f.words, &g.data[at*size], &g.half[at], &g.shift[at], tiles, float32(call.units),
			float32(call.offset), s)
		for q := range panels {
			bounds := f.panels[first+q]
			band := call.band(float64(bounds[0]), float64(bounds[1]))
			const top = 1<<31 - 1<<19
			if band > top {
				return false
			}
			at := q * Lanes
			for l := range Lanes {
				s.limit[at+l] = min(s.best[at+l], top-int32(band)) + int32(band)
			}
			if s.found+tiles*filterTile > filterRoom {
				if s.prune(); s.found+tiles*filterTile > filterRoom {
					return false
				}
			}
			s.found += s.candidates(tiles, panels, q, tile*filterTile, int32(band), top-int32(band))
		}
		s.before = s.best
	}
	undecided := [filterPanels]uint64{}
	for i := range labels {
		labels[i] = uint16(s.labels[i])
		if s.counts[i] != 1 {
			undecided[i/Lanes] |= 1 << (i % Lanes)
		}
	}
	if undecided != [filterPanels]uint64{} {
		s.decide(p, c, &undecided, labels)
	}
	return true
}

// prune drops the entries that are beyond the limits by now.
func (s *filterScratch) prune() {
	left := 0
	for i, e := range s.list[:s.found] {
		if e = s.within(i, e); e&0xffff != 0 {
			s.list[left], s.kept[left] = e, s.kept[i]
			left++
		}
	}
	s.found = left
}

// within is entry i, e, without the points whose limit it exceeds.
func (s *filterScratch) within(i int, e uint64) uint64 {
	limits := (*[Lanes]int32)(s.limit[int(e>>16)&0xffff*Lanes:])
	for m := e & 0xffff; m != 0; m &= m - 1 {
		if lane := bits.TrailingZeros64(m); s.kept[i][lane&(Lanes-1)] > limits[lane&(Lanes-1)] {
			e &^= 1 << lane
		}
	}
	return e
}

// decide takes the chains of all candidates of the points that undecided marks by
// panel.
func (s *filterScratch) decide(p *Panels, c *Centroids, undecided *[filterPanels]uint64, labels []uint16) {
	for i := range s.exact {
		s.exact[i] = float32(math.Inf(1))
	}
	s.waiting = 0
	for i, e := range s.list[:s.found] {
		panel := int(e>>16) & 0xffff
		e &^= 0xffff &^ undecided[panel]
		for m := s.within(i, e) & 0xffff; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros64(m)
			a := int(e >> 32)
			s.pair[s.waiting] = uint64(panel*Lanes+lane)<<32 | uint64(a)
			s.points[s.waiting] = &p.Data[panel*Lanes*p.D+lane]
			s.rows[s.waiting] = &c.rows[a*c.D]
			s.chains[s.waiting] = c.half[a]
			if s.waiting++; s.waiting == len(s.pair) {
				s.chain(c.D, labels)
			}
		}
	}
	if s.waiting > 0 {
		for i := s.waiting; i < len(s.pair); i++ {
			s.points[i], s.rows[i] = s.points[0], s.rows[0]
		}
		s.chain(c.D, labels)
	}
}

// chain takes the chains of the pairs that wait, which come in the order of
// centroids for each point.
func (s *filterScratch) chain(d int, labels []uint16) {
	asmFilterExact(&s.points, &s.rows, d, &s.chains)
	for i, pair := range s.pair[:s.waiting] {
		if point := pair >> 32; s.chains[i] < s.exact[point] {
			s.exact[point], labels[point] = s.chains[i], uint16(pair)
		}
	}
	s.waiting = 0
}
