package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/flow/tree"
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
func (s *Solver) refill(ctx context.Context, run Runner, p *Problem) (slope float64, err error) {
	a, each := &s.ascent, s.refillEach(p)
	h := &a.some
	h.take(p, a.seen.labels, a.prices, each)
	h.lacking = h.lacking[:0]
	for j, vacant := range a.vacant {
		if wanted := int(float64(a.seen.size[j])-a.excess[j]) / each; vacant && wanted < len(h.values) {
			h.lacking = append(h.lacking, lack{cluster: j, price: a.prices[j], count: wanted})
		}
	}
	for index := range h.lacking {
		fall, err := h.lower(ctx, run, index)
		if err != nil {
			return 0, err
		}
		j := h.lacking[index].cluster
		a.step[j] = a.stop(j, float64(a.prices[j])/a.scale, -float64(fall)/a.scale)
		a.prices[j] += int64(a.step[j] * a.scale)
		slope += float64(a.excess[j] * a.step[j])
	}
	return slope, nil
}

// handful is some of the points, in boxes: where points are in order these are small, and most are too far from a
// cluster to be looked at.
type handful struct {
	problem Problem // its points
	drawn   bool    // they are those of the problem at hand
	cover   tree.Cover
	values  []int64 // costs plus prices in their clusters
	fallen  []int   // when their values fell: in the last look since which they did
	looks   int
	lacking []lack
	first   int // of those that have points in takes
	takes   []offers
	boxes   []offers // of the workers: to be looked at, by what their points are above their values, at least
	seek    func(worker, index int)
}

// lack is a cluster that wants points: its price is to fall until it has so many.
type lack struct {
	cluster int
	price   int64
	count   int
}

// handfulLeaf is the number of points in the smallest box of a handful.
const handfulLeaf = kernels.Lanes

// take takes every so manieth point, with its label and prices.
func (h *handful) take(p *Problem, labels []uint16, prices []int64, each int) {
	n := (p.Points.N + each - 1) / each
	if !h.drawn {
		h.draw(p, n, each)
	}
	h.values, h.fallen = sized(h.values, n), sized(h.fallen, n)
	for q := range h.values {
		label := int(labels[q*each])
		h.values[q] = h.problem.cost(q, label) + prices[label]
	}
	h.cover.Note(h.values, handfulLeaf)
}

// draw takes n points, every so manieth one.
func (h *handful) draw(p *Problem, n, each int) {
	d, points := p.Points.D, h.problem.Points
	if points.N != n || points.D != d {
		points = *kernels.NewPanels(n, d)
	}
	for q := range n {
		from, to := at(int32(q*each), d), at(int32(q), d)
		for range d {
			points.Data[to] = p.Points.Data[from]
			from, to = from+kernels.Lanes, to+kernels.Lanes
		}
	}
	h.problem = Problem{Points: points, Centroids: p.Centroids, FractionBits: p.FractionBits}
	h.cover.Set(points, handfulLeaf)
	h.drawn = true
}

// ahead is the number of clusters whose points all workers find at a time: more have too many of them in common.
const ahead = 8

// look finds the points of the next clusters that lack some.
func (h *handful) look(ctx context.Context, run Runner, first int) error {
	if h.seek == nil {
		h.seek = h.nearest
	}
	h.takes, h.boxes = atLeast(h.takes, ahead), atLeast(h.boxes, run.Workers())
	h.first = first
	h.looks++
	return run.Run(ctx, min(ahead, len(h.lacking)-first), h.seek)
}

// nearest finds the count+1 points that take the cluster first, the dearest first, less what they are above their
// values.
func (h *handful) nearest(worker, index int) {
	l, boxes, takes := h.lacking[h.first+index], &h.boxes[worker], h.takes[index][:0]
	*boxes = (*boxes)[:0]
	h.open(boxes, len(tree.Runs)-1, 0, len(h.cover.Most[len(tree.Runs)-1]), l)
	for len(*boxes) > 0 && (len(takes) <= l.count || (*boxes)[0].distance < -takes[0].distance) {
		box := int(boxes.take().node)
		if level := box % len(tree.Runs); level > 0 {
			h.open(boxes, level-1, box/len(tree.Runs)*tree.Ratio, tree.Ratio, l)
			continue
		}
		first := box / len(tree.Runs) * handfulLeaf
		for q := first; q < min(len(h.values), first+handfulLeaf); q++ {
			takes.keep(l.count+1, h.problem.cost(q, l.cluster)+l.price-h.values[q], int32(q))
		}
	}
	h.takes[index] = takes
}

// lower returns by how much the price of a cluster that lacks points has to fall, or may rise if that is negative,
// until all but the last of count+1 points come to it, and lets those that come have its value. Values only fall:
// points that were found before and have kept theirs are still the first.
func (h *handful) lower(ctx context.Context, run Runner, index int) (int64, error) {
	if index%ahead == 0 {
		if err := h.look(ctx, run, index); err != nil {
			return 0, err
		}
	}
	fallen := func(o offer) bool { return h.fallen[o.node] == h.looks }
	if slices.ContainsFunc(h.takes[index-h.first], fallen) {
		h.nearest(0, index-h.first)
	}
	takes := h.takes[index-h.first]
	by := -takes[0].distance
	for _, o := range takes {
		if fall := -o.distance - by; fall < 0 {
			h.values[o.node] += fall
			h.fallen[o.node] = h.looks
		}
	}
	for _, o := range takes {
		leaf := int(o.node) / handfulLeaf
		h.cover.Most[0][leaf] = slices.Max(h.values[leaf*handfulLeaf : min(len(h.values), (leaf+1)*handfulLeaf)])
	}
	return by, nil
}

// open lists the boxes of a level from the first on, up to the given number.
func (h *handful) open(boxes *offers, level, first, count int, l lack) {
	d := h.problem.Points.D
	scale := math.Ldexp(1-pruneRounding, 2*h.problem.FractionBits)
	for index := first; index < min(len(h.cover.Most[level]), first+count); index++ {
		box, centroid := h.cover.Boxes[level][index*2*d:(index+1)*2*d], h.problem.Centroids[l.cluster*d:(l.cluster+1)*d]
		near, _ := tree.Extent(box, centroid)
		boxes.add(offer{int64(near*scale) + l.price - h.cover.Most[level][index], int32(index*len(tree.Runs) + level)})
	}
}
