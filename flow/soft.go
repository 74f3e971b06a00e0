package flow

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// soft raises the dual of a plain problem, smoothed at a temperature: a point is shared among the columns
// that are nearly the cheapest, about as exp(-value/temperature), and so is what sizes
// ask for around the prices where that jumps. The smoothed dual has a Hessian
// everywhere, that of a Laplacian, so Newton's steps by conjugate gradients see far
// clusters and many ties alike. The temperature falls while the steps converge, and the
// sample grows when fewer points feel it than the sizes of the sample are off by.
type soft struct {
	temperature float64 // in squared grid units
	prices      []int64 // of the clusters
	start       []int64 // of the step
	shards      []shared
	ranges      []bounds

	size, gradient []float64
	laplacian                // minus the second derivative, times the temperature
	step           []float64 // in terms of the temperature
	vector         [4][]float64
	next           []int32   // the place of the next part of a column
	parts          []part    // by their columns
	with           []float64 // the edges of the column at hand
	met            []int32   // their other columns
	active         float64   // units that are shared
	pairs          float64   // of shares of the same units
	free           float64   // the longest move where nothing is shared
	trust          float64   // root of the mean square of the moves of shared units
}

// shared is the points of a shard: groups of columns with the shares of a number of
// units. Column k stands for those whose price is fixed.
type shared struct {
	sure    []int64 // units that are not shared
	columns []int32
	shares  []float64
	ends    []int32
	units   []float64

	near []entry // columns of the point at hand, with their values
}

// softReach is the number of temperatures after which a column has no share.
const softReach = 8

// weigh is about exp(-t), 0 from softReach on.
func weigh(t float64) float64 {
	t = 1 - t/softReach
	t *= t
	t *= t
	return t * t
}

// rampWidth is where ramp ends.
const rampWidth = 4

// ramp rises from 0 to 1 around 0.
func ramp(t float64) (value, slope float64) {
	const width = rampWidth
	t = max(-width, min(width, t)) / width
	if t < 0 {
		return float64((1+t)*(1+t)) / 2, (1 + t) / width
	}
	return 1 - float64((1-t)*(1-t))/2, (1 - t) / width
}

// soften is the shard of a pass that shares points.
func (s *Solver) soften(worker, index int) {
	h, columns := &s.soft.shards[index], s.pass.p.k()+1
	h.columns, h.shares, h.ends, h.units = h.columns[:0], h.shares[:0], h.ends[:0], h.units[:0]
	h.sure = slices.Grow(h.sure[:0], columns)[:columns]
	clear(h.sure)
	s.lookAtCells(worker, index)
}

// softenLeaf shares the points [first, last), for which the other clusters are too dear.
func (s *Solver) softenLeaf(w *scratch, c *choice, first, last int) {
	p, h := s.pass.p, &s.soft.shards[w.shard]
	w.own = w.own[:0]
	for _, j := range c.clusters {
		w.own = append(w.own, s.soft.prices[j])
	}
	few := w.only(p, c.clusters)
	rows := w.grow(kernels.Lanes * few.K)
	for at := first; at < last; at += kernels.Lanes {
		end := min(last, at+kernels.Lanes)
		kernels.CostRows(p.Points, at, end, few, p.FractionBits, rows[:(end-at)*few.K])
		for i := at; i < end; i++ {
			h.near = h.near[:0]
			for q, cost := range rows[(i-at)*few.K:][:len(c.clusters)] {
				h.near = append(h.near, entry{cost + w.own[q], int32(c.clusters[q]), 0})
			}
			h.share(p.weight(i), s.soft.temperature)
		}
	}
}

// share shares units among the columns of h.near.
func (h *shared) share(units int64, temperature float64) {
	near := h.near
	if len(near) == 1 {
		h.sure[near[0].column] += units
		return
	}
	lowest := near[0].cost
	for _, e := range near {
		lowest = min(lowest, e.cost)
	}
	sum, begin := 0.0, len(h.shares)
	for _, e := range near {
		if x := float64(e.cost-lowest) / temperature; x < softReach {
			x = weigh(x)
			sum += x
			h.columns, h.shares = append(h.columns, e.column), append(h.shares, x)
		}
	}
	if len(h.shares) == begin+1 {
		h.sure[h.columns[begin]] += units
		h.columns, h.shares = h.columns[:begin], h.shares[:begin]
		return
	}
	for i := range h.shares[begin:] {
		h.shares[begin+i] /= sum
	}
	h.ends, h.units = append(h.ends, int32(len(h.shares))), append(h.units, float64(units))
}

// lookSoftly sets the gradient and what the Hessian needs at a.prices. It returns the units
// that the sizes are off by.
func (s *Solver) lookSoftly(ctx context.Context, run Runner, p *Problem) (float64, error) {
	a, k, t := &s.soft, p.k(), &s.pass
	n := p.Points.N
	v := &s.ascent.trial
	v.exact = false
	*t = passTask{p: p, prices: a.prices, into: v, soft: true}
	s.beginCells(p, a.prices, float64(softReach*a.temperature+1)*s.unit*(1+1e-9))
	s.stats.Passes++
	s.looked += n
	for len(a.shards) < (n+t.size-1)/t.size {
		a.shards = append(a.shards, shared{})
	}
	if err := s.runPass(ctx, run, s.soften); err != nil {
		return 0, err
	}
	a.shards = a.shards[:(n+t.size-1)/t.size]
	x := &a.vector
	for _, x := range []*[]float64{&a.size, &a.gradient, &a.damp, &a.step, &x[0], &x[1], &x[2], &x[3]} {
		*x = slices.Grow((*x)[:0], k+1)[:k+1]
	}
	clear(a.size)
	a.active, a.pairs = 0, 0
	for i := range a.shards {
		h := &a.shards[i]
		for j, units := range h.sure {
			a.size[j] += float64(units)
		}
		begin := int32(0)
		for g, end := range h.ends {
			units, squares := h.units[g], 0.0
			for at := begin; at < end; at++ {
				x := h.shares[at]
				a.size[h.columns[at]] += float64(units * x)
				squares += float64(x * x)
			}
			a.active += float64(units * (1 - squares))
			a.pairs += float64(end-begin) * float64(end-begin-1) / 2
			begin = end
		}
	}
	off := 0.0
	a.ranges = append(a.ranges[:0], s.limits(p)[:k]...)
	for j, b := range a.ranges {
		size, slope := b.soft(float64(a.prices[j]), a.temperature)
		a.gradient[j], a.damp[j] = a.size[j]-size, slope
		if price, g := a.prices[j], a.gradient[j]; price >= b.over && g > 0 || price <= -b.under && g < 0 {
			a.gradient[j], a.damp[j] = 0, 1e12
		}
		off += math.Abs(a.gradient[j])
	}
	return off, nil
}

// soft returns the smoothed outflow at a price and its derivative, times the
// temperature.
func (b *bounds) soft(price, temperature float64) (size, slope float64) {
	x, dx := ramp(price / temperature)
	size = float64(b.lo) + float64(float64(b.hi-b.lo)*x)
	slope = float64(b.hi-b.lo) * dx
	return size, slope
}

// couple makes edges of the shares: the Hessian, times the temperature, is the Laplacian in
// which a unit with shares x and y of two columns adds x*y to their edge. It goes through the
// shares in the order of their columns.
func (a *soft) couple(columns int) {
	a.next = slices.Grow(a.next[:0], columns+1)[:columns+1]
	clear(a.next)
	for i := range a.shards {
		for _, j := range a.shards[i].columns {
			a.next[j+1]++
		}
	}
	for j := range columns {
		a.next[j+1] += a.next[j]
	}
	a.parts = slices.Grow(a.parts[:0], int(a.next[columns]))[:a.next[columns]]
	for i := range a.shards {
		h, begin := &a.shards[i], int32(0)
		for g, end := range h.ends {
			for at := begin; at < end; at++ {
				to := &a.next[h.columns[at]]
				a.parts[*to] = part{int32(i), at + 1, end, float64(h.units[g] * h.shares[at])}
				*to++
			}
			begin = end
		}
	}
	a.edges = a.edges[:0]
	a.with = slices.Grow(a.with[:0], columns)[:columns]
	clear(a.with)
	parts, done := a.parts, int32(0)
	for u := range int32(columns) {
		a.met = a.met[:0]
		for _, x := range parts[done:a.next[u]] {
			h := &a.shards[x.shard]
			shares := h.shares[x.rest:x.end]
			for at, v := range h.columns[x.rest:x.end] {
				if a.with[v] == 0 {
					a.met = append(a.met, v)
				}
				a.with[v] += float64(x.units * shares[at])
			}
		}
		done = a.next[u]
		for _, v := range a.met {
			a.edges = append(a.edges, edgeCount{u, v, a.with[v]})
			a.with[v] = 0
		}
	}
}

// part is a share of a column, in units, and those of the same units that come after it.
type part struct {
	shard, rest, end int32
	units            float64
}

// newton sets a.step to Newton's, no longer than the trust allows, and returns the
// slope of the dual along it.
func (a *soft) newton(k int) float64 {
	inverse, r, d, q := a.vector[0], a.vector[1], a.vector[2], a.vector[3]
	a.couple(k + 1)
	clear(a.step)
	clear(inverse)
	for _, e := range a.edges {
		inverse[e.u] += e.count
		inverse[e.v] += e.count
	}
	for j := range k {
		shared := inverse[j]
		a.damp[j] += float64(0.064/a.free*(1+shared)) + max(0, 2*math.Abs(a.gradient[j])/a.free-shared-a.damp[j])
		inverse[j] = 1 / (shared + a.damp[j])
		r[j] = a.gradient[j]
	}
	r[k], inverse[k] = 0, 0
	a.conjugateGradients(a.step, r, inverse, d, q, 1e-4, 100)
	for j, x := range a.step[:k] {
		// Beyond the ramp around 0 there is no slope that would tell where to stop.
		x = max(-a.free, min(a.free, x))
		price, b := float64(a.prices[j])/a.temperature, &a.ranges[j]
		if math.Abs(price) > rampWidth && price*(price+x) < 0 {
			x = -price
		}
		a.step[j] = max(-float64(b.under)/a.temperature-price, min(float64(b.over)/a.temperature-price, x))
	}
	a.step[k] = 0
	clear(a.damp)
	a.product(a.step, q)
	energy, along := 0.0, 0.0
	for j := range k {
		energy += float64(q[j] * a.step[j])
		along += float64(a.gradient[j] * a.step[j])
	}
	shrink := 1.0
	if most := float64(a.trust*a.trust) * (a.active + 1); energy > most {
		shrink = math.Sqrt(most / energy)
	}
	for j := range k {
		a.step[j] *= shrink
	}
	return along * shrink
}

// stepSoftly takes a Newton step, shorter while it goes too far. It returns the units
// that the sizes are off by then.
func (s *Solver) stepSoftly(ctx context.Context, run Runner, p *Problem) (float64, error) {
	a, k := &s.soft, p.k()
	along := a.newton(k)
	a.start = append(a.start[:0], a.prices...)
	part, most := 1.0, p.Price() // no best price is farther from 0
	before := 0.0
	for _, g := range a.gradient[:k] {
		before += math.Abs(g)
	}
	for tries := 0; ; tries++ {
		for j := range k {
			move := math.Round(max(-maxPrice, min(maxPrice, float64(part*a.step[j])*a.temperature)))
			a.prices[j] = max(-most, min(most, a.start[j]+int64(move)))
		}
		off, err := s.lookSoftly(ctx, run, p)
		if err != nil {
			return 0, err
		}
		then := 0.0
		for j := range k {
			then += float64(a.gradient[j] * a.step[j])
		}
		if then >= -along/2 || off < 0.8*before || tries == 3 {
			if a.free *= 8; then < along/2 || tries > 0 {
				a.free = 64
			}
			a.free = min(a.free, 1e12)
			if tries == 0 && then > along/4 {
				a.trust = min(2*a.trust, 16)
			} else if tries > 0 {
				a.trust = max(a.trust/2, 1)
			}
			return off, nil
		}
		part *= max(0.1, along/(along-then))
	}
}

// anneal brings the prices close to the best, on samples from the given size on and on
// all points, at falling temperatures.
func (s *Solver) anneal(ctx context.Context, run Runner, whole *Problem, size int, temperature float64) error {
	a, k, n := &s.soft, whole.k(), whole.Points.N
	a.prices = append(a.prices[:0], s.prices[:k]...)
	a.temperature, a.trust, a.free = max(1, min(temperature, maxPrice/64)), 4, 64
	p, drawn, before, flat, raised := whole, 0, math.Inf(1), 0, 0
	for range 60 {
		if drawn != size {
			drawn, raised = size, 0
			if p = whole; size < n {
				if err := s.draw(ctx, run, whole, size); err != nil {
					return err
				}
				p = &s.sample
			}
		}
		noise := math.Sqrt(float64(k) * float64(size))
		steps, enough := 6, 0.1*noise
		if size == n {
			enough = float64(k)
		}
		off, err := s.lookSoftly(ctx, run, p)
		// Where it is so hot that most points are shared by most clusters, a step costs more than
		// it brings.
		hot := a.pairs > 4*float64(size)*float64(k)
		for ; err == nil && !hot && steps > 0 && off > float64(0.3*a.active)+enough &&
			(size < n || off > float64(k)); steps-- {
			off, err = s.stepSoftly(ctx, run, p)
		}
		if err != nil {
			return err
		}
		if !hot && off > float64(0.3*a.active)+float64(0.3*noise) && raised < 4 && size < n {
			raised++
			a.temperature = min(4*a.temperature, maxPrice/64)
			continue
		}
		if size == n {
			if a.active > 0.7*before {
				flat++
			} else {
				flat = 0
			}
			if off < 4*float64(k) && a.active < 15*float64(k) || a.active < float64(k) || flat == 2 || a.temperature < 1 {
				break
			}
		}
		before = a.active
		if size < n && a.active < 1.5*noise {
			if size *= s.tune().sampleRatio; size > n/2 {
				size = n
			}
			continue
		}
		a.temperature = max(a.temperature/4, 0.5)
	}
	copy(s.prices, a.prices)
	*a = soft{} // its shares are more than all else, and only a solve without prices wants it
	return nil
}

// hottest is the temperature to begin with.
func (s *Solver) hottest(p *Problem) float64 {
	k, d := p.k(), p.Points.D
	spread := 0.0
	for c := range d {
		mean, squares := 0.0, 0.0
		for j := range k {
			x := float64(p.Centroids[j*d+c])
			mean += x
			squares += float64(x * x)
		}
		mean /= float64(k)
		spread += squares/float64(k) - float64(mean*mean)
	}
	hottest := max(1, min(0.05, 16*math.Pow(float64(k), -2/float64(d)))*spread/s.unit)
	return hottest
}
