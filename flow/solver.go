package flow

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// Solver solves a sequence of problems, such as the assignments of successive
// Lloyd iterations of one client. It keeps its memory and the last prices: a
// problem of the same shape as the one before starts from them. The answer does
// not depend on where the solver starts. A Solver must not be used by two
// goroutines at a time. The zero value is ready to use.
type Solver struct {
	// Cold makes every Solve start without the prices of the one before; prices
	// given to StartFrom still count.
	Cold bool
	// Began, if set, is called in Solve when a stage begins, with the number of points
	// that the stage before has looked at, a point counted once for each look.
	Began func(stage Stage, looked int)

	prices    []int64 // of the clusters, "unassigned" and "escape" columns
	given     []int64 // prices to start from next, if any
	warm      bool
	n, d      int
	bits      int
	centroids *kernels.Centroids
	hash      *tieHash
	hashBits  int

	levels  [3]residual // distance, first and second word of the tie hash
	origin  [3][]int32  // arcs of a level in the level before
	shards  []shard
	scratch []scratch // per worker
	free    []int32   // the points of levels[0]

	task     task
	work     func(worker, index int) // shard, bound once
	picks    func(worker, index int) // pick, bound once
	sieve    sieve
	wider    wider
	ascent   ascent
	exchange exchange
	ties     []tie
	labels   []uint16
	gap      []float32 // of the points that are not free, at the prices of the pass, at most
	unit     float64   // a squared grid unit

	sample  kernels.Panels
	lo, hi  []int
	gaps    []int64
	union   []int32
	digests map[int32]digest
	stats   Stats
	looked  int     // at so many points since the stage began
	tuning  *tuning // nil: standard
}

// Stage is a part of a Solve.
type Stage uint8

// The stages. Problems with a radius, several clusters per point or unattainable
// sizes have the second one only.
const (
	// Prices is when passes assign every point, or those of a subsample, to its
	// cheapest cluster at prices that come closer to the best.
	Prices Stage = iota
	// Paths is when shortest paths between clusters make the assignment exact.
	Paths
)

func (s *Solver) begin(stage Stage) {
	if s.Began != nil {
		s.Began(stage, s.looked)
	}
	s.looked = 0
}

// NewSolver returns a solver without starting prices.
func NewSolver() *Solver { return &Solver{} }

// tuning is what the speed depends on, and the answer does not.
type tuning struct {
	sampleRatio  int     // between the sizes of successive subsamples
	leastSample  int     // points per cluster in the smallest subsample
	largeCluster int     // points per cluster from which the ratio is half as much again
	allArcs      int     // costs up to which all arcs are candidates
	freeShare    float64 // share of points that a window makes free, in terms of the expected
	wide         int64   // number of windows in which a free point has arcs
	shardPoints  int     // points of a shard
	blockCosts   int     // costs in a block of rows, which stays in the L1 cache

	// Of the ascent: points per cluster and in all in the smallest subsample; the
	// units outside the bounds that end it, in terms of sqrt(points*k) on a
	// subsample and of k on all points; the window after it, in terms of the step
	// that would follow.
	firstCluster, firstSample        int
	sampleRest, fullRest, stepWindow float64
}

var standard = tuning{sampleRatio: 4, leastSample: 3, largeCluster: 1000, allArcs: 1024, freeShare: 2, wide: 3, shardPoints: 2048, blockCosts: 2048,
	firstCluster: 6, firstSample: 100, sampleRest: 0.3, fullRest: 1, stepWindow: 4}

func (s *Solver) tune() *tuning {
	if s.tuning != nil {
		return s.tuning
	}
	return &standard
}

// shard collects what one run of points contributes to a pass.
type shard struct {
	free []int32 // points with candidate arcs
	arcs []arc
	ends []int32 // ends[q] is the end of the arcs of free[q]
	size []int64 // units in each column
	// beyond[q] is a lower bound of cost plus price of the other arcs of free[q].
	beyond []int64
}

// task is what the shards of a pass have in common.
type task struct {
	p      *Problem
	points kernels.Panels
	labels []uint16
	window int64
	sieved bool
}

// scratch is the memory of a worker.
type scratch struct {
	rows   []int64
	values []int64
	order  []int32
	taken  []int32

	sieve        kernels.Panels // a block of points with one more coordinate
	dist, second []float32
	masks        []uint16
	columns      []uint16
	fresh        []uint16

	pairs, near []int32
	cells       []uint32
}

// StartFrom makes the next Solve start from the given prices, one per cluster, in
// squared grid units, as of [Result.Prices].
func (s *Solver) StartFrom(prices []int64) { s.given = append(s.given[:0], prices...) }

// Solve computes the optimal assignment of p. run may be nil for one worker.
// Errors wrap ErrProblem or ErrInfeasible, name the clusters and the numbers and
// come before any work, but for minimum sizes that only the radius makes
// impossible. If ctx ends, Solve returns its error within a shard.
func (s *Solver) Solve(ctx context.Context, run Runner, p *Problem, res *Result) error {
	if err := p.check(); err != nil {
		return err
	}
	if run == nil {
		run = serial{}
	}
	s.stats = Stats{}
	s.prepare(run, p)
	solved, err := false, error(nil)
	s.looked = 0
	if worksOn(p) {
		solved, err = s.solvePlain(ctx, run, p, res)
	} else {
		s.begin(Paths)
	}
	if !solved && err == nil {
		err = s.solve(ctx, run, p, res)
	}
	if err != nil {
		s.warm = false
		return err
	}
	res.Stats = s.stats
	return nil
}

func (s *Solver) prepare(run Runner, p *Problem) {
	k, d := p.k(), p.Points.D
	if s.centroids == nil || s.centroids.K != k || s.centroids.D != d {
		s.centroids = kernels.NewCentroids(k, d)
		s.warm = false
	}
	s.centroids.Set(p.Centroids)
	if s.hash == nil || s.hashBits != p.FractionBits {
		s.hash, s.hashBits = newTieHash(p.Key, p.FractionBits), p.FractionBits
	}
	s.hash.key = p.Key
	columns := s.columns(p)
	if s.Cold || s.n != p.Points.N || s.d != d || s.bits != p.FractionBits || len(s.prices) != columns {
		s.warm = false
	}
	s.n, s.d, s.bits = p.Points.N, d, p.FractionBits
	if !s.warm {
		s.prices = slices.Grow(s.prices[:0], columns)[:columns]
		clear(s.prices)
	}
	if len(s.given) == k {
		s.prices = s.prices[:0]
		for _, price := range s.given {
			s.prices = append(s.prices, min(max(price, -maxPrice), maxPrice))
		}
		for len(s.prices) < columns {
			s.prices = append(s.prices, 0)
		}
		s.warm = true
	}
	s.given = s.given[:0]
	for len(s.scratch) < run.Workers() {
		s.scratch = append(s.scratch, scratch{})
	}
}

// columns returns the number of columns of p: the clusters, then "unassigned" if
// points may stay so, then "escape" if a point may have several clusters.
func (s *Solver) columns(p *Problem) int {
	columns := p.k()
	if p.mayLeave() {
		columns++
	}
	if p.exclusivity() > 1 {
		columns++
	}
	return columns
}

func (s *Solver) solve(ctx context.Context, run Runner, p *Problem, res *Result) error {
	res.Labels = slices.Grow(res.Labels[:0], p.Points.N)[:p.Points.N]
	r := &s.levels[0]
	near := false
	if s.warm {
		var err error
		if near, err = s.optimise(ctx, run, p, p.Points, p.Lo, p.Hi, res.Labels, s.expected(p)); err != nil {
			return err
		}
	}
	if !near {
		if err := s.approach(ctx, run, p); err != nil {
			return err
		}
		if _, err := s.optimise(ctx, run, p, p.Points, p.Lo, p.Hi, res.Labels, absent); err != nil {
			return err
		}
	}
	s.warm = true
	k := p.k()
	for j := range k {
		if !p.Total && r.size[j] < int64(p.Lo[j]) {
			return p.outOfReach(s.sizes(p, res))
		}
	}
	res.Prices = res.Prices[:0]
	for _, price := range s.prices[:k] {
		if r.filler > 0 {
			// Below the price of a filler a cluster is empty, and stays so at it.
			price = max(price, -r.filler)
		}
		res.Prices = append(res.Prices, price)
	}
	if err := s.breakTies(ctx, p); err != nil {
		return err
	}
	s.sizes(p, res)
	s.write(p, res)
	return nil
}

// ratio returns the ratio between the sizes of successive subsamples: large
// clusters tolerate more noise in their prices.
func (s *Solver) ratio(n, k int) int {
	if n/k >= s.tune().largeCluster {
		return s.tune().sampleRatio * 3 / 2
	}
	return s.tune().sampleRatio
}

// expected returns about the number of points that a sample's prices leave outside
// the bounds: prices that do better need no sample.
func (s *Solver) expected(p *Problem) int64 {
	n, k := float64(p.Points.N), float64(p.k())
	return int64(0.4 * math.Sqrt(n*k*float64(s.ratio(p.Points.N, p.k())-1)))
}

// leastPoints is the size below which a sample has four times as many points per
// cluster: it costs little.
const leastPoints = 400

// approach improves the starting prices on stratified subsamples, smallest first,
// each started with the prices of the one before.
func (s *Solver) approach(ctx context.Context, run Runner, p *Problem) error {
	n, k := p.Points.N, p.k()
	ratio := s.ratio(n, k)
	least := s.tune().leastSample * k
	least = max(1, least, min(4*least, leastPoints))
	count := 0
	for size := n / ratio; size >= least; size /= ratio {
		count++
	}
	s.lo, s.hi = slices.Grow(s.lo[:0], k)[:k], slices.Grow(s.hi[:0], k)[:k]
	for level := count; level > 0; level-- {
		size := n
		for range level {
			size /= ratio
		}
		if err := s.draw(ctx, run, p, size); err != nil {
			return err
		}
		s.scale(p, size)
		s.labels = slices.Grow(s.labels[:0], size)[:size]
		if _, err := s.optimise(ctx, run, p, s.sample, s.lo, s.hi, s.labels, absent); err != nil {
			return err
		}
		s.stats.Samples++
	}
	return nil
}

// draw fills the sample with one point out of each of size equal runs of points.
func (s *Solver) draw(ctx context.Context, run Runner, p *Problem, size int) error {
	d := p.Points.D
	blocks := (size + kernels.Lanes - 1) / kernels.Lanes
	if cap(s.sample.Data) < blocks*d*kernels.Lanes {
		s.sample = *kernels.NewPanels(size, d)
	}
	s.sample.N, s.sample.D = size, d
	s.sample.Data = s.sample.Data[:blocks*d*kernels.Lanes]
	s.task = task{p: p}
	count := (size + drawPoints - 1) / drawPoints
	if count == 1 {
		s.pick(0, 0)
		return nil
	}
	if s.picks == nil {
		s.picks = s.pick
	}
	return run.Run(ctx, count, s.picks)
}

// drawPoints is the number of points that one call of pick draws.
const drawPoints = 4096

// pick draws one part of the sample.
func (s *Solver) pick(_, index int) {
	p, size, d := s.task.p, s.sample.N, s.sample.D
	n := p.Points.N
	for q := index * drawPoints; q < min(size, (index+1)*drawPoints); q++ {
		lo := q * n / size
		width := (q+1)*n/size - lo
		mixed := uint64(q+1) * 0x9e3779b97f4a7c15
		mixed = (mixed ^ mixed>>32) * 0xd6e8feb86659fd93
		i := lo + int((mixed>>32)*uint64(width)>>32)
		from := i/kernels.Lanes*d*kernels.Lanes + i%kernels.Lanes
		to := q/kernels.Lanes*d*kernels.Lanes + q%kernels.Lanes
		for range d {
			s.sample.Data[to] = p.Points.Data[from]
			from += kernels.Lanes
			to += kernels.Lanes
		}
	}
}

// scale sets the bounds of a sample of the given size.
func (s *Solver) scale(p *Problem, size int) {
	n := p.Points.N
	ratio := float64(size) / float64(n)
	var sumLo, sumHi int
	for j := range p.Lo {
		s.lo[j] = int(math.Ceil(float64(min(p.Lo[j], n)) * ratio))
		s.hi[j] = int(math.Floor(float64(min(p.Hi[j], n)) * ratio))
		if s.lo[j] > s.hi[j] {
			s.lo[j] = s.hi[j]
		}
		sumLo += s.lo[j]
		sumHi += s.hi[j]
	}
	if p.Total || p.Radius > 0 {
		return
	}
	for j := 0; sumHi < size; j = (j + 1) % len(s.hi) {
		if s.hi[j] < p.Hi[j] {
			s.hi[j]++
			sumHi++
		}
	}
	for j := 0; sumLo > size*p.exclusivity(); j = (j + 1) % len(s.lo) {
		if s.lo[j] > 0 {
			s.lo[j]--
			sumLo--
		}
	}
}

// sampleRest is the part of the points outside the bounds that a sample may leave
// there: the last paths are the longest.
const sampleRest = 20

// optimise solves p restricted to the given points and bounds, from s.prices,
// and leaves the flow of the free points in levels[0], the labels of the others in
// labels and the new prices in s.prices. It reports false, and leaves the prices,
// if more units than most are outside the bounds at the start.
//
// A pass at the current prices fixes all points but those with two columns within
// a window, and shortest paths work on these. Where they need arcs beyond the
// window, widen looks at the points of one cluster again; for points with several
// clusters another pass follows, at the prices reached and with a larger window.
func (s *Solver) optimise(ctx context.Context, run Runner, p *Problem, points kernels.Panels, lo, hi []int, labels []uint16, most int64) (bool, error) {
	r := &s.levels[0]
	window := int64(0)
	k, columns, e := p.k(), s.columns(p), int64(p.exclusivity())
	for {
		r.resize(columns)
		r.filler = 0
		if p.mayLeave() {
			r.filler = p.Price()
		}
		for j := range columns {
			r.room[j], r.lo[j], r.hi[j] = 1, 0, int64(points.N)*e
			if j < k {
				r.lo[j], r.hi[j] = int64(min(lo[j], points.N)), int64(min(hi[j], points.N))
			} else {
				s.prices[j] = min(0, s.prices[j])
			}
			if r.filler > 0 {
				s.prices[j] = max(s.prices[j], -r.filler)
			}
		}
		if e > 1 {
			r.room[columns-1] = int32(e - 1)
		}
		var err error
		if window, err = s.pass(ctx, run, p, points, labels, window); err != nil {
			return false, err
		}
		bound := window
		if window >= maxPrice {
			bound = absent
		}
		r.widen = nil
		if e == 1 {
			s.wider.begin(ctx, run, s, p, points, labels, window)
			r.widen = s.wider.widen
		}
		s.stats.Passes++
		r.start(s.prices, bound)
		outside := r.outside()
		if outside > most {
			return false, nil
		}
		enough := int64(0)
		if points.N < p.Points.N {
			enough = outside / sampleRest
		}
		o, err := r.run(ctx, enough)
		if err != nil {
			return false, err
		}
		for j := range columns {
			s.prices[j] = r.price(j)
		}
		s.stats.Free, s.stats.Paths = len(s.free), r.paths
		switch o {
		case solved:
			return true, nil
		case stuck:
			return false, fmt.Errorf("flow: %w: no assignment has sizes within the bounds", ErrInfeasible)
		}
		window = min(max(window, 1)*4, maxPrice)
	}
}

// firstWindow chooses a window that leaves about a given share of the points free;
// some points are looked at.
func (s *Solver) firstWindow(p *Problem, points kernels.Panels) int64 {
	k := p.k()
	if k == 1 || points.N*k <= s.tune().allArcs {
		return maxPrice
	}
	const looked = 512
	step := max(1, points.N/looked)
	rows := s.scratch[0].grow(k)
	s.gaps = s.gaps[:0]
	for i := 0; i < points.N; i += step {
		kernels.CostRows(points, i, i+1, s.centroids, p.FractionBits, rows)
		best, second := int64(absent), int64(absent)
		for j, c := range rows {
			v := c + s.prices[j]
			if v < best {
				best, second = v, best
			} else if v < second {
				second = v
			}
		}
		s.gaps = append(s.gaps, second-best)
	}
	slices.Sort(s.gaps)
	return max(1, min(s.gaps[int(float64(len(s.gaps))*s.share(points.N, k))], maxPrice))
}

// mediumCluster is the number of points per cluster from which windows start
// narrower.
const mediumCluster = 300

// share is the share of points that a window should leave free: a sample of a
// quarter gets the size of a cluster of m points wrong by about 2 sqrt(m).
func (s *Solver) share(n, k int) float64 {
	share := s.tune().freeShare * 2 * math.Sqrt(float64(k)/float64(n))
	if n/k >= mediumCluster {
		share /= 2 // widening where it is needed costs less than more free points
	}
	return min(0.6, share)
}

func (w *scratch) grow(costs int) []int64 {
	w.rows = slices.Grow(w.rows[:0], costs)[:costs]
	return w.rows
}

// pass looks at all points at s.prices. A point whose second best column is
// farther than the window is fixed: its label is written. The others are gathered
// in levels[0] with their candidate arcs. A window of 0 asks for a fitting one;
// the window used is returned.
func (s *Solver) pass(ctx context.Context, run Runner, p *Problem, points kernels.Panels, labels []uint16, window int64) (int64, error) {
	n := points.N
	shardPoints := s.tune().shardPoints
	count := (n + shardPoints - 1) / shardPoints
	for len(s.shards) < count {
		s.shards = append(s.shards, shard{})
	}
	s.gap = slices.Grow(s.gap[:0], n)[:n]
	s.unit = math.Ldexp(1, -2*p.FractionBits)
	sieved := p.exclusivity() == 1 && p.Radius <= 0 && n*p.k() > s.tune().allArcs && window < maxPrice
	if sieved {
		s.prepareSieve(p, s.prices)
		if window == 0 {
			window = s.sievedWindow(points, p.k())
		}
	} else if window == 0 {
		window = s.firstWindow(p, points)
	}
	s.task = task{p, points, labels, window, sieved}
	if s.work == nil {
		s.work = s.shard
	}
	var err error
	switch count {
	case 0, 1:
		if err = ctx.Err(); err == nil && count == 1 {
			s.work(0, 0)
		}
	default:
		err = run.Run(ctx, count, s.work)
	}
	if err != nil {
		return 0, err
	}
	r := &s.levels[0]
	s.free = s.free[:0]
	clear(r.size)
	for index := range count {
		sh := &s.shards[index]
		base := int32(len(r.arcs))
		s.free = append(s.free, sh.free...)
		r.arcs = append(r.arcs, sh.arcs...)
		r.beyond = append(r.beyond, sh.beyond...)
		start := base
		for _, end := range sh.ends {
			q := int32(len(r.first))
			r.first, r.end = append(r.first, start), append(r.end, base+end)
			for ; start < base+end; start++ {
				r.owner = append(r.owner, q)
			}
		}
		for j, x := range sh.size {
			r.size[j] += x
		}
	}
	return window, nil
}

// shard does the shard of the current pass with the given index.
func (s *Solver) shard(worker, index int) {
	t, sh, w := &s.task, &s.shards[index], &s.scratch[worker]
	columns := s.columns(t.p)
	sh.free, sh.arcs, sh.ends, sh.beyond = sh.free[:0], sh.arcs[:0], sh.ends[:0], sh.beyond[:0]
	sh.size = slices.Grow(sh.size[:0], columns)[:columns]
	clear(sh.size)
	size := s.tune().shardPoints
	lo, hi := index*size, min(t.points.N, (index+1)*size)
	switch {
	case t.sieved:
		s.sift(t.p, t.points, lo, hi, t.labels, t.window, sh, w)
	case t.p.exclusivity() > 1:
		s.scanSeveral(t.p, t.points, lo, hi, t.labels, t.window, sh, w)
	default:
		s.scan(t.p, t.points, lo, hi, t.labels, t.window, sh, w)
	}
}

// scan is the pass over the points [lo, hi) when a point has one cluster.
func (s *Solver) scan(p *Problem, points kernels.Panels, lo, hi int, labels []uint16, window int64, sh *shard, w *scratch) {
	k := p.k()
	block := max(kernels.Lanes, s.tune().blockCosts/k&^(kernels.Lanes-1))
	rows := w.grow(block * k)
	leave, reach := int64(absent), int64(absent)
	if p.mayLeave() {
		leave, reach = p.Price()+s.prices[k], p.reach()
	}
	for first := lo; first < hi; first += block {
		last := min(hi, first+block)
		costs := rows[:(last-first)*k]
		kernels.CostRows(points, first, last, s.centroids, p.FractionBits, costs)
		for i := first; i < last; i++ {
			labels[i] = s.choose(costs[(i-first)*k:(i-first)*k+k], int32(i), leave, reach, window, sh)
		}
	}
}

// choose returns the cheapest column of point i. If no other is within the window
// it notes the gap, else it adds the point to the free ones of sh. leave is the price of staying unassigned, reach the longest arc.
func (s *Solver) choose(row []int64, i int32, leave, reach, window int64, sh *shard) uint16 {
	outside := int32(len(row))
	prices := s.prices[:len(row)]
	best, second, label := leave, int64(absent), outside
	for j, price := range prices {
		c := row[j]
		v := c + price
		if v < second && c <= reach {
			if v < best {
				best, second, label = v, best, int32(j)
			} else {
				second = v
			}
		}
	}
	sh.size[label]++
	if second-best > window {
		s.gap[i] = float32(float64(second-best) * s.unit * (1 - 1e-6))
		return uint16(label)
	}
	s.gap[i] = isFree
	sh.free = append(sh.free, i)
	limit := best + min(window, maxPrice/s.tune().wide)*s.tune().wide
	sh.beyond = append(sh.beyond, limit)
	for j, c := range row {
		if c+prices[j] <= limit && c <= reach {
			sh.arcs = append(sh.arcs, arc{c, int32(j), 0})
			if int32(j) == label {
				sh.arcs[len(sh.arcs)-1].count = 1
			}
		}
	}
	if leave <= limit {
		sh.arcs = append(sh.arcs, arc{leave - s.prices[outside], outside, 0})
		if label == outside {
			sh.arcs[len(sh.arcs)-1].count = 1
		}
	}
	sh.ends = append(sh.ends, int32(len(sh.arcs)))
	return uint16(label)
}

// scanSeveral is the pass over the points [lo, hi) when a point may have several
// clusters: it takes the E cheapest units among its columns, "escape" holding up
// to E-1 of them. Candidates lie within the window of the last unit taken; a point
// that has any keeps all the arcs it uses.
func (s *Solver) scanSeveral(p *Problem, points kernels.Panels, lo, hi int, labels []uint16, window int64, sh *shard, w *scratch) {
	k, columns, e := p.k(), s.columns(p), int32(p.exclusivity())
	block := max(kernels.Lanes, s.tune().blockCosts/k&^(kernels.Lanes-1))
	rows := w.grow(block * k)
	w.values = slices.Grow(w.values[:0], columns)[:columns]
	w.order = slices.Grow(w.order[:0], columns)[:columns]
	w.taken = slices.Grow(w.taken[:0], columns)[:columns]
	escape := int32(columns - 1)
	reach := int64(absent)
	if p.mayLeave() {
		reach = p.reach()
	}
	for first := lo; first < hi; first += block {
		last := min(hi, first+block)
		costs := rows[:(last-first)*k]
		kernels.CostRows(points, first, last, s.centroids, p.FractionBits, costs)
		for i := first; i < last; i++ {
			row := costs[(i-first)*k : (i-first)*k+k]
			for j := range columns {
				w.values[j], w.order[j], w.taken[j] = absent, int32(j), 0
				if c := s.arcCost(p, row, int32(j)); c <= reach || j >= k {
					w.values[j] = c + s.prices[j]
				}
			}
			slices.SortFunc(w.order, func(a, b int32) int {
				switch {
				case w.values[a] != w.values[b]:
					if w.values[a] < w.values[b] {
						return -1
					}
					return 1
				}
				return int(a - b)
			})
			left, threshold := e, int64(0)
			for _, j := range w.order {
				if left == 0 {
					break
				}
				units := int32(1)
				if j == escape {
					units = min(left, e-1)
				}
				w.taken[j], threshold = units, w.values[j]
				left -= units
			}
			label, choice := int32(-1), false
			for j := range columns {
				v := w.values[j]
				if w.taken[j] > 0 && int32(j) != escape {
					label = int32(j)
				}
				if v != absent && w.taken[j] == 0 && v <= threshold+window {
					choice = true
				}
				if int32(j) == escape && w.taken[j] < e-1 && v <= threshold+window {
					choice = true
				}
			}
			if !choice && w.taken[escape] == e-1 {
				sh.size[label]++
				sh.size[escape] += int64(e - 1)
				labels[i] = uint16(label)
				continue
			}
			sh.free = append(sh.free, int32(i))
			sh.beyond = append(sh.beyond, threshold+window)
			for j := range columns {
				if w.taken[j] > 0 || w.values[j] != absent && w.values[j] <= threshold+window {
					sh.arcs = append(sh.arcs, arc{s.arcCost(p, row, int32(j)), int32(j), w.taken[j]})
					sh.size[j] += int64(w.taken[j])
				}
			}
			sh.ends = append(sh.ends, int32(len(sh.arcs)))
		}
	}
}

// arcCost returns the cost of the arc of a point to column j.
func (s *Solver) arcCost(p *Problem, row []int64, j int32) int64 {
	switch k := int32(p.k()); {
	case j < k:
		return row[j]
	case j == k && p.mayLeave():
		return p.Price()
	}
	return 0
}

// sizes fills in the sizes and fillers and returns the sizes.
func (s *Solver) sizes(p *Problem, res *Result) []int {
	k := p.k()
	res.Sizes = slices.Grow(res.Sizes[:0], k)[:k]
	res.Fillers = slices.Grow(res.Fillers[:0], k)[:k]
	for j := range k {
		res.Sizes[j] = int(s.levels[0].size[j])
		res.Fillers[j] = max(0, p.Lo[j]-res.Sizes[j])
	}
	return res.Sizes
}

// write fills in the labels of the free points.
func (s *Solver) write(p *Problem, res *Result) {
	k := p.k()
	r := &s.levels[0]
	row := s.scratch[0].grow(k)
	res.Extra = res.Extra[:0]
	for q, i := range s.free {
		label := int32(k)
		for a := r.first[q]; a < r.end[q]; a++ {
			c := &r.arcs[a]
			if c.count == 0 || int(c.column) >= k {
				continue
			}
			row[c.column] = c.cost
			if label == int32(k) || nearer(s.hash, s.digestOf(p, i), row, c.column, label) {
				label = c.column
			}
		}
		res.Labels[i] = uint16(label)
		if p.exclusivity() == 1 {
			continue
		}
		for a := r.first[q]; a < r.end[q]; a++ {
			c := &r.arcs[a]
			if c.count > 0 && int(c.column) < k && c.column != label {
				res.Extra = append(res.Extra, Membership{i, uint16(c.column)})
			}
		}
	}
	res.Unassigned = 0
	if p.mayLeave() {
		res.Unassigned = int(r.size[k])
	}
}
