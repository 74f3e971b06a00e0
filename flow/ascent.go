package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// ascent raises the dual before the exact solver takes over. The dual is concave
// in the prices; its gradient is the excess of each cluster, and its second
// derivative at the scale of a window comes from the points whose two cheapest
// clusters are that close: moving the price of cluster u against that of v by x
// moves about x/(2 window) of the points between u and v. So the steps are
// Newton's, by conjugate gradients, within a radius that adapts to how well the
// step before was foreseen. Single precision is enough: prices need not be
// optimal, and the bounds on gaps that the exact solver relies on allow for it.
// Products are rounded before they are added, on every CPU.
type ascent struct {
	seen, trial view
	prices      []int64 // of the trial
	bias        []float32
	radius      float64 // of the next step, in units of the points squared
	scale       float64 // prices per unit

	lo, hi []int
	excess []float64
	after  []float64
	active []bool
	edges  []edgeCount
	step   []float64
	vector [4][]float64 // residual, preconditioned, direction, image
	damp   []float64

	task viewTask
	work func(worker, index int)
}

// view is what a pass over points sees at some prices.
type view struct {
	labels []uint16    // the cheapest cluster
	gap    []float32   // lower bounds of how much dearer the next is, in units
	size   []int32     // points per cluster
	pairs  []int32     // pairs[u*k+v] counts points of u with rival v within window, pairs[k*k+u] the others
	edges  []edgeCount // the same of pairs, both ways
	window float64
}

// viewTask is what the shards of a pass share.
type viewTask struct {
	p      *Problem
	points kernels.Panels
	prices []int64
	into   *view
	slack  float32
	size   int // points of a shard
}

// edgeCount is the number of points between two clusters.
type edgeCount struct {
	u, v  int32
	count float64
}

// look fills v with what is seen at the given prices.
func (s *Solver) look(ctx context.Context, run Runner, p *Problem, points kernels.Panels, prices []int64, v *view, window float64) error {
	a := &s.ascent
	n, k := points.N, p.k()
	v.labels = slices.Grow(v.labels[:0], n)[:n]
	v.gap = slices.Grow(v.gap[:0], n)[:n]
	v.size = slices.Grow(v.size[:0], k)[:k]
	v.window = window
	s.unit = math.Ldexp(1, -2*p.FractionBits)
	a.task = viewTask{p: p, points: points, prices: prices, into: v, size: s.shardSize(n, k*points.D)}
	if points.D < kernels.WithinDims {
		lowest := slices.Min(prices[:k])
		a.bias = a.bias[:0]
		for _, price := range prices[:k] {
			a.bias = append(a.bias, float32(float64(price-lowest)*s.unit))
		}
		// Each of the two sums has d fused roundings, that of its bias and the bits
		// that the kernel replaces.
		a.task.slack = float32(math.Ldexp(float64(points.D+3), -23) + math.Ldexp(1, kernels.TopTwoBits(k)-22))
	} else {
		s.prepareSieve(p, prices)
	}
	if a.work == nil {
		a.work = s.viewShard
	}
	v.pairs = slices.Grow(v.pairs[:0], k*k+k)[:k*k+k]
	clear(v.pairs)
	for i := range s.scratch[1:] {
		w := &s.scratch[1+i]
		w.pairs = slices.Grow(w.pairs[:0], k*k+k)[:k*k+k]
		clear(w.pairs)
	}
	s.stats.Passes++
	s.looked += n
	count := (n + a.task.size - 1) / a.task.size
	if count == 1 || run.Workers() == 1 {
		for index := range count {
			if err := ctx.Err(); err != nil {
				return err
			}
			a.work(0, index)
		}
	} else if err := run.Run(ctx, count, a.work); err != nil {
		return err
	}
	for i := range s.scratch[1:] {
		for j, c := range s.scratch[1+i].pairs {
			v.pairs[j] += c
		}
	}
	v.sum(k)
	return nil
}

// sum sets the sizes and the edges.
func (v *view) sum(k int) {
	v.edges = v.edges[:0]
	for u := range k {
		size := v.pairs[k*k+u]
		for w, c := range v.pairs[u*k : u*k+k] {
			if c == 0 {
				continue
			}
			size += c
			switch other := v.pairs[w*k+u]; {
			case u < w:
				v.edges = append(v.edges, edgeCount{int32(u), int32(w), float64(c + other)})
			case other == 0:
				v.edges = append(v.edges, edgeCount{int32(w), int32(u), float64(c)})
			}
		}
		v.size[u] = size
	}
}

// worthSharing is the number of multiply-adds from which a pass is worth the
// waking of other workers.
const worthSharing = 1 << 18

// shardSize returns the number of points of a shard of a pass with the given
// multiply-adds per point: one shard if it is not worth sharing, else about 32, none
// larger than usual. It is the same for any number of workers.
func (s *Solver) shardSize(n, perPoint int) int {
	const least, shards = 256, 32
	if n*perPoint < worthSharing {
		return max(1, n)
	}
	return min(s.tune().shardPoints, max(least, n/shards)&^(2*kernels.Lanes-1))
}

// viewShard does one shard of a pass.
func (s *Solver) viewShard(worker, index int) {
	t, w := &s.ascent.task, &s.scratch[worker]
	v := t.into
	pairs := v.pairs
	if worker > 0 {
		pairs = w.pairs
	}
	first := index * t.size
	last := min(t.points.N, first+t.size)
	labels, gap := v.labels[first:last], v.gap[first:last]
	if t.points.D >= kernels.WithinDims {
		s.countFar(t, first, labels, gap, w, pairs)
		return
	}
	const block = 1024 // points whose cells stay in the L1 cache
	w.cells = slices.Grow(w.cells[:0], block)[:block]
	for at := 0; at < len(labels); at += block {
		end := min(at+block, len(labels))
		cells := w.cells[:end-at]
		kernels.TopTwo(t.points.Slice(first+at, first+end), s.centroids, s.ascent.bias, t.slack, float32(v.window), labels[at:end], cells, gap[at:end])
		for _, cell := range cells {
			pairs[cell]++
		}
	}
}

// countFar does a shard of points of more dimensions than [kernels.TopTwo] is for.
// The rivals of some points within the window, found by exact costs, stand for all.
func (s *Solver) countFar(t *viewTask, first int, labels []uint16, gap []float32, w *scratch, pairs []int32) {
	k := t.p.k()
	block := w.room(t.points.D, k)
	row := w.grow(k)
	limit := float32(t.into.window)
	near := w.near[:0]
	for at := 0; at < len(labels); at += block {
		count := min(block, len(labels)-at)
		s.sieve.assign(t.points, first+at, count, labels[at:at+count], w)
		copy(gap[at:], w.second[:count])
		for i := at; i < at+count; i++ {
			pairs[k*k+int(labels[i])]++
			if gap[i] <= limit {
				near = append(near, int32(i))
			}
		}
	}
	w.near = near
	each := max(1, len(near)*t.points.N/(len(labels)*max(4*k, t.points.N/64)))
	for q := each / 2; q < len(near); q += each {
		i := int(near[q])
		kernels.CostRows(t.points, first+i, first+i+1, s.centroids, t.p.FractionBits, row)
		best, second := int64(absent), int64(absent)
		var label, rival uint16
		for j, c := range row {
			switch value := c + t.prices[j]; {
			case value < best:
				best, second, label, rival = value, best, uint16(j), label
			case value < second:
				second, rival = value, uint16(j)
			}
		}
		stands := int32(min(each, len(near)-q+each/2))
		pairs[int(label)*k+int(rival)] += stands
		pairs[k*k+int(label)] -= stands // the size is their sum
	}
}

// ascend improves s.prices[:k] for the given points and bounds until at most the
// given number of units is outside the bounds, or steps stop paying. It leaves in
// ascent.seen what a pass at these prices sees, and returns the units outside.
func (s *Solver) ascend(ctx context.Context, run Runner, p *Problem, points kernels.Panels, lo, hi []int, target float64) (float64, error) {
	a := &s.ascent
	k := p.k()
	a.resize(k)
	a.lo, a.hi = lo, hi
	a.scale = math.Ldexp(1, 2*p.FractionBits)
	prices := s.prices[:k]
	if err := s.look(ctx, run, p, points, prices, &a.seen, a.radius); err != nil {
		return 0, err
	}
	outside := a.judge(prices, &a.seen, a.excess)
	if math.IsInf(target, 1) {
		return outside, nil
	}
	if a.radius == 0 {
		a.radius = a.quantile(1. / 4)
	}
	if a.seen.window == 0 && outside > 0 {
		if err := s.look(ctx, run, p, points, prices, &a.seen, a.radius); err != nil {
			return 0, err
		}
	}
	const most = 24
	for range most {
		if outside <= target {
			break
		}
		foreseen, along := a.newton(prices)
		for tries := 0; foreseen <= 0 && tries < 6; tries++ {
			// Prices that stopped at 0 have bent the step too much.
			a.radius /= 4
			foreseen, along = a.newton(prices)
		}
		if foreseen <= 0 {
			break
		}
		largest := 0.0
		for j, x := range a.step {
			largest = max(largest, math.Abs(x))
			a.prices[j] = prices[j] + int64(x*a.scale)
		}
		window := min(a.radius, 2*largest)
		if err := s.look(ctx, run, p, points, a.prices, &a.trial, window); err != nil {
			return 0, err
		}
		then := a.judge(a.prices, &a.trial, a.after)
		// The dual is concave: the mean of its slopes along the step at both ends
		// stands for the gain.
		slope := 0.0
		for j, x := range a.step {
			slope += float64(a.after[j] * x)
		}
		ratio := (along + slope) / 2 / foreseen
		switch {
		case ratio > 0.25 && then > outside:
			a.radius = min(a.radius, largest) / 2
		case ratio > 0.75 && largest > a.radius/2:
			a.radius *= 2
		case ratio > 0.25:
			a.radius = max(a.radius/2, min(a.radius, 2*largest))
		default:
			a.radius = min(a.radius, largest) / 3
		}
		if ratio > 0.05 {
			a.seen, a.trial = a.trial, a.seen
			a.excess, a.after = a.after, a.excess
			copy(prices, a.prices)
			outside = then
		}
	}
	return outside, nil
}

func (a *ascent) resize(k int) {
	a.prices = slices.Grow(a.prices[:0], k)[:k]
	a.excess = slices.Grow(a.excess[:0], k)[:k]
	a.after = slices.Grow(a.after[:0], k)[:k]
	a.active = slices.Grow(a.active[:0], k)[:k]
	a.step = slices.Grow(a.step[:0], k)[:k]
	a.damp = slices.Grow(a.damp[:0], k)[:k]
	for i := range a.vector {
		a.vector[i] = slices.Grow(a.vector[i][:0], k)[:k]
	}
}

// judge sets the gradient of the dual: the points of each cluster beyond the
// bound that its price asks for. It returns the units that have to move.
func (a *ascent) judge(prices []int64, v *view, excess []float64) float64 {
	var over, under float64
	for j, count := range v.size {
		size, lo, hi := float64(count), float64(a.lo[j]), float64(a.hi[j])
		switch price := prices[j]; {
		case price > 0 || price == 0 && size > hi:
			excess[j] = size - hi
		case price < 0 || size < lo:
			excess[j] = size - lo
		default:
			excess[j] = 0
		}
		over += max(0, excess[j])
		under += max(0, -excess[j])
	}
	return max(over, under)
}

// quantile returns the gap that the given share of the points seen, less than 1,
// is below, from some of them.
func (a *ascent) quantile(share float64) float64 {
	looked := 128
	if share < 1./8 {
		looked = 2048
	}
	gaps := a.trial.gap[:0]
	for i := 0; i < len(a.seen.gap); i += max(1, len(a.seen.gap)/looked) {
		gaps = append(gaps, a.seen.gap[i])
	}
	a.trial.gap = gaps
	slices.Sort(gaps)
	return max(float64(gaps[int(float64(len(gaps))*share)]), math.SmallestNonzeroFloat32, 1/a.scale)
}

// ahead returns the largest change of a price in the step that would follow.
func (a *ascent) ahead(prices []int64) float64 {
	a.newton(prices)
	largest := 0.0
	for _, x := range a.step {
		largest = max(largest, math.Abs(x))
	}
	return largest
}

// newton sets a.step and returns the gain that the model foresees for it and the
// slope of the dual along it. The step of cluster j alone is at most the radius;
// a price does not cross 0, where its bound changes.
func (a *ascent) newton(prices []int64) (foreseen, along float64) {
	a.edges = append(a.edges[:0], a.seen.edges...)
	rate := 1 / (2 * a.seen.window)
	for i := range a.edges {
		a.edges[i].count *= rate
	}
	least := 0.05
	for j, e := range a.excess {
		a.active[j] = e != 0 || prices[j] != 0
		a.damp[j] = (math.Abs(e) + least) / a.radius
	}
	for range 4 {
		a.solve()
		crossed := false
		for j, x := range a.step {
			if a.active[j] && prices[j] == 0 && x*a.excess[j] < 0 {
				a.active[j], crossed = false, true
			}
		}
		if !crossed {
			break
		}
	}
	for j, x := range a.step {
		if !a.active[j] {
			a.step[j] = 0
			continue
		}
		x = min(2*a.radius, max(-2*a.radius, x))
		price := float64(prices[j]) / a.scale
		if price > 0 && price+x < 0 || price < 0 && price+x > 0 || price == 0 && x*a.excess[j] < 0 {
			x = -price
		}
		a.step[j] = x
		along += float64(a.excess[j] * x)
	}
	foreseen = along
	for _, e := range a.edges {
		x := a.step[e.u] - a.step[e.v]
		foreseen -= float64(0.5 * e.count * x * x)
	}
	return foreseen, along
}

// solve finds the step with (Laplacian of edges + damp) step = excess over the
// active clusters, by conjugate gradients with the diagonal as preconditioner.
func (a *ascent) solve() {
	r, z, d, q := a.vector[0], a.vector[1], a.vector[2], a.vector[3]
	diagonal := z
	copy(diagonal, a.damp)
	for _, e := range a.edges {
		diagonal[e.u] += e.count
		diagonal[e.v] += e.count
	}
	// z keeps the inverse of the diagonal, 0 where a cluster is not active.
	rz := 0.0
	clear(a.step)
	for j, active := range a.active {
		if !active {
			r[j], z[j], d[j] = 0, 0, 0
			continue
		}
		z[j] = 1 / diagonal[j]
		r[j] = a.excess[j]
		d[j] = r[j] * z[j]
		rz += float64(r[j] * d[j])
	}
	enough := 1e-3 * rz
	for range 60 {
		if rz <= enough || rz == 0 {
			return
		}
		for j, x := range d {
			q[j] = float64(a.damp[j] * x)
		}
		for _, e := range a.edges {
			f := float64(e.count * (d[e.u] - d[e.v]))
			q[e.u] += f
			q[e.v] -= f
		}
		dq := 0.0
		for j, x := range d {
			dq += float64(q[j] * x)
		}
		alpha := rz / dq
		next := 0.0
		for j, x := range d {
			a.step[j] += float64(alpha * x)
			r[j] -= float64(alpha * q[j])
			next += float64(r[j] * r[j] * z[j])
		}
		beta := next / rz
		for j := range d {
			d[j] = float64(r[j]*z[j]) + float64(beta*d[j])
		}
		rz = next
	}
}
