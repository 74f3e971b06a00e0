package flow

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/flow/line"
	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// Solver solves a sequence of problems, such as the assignments of successive
// Lloyd iterations of one client. It keeps its memory and the last prices: a
// problem of the same shape as the one before starts from them. The answer does
// not depend on where the solver starts. A Solver must not be used by two
// goroutines at a time. The zero value is ready to use.
type Solver struct {
	// Began, if set, is called in Solve when a stage begins, with the number of points
	// that the stage before has looked at, a point counted once for each look.
	Began func(stage Stage, looked int)

	prices    []int64 // of the columns
	given     []int64 // prices to start from next, if any
	warm      bool
	n, bits   int
	centroids *kernels.Centroids
	hash      *tieHash
	unit      float64 // a squared grid unit

	columns         int // clusters, then "unassigned" and "escape" where there are
	outside, escape int // -1: none
	pass            passTask
	works           struct{ near, cells, drain, draw func(worker, index int) } // shards, bound once
	shards          [][]Membership
	scratch         []scratch // per worker
	order           order
	ordered         bool   // the points are in order
	all             choice // from all clusters, at the prices of a pass
	filter          filter
	ascent          ascent
	line            line.Solver
	stalled         bool // single precision or Newton's steps do not serve
	members         members
	ties            ties

	sample Problem
	stats  Stats
	looked int     // at so many points since the stage began
	tuning *tuning // nil: standard
}

// Stage is a part of a Solve.
type Stage uint8

// The stages.
const (
	// Prices is when passes over the points, or a subsample, bring the prices closer
	// to the best.
	Prices Stage = iota
	// Paths is when flow between clusters makes the assignment exact.
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

// Forget makes s what NewSolver returns, with the memory that it has: the pages of a new one
// cost as much as a small problem.
func (s *Solver) Forget() {
	s.Began, s.warm, s.given = nil, false, s.given[:0]
}

// tuning is what the speed depends on, and the answer does not.
type tuning struct {
	sampleRatio int // between the sizes of successive subsamples
	shardPoints int // points of a shard
	// Clusters near each other that a column looks at together for its moves.
	blockClusters int

	// Points per cluster and in all in the smallest subsample.
	firstCluster, firstSample int
	// The units outside the bounds that end the ascent, in terms of sqrt(points*k) on
	// a subsample and of k on all points, and the window after it, in terms of the
	// step that would follow.
	sampleRest, fullRest, stepWindow float64
	// The share of the points that a window leaves, in terms of sqrt(k/points).
	freeShare float64
	// Clusters, where the problem is plain (and in the plane) and where it is not, and points for each of them from
	// which points are put in order.
	orderClusters, orderForms, orderPoints int
	// Rounds after which a first quantum is too small, and rounds for each node before the
	// scaling begins.
	bulkRounds, rounds int
}

var standard = tuning{sampleRatio: 4, shardPoints: 1024, blockClusters: 8,
	firstCluster: 6, firstSample: 100, sampleRest: 0.3, fullRest: 1, stepWindow: 5, freeShare: 2,
	orderClusters: 129, orderForms: 2, orderPoints: 8, bulkRounds: 64, rounds: 1000}

func (s *Solver) tune() *tuning {
	if s.tuning != nil {
		return s.tuning
	}
	return &standard
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
	if res == nil {
		return fmt.Errorf("flow: %w: the result to write to is nil", ErrProblem)
	}
	run = parallel.Or(run)
	if p.worthSharing() {
		parallel.Wake(run)
	}
	s.stats, s.looked = Stats{}, 0
	plain := p.plain()
	if s.ordered = s.worthOrdering(p); s.ordered {
		var err error
		if p, err = s.order.arrange(ctx, run, p); err != nil {
			return err
		}
	}
	err := s.solve(ctx, run, p, plain)
	// A point might leave for prices that are free up to a constant and beyond that of a filler.
	most := p.UnassignedCost() - p.reach()
	beyond := func(price int64) bool { return max(price, -price) > most }
	if err == nil && plain && p.mayLeave() && slices.ContainsFunc(s.prices[:p.k()], beyond) {
		s.warm = false
		err = s.solve(ctx, run, p, false)
	}
	if err == nil {
		err = s.write(ctx, p, res)
	}
	if s.ordered && err == nil {
		s.order.restore(res, &s.ascent.seen)
	}
	s.shed(p)
	s.warm = err == nil
	res.Stats = s.stats
	return err
}

// shed lets go of what groups take where these are a large part of the points, and of what passes and steps take for
// pairs of neighbours where it is more than what is kept of the points, which many clusters have few of each: the next
// problem has fewer groups, or takes long enough for new memory.
func (s *Solver) shed(p *Problem) {
	if m := &s.members; 4*m.count > p.Points.N {
		m.table = nil
		clear(m.columns)
	}
	const few = 32 // points of a cluster
	if p.k() > tableColumns && p.Points.N < few*p.k() {
		s.scratch, s.ascent = nil, ascent{}
	}
}

// plain reports whether every unit must find a place in exactly one of the clusters,
// any of them, and does.
func (p *Problem) plain() bool {
	if p.exclusivity() > 1 || p.Radius > 0 || p.Penalty != nil || p.k() < 2 || p.Points.N == 0 {
		return false
	}
	if !p.Total {
		return true
	}
	total := p.total()
	var lo, hi int64
	for j := range p.Lo {
		lo += min(int64(p.Lo[j]), total)
		hi += min(int64(p.Hi[j]), total)
	}
	return lo <= total && total <= hi
}

// atLeast returns x, lengthened by zeros to n if it is shorter.
func atLeast[T any](x []T, n int) []T { return append(x, make([]T, max(0, n-len(x)))...) }

// sized returns a slice of length n, with the memory of x if that is enough, and anything in it.
func sized[T any](x []T, n int) []T { return slices.Grow(x[:0], n)[:n] }

// crewOf returns who does a job: all workers if that pays, else the calling goroutine.
func crewOf(run Runner, pays bool) Runner {
	if pays {
		return run
	}
	return parallel.Serial{}
}

// prepare readies the memory and the starting prices.
func (s *Solver) prepare(run Runner, p *Problem, plain bool) {
	k, d := p.k(), p.Points.D
	if s.centroids == nil || s.centroids.K != k || s.centroids.D != d {
		s.centroids = kernels.NewCentroids(k, d)
		s.warm = false
	}
	s.centroids.Set(p.Centroids)
	if s.hash == nil {
		s.hash = newTieHash(p)
	}
	s.hash.of(p)
	if w, m := &s.works, &s.members; w.cells == nil {
		w.near, w.cells, w.drain, w.draw = s.countNear, s.lookAtCells, s.drain, s.pick
		m.find, m.digest, m.lay, m.more = m.listPart, m.digestPart, m.layOut, m.enlistNext
	}
	s.columns, s.outside, s.escape = p.columns(plain)
	if s.n != p.Points.N || s.bits != p.FractionBits || len(s.prices) < k {
		s.warm = false
	}
	s.n, s.bits = p.Points.N, p.FractionBits
	s.unit = math.Ldexp(1, -2*p.FractionBits)
	for j := len(s.all.clusters); j < k; j++ {
		s.all.clusters = append(s.all.clusters, uint16(j))
	}
	s.all.clusters, s.all.bound = s.all.clusters[:k], math.MaxFloat32/4
	s.prices = atLeast(s.prices, s.columns)[:s.columns]
	clear(s.prices[k:])
	if !s.warm {
		clear(s.prices)
	}
	if len(s.given) == k {
		copy(s.prices, s.given)
		s.warm = true
	}
	s.given = s.given[:0]
	most := int64(maxPrice)
	if p.mayLeave() {
		most = p.UnassignedCost()
		if plain {
			most -= p.reach()
		}
	}
	for j := range k {
		s.prices[j] = min(max(s.prices[j], -most), most)
	}
	s.scratch = atLeast(s.scratch, run.Workers())
}

// setRanges sets the cost of the outflow of each column.
func (s *Solver) setRanges(p *Problem) {
	total := p.total()
	ranges, most := s.ascent.ranges[:0], total*int64(p.exclusivity())
	for j := range s.columns {
		b := bounds{hi: most, top: most, under: infinity, over: infinity}
		if j < p.k() {
			b = p.limit(j, total, s.outside >= 0)
		}
		ranges = append(ranges, b)
	}
	s.ascent.ranges = ranges
}

// solve leaves the optimal flow in s.members and its prices in s.prices.
func (s *Solver) solve(ctx context.Context, run Runner, p *Problem, plain bool) error {
	s.prepare(run, p, plain)
	s.begin(Prices)
	window, err := s.approach(ctx, run, p, plain)
	if err != nil {
		return err
	}
	s.begin(Paths)
	v := &s.ascent.seen
	if err := s.members.begin(ctx, run, s, p, v, window); err != nil {
		return err
	}
	s.stats.Free = len(s.members.fresh)
	if err := s.complete(ctx, 0); err != nil {
		return err
	}
	s.stats.Paths += s.members.t.paths
	s.stats.Rounds += s.members.t.rounds
	for _, row := range s.members.t.rows {
		s.stats.MoveBytes += cap(row) * entryBytes
	}
	if p.Total || p.Penalty != nil {
		return nil
	}
	for j := range p.k() {
		if s.members.t.size[j] < int64(p.Lo[j]) {
			return p.outOfReach(s.members.t.size)
		}
	}
	return nil
}

// complete makes the flow of s.members optimal, but for at most the given number of
// units, and takes its prices. If that takes more rounds than usual it scales, with a
// proven bound of rounds: see [transport].
func (s *Solver) complete(ctx context.Context, enough int64) error {
	t := &s.members.t
	stuck, err := t.bulk(ctx, enough)
	solved := false
	if err == nil && !stuck {
		solved, stuck, err = t.run(ctx, enough, s.tune().rounds*(t.columns+8))
	}
	if err == nil && !stuck && !solved {
		t.quantum = t.largest()
		if stuck, err = t.scale(ctx, -1, -1, t.quantum, math.MaxInt); err == nil && !stuck {
			_, stuck, err = t.run(ctx, 0, math.MaxInt)
		}
	}
	if stuck {
		err = fmt.Errorf("flow: %w: no assignment has sizes within the bounds", ErrInfeasible)
	}
	for j := range s.prices {
		s.prices[j] = t.price(j)
	}
	return err
}

// write breaks the ties and fills in the result.
func (s *Solver) write(ctx context.Context, p *Problem, res *Result) error {
	m, k := &s.members, p.k()
	res.Prices = res.Prices[:0]
	for j, price := range s.prices[:k] {
		b := &m.t.bounds[j] // beyond the slopes of its outflow the size of a cluster stays the same
		res.Prices = append(res.Prices, min(max(price, -b.under), b.over))
	}
	if err := s.breakTies(ctx); err != nil {
		return err
	}
	m.release()
	res.Sizes, res.Fillers = sized(res.Sizes, k), sized(res.Fillers, k)
	for j := range k {
		res.Sizes[j] = int(m.t.size[j])
		res.Fillers[j] = 0
		if p.Total && p.Penalty == nil {
			res.Fillers[j] = max(0, p.Lo[j]-res.Sizes[j])
		}
	}
	res.Unassigned = 0
	if s.outside >= 0 {
		res.Unassigned = int(m.t.size[s.outside])
	}
	res.Labels, m.v.labels = m.v.labels, res.Labels
	res.Extra, res.Units = res.Extra[:0], append(res.Units[:0], p.Weights...)
	for i := range res.Units {
		if int(res.Labels[i]) == k {
			res.Units[i] = 0
		}
	}
	for extra := m.v.extra; len(extra) > 0; {
		own := 1
		for own < len(extra) && extra[own].Point == extra[0].Point {
			own++
		}
		p.name(s.hash, extra[:own], res)
		extra = extra[own:]
	}
	return nil
}

// name makes the nearest of the columns of a point, by distance and tie hash, its
// label and the other clusters its extra memberships.
func (p *Problem) name(hash *tieHash, held []Membership, res *Result) {
	i, k := int(held[0].Point), p.k()
	label := Membership{Cluster: uint16(k)}
	for _, h := range held {
		if int(h.Cluster) < k && (int(label.Cluster) == k || hash.nearer(p, i, int(h.Cluster), int(label.Cluster))) {
			label = h
		}
	}
	res.Labels[i] = label.Cluster
	if p.Weights != nil {
		res.Units[i] = label.Units
	}
	for _, h := range held {
		if int(h.Cluster) < k && h.Cluster != label.Cluster {
			res.Extra = append(res.Extra, h)
		}
	}
}
