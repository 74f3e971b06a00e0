package kernels

import (
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// Assign finds for each point the nearest centroid and, when dist is not nil,
// the squared distance to it. Ties go to the smaller index. What labels holds before, whatever that is, is a guess of
// them: where the candidate filter is in use, the labels of an iteration before save it time.
//
// The distance is a float32 computed in one fixed order. For D < 16: t = x-c,
// then s = fma(t, t, s) in dimension order. For D >= 16: s = |c|^2/2, then
// s = fma(-x, c, s) in dimension order; the smallest s wins, and the distance is
// max(0, |x|^2 + 2s) with |x|^2 one fused chain in dimension order.
func Assign(p Panels, c *Centroids, labels []uint16, dist []float32) {
	checkPair("Assign", &p, c)
	checkLength("Assign", "labels", len(labels), p.N)
	if dist != nil {
		checkLength("Assign", "dist", len(dist), p.N)
	}
	assign(&p, c, labels, dist, nil)
}

// AssignRadius is [Assign] with a cut: a point whose squared distance to its
// nearest centroid exceeds r2 gets the label K. dist, when not nil, receives the
// distance to the nearest centroid whether or not it is cut.
func AssignRadius(p Panels, c *Centroids, r2 float32, labels []uint16, dist []float32) {
	checkPair("AssignRadius", &p, c)
	checkLength("AssignRadius", "labels", len(labels), p.N)
	if dist != nil {
		checkLength("AssignRadius", "dist", len(dist), p.N)
	}
	var scratch [chunkPoints]float32
	for lo := 0; lo < p.N; lo += chunkPoints {
		hi := min(lo+chunkPoints, p.N)
		part := p.Slice(lo, hi)
		d := scratch[:hi-lo]
		if dist != nil {
			d = dist[lo:hi]
		}
		assign(&part, c, labels[lo:hi], d, nil)
		cut(labels[lo:hi], d, r2, uint16(c.K))
	}
}

// Assign2 is [Assign] that also gives the second smallest squared distance
// (+Inf when K = 1; equal to dist when two centroids tie).
func Assign2(p Panels, c *Centroids, labels []uint16, dist, second []float32) {
	checkPair("Assign2", &p, c)
	checkLength("Assign2", "labels", len(labels), p.N)
	checkLength("Assign2", "dist", len(dist), p.N)
	checkLength("Assign2", "second", len(second), p.N)
	assign(&p, c, labels, dist, second)
}

// Distances gives the squared distance of each point to the centroid its label
// names, and +Inf where the label is K. It is the sum of (x-c)^2 as one fused
// chain in dimension order for every D, so its relative error is below
// (D+1)*2^-24 and, unlike the distances of [Assign] for D >= 16, it does not
// suffer from cancellation.
func Distances(p Panels, c *Centroids, labels []uint16, dist []float32) {
	checkPair("Distances", &p, c)
	checkLength("Distances", "labels", len(labels), p.N)
	checkLength("Distances", "dist", len(dist), p.N)
	checkLabels("Distances", labels, c.K)
	distances(&p, c, labels, dist)
}

// chunkPoints is the number of points whose intermediate results a kernel keeps
// on the stack: a multiple of every path's group of panels, small enough for L1.
const chunkPoints = 1024

// checkLabels panics when a label exceeds k: it would index past the tables.
func checkLabels(what string, labels []uint16, k int) {
	if most := largest(labels); int(most) > k {
		i := slices.Index(labels, most)
		panic(fmt.Sprintf("kernels: %s: labels[%d]=%d, want <= k=%d", what, i, most, k))
	}
}

// largestPortable returns the largest label, 0 if there is none.
func largestPortable(labels []uint16) uint16 {
	var most uint16
	for _, l := range labels {
		most = max(most, l)
	}
	return most
}

// cutPortable replaces the label of points farther than r2 by none.
func cutPortable(labels []uint16, dist []float32, r2 float32, none uint16) {
	for i, d := range dist {
		if d > r2 {
			labels[i] = none
		}
	}
}

// assignPortable is the reference form of [Assign] and [Assign2]; dist and
// second may be nil.
func assignPortable(p *Panels, c *Centroids, labels []uint16, dist, second []float32) {
	inf := float32(math.Inf(1))
	d := p.D
	for base := 0; base < p.N; base += Lanes {
		panel := p.Data[base*d : base*d+d*Lanes]
		var best, next [Lanes]float32
		var index [Lanes]uint16
		for l := range best {
			best[l], next[l] = inf, inf
		}
		for ci := range c.K {
			row := c.rows[ci*d : ci*d+d]
			var s [Lanes]float32
			if d < exactDims {
				subChain(&s, panel, row)
			} else {
				dotChain(&s, panel, row, c.half[ci])
			}
			for l, v := range s {
				if v < best[l] {
					best[l], next[l], index[l] = v, best[l], uint16(ci)
				} else if v < next[l] {
					next[l] = v
				}
			}
		}
		if d >= exactDims && dist != nil {
			var norm [Lanes]float32
			for j := range d {
				x := panel[j*Lanes : j*Lanes+Lanes]
				for l := range norm {
					norm[l] = fma32(x[l], x[l], norm[l])
				}
			}
			for l := range norm {
				best[l] = max(0, norm[l]+2*best[l])
				next[l] = max(0, norm[l]+2*next[l])
			}
		}
		copy(labels[base:], index[:])
		if dist != nil {
			copy(dist[base:], best[:])
		}
		if second != nil {
			copy(second[base:], next[:])
		}
	}
}

// subChain adds the squared differences of a panel and one centroid to s.
func subChain(s *[Lanes]float32, panel, row []float32) {
	for j, cj := range row {
		x := (*[Lanes]float32)(panel[j*Lanes:])
		for l := range s {
			t := x[l] - cj
			s[l] = fma32(t, t, s[l])
		}
	}
}

// dotChain sets s to half - x.c.
func dotChain(s *[Lanes]float32, panel, row []float32, half float32) {
	for l := range s {
		s[l] = half
	}
	for j, cj := range row {
		x := (*[Lanes]float32)(panel[j*Lanes:])
		for l := range s {
			s[l] = fma32(-x[l], cj, s[l])
		}
	}
}

// distancesPortable is the reference form of [Distances].
func distancesPortable(p *Panels, c *Centroids, labels []uint16, dist []float32) {
	d := p.D
	for base := 0; base < p.N; base += Lanes {
		panel := p.Data[base*d : base*d+d*Lanes]
		for l := range min(Lanes, p.N-base) {
			label := int(labels[base+l])
			if label == c.K {
				dist[base+l] = float32(math.Inf(1))
				continue
			}
			var s float32
			for j, cj := range c.rows[label*d : label*d+d] {
				t := panel[j*Lanes+l] - cj
				s = fma32(t, t, s)
			}
			dist[base+l] = s
		}
	}
}

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
	case dist != nil || second != nil ||
		!assignRanked(p, c, labels) && !assignFiltered(p, c, labels) && !assignNarrow(p, c, labels):
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
	c.tile()
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
