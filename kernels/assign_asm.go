package kernels

import "unsafe"

// callBudget bounds the multiply-adds of one assembly call: a call is not
// preemptible, and this many take some tens of microseconds.
const callBudget = 1 << 21

// panelsPerCall returns how many panels a call may visit at the given cost in
// multiply-adds per point: a multiple of 4, so that groups stay whole.
func panelsPerCall(costPerPoint int) int {
	return max(1, callBudget/Lanes/costPerPoint/4) * 4
}

func assign(p *Panels, c *Centroids, labels []uint16, dist, second []float32) {
	switch {
	case current == generic:
		assignPortable(p, c, labels, dist, second)
	case dist != nil || second != nil || !assignFiltered(p, c, labels):
		assignExact(p, c, labels, dist, second)
	}
}

// assignExact is assign by the chains of all centroids.
func assignExact(p *Panels, c *Centroids, labels []uint16, dist, second []float32) {
	full := p.N / Lanes
	step := panelsPerCall(c.K * c.D)
	for at := 0; at < full; at += step {
		count := min(step, full-at)
		var d, s *float32
		if dist != nil {
			d = &dist[at*Lanes]
		}
		if second != nil {
			s = &second[at*Lanes]
		}
		assignPanels(&p.Data[at*Lanes*p.D], count, c, &labels[at*Lanes], d, s)
	}
	if base := full * Lanes; base < p.N { // the last panel is part empty
		var l [Lanes]uint16
		var d, s [Lanes]float32
		var sp *float32
		if second != nil {
			sp = &s[0]
		}
		assignPanels(&p.Data[base*p.D], 1, c, &l[0], &d[0], sp)
		copy(labels[base:], l[:])
		if dist != nil {
			copy(dist[base:], d[:])
		}
		if second != nil {
			copy(second[base:], s[:])
		}
	}
}

// assignPanels assigns whole panels on the current path; dist may be nil, and
// second too, but not dist alone when second is given.
func assignPanels(x *float32, panels int, c *Centroids, labels *uint16, dist, second *float32) {
	switch {
	case c.K*c.D > maxBlock(c.D):
		assignBlocks(x, panels, c, labels, dist, second)
	case c.D < exactDims:
		assignSub(x, panels, c, labels, dist, second)
		return
	default:
		assignDot(x, panels, c, labels, dist, second)
	}
	if c.D >= exactDims && dist != nil {
		asmFinishDot(x, panels, c.D, dist, second)
	}
}

// assignDot writes labels and scores of whole panels.
func assignDot(x *float32, panels int, c *Centroids, labels *uint16, score, second *float32) {
	t := c.tiling
	asmAssignDotN(t.width, x, panels, c.D, &c.tiles[0], &c.half[0], t.wide, t.count-t.wide, labels, score, second)
}

// maxBlock is the number of centroids times dimensions that one call takes at
// most: with a group of four panels, about 80 microseconds of AVX2.
func maxBlock(d int) int {
	if d < exactDims { // two operations for each
		return 1 << 15
	}
	return 1 << 16
}

// assignBlocks assigns at most four panels, by one call for each block of
// centroids. In the dot form dist and second receive scores, not distances.
func assignBlocks(x *float32, panels int, c *Centroids, labels *uint16, dist, second *float32) {
	const group = 4 * Lanes
	points := panels * Lanes
	var label [group]uint16
	var found, foundNext, least, next [group]float32
	var want *float32
	if second != nil {
		want = &foundNext[0]
	}
	out := unsafe.Slice(labels, points)
	for first, tile := 0, 0; first < c.K; {
		b := c.block(first, tile)
		if c.D < exactDims {
			assignSub(x, panels, &b, &label[0], &found[0], want)
		} else {
			assignDot(x, panels, &b, &label[0], &found[0], want)
		}
		for i := range out {
			switch v := found[i]; {
			case first == 0:
				out[i], least[i], next[i] = label[i], v, foundNext[i]
			case v < least[i]:
				out[i], least[i], next[i] = uint16(first)+label[i], v, min(least[i], foundNext[i])
			default:
				next[i] = min(next[i], v)
			}
		}
		first, tile = first+b.K, tile+b.tiling.count
	}
	if dist != nil {
		copy(unsafe.Slice(dist, points), least[:])
	}
	if second != nil {
		copy(unsafe.Slice(second, points), next[:])
	}
}

// block returns a view of the centroids from first on, the start of a tile, that
// has at most maxBlock coordinates, or one centroid, or one tile.
func (c *Centroids) block(first, tile int) Centroids {
	b := Centroids{D: c.D, rows: c.rows[first*c.D:], half: c.half[first:]}
	if c.D < exactDims {
		b.K = min(max(maxBlock(c.D)/c.D, 1), c.K-first)
		return b
	}
	b.tiles = c.tiles[first*c.D:]
	t := c.tiling
	t.count = min(max(maxBlock(c.D)/(c.D*t.width), 1), t.count-tile)
	t.wide = min(t.count, t.wide-tile)
	if t.wide <= 0 { // narrow tiles alone
		t.width, t.wide = t.width-1, t.count
	}
	b.tiling, b.K = t, t.count*t.width-(t.count-t.wide)
	return b
}
