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
	labels, rivals []uint16  // the cheapest column and the next
	gap            []float32 // lower bounds of how much dearer the next is, in units
	size           []int32   // points per cluster
	pairs          []int32   // pairs[u*k+v] counts points of u with rival v within window
	window         float64
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
	v.rivals = slices.Grow(v.rivals[:0], n)[:n]
	v.gap = slices.Grow(v.gap[:0], n)[:n]
	v.size = slices.Grow(v.size[:0], k)[:k]
	v.pairs = slices.Grow(v.pairs[:0], k*k)[:k*k]
	v.window = window
	s.unit = math.Ldexp(1, -2*p.FractionBits)
	a.task = viewTask{p: p, points: points, prices: prices, into: v, size: s.tune().shardPoints}
	if points.D < kernels.WithinDims {
		lowest := slices.Min(prices[:k])
		a.bias = a.bias[:0]
		for _, price := range prices[:k] {
			a.bias = append(a.bias, float32(float64(price-lowest)*s.unit))
		}
		// Each of the two sums has d fused roundings and that of its bias.
		a.task.slack = float32(math.Ldexp(float64(points.D+3), -23))
	} else {
		s.prepareSieve(p, prices)
	}
	if a.work == nil {
		a.work = s.viewShard
	}
	for i := range s.scratch {
		w := &s.scratch[i]
		w.size = slices.Grow(w.size[:0], k)[:k]
		w.pairs = slices.Grow(w.pairs[:0], k*k)[:k*k]
		clear(w.size)
		clear(w.pairs)
	}
	s.stats.Passes++
	count := (n + a.task.size - 1) / a.task.size
	if n*k*points.D < worthSharing || run.Workers() == 1 {
		for index := range count {
			if err := ctx.Err(); err != nil {
				return err
			}
			a.work(0, index)
		}
	} else if err := run.Run(ctx, count, a.work); err != nil {
		return err
	}
	copy(v.size, s.scratch[0].size)
	copy(v.pairs, s.scratch[0].pairs)
	for i := range s.scratch[1:] {
		w := &s.scratch[1+i]
		for j, c := range w.size {
			v.size[j] += c
		}
		for j, c := range w.pairs {
			v.pairs[j] += c
		}
	}
	return nil
}

// worthSharing is the number of multiply-adds from which a pass is worth the
// waking of other workers.
const worthSharing = 1 << 18

// viewShard does one shard of a pass.
func (s *Solver) viewShard(worker, index int) {
	t, w := &s.ascent.task, &s.scratch[worker]
	k, v := t.p.k(), t.into
	first := index * t.size
	last := min(t.points.N, first+t.size)
	labels, rivals, gap := v.labels[first:last], v.rivals[first:last], v.gap[first:last]
	if t.points.D < kernels.WithinDims {
		kernels.Rivals(t.points.Slice(first, last), s.centroids, s.ascent.bias, t.slack, labels, rivals, gap)
	} else {
		s.rivalsFar(t, first, labels, rivals, gap, w)
	}
	tally(labels, rivals, gap, float32(v.window), k, w.size, w.pairs)
}

// tally adds the labels to size and the pairs of labels and rivals within the
// window to pairs, without a branch, which would often be foreseen wrongly.
func tally(labels, rivals []uint16, gap []float32, window float32, k int, size, pairs []int32) {
	// A float is at most another, not negative one if its bits, as an integer, are.
	limit := int64(int32(math.Float32bits(window))) + 1
	rivals, gap = rivals[:len(labels)], gap[:len(labels)]
	for i, j := range labels {
		size[j]++
		near := uint64(int64(int32(math.Float32bits(gap[i])))-limit) >> 63
		pairs[int(j)*k+int(rivals[i])] += int32(near)
	}
}

// rivalsFar is [kernels.Rivals] for more dimensions: the rivals of the points
// within the window by exact costs, the others left as they are.
func (s *Solver) rivalsFar(t *viewTask, first int, labels, rivals []uint16, gap []float32, w *scratch) {
	k := t.p.k()
	block := w.room(t.points.D, k)
	row := w.grow(k)
	limit := float32(t.into.window)
	for at := 0; at < len(labels); at += block {
		count := min(block, len(labels)-at)
		s.sieve.assign(t.points, first+at, count, labels[at:at+count], w)
		copy(gap[at:], w.second[:count])
		for i := at; i < at+count; i++ {
			if gap[i] > limit {
				continue
			}
			kernels.CostRows(t.points, first+i, first+i+1, s.centroids, t.p.FractionBits, row)
			best, second := int64(absent), int64(absent)
			for j, c := range row {
				switch value := c + t.prices[j]; {
				case value < best:
					rivals[i], labels[i] = labels[i], uint16(j)
					best, second = value, best
				case value < second:
					rivals[i], second = uint16(j), value
				}
			}
			gap[i] = float32(float64(second-best) * s.unit * (1 - 1e-6))
		}
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
	if a.radius == 0 && outside > target {
		a.radius = a.quartile()
		s.recount(&a.seen, k)
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

// quartile returns a quarter of the way up the gaps seen, from some points.
func (a *ascent) quartile() float64 {
	const looked = 512
	gaps := a.trial.gap[:0]
	for i := 0; i < len(a.seen.gap); i += max(1, len(a.seen.gap)/looked) {
		gaps = append(gaps, a.seen.gap[i])
	}
	a.trial.gap = gaps
	slices.Sort(gaps)
	return max(float64(gaps[len(gaps)/4]), math.SmallestNonzeroFloat32, 1/a.scale)
}

// recount counts the pairs of a view within the present radius.
func (s *Solver) recount(v *view, k int) {
	v.window = s.ascent.radius
	clear(v.pairs)
	limit := float32(v.window)
	for i, gap := range v.gap {
		if gap <= limit && v.rivals[i] != v.labels[i] {
			v.pairs[int(v.labels[i])*k+int(v.rivals[i])]++
		}
	}
}

// newton sets a.step and returns the gain that the model foresees for it and the
// slope of the dual along it. The step of cluster j alone is at most the radius;
// a price does not cross 0, where its bound changes.
func (a *ascent) newton(prices []int64) (foreseen, along float64) {
	k := len(prices)
	a.edges = a.edges[:0]
	rate := 1 / (2 * a.seen.window)
	pairs := a.seen.pairs
	for u := range k {
		row := pairs[u*k : u*k+k]
		for v := u + 1; v < k; v++ {
			if c := row[v] + pairs[v*k+u]; c != 0 {
				a.edges = append(a.edges, edgeCount{int32(u), int32(v), float64(c) * rate})
			}
		}
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
			q[j] = a.damp[j] * x
		}
		for _, e := range a.edges {
			f := e.count * (d[e.u] - d[e.v])
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
