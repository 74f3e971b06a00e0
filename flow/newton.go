package flow

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/flow/tree"
)

// ascent raises the dual by passes. The dual is concave in the prices; its gradient
// is the excess of each cluster, and its second derivative at the scale of a window
// comes from the points whose two cheapest clusters are that close: moving the price
// of cluster u against that of v by x moves about x/(2 window) of the points between
// u and v. So the steps are Newton's, by conjugate gradients, within a trust region
// that adapts to how well the gain of the step before was predicted. Single precision is
// enough: prices need not be optimal, and the bounds on gaps that the completion relies on
// allow for it. Products are rounded before they are added, on every CPU.
type ascent struct {
	seen, trial view
	prices      []int64 // of the trial
	best        []int64 // those with the least units outside
	radius      float64 // of the next step, in units of the points squared
	scale       float64 // prices per unit

	plain  bool     // prices are free up to a constant
	ranges []bounds // what sizes cost
	excess []float64
	after  []float64
	active []bool    // clusters that the step may move freely
	fixed  []float64 // the step of the others
	vacant []bool    // clusters that want points and have few or none, or none of them near others
	near   []float64 // units of each cluster, and of others, that are near others, and near it
	edges  []edgeCount
	damp   []float64
	step   []float64
	vector [4][]float64 // residual, preconditioned, direction, image
	gaps   []int64      // of some points, as ranked
	some   handful
	order  []entry   // of prices
	degree []float64 // number of edges of each cluster
	// together holds neighbours together, not prices: where differences of prices are
	// nearly right, a whole region may have to move.
	together bool
	// refills is whether clusters without points are refilled in small subsamples, too: steps without left most points
	// outside.
	refills bool
}

// ascend improves s.prices[:k] until at most the given number of units is outside the
// bounds, or steps stop paying. It leaves in ascent.seen what a pass at these prices
// sees, and returns the units outside.
func (s *Solver) ascend(ctx context.Context, run Runner, p *Problem, target float64) (float64, error) {
	a := &s.ascent
	k := p.k()
	a.resize(k)
	a.some.drawn = false
	s.setRanges(p)
	prices := s.prices[:k]
	a.level(p, prices)
	if err := s.look(ctx, run, p, prices, &a.seen, a.radius); err != nil {
		return 0, err
	}
	a.radius = a.seen.window // was chosen, or is a.radius
	outside := a.gradient(prices, &a.seen, a.excess)
	if s.warm && a.plain && 8*outside > float64(p.total()) { // fewer than an eighth are worth no pass
		var err error
		if outside, err = s.compareWithNone(ctx, run, p, outside); err != nil {
			return 0, err
		}
	}
	if a.radius == 0 {
		a.radius = a.quantile(1. / 4)
	}
	if a.seen.window != a.radius && outside > 0 && !a.seen.exact {
		if err := s.look(ctx, run, p, prices, &a.seen, a.radius); err != nil {
			return 0, err
		}
	}
	patience, worth := 10, 0.0 // worth is how many units outside cost as much as a pass
	switch {
	case s.outside >= 0: // no pass brings back what has to leave
		worth = passWorth(p.Points.N, p.Points.D, k)
	case s.ordered && a.plain: // with many clusters paths cost more than passes
		patience = 20
	}
	least, before, since := outside, outside, 0
	copy(a.best, prices)
	for range 80 {
		if outside < least {
			least = outside
			copy(a.best, prices)
		}
		if outside <= target {
			break
		}
		if since++; least < 0.85*before {
			before, since = least, 0
		}
		if since > patience || float64(since)*worth > least || s.single() && a.radius < filterSingles/4 {
			break
		}
		then, err := s.step(ctx, run, p, outside, least)
		if err != nil {
			return 0, err
		}
		if then < 0 {
			break
		}
		outside = then
	}
	if outside > least {
		copy(prices, a.best)
		if err := s.look(ctx, run, p, prices, &a.seen, a.radius); err != nil {
			return 0, err
		}
		outside = a.gradient(prices, &a.seen, a.excess)
	}
	return outside, nil
}

// single reports whether passes are in single precision however small the window is: smaller steps mean nothing then.
func (s *Solver) single() bool { return s.ascent.plain && !s.ordered }

// compareWithNone takes prices of 0 in place of those of the problem before if they leave fewer units outside than
// those do: clusters that have moved far are at the wrong ones. It returns the units outside.
func (s *Solver) compareWithNone(ctx context.Context, run Runner, p *Problem, outside float64) (float64, error) {
	a := &s.ascent
	clear(a.prices)
	a.level(p, a.prices)
	if err := s.look(ctx, run, p, a.prices, &a.trial, a.radius); err != nil {
		return 0, err
	}
	if none := a.gradient(a.prices, &a.trial, a.after); none < outside {
		a.seen, a.trial = a.trial, a.seen
		a.excess, a.after = a.after, a.excess
		copy(s.prices, a.prices)
		outside = none
	}
	return outside, nil
}

// level keeps prices within what a unit too few or too many costs. It
// moves all those of a plain problem by as much, which changes no point's cluster: as many sizes are
// at their maximum, since the price is positive, as the number of points asks for.
func (a *ascent) level(p *Problem, prices []int64) {
	if !a.plain {
		for j, price := range prices {
			prices[j] = min(max(price, -a.ranges[j].under), a.ranges[j].over)
		}
		return
	}
	total := p.total()
	a.order = a.order[:0]
	var wanted, above, least int64 // the minima, the room of prices above 0, and that of prices 0
	for j, price := range prices {
		a.order = append(a.order, entry{-price, int32(j), 0})
		b := &a.ranges[j]
		wanted += b.lo
		switch {
		case price > 0:
			above += b.hi - b.lo
		case price == 0:
			least += b.hi - b.lo
		}
	}
	if wanted+above <= total && total <= wanted+above+least {
		return
	}
	slices.SortFunc(a.order, func(a, b entry) int { return cmp.Compare(a.cost, b.cost) })
	lowest, highest := int64(-maxPrice), int64(maxPrice) // of the price that 0 takes the place of
	for _, e := range a.order {
		room := a.ranges[e.column].hi - a.ranges[e.column].lo
		if wanted+room > total {
			lowest = max(lowest, -e.cost)
		}
		if wanted < total {
			highest = min(highest, -e.cost)
		}
		wanted += room
	}
	if by := max(lowest, min(highest, 0)); by != 0 {
		for j := range prices {
			prices[j] -= by
		}
	}
}

// step takes a step and adapts the radius. It returns the units outside the bounds,
// negative if there is no step that raises the dual.
func (s *Solver) step(ctx context.Context, run Runner, p *Problem, outside, least float64) (float64, error) {
	a := &s.ascent
	prices := s.prices[:p.k()]
	vacant := s.markVacant(p)
	predicted, along := a.newton(prices)
	for j, x := range a.step {
		a.prices[j] = prices[j] + int64(x*a.scale)
	}
	if vacant {
		slope, err := s.refill(ctx, run, p)
		if err != nil {
			return 0, err
		}
		predicted, along = predicted+slope/2, along+slope // until they have their points
	}
	if predicted <= 0 {
		return -1, nil
	}
	a.level(p, a.prices)
	largest := a.largest()
	if err := s.look(ctx, run, p, a.prices, &a.trial, min(a.radius, 2*largest)); err != nil {
		return 0, err
	}
	then := a.gradient(a.prices, &a.trial, a.after)
	// The dual is concave: the mean of its slopes along the step at both ends stands for
	// the gain.
	slope := 0.0
	for j, x := range a.step {
		slope += float64(a.after[j] * x)
	}
	ratio := (along + slope) / 2 / predicted
	switch {
	case ratio > 0.25 && a.together && then > max(outside, 1.3*least):
		a.radius = min(a.radius, largest) / 4
	case ratio > 0.25 && !a.together && then > outside, ratio > 0.25 && a.together && ratio < 0.9 && then > 0.9*outside:
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
	return outside, nil
}

// largest returns the largest move of the step: of a price or,
// where neighbours are held together, of one against the other.
func (a *ascent) largest() float64 {
	largest := 0.0
	for j, x := range a.step {
		if !a.vacant[j] && (!a.together || a.degree[j] <= 1) {
			largest = max(largest, math.Abs(x))
		}
	}
	if a.together {
		for _, e := range a.edges {
			largest = max(largest, math.Abs(a.step[e.u]-a.step[e.v]))
		}
	}
	return largest
}

func (a *ascent) resize(k int) {
	a.prices, a.best, a.active, a.vacant = sized(a.prices, k), sized(a.best, k), sized(a.active, k), sized(a.vacant, k)
	for _, x := range []*[]float64{&a.excess, &a.after, &a.fixed, &a.step, &a.damp, &a.degree, &a.near} {
		*x = sized(*x, k)
	}
	for i := range a.vector {
		a.vector[i] = sized(a.vector[i], k)
	}
}

// gradient sets the gradient of the dual: the points of each cluster beyond the
// bound that its price asks for. It returns the units that have to move.
func (a *ascent) gradient(prices []int64, v *view, excess []float64) float64 {
	var over, under float64
	for j, price := range prices {
		least, most := a.ranges[j].at(price)
		excess[j] = float64(v.size[j] - min(most, max(least, v.size[j])))
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
	a.gaps = a.gaps[:0]
	for i := 0; i < len(a.seen.gap); i += max(1, len(a.seen.gap)/looked) {
		a.gaps = append(a.gaps, tree.Rank(a.seen.gap[i], i))
	}
	return max(a.share(share), math.SmallestNonzeroFloat32, 1/a.scale)
}

// share returns what the given share of the gaps is below.
func (a *ascent) share(share float64) float64 {
	bits := tree.Nth(a.gaps, a.gaps, int(float64(len(a.gaps))*share)) >> 32
	return float64(math.Float32frombits(uint32(max(0, bits))))
}

// newton sets a.step and returns the gain that the model predicts for it and the
// slope of the dual along it. A damping keeps steps to about the radius; a price does
// not cross 0, where its bound changes. Those of vacant clusters stay.
func (a *ascent) newton(prices []int64) (predicted, along float64) {
	k, rate, least := len(prices), 1/(2*a.seen.window), 0.05
	for j, e := range a.excess {
		b, price := &a.ranges[j], prices[j]
		a.active[j] = (e != 0 || price != 0 && price != b.over && price != -b.under) && !a.vacant[j]
		a.fixed[j] = 0
		a.damp[j] = (math.Abs(e) + least) / a.radius
		a.degree[j] = 0
	}
	a.edges = a.edges[:0]
	for _, e := range a.seen.edges {
		if int(e.v) < k {
			a.edges = append(a.edges, edgeCount{e.u, e.v, e.count * rate})
			a.degree[e.u]++
			a.degree[e.v]++
		}
	}
	if a.together {
		for i := range a.edges {
			e := &a.edges[i]
			e.count += a.damp[e.u]/a.degree[e.u] + a.damp[e.v]/a.degree[e.v]
		}
		for j, degree := range a.degree {
			if degree > 1 {
				a.damp[j] *= 0.03
			}
		}
	}
	for _, e := range a.seen.edges {
		if int(e.v) >= k { // its price is fixed
			a.damp[e.u] += e.count * rate
		}
	}
	for range 8 {
		a.solve()
		crossed := false
		for j, x := range a.step {
			if stop := a.stop(j, float64(prices[j])/a.scale, x); a.active[j] && (stop < x || stop > x) {
				a.active[j], a.fixed[j], crossed = false, stop, true
			}
		}
		if !crossed {
			break
		}
	}
	for j, x := range a.step {
		if most := 2 * a.radius; !a.together {
			x = min(most, max(-most, x))
		}
		x = a.stop(j, float64(prices[j])/a.scale, x)
		a.step[j] = x
		along += float64(a.excess[j] * x)
	}
	predicted = along
	for _, e := range a.seen.edges {
		x := a.step[e.u]
		if int(e.v) < k {
			x -= a.step[e.v]
		}
		predicted -= float64(0.5 * rate * e.count * x * x)
	}
	return predicted, along
}

// stop returns the part of the step x of a price up to where the cost of the size changes.
func (a *ascent) stop(j int, price, x float64) float64 {
	b := &a.ranges[j]
	for _, at := range [...]float64{0, float64(b.over) / a.scale, -float64(b.under) / a.scale} {
		if price == at && x*a.excess[j] < 0 || (price-at)*(price+x-at) < 0 {
			x = at - price
		}
	}
	return x
}

// solve finds the step with (Laplacian of edges + damp) step = excess over the
// active clusters, by conjugate gradients with the diagonal as preconditioner.
func (a *ascent) solve() {
	r, z, d, q := a.vector[0], a.vector[1], a.vector[2], a.vector[3]
	copy(a.step, a.fixed)
	a.product(a.step, q)
	copy(z, a.damp)
	for _, e := range a.edges {
		z[e.u] += e.count
		z[e.v] += e.count
	}
	// z keeps the inverse of the diagonal, 0 where a cluster is not active.
	for j, active := range a.active {
		if !active {
			r[j], z[j], d[j] = 0, 0, 0
			continue
		}
		z[j] = 1 / z[j]
		r[j] = a.excess[j] - q[j]
		d[j] = r[j] * z[j]
	}
	rz := dot(r, d)
	enough := 1e-3 * rz
	for rounds := 60; rounds > 0 && rz > enough; rounds-- {
		a.product(d, q)
		alpha := rz / dot(d, q)
		for j, y := range d {
			a.step[j] += float64(alpha * y)
			r[j] -= float64(alpha * q[j])
			q[j] = r[j] * z[j]
		}
		next := dot(r, q)
		beta := next / rz
		for j, y := range q {
			d[j] = y + float64(beta*d[j])
		}
		rz = next
	}
}

// dot returns the sum of the products of x and y: four sums in turn, which do not wait for each other.
func dot(x, y []float64) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		a += float64(x[0] * y[0])
		b += float64(x[1] * y[1])
		c += float64(x[2] * y[2])
		d += float64(x[3] * y[3])
	}
	for j := range x {
		a += float64(x[j] * y[j])
	}
	return a + b + (c + d)
}

// product sets q to the product of d and the matrix of a step, the Laplacian of edges plus the diagonal damp.
func (a *ascent) product(d, q []float64) {
	for j, x := range d {
		q[j] = float64(a.damp[j] * x)
	}
	for at := 0; at < len(a.edges); {
		u := a.edges[at].u // has several in a row
		x, sum := d[u], q[u]
		for ; at < len(a.edges) && a.edges[at].u == u; at++ {
			e := &a.edges[at]
			f := float64(e.count * (x - d[e.v]))
			sum += f
			q[e.v] -= f
		}
		q[u] = sum
	}
}
