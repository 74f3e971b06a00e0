package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/flow/tree"
	"github.com/cohort-engine/cohort/kernels"
)

// order is a problem's points in the order of a k-d tree: a box around those that follow each other has few clusters to
// choose from, and one out of each of equal runs is a stratified sample.
type order struct {
	problem Problem
	ids     []int32 // point q here is point ids[q] of the problem

	whole, part tree.Cover // of all points, and of the sample
}

// leafPoints is the number of points in a leaf of the tree, and the smallest box.
const leafPoints = 4 * kernels.Lanes

// worthOrdering reports whether passes over all points cost enough to put these in
// order first: exact ones do, and those that boxes leave few clusters of many for. In each dimension beyond the plane
// they leave more, so that a pass with a table of pairs takes less time, as long as that has room.
func (s *Solver) worthOrdering(p *Problem) bool {
	t, d := s.tune(), p.Points.D
	least := min(t.orderClusters<<max(0, d-2), tableColumns+1)
	if !p.plain() {
		least = t.orderForms
	}
	return d < kernels.TopTwoDims && p.k() >= least && p.Points.N >= t.orderPoints*p.k()
}

// arrange returns p with its points in order. It keeps the order of the points before
// where these are the same.
func (o *order) arrange(ctx context.Context, workers Runner, p *Problem) (*Problem, error) {
	if !o.holds(p) {
		if err := o.sort(ctx, workers, p); err != nil {
			return nil, err
		}
	}
	points := o.problem.Points
	weights := o.problem.Weights[:0]
	o.problem = *p
	o.problem.Points = points
	if p.Weights != nil {
		for _, i := range o.ids {
			weights = append(weights, p.Weights[i])
		}
		o.problem.Weights = weights
	}
	return &o.problem, nil
}

// holds reports whether the order is one of the points of p.
func (o *order) holds(p *Problem) bool {
	d, own := p.Points.D, &o.problem.Points
	if own.N != p.Points.N || own.D != d || own.N == 0 {
		return false
	}
	for q, i := range o.ids {
		a, b := at(int32(q), d), at(i, d)
		for range d {
			if own.Data[a] != p.Points.Data[b] {
				return false
			}
			a, b = a+kernels.Lanes, b+kernels.Lanes
		}
	}
	return true
}

// sort orders the points of p.
func (o *order) sort(ctx context.Context, workers Runner, p *Problem) error {
	n, d := p.Points.N, p.Points.D
	rows := make([]float32, n*d)
	for i := range n {
		p.Points.Point(i, rows[i*d:i*d+d])
	}
	var halves tree.Halves
	ids, err := halves.Order(ctx, workers, rows, d, leafPoints)
	if err != nil {
		return err
	}
	o.ids = ids
	if own := &o.problem.Points; own.N != n || own.D != d {
		*own = *kernels.NewPanels(n, d)
	}
	kernels.Pack(&o.problem.Points, rows)
	o.whole.Set(o.problem.Points, leafPoints)
	return nil
}

// restore gives the result of the ordered problem the points of the problem. Its labels and those of v change places.
func (o *order) restore(res *Result, v *view) {
	res.Labels, v.labels = sized(v.labels, len(o.ids)), res.Labels
	for q, i := range o.ids {
		res.Labels[i] = v.labels[q]
	}
	if len(res.Units) > 0 {
		units := slices.Clone(res.Units)
		for q, i := range o.ids {
			res.Units[i] = units[q]
		}
	}
	for at := range res.Extra {
		res.Extra[at].Point = o.ids[res.Extra[at].Point]
	}
	slices.SortFunc(res.Extra, byPoint)
}

// choice is the clusters that may be among the cheapest two within a box, by more than
// a limit: the others are dearer than one of them by more than bound there.
type choice struct {
	clusters []uint16
	places   []float64 // of each its price above the lowest and its coordinates, in units
	bound    float64
	whole    bool // all of them reach all of the box

	// Coordinates and prices above the lowest of these clusters in single precision.
	rows, bias []float32
	slack      float32
}

// round sets what is in single precision.
func (c *choice) round(d int) {
	c.rows, c.bias, c.slack = c.rows[:0], c.bias[:0], topTwoSlack(d, len(c.clusters))
	lowest := math.Inf(1)
	for at := 0; at < len(c.places); at += d + 1 {
		lowest = min(lowest, c.places[at])
	}
	for rest := c.places; len(rest) > 0; rest = rest[d+1:] {
		c.bias = append(c.bias, float32(rest[0]-lowest))
		for _, y := range rest[1 : d+1] {
			c.rows = append(c.rows, float32(y))
		}
	}
}

// pruneRounding bounds the relative error of a number that prune works out.
const pruneRounding = 1e-12

// prune sets c to those of a wider choice that are left in a box: with u the cheapest
// at its middle m, the reduced cost of v exceeds that of u in the box by at least its
// value at m less 2 |v-u|.h, with h half the sides. With a radius, u reaches the whole box. Where
// points may be in several clusters, v itself costs as much, too.
func (c *choice) prune(s *Solver, w *scratch, wider *choice, box []float32) {
	t, d := &s.pass, len(box)/2
	value, widths := w.value[:len(wider.clusters)], w.widths
	for h := range widths {
		lo, hi := float64(box[h]), float64(box[d+h])
		w.middle[h], widths[h] = (lo+hi)/2, hi-lo
	}
	best := wider.evaluate(w.middle, value)
	if !wider.whole {
		best = wider.confine(float64(t.limit)*s.unit, box, value)
	}
	if wider.compare(best, widths, value); t.several > 1 {
		for at := range value {
			price := wider.places[at*(d+1)]
			near, _ := tree.Extent(box, wider.places[at*(d+1)+1:][:d])
			value[at] = min(value[at], near+price+t.lowest-pruneRounding*(near+price+math.Abs(t.lowest)))
		}
	}
	c.clusters, c.places, c.bound, c.whole = c.clusters[:0], c.places[:0], wider.bound, true
	for at, above := range value {
		if above <= t.near {
			place := wider.places[at*(d+1) : (at+1)*(d+1)]
			c.clusters, c.places = append(c.clusters, wider.clusters[at]), append(c.places, place...)
			if !wider.whole && c.whole {
				_, far := tree.Extent(box, place[1:])
				c.whole = far*(1+pruneRounding) <= float64(t.limit)*s.unit
			}
		} else if above < c.bound {
			c.bound = above
		}
	}
}

// evaluate sets what the clusters cost at a place, with their prices, and returns which one costs least.
func (c *choice) evaluate(place, value []float64) (best int) {
	least := math.Inf(1)
	if len(place) == 2 {
		a, b := place[0], place[1]
		for at, rest := 0, c.places; at < len(value) && len(rest) >= 3; at, rest = at+1, rest[3:] {
			p, q := a-rest[1], b-rest[2]
			if value[at] = rest[0] + p*p + q*q; value[at] < least {
				best, least = at, value[at]
			}
		}
		return best
	}
	for at := range value {
		y := c.places[at*(len(place)+1):][:len(place)+1]
		sum := y[0]
		for h, m := range place {
			x := m - y[h+1]
			sum += x * x
		}
		if value[at] = sum; sum < least {
			best, least = at, sum
		}
	}
	return best
}

// compare makes of the values at the middle of a box of some widths how much dearer than cluster u each is at least in
// the box: all below anything if u is negative, NaN if they are too far from the box.
func (c *choice) compare(u int, widths, value []float64) {
	d, least := len(widths), math.Inf(1)
	if u >= 0 {
		least = value[u]
	}
	from := c.places[max(0, u)*(d+1)+1:][:d]
	if d == 2 {
		x, y, width, height := from[0], from[1], widths[0], widths[1]
		for at, rest := 0, c.places; at < len(value) && len(rest) >= 3; at, rest = at+1, rest[3:] {
			margin := math.Abs(rest[1]-x)*width + math.Abs(rest[2]-y)*height
			value[at] = (value[at] - least - margin) - pruneRounding*(value[at]+least+margin)
		}
		return
	}
	for at := range value {
		margin, place := 0.0, c.places[at*(d+1)+1:][:d]
		for h, width := range widths {
			margin += math.Abs(place[h]-from[h]) * width
		}
		value[at] = (value[at] - least - margin) - pruneRounding*(value[at]+least+margin)
	}
}

// confine makes the value of clusters that are too far from a box infinite, and returns which one costs least of those
// that reach the whole box, -1 if none does.
func (c *choice) confine(reach float64, box []float32, value []float64) (best int) {
	d, least := len(box)/2, math.Inf(1)
	best = -1
	for at := range value {
		near, far := tree.Extent(box, c.places[at*(d+1)+1:][:d])
		if near*(1-pruneRounding) > reach {
			value[at] = math.Inf(1)
		}
		if far*(1+pruneRounding) <= reach && value[at] < least {
			best, least = at, value[at]
		}
	}
	return best
}

// beginCells prepares a pass that looks at points with all clusters or, where they are in order, at those of boxes with
// the clusters that are left for a limit.
func (s *Solver) beginCells(run Runner) {
	t := &s.pass
	p, v, k, d := t.p, t.into, t.p.k(), t.p.Points.D
	lowest := slices.Min(t.prices)
	s.all.places, s.all.whole = s.all.places[:0], t.limit == infinity
	for j, price := range t.prices {
		s.all.places = append(s.all.places, float64(price-lowest)*s.unit)
		for _, y := range p.Centroids[j*d : j*d+d] {
			s.all.places = append(s.all.places, float64(y))
		}
	}
	if t.tabled = !s.ordered && !v.exact; t.tabled {
		s.all.round(d)
	}
	for i := range s.scratch[:run.Workers()] {
		w := &s.scratch[i]
		if t.tabled && len(w.pairs) != k*k+k {
			w.pairs = sized(w.pairs, k*k+k)
			clear(w.pairs)
		}
		room := slices.Grow(w.value[:0], k+2*d)
		w.value, w.middle, w.widths = room[:k], room[k:k+d], room[k+d:k+2*d]
	}
	if !s.ordered {
		return
	}
	// No two clusters are farther apart than that.
	apart := float64(p.reach()+slices.Max(t.prices)-lowest) * s.unit
	if certain := certainWindows * v.window; certain <= apart && v.window > 0 && (t.fine || p.Points.N*k > 4<<20) {
		v.certain = certain
	}
	t.near, t.lowest, t.cover, t.top = v.certain, float64(lowest)*s.unit, &s.order.whole, len(tree.Runs)-1
	if p == &s.sample {
		t.cover = &s.order.part
	}
	for t.top > 0 && p.Points.N < 16*tree.Runs[t.top]*leafPoints {
		t.top--
	}
	t.size = tree.Runs[t.top] * leafPoints
}

// lookAtCells is the shard of such a pass, which goes down the boxes of points in order with fewer and fewer clusters.
func (s *Solver) lookAtCells(worker, index int) {
	w, n := &s.scratch[worker], s.pass.p.Points.N
	w.extra = s.shards[index]
	first, last := index*s.pass.size, min(n, (index+1)*s.pass.size)
	if s.pass.cover != nil {
		s.descend(w, s.pass.top, &s.all, first, last)
	} else {
		s.lookAtLeaf(w, &s.all, first, last)
	}
	s.shards[index] = w.extra
}

// lookAtLeaf looks at the points [first, last) with the clusters of c, in single precision unless the pass is exact or
// columns that are no clusters may be near.
func (s *Solver) lookAtLeaf(w *scratch, c *choice, first, last int) {
	v := s.pass.into
	if bound := min(c.bound, s.beyond(c)); v.exact || bound <= v.window {
		s.chooseLeaf(w, c, first, last)
	} else {
		s.countLeaf(w, c, float32(bound*(1-1e-6)), first, last)
	}
}

// beyond returns how much dearer than one of the clusters of c all columns that are no clusters are at least, 0 if
// they may be less or points may be too far from some of these clusters.
func (s *Solver) beyond(c *choice) float64 {
	t := &s.pass
	switch {
	case !c.whole:
		return 0
	case s.outside < 0:
		return math.Inf(1)
	}
	least := int64(infinity)
	for _, j := range c.clusters {
		least = min(least, t.prices[j])
	}
	return max(0, float64(t.leave-t.p.reach()-least)*s.unit)
}

// descend looks at the points [first, last) by their boxes of a level, within one that
// has the given choice.
func (s *Solver) descend(w *scratch, level int, wider *choice, first, last int) {
	t := &s.pass
	d, step, c := t.p.Points.D, tree.Runs[level]*leafPoints, &w.choices[level]
	for ; first < last; first += step {
		end := min(last, first+step)
		index := first / step * 2 * d
		c.prune(s, w, wider, t.cover.Boxes[level][index:index+2*d])
		if level > 0 && len(c.clusters) > 1 {
			s.descend(w, level-1, c, first, end)
		} else {
			s.lookAtLeaf(w, c, first, end)
		}
	}
}

// countLeaf looks at the points [first, last) with the clusters of c, than which all other columns are dearer by bound.
func (s *Solver) countLeaf(w *scratch, c *choice, bound float32, first, last int) {
	t := &s.pass
	d, k, v := t.p.Points.D, len(c.clusters), t.into
	if k == 1 {
		label := c.clusters[0]
		for i := first; i < last; i++ {
			v.labels[i], v.gap[i] = label, bound
			w.size[label] += t.p.weight(i)
		}
		return
	}
	if c != &s.all {
		c.round(d)
	}
	w.cells = sized(w.cells, last-first)
	labels, gap := v.labels[first:last], v.gap[first:last]
	kernels.TopTwo(t.p.Points.Slice(first, last), c.rows, c.bias, c.slack, float32(v.window), labels, w.cells, gap)
	if t.tabled {
		w.count(t.p, first)
		return
	}
	for i, cell := range w.cells {
		u := c.clusters[labels[i]]
		units := t.p.weight(first + i)
		labels[i], gap[i] = u, min(gap[i], bound)
		w.size[u] += units
		if int(cell) < k*k {
			w.meet(int(c.clusters[int(cell)/k]), int(c.clusters[int(cell)%k]), units)
		}
	}
}
