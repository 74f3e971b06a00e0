package flow

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/cohort-engine/cohort/flow/tree"
	"github.com/cohort-engine/cohort/kernels"
)

// view is what a pass over the points sees at some prices.
type view struct {
	exact  bool         // labels are certain
	labels []uint16     // the cheapest column
	gap    []float32    // lower bounds of how much dearer the next is, in units
	extra  []Membership // all columns of the points that have several
	size   []int64      // units in each column
	edges  []edgeCount
	window float64
	// certain is how large a gap a point has at most that is close to another column:
	// larger ones may be anything above it.
	certain float64
}

// held returns the columns of point i if it has several.
func (v *view) held(i int32) []Membership {
	if len(v.extra) == 0 {
		return nil
	}
	first, _ := slices.BinarySearchFunc(v.extra, i, func(m Membership, i int32) int { return int(m.Point - i) })
	last := first
	for last < len(v.extra) && v.extra[last].Point == i {
		last++
	}
	return v.extra[first:last]
}

// edgeCount is the number of units between two columns, u < v, within the window.
type edgeCount struct {
	u, v  int32
	count float64
}

func (e edgeCount) cell() uint64 { return uint64(e.u)<<32 | uint64(e.v) }

// passTask is what the shards of a pass share.
type passTask struct {
	p      *Problem
	prices []int64
	into   *view
	size   int  // points of a shard
	tabled bool // pairs are counted in tables
	fine   bool // an exact pass is asked for

	// Of an exact pass: the longest arc, the cost of "unassigned", the clusters of a point at
	// most, and gaps up to which points are near others.
	limit, leave, several, window int64

	// Of points in order: their boxes, the level of the largest ones, and how much dearer than
	// another a cluster is at most that is looked at in a box.
	cover  *tree.Cover
	top    int
	near   float64
	lowest float64 // price
}

// scratch is the memory of a worker.
type scratch struct {
	rows  []int64
	cells []uint32
	pairs []int32 // pairs[u*k+v] counts units of u with v next within the window, pairs[k*k+u] the others
	turns [4][fewPairs]int32
	size  []int64
	near  []int32
	sides []edgeCount

	// Of tally: the other order of the sides, and where those of a column go.
	spare  []edgeCount
	counts []int32

	// Clusters to choose from, their prices, how much dearer than the cheapest others are, and
	// the memberships of points that have several.
	clusters    []uint16
	prices, own []int64
	bound       int64
	extra       []Membership
	more        []entry // clusters of a point, with its costs plus prices

	choices [len(tree.Runs)]choice
	value   []float64
	middle  []float64 // of a box, and its widths
	widths  []float64
	rows32  []float32
	few     []*kernels.Centroids // by the logarithm of their number

	filter kernels.Panels // a block of points with one more coordinate
	dist   []float32
}

// tableColumns is the number of clusters up to which a pass packs the index of a
// cluster into the low bits of distances and counts pairs in a table.
const tableColumns = 512

// singles is the least window that single precision is enough for, and filterSingles that for the filter, which does
// not pack an index into distances.
const singles, filterSingles = 5e-5, 5e-6

// certainWindows is how large the gaps are that a pass over points in order tells, in windows: to tell larger ones it
// has to look at more clusters in a box.
const certainWindows = 3

// look fills v with what is seen at the given prices of the clusters: as an exact pass, if the problem is not plain,
// and where points are in order and the window is small for single precision, or not known yet.
func (s *Solver) look(ctx context.Context, run Runner, p *Problem, prices []int64, v *view, window float64) error {
	return s.evaluate(ctx, run, p, prices, v, window, !s.ascent.plain || s.ordered && window < singles)
}

// evaluate is look. An exact pass chooses a window that is not positive, and is in integers where single precision is
// not enough. The prices of "unassigned" and "escape" are 0.
func (s *Solver) evaluate(ctx context.Context, run Runner, p *Problem, prices []int64, v *view, window float64,
	exact bool) error {
	s.beginPass(run, p, prices, v)
	t, work := &s.pass, s.works.cells
	tabled := p.Points.D < kernels.TopTwoDims && p.k() <= tableColumns
	if t.fine = exact; exact {
		if window <= 0 && p.Points.N > 0 {
			window = s.spacing(1. / 4)
		}
		switch { // single precision tells most points: the completion tells the others
		case s.ordered:
			exact = s.ascent.plain || window < singles || t.several > 1
		case s.columns == p.k() && window >= filterSingles:
			exact, tabled = false, false
		}
	} else if window > 0 && window < singles {
		tabled = false
	}
	v.window, v.exact, v.certain = window, exact, math.Inf(1)
	t.window = int64(min(max(0, window)/s.unit, infinity))
	if s.ordered || exact || tabled {
		s.beginCells(run)
	} else {
		s.filter.prepare(s, p, prices)
		work = s.works.near
	}
	s.shards = atLeast(s.shards, t.shards())
	crew := crewOf(run, p.worthSharing())
	err := crew.Run(ctx, t.shards(), work)
	if t.tabled { // even if the pass has ended early: tables are left empty
		_ = crew.Run(context.Background(), crew.Workers(), s.works.drain) // the background does not end
	}
	if err != nil {
		return err
	}
	for _, extra := range s.shards {
		v.extra = append(v.extra, extra...)
	}
	s.sumSides(v, run.Workers())
	return nil
}

// topTwoSlack bounds the relative errors of [kernels.TopTwo]: each of the two sums has
// d fused roundings, that of its bias and the bits that the kernel replaces.
func topTwoSlack(d, k int) float32 {
	return float32(math.Ldexp(float64(d+3), -23) + math.Ldexp(1, kernels.TopTwoBits(k)-22))
}

// beginPass prepares the memory of a pass.
func (s *Solver) beginPass(run Runner, p *Problem, prices []int64, v *view) {
	n := p.Points.N
	v.labels, v.gap, v.extra, v.size = sized(v.labels, n), sized(v.gap, n), v.extra[:0], sized(v.size, s.columns)
	clear(v.size)
	s.pass = passTask{p: p, prices: prices, into: v, size: s.shardSize(p), limit: infinity,
		leave: p.UnassignedCost(), several: int64(p.exclusivity())}
	if s.columns > p.k() {
		s.pass.limit = p.reach()
	}
	for index := range s.shards {
		s.shards[index] = s.shards[index][:0]
	}
	for i := range s.scratch[:run.Workers()] {
		w := &s.scratch[i]
		w.sides = w.sides[:0]
		w.size = sized(w.size, s.columns)
		clear(w.size)
	}
	s.stats.Passes++
	s.looked += n
}

// shardSize returns the number of points of a shard of a pass, whose cells stay in the L1 cache: about a 64th of those
// of a pass that is worth sharing, none larger than usual. It is the same for any number of workers.
func (s *Solver) shardSize(p *Problem) int {
	const least, shards = 256, 64
	size := s.tune().shardPoints
	if p.worthSharing() {
		size = min(size, max(least, p.Points.N/shards)&^(2*kernels.Lanes-1))
	}
	return size
}

// worthSharing reports whether a pass has enough multiply-adds to be worth the waking of other workers.
func (p *Problem) worthSharing() bool { return p.Points.N*p.k()*p.Points.D >= 1<<17 }

// shards returns the number of shards of a pass.
func (t *passTask) shards() int { return (t.p.Points.N + t.size - 1) / t.size }

// fewPairs is the size of a table of pairs up to which points are counted in several in turn: many neighbours in a
// row have the same pair, and a counter waits for its last increment.
const fewPairs = 256

// count counts the points from the first on for their cells.
func (w *scratch) count(p *Problem, first int) {
	cells := w.cells
	if p.Weights != nil {
		for i, cell := range cells {
			w.pairs[cell] += p.Weights[first+i]
		}
		return
	}
	if len(w.pairs) > fewPairs {
		for _, cell := range cells {
			w.pairs[cell]++
		}
		return
	}
	a, b, c, d := &w.turns[0], &w.turns[1], &w.turns[2], &w.turns[3]
	for ; len(cells) >= 4; cells = cells[4:] {
		a[cells[0]%fewPairs]++
		b[cells[1]%fewPairs]++
		c[cells[2]%fewPairs]++
		d[cells[3]%fewPairs]++
	}
	for _, cell := range cells {
		a[cell%fewPairs]++
	}
}

// drain makes sizes and sides of the table of a worker, and empties it: on that worker, as a rule, whose cache has it.
func (s *Solver) drain(_, index int) {
	w, k := &s.scratch[index], s.pass.p.k()
	if len(w.pairs) <= fewPairs {
		for cell := range w.pairs {
			w.pairs[cell] += w.turns[0][cell] + w.turns[1][cell] + w.turns[2][cell] + w.turns[3][cell]
		}
		w.turns = [4][fewPairs]int32{}
	}
	for u := range k {
		w.size[u] += int64(w.pairs[k*k+u])
		for v, c := range w.pairs[u*k+u+1 : u*k+k] {
			v += u + 1
			if other := w.pairs[v*k+u]; c > 0 || other > 0 {
				w.size[u] += int64(c)
				w.size[v] += int64(other)
				w.side(u, v, int64(c+other))
			}
		}
	}
	clear(w.pairs)
}

// filter assigns points by distance plus price in single precision alone. A price
// is a squared distance too: with one more coordinate, 0 for points and sqrt(price)
// for a centroid, the assignment kernel compares distance plus price. Its error is
// bounded, so that gaps are certain.
type filter struct {
	centroids *kernels.Centroids
	rows      []float32
	relative  float32 // error of a gap in terms of the second distance
	absolute  float32
}

// prepare sets the centroids of the filter.
func (f *filter) prepare(s *Solver, p *Problem, prices []int64) {
	k, d := p.k(), p.Points.D
	if f.centroids == nil || f.centroids.K != k || f.centroids.D != d+1 {
		f.centroids = kernels.NewCentroids(k, d+1)
		f.rows = make([]float32, k*(d+1))
	}
	lowest := slices.Min(prices[:k])
	var largest float64
	for j := range k {
		row := f.rows[j*(d+1) : (j+1)*(d+1)]
		copy(row, p.Centroids[j*d:j*d+d])
		row[d] = float32(math.Sqrt(float64(prices[j]-lowest) * s.unit))
		var norm float64
		for _, x := range row {
			norm += float64(float64(x) * float64(x))
		}
		largest = max(largest, norm)
	}
	f.centroids.Set(f.rows)
	// In the subtracted form a distance has d+1 fused terms, each rounded once
	// relative to the sum, and a price rounded in its root and its difference:
	// d+4 roundings of 2^-24 for each of two distances. In the product form the
	// terms are rounded relative to the norms, at most 3(d+2) times in all.
	f.relative = float32(math.Ldexp(float64(d+5), -23))
	f.absolute = 0
	if d+1 >= kernels.TopTwoDims {
		f.absolute = float32(math.Ldexp(float64(d+8), -21) * (largest + float64(d)))
	}
}

// countNear is the shard of a pass by the filter. The neighbours of some points
// within the window, found by exact costs, stand for all.
func (s *Solver) countNear(worker, index int) {
	t, w := &s.pass, &s.scratch[worker]
	v, p := t.into, t.p
	k, n, d, f := p.k(), p.Points.N, p.Points.D, &s.filter
	first := index * t.size
	last := min(n, first+t.size)
	block := max(kernels.Lanes, 8192/max(d+1, k/2)&^(kernels.Lanes-1))
	if w.filter.D != d+1 || w.filter.N != block {
		w.filter, w.dist = *kernels.NewPanels(block, d+1), make([]float32, block)
	}
	limit := float32(v.window)
	w.near = w.near[:0]
	for at := first; at < last; at += block {
		end := min(at+block, last)
		for i := at; i < end; i += kernels.Lanes {
			copy(w.filter.Data[(i-at)*(d+1):], p.Points.Data[i*d:(i+kernels.Lanes)*d])
		}
		dist, gap := w.dist[:end-at], v.gap[at:end]
		kernels.Assign2(w.filter.Slice(0, end-at), f.centroids, v.labels[at:end], dist, gap)
		for i, best := range dist {
			gap[i] = gap[i] - best - float32(gap[i]*f.relative) - f.absolute
			w.size[v.labels[at+i]] += p.weight(at + i)
			if gap[i] <= limit {
				w.near = append(w.near, int32(at+i))
			}
		}
	}
	each := max(1, len(w.near)*n/((last-first)*max(4*k, n/64)))
	for q := each / 2; q < len(w.near); q += each {
		i := int(w.near[q])
		label, next, _, _ := s.topTwoOf(w, p, t.prices, i)
		stands := min(each, len(w.near)-q+each/2) * int(p.weight(i))
		w.side(label, next, int64(stands))
	}
}

// sumSides sets the sizes, and the edges that a cluster has, from the lists of the workers.
func (s *Solver) sumSides(v *view, workers int) {
	w := &s.scratch[0]
	for i := range s.scratch[:workers] {
		for j, x := range s.scratch[i].size {
			v.size[j] += x
		}
		if i > 0 {
			w.sides = append(w.sides, s.scratch[i].sides...)
		}
	}
	w.tally()
	v.edges = append(v.edges[:0], w.sides...)
	for last := len(v.edges) - 1; last >= 0 && int(v.edges[last].u) >= s.pass.p.k(); last-- {
		v.edges = v.edges[:last] // "unassigned" and "escape": no price can part them
	}
}

// tally sorts the sides, by their columns one after the other, and makes one of those of the same columns.
func (w *scratch) tally() {
	w.spare = append(w.spare[:0], w.sides...)
	from, to := w.sides, w.spare
	for shift := 0; shift < 64; shift += 32 {
		w.counts = append(w.counts[:0], make([]int32, len(w.size)+2)...) // the only cluster has column 1 next
		for i := range from {
			w.counts[from[i].cell()>>shift&math.MaxUint32+1]++
		}
		for j := range len(w.size) + 1 {
			w.counts[j+1] += w.counts[j]
		}
		for _, e := range from {
			at := &w.counts[e.cell()>>shift&math.MaxUint32]
			to[*at] = e
			*at++
		}
		from, to = to, from
	}
	kept := w.sides[:0]
	for _, e := range w.sides {
		if last := len(kept) - 1; last >= 0 && kept[last].cell() == e.cell() {
			kept[last].count += e.count
		} else {
			kept = append(kept, e)
		}
	}
	w.sides = kept
}

// side notes units of one column next to another.
func (w *scratch) side(u, v int, units int64) {
	if len(w.sides) == cap(w.sides) && len(w.sides) >= 1024 {
		if w.tally(); len(w.sides) > cap(w.sides)/2 {
			w.sides = slices.Grow(w.sides, cap(w.sides))
		}
	}
	w.sides = append(w.sides, edgeCount{int32(min(u, v)), int32(max(u, v)), float64(units)})
}

// spacing returns a gap that about the given share of the points is below, from some of them.
func (s *Solver) spacing(share float64) float64 {
	t, a, n := &s.pass, &s.ascent, s.pass.p.Points.N
	a.gaps = a.gaps[:0]
	for i := 0; i < n; i += max(1, n/256) {
		_, _, best, second := s.topTwoOf(&s.scratch[0], t.p, t.prices, i)
		if s.escape >= 0 {
			best, second = max(best, 0), max(second, 0)
			best = min(best, second)
		}
		a.gaps = append(a.gaps, tree.Rank(float32(float64(second-best)*s.unit), i))
	}
	return max(s.unit, a.share(share))
}

// chooseLeaf looks at the points [first, last) with the clusters of c.
func (s *Solver) chooseLeaf(w *scratch, c *choice, first, last int) {
	t := &s.pass
	w.clusters, w.prices, w.own = c.clusters, w.own[:0], w.own[:0]
	for _, j := range c.clusters {
		w.own = append(w.own, t.prices[j])
	}
	w.prices, w.bound = w.own, int64(min(c.bound/s.unit*(1-1e-9), infinity))
	few := s.centroids
	if len(c.clusters) < few.K {
		few = w.only(t.p, c.clusters)
	}
	w.rows = sized(w.rows, kernels.Lanes*few.K)
	for first < last {
		end := min(last, first-first%kernels.Lanes+kernels.Lanes)
		kernels.CostRows(t.p.Points, first, end, few, t.p.FractionBits, w.rows[:(end-first)*few.K])
		for at := 0; first < end; first++ {
			s.chooseExactly(w, first, w.rows[at:][:len(c.clusters)])
			at += few.K
		}
	}
}

// only returns the centroids of some clusters, and zeros up to a power of two.
func (w *scratch) only(p *Problem, clusters []uint16) *kernels.Centroids {
	d, size := p.Points.D, max(3, bits.Len(uint(max(1, len(clusters))-1)))
	k := min(1<<size, math.MaxUint16)
	w.few = atLeast(w.few, size+1)
	if w.few[size] == nil || w.few[size].D != d {
		w.few[size] = kernels.NewCentroids(k, d)
	}
	w.rows32 = w.rows32[:0]
	for _, j := range clusters {
		w.rows32 = append(w.rows32, p.Centroids[int(j)*d:int(j)*d+d]...)
	}
	w.rows32 = atLeast(w.rows32, k*d)
	w.few[size].Set(w.rows32)
	return w.few[size]
}

// cost returns the squared grid distance of point i from centroid j.
func (p *Problem) cost(i, j int) int64 {
	d, scale := p.Points.D, float32(int(1)<<p.FractionBits)
	from, sum := at(int32(i), d), int64(0)
	for _, y := range p.Centroids[j*d : j*d+d] {
		x := int64((p.Points.Data[from] - y) * scale)
		sum += x * x
		from += kernels.Lanes
	}
	return sum
}

// chooseExactly chooses the columns of point i by its costs for w.clusters.
func (s *Solver) chooseExactly(w *scratch, i int, row []int64) {
	t := &s.pass
	v := t.into
	label, next, best, second := s.topTwo(w, row)
	units := t.p.weight(i)
	v.labels[i] = uint16(label)
	w.size[label] += units
	if s.escape >= 0 {
		if second < 0 {
			v.gap[i] = 0
			s.several(w, int32(i), row, label, best, units)
			return
		}
		w.size[s.escape] += units * (t.several - 1)
		if best < 0 {
			best, label = 0, s.escape
		}
	}
	gap := min(second-best, w.bound, maxPrice)
	v.gap[i] = float32(float64(gap) * s.unit * (1 - 1e-6))
	if gap <= t.window {
		w.meet(label, next, units)
	}
}

// meet notes units between two columns.
func (w *scratch) meet(u, v int, units int64) {
	lower, upper := int32(min(u, v)), int32(max(u, v))
	for at := len(w.sides) - 1; at >= max(0, len(w.sides)-4); at-- {
		if e := &w.sides[at]; e.u == lower && e.v == upper {
			e.count += float64(units)
			return
		}
	}
	w.side(u, v, units)
}

// topTwoOf returns the two cheapest columns of point i of p, "escape" aside, and their costs plus prices.
func (s *Solver) topTwoOf(w *scratch, p *Problem, prices []int64, i int) (label, next int, best, second int64) {
	w.rows = sized(w.rows, p.k())
	kernels.CostRows(p.Points, i, i+1, s.centroids, p.FractionBits, w.rows)
	w.clusters, w.prices = s.all.clusters, prices
	return s.topTwo(w, w.rows)
}

// topTwo returns the two cheapest columns, "escape" aside, by costs for w.clusters, and their
// costs plus prices.
func (s *Solver) topTwo(w *scratch, row []int64) (label, next int, best, second int64) {
	reach := s.pass.limit
	outside := len(row)
	best, second, label, next = infinity, infinity, outside, outside
	if s.outside >= 0 {
		best = s.pass.leave
	}
	for at, price := range w.prices[:len(row)] {
		c := row[at]
		v := c + price
		if v >= second || c > reach { // most
			continue
		}
		second, next = v, at
		if v < best {
			best, second, label, next = v, best, at, label
		}
	}
	return w.column(s, label), w.column(s, next), best, second
}

// column returns the column at a place in w.clusters; after the last it is "unassigned".
func (w *scratch) column(s *Solver, at int) int {
	if at == len(w.clusters) {
		return s.pass.p.k()
	}
	return int(w.clusters[at])
}

// several notes the columns of a point whose second cheapest is cheaper than
// "escape": the first is already counted.
func (s *Solver) several(w *scratch, i int32, row []int64, label int, best, units int64) {
	t := &s.pass
	e := int(t.several)
	next, second := s.escape, int64(infinity) // the cheapest of the others
	more := w.more[:0]
	for at, c := range row {
		j := w.column(s, at)
		switch v := c + w.prices[at]; {
		case j == label || c > t.limit:
		case v < 0:
			more = append(more, entry{v, int32(j), 0})
		case v < second:
			next, second = j, v
		}
	}
	if len(more) > e-1 {
		slices.SortFunc(more, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.column, b.column))
		})
		next, second = int(more[e-1].column), more[e-1].cost
		more = more[:e-1]
	}
	w.size[s.escape] += units * int64(e-1-len(more))
	for _, m := range more {
		w.size[m.column] += units
	}
	more = append(more, entry{best, int32(label), 0})
	to := next
	if second > 0 {
		if to = s.escape; second <= t.window {
			w.meet(next, to, units)
		}
	}
	for _, m := range more {
		w.extra = append(w.extra, Membership{i, uint16(m.column), int32(units)})
		if min(second, 0)-m.cost <= t.window {
			w.meet(int(m.column), to, units)
		}
	}
	w.more = more
}
