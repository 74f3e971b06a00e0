package privacy

import (
	"cmp"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"
)

// PLDAccountant composes privacy-loss distributions numerically (T9). Its answers are upper bounds:
//
//   - Each distribution is moved to a grid by splitting every atom (or cell of a continuous part)
//     between the two grid points around it so that both its P-mass and its Q-mass stay: a spread
//     that dominates the original, with an error of second order in the step (Doroshenko, Ghazi,
//     Kamath, Kumar and Manurangsi 2022, "Connect the dots"). The shares are rounded pessimistically.
//   - The grid distributions are tilted by e^(lambda L), lambda the best Chernoff exponent, convolved
//     by FFT, and tilted back, so that rounding errors are relative to the delta in question.
//     A bound on the FFT's error (10 u log2(n) in the l2 norm, per factor) is added to delta, and
//     so is a Chernoff bound of what falls above the window; what wraps around from below only adds.
//
// With Optimistic the distribution is coarsened instead, outcomes being merged to hit grid points
// exactly, and the error bounds are subtracted: the answers are lower bounds on what the given
// distributions cost.
type PLDAccountant struct {
	Optimistic bool

	parts   []pldPart
	slack   float64
	unknown bool
}

type pldPart struct {
	m      Mechanism // nil if composed as losses
	losses []*Losses // one or two orders
	rounds int
}

// Name is "pld".
func (a *PLDAccountant) Name() string { return "pld" }

// Compose adds rounds releases of m. A mechanism without a known loss distribution counts as the
// worst one of its pure epsilon, and leaves no bound if it has none.
func (a *PLDAccountant) Compose(m Mechanism, rounds int) {
	if rounds == 0 {
		return
	}
	if d, ok := m.(DiscreteGaussianStep); ok && d.Sigma > manyAtoms {
		m = Gaussian{Scale: d.Sigma / float64(d.Step), Discretised: d.Slack()}
	}
	if g, ok := m.(Gaussian); ok {
		a.slack += times(rounds, g.Discretised)
	}
	for i := range a.parts {
		if _, ok := m.(lossy); ok && a.parts[i].m == m {
			a.parts[i].rounds += rounds
			return
		}
	}
	switch x := m.(type) {
	case zero:
	case lossy:
		a.parts = append(a.parts, pldPart{m, x.Losses(), rounds})
	default:
		if e := m.Pure(); !math.IsInf(e, 1) {
			a.composeLosses(rounds, PureDP{Epsilon: e}.Losses()...)
		} else {
			a.unknown = true
		}
	}
}

// composeLosses adds rounds releases with the given loss distributions: one for each order of the
// neighbours, or one that is the same in both.
func (a *PLDAccountant) composeLosses(rounds int, orders ...*Losses) {
	if rounds > 0 && len(orders) > 0 {
		a.parts = append(a.parts, pldPart{nil, orders, rounds})
	}
}

// Epsilon is the least epsilon provable at delta.
func (a *PLDAccountant) Epsilon(delta float64) float64 {
	switch {
	case len(a.parts) == 0 && !a.unknown || delta >= 1:
		return 0
	case a.unknown:
		return math.Inf(1)
	}
	largest := a.largest()
	if delta <= 0 {
		return largest
	}
	worst := 0.0
	for order := range a.orders() {
		if a.Optimistic {
			worst = math.Max(worst, a.least(order, delta))
		} else {
			worst = math.Max(worst, a.most(order, delta, largest))
		}
	}
	return math.Min(worst, largest)
}

// tiltAt is the exponent that makes Chernoff's epsilon at delta least.
func (c *convolution) tiltAt(delta float64) float64 {
	return c.bestTilt(func(l, k float64) float64 { return (k - math.Log(delta)) / l })
}

// most is an upper bound on epsilon at delta for one order of the neighbours.
func (a *PLDAccountant) most(order int, delta, largest float64) float64 {
	c := newConvolution(a, order, cut)
	if c.hopeless() {
		return largest
	}
	lambda := c.tiltAt(delta)
	prof := c.profile(lambda)
	ok := func(e float64) bool {
		return prof.delta(e)+slackDelta(e, a.slack) <= delta
	}
	// A bounded loss has no best tilt once delta is below the mass of its largest, and the answer may
	// then lie below the window, or where rounding drowns it: follow it down.
	for try := 0; try < 12 && (prof.low() > 0 && ok(prof.low()) || lambda*c.sd > 0.9*steepest); try++ {
		at := math.Max(0, prof.low()-10*c.step)
		if math.IsInf(prof.low(), -1) {
			at = 0
		}
		lambda = c.bestTilt(func(l, k float64) float64 { return k - l*at })
		prof = c.profile(lambda)
	}
	if ok(0) {
		return 0
	}
	lo, hi := 0.0, math.Max(prof.top(), 1e-9)
	if a.slack > 0 {
		hi = math.Min(hi, math.Log(delta/a.slack/2)) // beyond, the slack takes more than a half of delta
	}
	if !(hi > 0) || !ok(hi) {
		return math.Inf(1)
	}
	_, above := bisect(ok, lo, hi, 1e-7)
	return above
}

// least is a lower bound on epsilon at delta for one order of the neighbours, 0 if none is found.
func (a *PLDAccountant) least(order int, delta float64) float64 {
	for _, limit := range []float64{2 * farBelow, cut} {
		c := newConvolution(a, order, limit)
		if c.boundless() {
			return 0
		}
		prof := c.profile(c.tiltAt(delta))
		ok := func(e float64) bool {
			return prof.delta(e)-slackDelta(e, a.slack) <= delta
		}
		// The error bound, relative to the tilted target, may swamp small epsilons: come from above.
		hi := math.Max(prof.top(), 1e-9)
		least := 1e-6 * hi
		lo := hi
		for lo > least && ok(lo) {
			hi, lo = lo, lo*0.9
		}
		if lo <= least {
			return 0
		}
		if e, _ := bisect(ok, lo, hi, 1e-7); e < limit-farBelow || limit == cut {
			return e
		}
	}
	return 0
}

// largest is the largest loss of all rounds together.
func (a *PLDAccountant) largest() float64 {
	if a.slack > 0 {
		return math.Inf(1)
	}
	var e float64
	for _, p := range a.parts {
		worst := 0.0
		for _, l := range p.losses {
			if l.infinite > 0 || l.above > 0 {
				return math.Inf(1)
			}
			worst = math.Max(worst, l.hi)
			if n := len(l.atoms); n > 0 {
				worst = math.Max(worst, l.atoms[n-1].loss)
			}
		}
		e += times(p.rounds, worst)
	}
	return e
}

// Delta is the least delta provable at epsilon.
func (a *PLDAccountant) Delta(epsilon float64) float64 {
	if a.unknown {
		return 1
	}
	worst := 0.0
	for order := range a.orders() {
		worst = math.Max(worst, a.deltaOf(order, epsilon))
	}
	return worst
}

// deltaOf is Delta for one order of the neighbours.
func (a *PLDAccountant) deltaOf(order int, epsilon float64) float64 {
	c := newConvolution(a, order, a.limit(epsilon))
	if c.hopeless() {
		return 1
	}
	lambda := c.bestTilt(func(l, k float64) float64 { return k - l*epsilon })
	slack := slackDelta(epsilon, a.slack)
	if a.Optimistic {
		slack = -slack
	}
	return math.Min(1, math.Max(0, c.profile(lambda).delta(epsilon)+slack))
}

// limit is the largest loss that a grid keeps for delta at epsilon.
func (a *PLDAccountant) limit(epsilon float64) float64 {
	if a.Optimistic {
		return math.Min(cut, epsilon+farBelow)
	}
	return cut
}

// orders is 2 if any part differs between the orders of the neighbours.
func (a *PLDAccountant) orders() int {
	n := 0
	for _, p := range a.parts {
		n = max(n, len(p.losses))
	}
	return n
}

// gridLosses is a loss distribution on multiples of the step: mass[i] at (first+i) step.
type gridLosses struct {
	first    int
	mass     []float64
	infinite float64
	rounds   int
}

// convolution is one order of an accountant's parts on a common grid.
type convolution struct {
	step       float64
	sd         float64 // of the sum of all losses
	parts      []gridLosses
	optimistic bool
}

// maxWindow bounds the length of the FFT.
const maxWindow = 1 << 22

// newConvolution puts the parts on a grid; losses beyond limit count as cut says.
func newConvolution(a *PLDAccountant, order int, limit float64) *convolution {
	var variance, rounds, biggest float64
	pick := func(p pldPart) *Losses { return p.losses[min(order, len(p.losses)-1)] }
	for _, p := range a.parts {
		l := pick(p)
		variance += float64(p.rounds) * l.sd * l.sd
		rounds += float64(p.rounds)
		biggest = math.Max(biggest, math.Abs(l.mean)+l.sd)
	}
	sd := math.Sqrt(variance)
	// Splitting adds at most step^2/4 of variance per round: 0.05% of it all in all, 0.03% of epsilon; from 5000
	// rounds on up to ten times that, so that 2^15 steps hold 20 standard deviations.
	// A lone release gets 500 steps per standard deviation.
	one := math.Sqrt(variance / rounds)
	step := math.Min(math.Min(math.Max(0.045*one, sd/1600), 0.15*one), sd/500)
	longest := float64(1 << 19)
	if a.Optimistic && a.sparse(pick) {
		step /= 16
		longest = 1 << 17
	}
	step = math.Max(step, 40*sd/maxWindow)
	// A far tail does not buy a finer grid than half a million points.
	for _, p := range a.parts {
		floor, ceiling := pick(p).span(limit)
		step = math.Max(step, (ceiling-floor)/longest)
	}
	if !(step > 0) {
		step = math.Max(biggest, 1e-9) / 1000
	}
	sd = cmp.Or(sd, step) // where all but next to nothing has one loss, its variance cancels to 0
	// A grid that meets the extreme atoms of a bounded loss does not spread them.
	if l := pick(a.parts[0]); len(l.atoms) > 0 && (l.cells == nil || l.hi > 0 && l.above == 0) {
		if top := math.Max(l.atoms[len(l.atoms)-1].loss, l.hi); top > step && top < limit {
			step = top / math.Ceil(top/step)
		}
	}
	c := &convolution{step: step, sd: sd, optimistic: a.Optimistic}
	for _, p := range a.parts {
		g := pick(p).onGrid(step, limit, a.Optimistic)
		g.rounds = p.rounds
		c.parts = append(c.parts, g)
	}
	return c
}

// sparse tells whether some part has atoms only. Merging far atoms costs variance of first order
// in the step, where splitting them, or merging near ones, costs second order.
func (a *PLDAccountant) sparse(pick func(pldPart) *Losses) bool {
	for _, p := range a.parts {
		if pick(p).cells == nil {
			return true
		}
	}
	return false
}

// hopeless tells whether some part has nothing but infinite loss, or losses so large that no grid has them.
func (c *convolution) hopeless() bool {
	if c.boundless() {
		return true
	}
	for _, g := range c.parts {
		if g.infinite >= 1 {
			return true
		}
	}
	return false
}

// boundless tells whether losses are so large that their squares overflow.
func (c *convolution) boundless() bool { return !(c.step <= math.MaxFloat64) }

// pieces calls f with the loss, P-mass and spread of every atom and cell, in increasing order
// of loss: cells come as (a, b] with both masses.
func (l *Losses) pieces(width float64, f func(a, b, p, q float64)) {
	next := 0
	flush := func(limit float64) {
		for next < len(l.atoms) && l.atoms[next].loss <= limit {
			t := l.atoms[next]
			f(t.loss, t.loss, t.mass, t.mass*math.Exp(-t.loss))
			next++
		}
	}
	if l.cells != nil {
		flush(l.lo)
		for i := math.Floor(l.lo / width); i*width < l.hi; i++ {
			a, b := math.Max(i*width, l.lo), math.Min((i+1)*width, l.hi)
			if a < b {
				flush(a)
				if p, q := l.cells(a, b); p > 0 {
					f(a, b, p, q)
				}
			}
		}
	}
	flush(math.Inf(1))
}

const (
	// cut is the loss beyond which mass counts as infinite loss: e^cut is still a float64 with room.
	// Optimistically it counts as the limit, which lowers delta at an epsilon that lies far below by
	// little and keeps the tail of a heavy loss out of the convolution.
	cut      = 600
	farBelow = 16
	// maxGrid bounds the points of one distribution's grid.
	maxGrid = 1 << 23
)

// span is the range of losses that a grid keeps: mass below it is moved up, mass above it counts as
// infinite loss.
func (l *Losses) span(limit float64) (floor, ceiling float64) {
	lo, hi := l.lo, l.hi
	if n := len(l.atoms); n > 0 {
		lo, hi = math.Min(lo, l.atoms[0].loss), math.Max(hi, l.atoms[n-1].loss)
	}
	floor = math.Max(lo, math.Max(-cut, l.mean-60*l.sd-1))
	ceiling = math.Min(hi, limit)
	if l.cells == nil { // a far tail of next to no mass would make a long grid
		i, tail := len(l.atoms)-1, 0.0
		for ; i > 0 && tail+l.atoms[i].mass < 1e-22; i-- {
			tail += l.atoms[i].mass
		}
		ceiling = math.Min(ceiling, l.atoms[i].loss)
	}
	return floor, ceiling
}

// onGrid moves the distribution to multiples of step.
func (l *Losses) onGrid(step, limit float64, optimistic bool) gridLosses {
	floor, ceiling := l.span(limit)
	ceiling = math.Min(ceiling, floor+step*maxGrid)
	g := gridLosses{first: int(math.Floor(floor/step)) - 1}
	if ceiling < floor+step { // everything is beyond the cut
		g.first, g.mass = int(ceiling/step), []float64{1}
		if !optimistic {
			g.mass[0], g.infinite = 0, 1
		}
		return g
	}
	g.mass = make([]float64, int(math.Ceil(ceiling/step))+2-g.first)
	if optimistic {
		l.merge(&g, step, limit)
		return g
	}
	g.infinite = l.infinite + l.above
	least := int(math.Ceil(floor/step)) - g.first // the first point at floor or above
	g.mass[least] += l.below
	l.pieces(step, func(a, b, p, q float64) {
		switch {
		case b > ceiling:
			g.infinite += p
			return
		case b < floor:
			g.mass[least] += p
			return
		}
		// x of p stays at the lower grid point, the rest goes to the upper one:
		// x e^-l0 + (p-x) e^-l1 = q
		i := int(math.Floor((a + b) / 2 / step))
		if b == a && float64(i)*step == a {
			g.mass[i-g.first] += p
			return
		}
		up := float64(i+1) * step
		x := (q*math.Exp(up) - p) / math.Expm1(step)
		x -= p * (2e-13/step + 1e-15) // the error of q/p, pessimistically
		x = math.Min(math.Max(x, 0), p)
		g.mass[i-g.first] += x
		g.mass[i+1-g.first] += p - x
	})
	return g
}

// merge is the optimistic grid: sweeping upward, all mass not yet placed that lies at or below a grid
// point is merged with as much from above as brings the ratio of P to Q to that of the grid point.
// Merging outcomes is post-processing, so the result is dominated.
func (l *Losses) merge(g *gridLosses, step, limit float64) {
	g.infinite = l.infinite
	var ps, qs, at []float64
	l.pieces(step/8, func(a, b, p, q float64) {
		if a >= limit {
			a = limit
			q = p * math.Exp(-a)
		}
		loss := math.Log(p / q)
		if !(loss >= a && loss <= b) { // a sliver at the edge of the grid, whose masses are but rounding
			loss, q = a, p*math.Exp(-a)
		}
		ps, qs = append(ps, p), append(qs, q)
		at = append(at, loss)
	})
	next := 0
	var p, q float64 // pending, at or below the present grid point
	for i := range g.mass {
		loss := float64(g.first+i) * step
		for next < len(ps) && at[next] <= loss {
			p += ps[next]
			q += qs[next]
			next++
		}
		if p == 0 {
			continue
		}
		// Take from above until (p + x)/(q + x e^-at) = e^loss; the ratio is kept a shade low.
		e := math.Exp(loss)
		for next < len(ps) {
			need := (q*e - p) / -math.Expm1(loss-at[next])
			if need < ps[next] {
				need = math.Max(need, 0)
				share := need / ps[next]
				p += need
				q += share * qs[next]
				qs[next] *= 1 - share
				ps[next] -= need
				break
			}
			p += ps[next]
			q += qs[next]
			next++
		}
		if next == len(ps) && p < q*e*(1-1e-9) {
			// nothing is left above: lower grid points are optimistic for what remains
			j := int(math.Floor(math.Log(p/q)/step)) - g.first
			g.mass[min(max(j, 0), i)] += p
		} else {
			g.mass[i] += p * (1 - 1e-12)
		}
		p, q = 0, 0
	}
}

// cumulant is log sum over all rounds of E[e^(lambda L)], with the mass tilted in each part.
func (c *convolution) cumulant(lambda float64) (k float64, per []float64) {
	per = make([]float64, len(c.parts))
	for i, g := range c.parts {
		s, top := g.moment(lambda, c.step)
		per[i] = top + math.Log(s)
		k += float64(g.rounds) * per[i]
	}
	return k, per
}

// moment returns s, top with s e^top = sum of mass e^(lambda L) to a relative 1e-10.
func (g gridLosses) moment(lambda, step float64) (s, top float64) {
	// shifted to the largest loss; e^(-lambda step) is multiplied up within blocks
	top = lambda * float64(g.first+len(g.mass)-1) * step
	ratio := math.Exp(lambda * step)
	const block = 64
	if !math.IsInf(ratio, 1) && math.Pow(ratio, block) < 1e200 {
		for j := 0; j < len(g.mass); j += block {
			w := math.Exp(lambda*float64(g.first+j)*step - top)
			for _, m := range g.mass[j:min(j+block, len(g.mass))] {
				s += m * w
				w *= ratio
			}
		}
		if s > 1e-250 {
			return s, top
		}
	}
	// next to nothing near the top: shift to the largest term
	top = math.Inf(-1)
	for j, m := range g.mass {
		if m > 0 {
			top = math.Max(top, math.Log(m)+lambda*float64(g.first+j)*step)
		}
	}
	s = 0
	for j, m := range g.mass {
		if m > 0 {
			s += math.Exp(math.Log(m) + lambda*float64(g.first+j)*step - top)
		}
	}
	return s, top
}

// steepest is the largest tilt times the standard deviation of the sum: that of a Gaussian loss at a
// delta of 1e-347. Bounded losses have no best tilt once delta is below the mass of their largest; a
// steeper one would drown all but that in rounding.
const steepest = 40

// bestTilt minimises f(lambda, cumulant(lambda)) over a range of exponents.
func (c *convolution) bestTilt(f func(l, k float64) float64) float64 {
	_, at := goldenSection(func(t float64) float64 {
		l := math.Exp(t)
		k, _ := c.cumulant(l)
		return f(l, k)
	}, math.Log(steepest/c.sd)-16, math.Log(steepest/c.sd), 0.02)
	return math.Exp(at)
}

// profile is a composed distribution, ready to answer delta(epsilon).
type profile struct {
	c        *convolution
	base     int       // loss of mass[0] is base*step
	mass     []float64 // tilted, as computed
	lambda   float64
	k        float64 // total cumulant
	infinite float64
	errL2    float64 // l2 norm of the error of mass
	beyond   float64 // tilted mass above the window, at most
	under    float64 // tilted mass below the window, at most: it wraps into it
}

// relative bounds the relative error of a part's masses by floating-point evaluation.
const relative = 1e-11

// profile convolves the parts under the tilt lambda.
func (c *convolution) profile(lambda float64) *profile {
	p := &profile{c: c, lambda: lambda}
	var per []float64
	p.k, per = c.cumulant(lambda)
	// tilted parts, their moments
	tilted := make([][]float64, len(c.parts))
	var mean, variance, rounds float64
	support, lowest := 1, 0
	stay := 1.0
	for i, g := range c.parts {
		t := make([]float64, len(g.mass))
		var m, s float64
		for j, x := range g.mass {
			if x > 0 {
				l := float64(g.first+j) * c.step
				t[j] = math.Exp(math.Log(x) + lambda*l - per[i])
				m += t[j] * l
				s += t[j] * l * l
			}
		}
		tilted[i] = t
		n := float64(g.rounds)
		mean += n * m
		variance += n * math.Max(s-m*m, 0)
		rounds += n
		stay *= math.Pow(1-math.Min(1, g.infinite), n)
		support += g.rounds * (len(t) - 1)
		lowest += g.rounds * g.first
	}
	p.infinite = 1 - stay
	if p.infinite < 1e-9 { // 1 - stay would cancel
		p.infinite = 0
		for _, g := range c.parts {
			p.infinite += float64(g.rounds) * g.infinite
		}
	}
	n := p.window(mean, cmp.Or(math.Sqrt(variance), c.sd), lowest, support)
	fft := fourier.NewFFT(n)
	prod := make([]complex128, n/2+1)
	for i := range prod {
		prod[i] = 1
	}
	seq := make([]float64, n)
	coef := make([]complex128, n/2+1)
	logn := math.Log2(float64(n))
	for i, g := range c.parts {
		clear(seq)
		var norm float64
		for j, x := range tilted[i] {
			r := (g.first + j) % n
			if r < 0 {
				r += n
			}
			seq[r] += x
		}
		for _, x := range seq {
			norm += x * x
		}
		fft.Coefficients(coef, seq)
		for j, z := range coef {
			prod[j] *= power(z, g.rounds)
		}
		p.errL2 += float64(g.rounds) * 10 * 0x1p-53 * logn * math.Sqrt(norm)
	}
	fft.Sequence(seq, prod)
	p.mass = make([]float64, n)
	var norm float64
	first := p.base % n
	if first < 0 {
		first += n
	}
	for i := range p.mass {
		x := seq[(first+i)%n] / float64(n)
		p.mass[i] = math.Max(0, x)
		norm += x * x
	}
	p.errL2 += 0x1p-53 * (10*logn + 4*rounds) * math.Sqrt(norm)
	return p
}

// window sets where the masses begin and what lies outside, and returns how many there are: mean +- 10 standard
// deviations, widened until Chernoff's bound outside is 1e-13. lowest and support are the least loss and the
// number of losses, in steps.
func (p *profile) window(mean, sd float64, lowest, support int) (n int) {
	c := p.c
	half := 10*sd + 20*c.step
	for {
		n = min(1<<bits.Len(uint(2*half/c.step)), 2*maxWindow)
		if n >= support {
			n = 1 << bits.Len(uint(support))
			p.base = lowest
			p.beyond, p.under = 0, 0
			return n
		}
		p.base = int(math.Floor((mean - half) / c.step))
		p.beyond = c.outside(p.lambda, p.k, float64(p.base+n)*c.step, 1/sd)
		p.under = c.outside(p.lambda, p.k, float64(p.base)*c.step, -1/sd)
		if p.beyond+p.under <= 1e-13 || n > maxWindow {
			return n
		}
		half *= 1.6
	}
}

// power is z^n by squaring.
func power(z complex128, n int) complex128 {
	r := complex(1, 0)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			r *= z
		}
		z *= z
	}
	return r
}

// outside bounds the tilted probability of a total loss of at least x, or at most x for a negative
// unit, by Chernoff's inequality at several multiples of unit.
func (c *convolution) outside(lambda, k, x, unit float64) float64 {
	best := 0.0
	for _, t := range []float64{0.5, 1, 2, 4, 6, 8, 10, 12, 16} {
		s := t * unit
		ks, _ := c.cumulant(lambda + s)
		best = math.Min(best, ks-k-s*x)
	}
	return math.Exp(best)
}

// low is the least loss in the window, -Inf if no loss is below it.
func (p *profile) low() float64 {
	if p.under == 0 && p.beyond == 0 {
		return math.Inf(-1)
	}
	return float64(p.base) * p.c.step
}

// top is the largest loss in the window.
func (p *profile) top() float64 { return float64(p.base+len(p.mass)) * p.c.step }

// delta is the hockey-stick divergence at epsilon, with the error bounds on the safe side.
func (p *profile) delta(epsilon float64) float64 {
	step := p.c.step
	if epsilon < p.low() && !p.c.optimistic {
		return 1 // part of what counts is below the window
	}
	first := max(0, int(math.Floor(epsilon/step))-p.base)
	var sum, norm, heaviest float64
	for first < len(p.mass) && float64(p.base+first)*step <= epsilon {
		first++
	}
	// exp is evaluated once a block and multiplied on, for 64 roundings of 2^-53 each; 1 - e^(epsilon-l)
	// loses as much over its own size, which is why it is evaluated where it is small
	const block = 64
	fallP, fallQ := math.Exp(-p.lambda*step), math.Exp(-step)
	for at := first; at < len(p.mass); at += block {
		l := float64(p.base+at) * step
		mass := p.mass[at:min(at+block, len(p.mass))]
		weight, ratio := math.Exp(p.k-p.lambda*l), math.Exp(epsilon-l)
		for i, x := range mass {
			w := weight * (1 - ratio)
			if ratio > 0.99 {
				w = weight * -math.Expm1(epsilon-float64(p.base+at+i)*step)
			}
			sum += x * w
			norm += w * w
			heaviest = max(heaviest, w)
			weight *= fallP
			ratio *= fallQ
		}
		if weight < 1e-30*sum {
			break
		}
	}
	var rounds float64
	for _, g := range p.c.parts {
		rounds += float64(g.rounds)
	}
	errFFT := p.errL2 * math.Sqrt(norm)
	if p.c.optimistic {
		if math.IsInf(norm, 1) || math.IsNaN(sum) {
			return 0 // beyond what floating point resolves
		}
		wrapped := (p.under + p.beyond) * heaviest
		return math.Max(0, sum*(1-relative*(rounds+10))-errFFT-wrapped+p.infinite*(1-1e-9))
	}
	if math.IsInf(norm, 1) || math.IsNaN(sum) {
		return 1
	}
	// above the window no weight exceeds e^(k - lambda top)
	d := sum + errFFT + p.beyond*math.Exp(p.k-p.lambda*p.top())
	return d*(1+relative*(rounds+10)) + p.infinite
}
