package flow

import (
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// refillEach returns out of how many points one is taken to find the prices of vacant clusters.
func (s *Solver) refillEach(p *Problem) int {
	return max(1, p.Points.N/min(1<<14, max(256, 16*p.k())))
}

// markVacant marks clusters that want points, and have none, or hardly any, or hardly any that others would have next,
// for which edges are no model. It reports whether there are some.
func (s *Solver) markVacant(p *Problem) (some bool) {
	a := &s.ascent
	clear(a.vacant)
	if !a.plain || s.refillEach(p) < 3 && !s.ordered && !a.refills { // a pass takes no longer
		return false
	}
	clear(a.near)
	for _, e := range a.seen.edges {
		if int(e.v) < len(a.near) {
			a.near[e.u] += e.count
			a.near[e.v] += e.count
		}
	}
	const hardly = 0.1                   // of the points that it lacks
	told := 3 * float64(s.refillEach(p)) // the others are too few to find a price for
	for j := range a.vacant {
		lacks := -a.excess[j]
		a.vacant[j] = lacks > 0 && float64(a.seen.size[j]) <= hardly*lacks || lacks > told && a.near[j] <= hardly*lacks
		some = some || a.vacant[j]
	}
	return some
}

// refill moves the prices of vacant clusters to where they have the points that they want, by some of the points, after
// those of the others have moved: a step that did not know of theirs would lag behind. It returns the slope of the dual
// along these moves.
func (s *Solver) refill(p *Problem) (slope float64) {
	a, each := &s.ascent, s.refillEach(p)
	a.some.take(p, a.seen.labels, a.prices, each)
	for j, vacant := range a.vacant {
		wanted := int(float64(a.seen.size[j])-a.excess[j]) / each
		if !vacant || wanted >= len(a.some.values) {
			continue
		}
		fall := float64(a.some.lower(j, a.prices[j], wanted)) / a.scale
		a.step[j] = a.stop(j, float64(a.prices[j])/a.scale, -fall)
		a.prices[j] += int64(a.step[j] * a.scale)
		slope += float64(a.excess[j] * a.step[j])
	}
	return slope
}

// handful is some of the points, in boxes: where points are in order these are small, and most are too far from a
// cluster to be looked at.
type handful struct {
	problem Problem // its points
	cover   cover
	values  []int64 // costs plus prices in their clusters
	boxes   offers  // to be looked at: by what their points are above their values, at least
	takes   offers  // points that take a cluster, the dearest first: less what they are above their values
}

// handfulLeaf is the number of points in the smallest box of a handful.
const handfulLeaf = kernels.Lanes

// take takes every so manieth point, with its label and prices.
func (h *handful) take(p *Problem, labels []uint16, prices []int64, each int) {
	n, d := (p.Points.N+each-1)/each, p.Points.D
	points := h.problem.Points
	if points.N != n || points.D != d {
		points = *kernels.NewPanels(n, d)
	}
	h.problem = Problem{Points: points, Centroids: p.Centroids, FractionBits: p.FractionBits}
	h.values = sized(h.values, n)
	for q := range h.values {
		i := q * each
		from, to := at(int32(i), d), at(int32(q), d)
		for range d {
			points.Data[to] = p.Points.Data[from]
			from, to = from+kernels.Lanes, to+kernels.Lanes
		}
		label := int(labels[i])
		h.values[q] = p.cost(i, label) + prices[label]
	}
	h.cover.set(points, handfulLeaf)
	h.cover.note(h.values, handfulLeaf)
}

// lower returns by how much the price of cluster j has to fall, or may rise if that is negative, until all but the last
// of count+1 points come to it, and lets those that come have its value.
func (h *handful) lower(j int, price int64, count int) int64 {
	h.boxes, h.takes = h.boxes[:0], h.takes[:0]
	h.open(len(levels)-1, 0, len(h.cover.most[len(levels)-1]), j, price)
	for len(h.boxes) > 0 && (len(h.takes) <= count || h.boxes[0].distance < -h.takes[0].distance) {
		box := int(h.boxes.take().node)
		if level := box % len(levels); level > 0 {
			h.open(level-1, box/len(levels)*ratio, ratio, j, price)
			continue
		}
		first := box / len(levels) * handfulLeaf
		for q := first; q < min(len(h.values), first+handfulLeaf); q++ {
			h.takes.keep(count+1, h.problem.cost(q, j)+price-h.values[q], int32(q))
		}
	}
	by := -h.takes[0].distance
	for _, o := range h.takes {
		h.values[o.node] += min(0, -o.distance-by)
	}
	for _, o := range h.takes {
		leaf := int(o.node) / handfulLeaf
		h.cover.most[0][leaf] = slices.Max(h.values[leaf*handfulLeaf : min(len(h.values), (leaf+1)*handfulLeaf)])
	}
	return by
}

// open lists the boxes of a level from the first on, up to the given number.
func (h *handful) open(level, first, count, j int, price int64) {
	d := h.problem.Points.D
	scale := math.Ldexp(1-pruneRounding, 2*h.problem.FractionBits)
	for index := first; index < min(len(h.cover.most[level]), first+count); index++ {
		near, _ := extent(h.cover.boxes[level][index*2*d:(index+1)*2*d], h.problem.Centroids[j*d:(j+1)*d])
		h.boxes.add(offer{int64(near*scale) + price - h.cover.most[level][index], int32(index*len(levels) + level)})
	}
}
