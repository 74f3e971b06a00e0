package privacy

import "math"

// accounts is one accountant of each kind but pld, for which it keeps what was composed.
type accounts struct {
	pure PureAccountant
	zcdp ZCDPAccountant
	gdp  GDPAccountant

	composed []repeated // in order; rdp adds up its hundreds of orders when it is asked for
	renyi    *RDPAccountant

	failure, distance float64 // of all specs, see Spec
	pureDistance      float64 // the part of distance that is of pure releases, or of none that is known

	normal Gaussian // all Gaussian releases as one: 1/Scale^2 is the sum
	others []repeated
}

func newAccounts() *accounts { return &accounts{normal: Gaussian{Scale: math.Inf(1)}} }

func (a *accounts) all() []Accountant { return []Accountant{&a.pure, &a.gdp, &a.zcdp, a.rdp()} }

// at are those that can have a bound at delta: rdp, whose hundreds of orders take a tenth of a millisecond a mechanism,
// has none at 0.
func (a *accounts) at(delta float64) []Accountant {
	if delta <= 0 {
		return []Accountant{&a.pure, &a.gdp, &a.zcdp}
	}
	return a.all()
}

// rdp is the accountant by Renyi divergences of all that was composed.
func (a *accounts) rdp() *RDPAccountant {
	if a.renyi == nil {
		a.renyi = newRDPAccountant()
	}
	for _, r := range a.composed {
		a.renyi.Compose(r.m, int(r.n))
	}
	a.composed = a.composed[:0]
	return a.renyi
}

func (a *accounts) compose(m Mechanism, rounds int) {
	for _, x := range []Accountant{&a.pure, &a.gdp, &a.zcdp} {
		x.Compose(m, rounds)
	}
	a.composed = append(a.composed, repeated{m, float64(rounds)})
	switch x := m.(type) {
	case zero:
	case Gaussian:
		a.join(x.Mu(), x.Discretised, rounds)
	case parallel:
		if mu := x.Mu(); !math.IsInf(mu, 1) && x.normal() {
			a.join(mu, x.Slack(), rounds)
			return
		}
		a.others = append(a.others, repeated{m, float64(rounds)})
	default:
		a.others = append(a.others, repeated{m, float64(rounds)})
	}
}

// join adds rounds Gaussian releases of parameter mu.
func (a *accounts) join(mu, slack float64, rounds int) {
	own := a.normal.Mu()
	a.normal.Scale = 1 / math.Sqrt(own*own+times(rounds, mu*mu))
	a.normal.Discretised += times(rounds, slack)
}

// normal tells whether all of it are Gaussian releases.
func (p parallel) normal() bool {
	for _, m := range p {
		if r, ok := m.(repeated); ok {
			m = r.m
		}
		if _, ok := m.(Gaussian); !ok {
			return false
		}
	}
	return true
}

// stray adds what a spec says of itself beside its mechanism: how far or how often it is not that.
func (a *accounts) stray(s Spec) {
	a.failure += s.Failure
	a.distance += s.Distance
	m, err := s.Mechanism()
	if _, pure := m.(PureDP); pure || err != nil {
		a.pureDistance += s.Distance
	}
}

// epsilon is the best of the accountants' bounds, pld apart.
func (a *accounts) epsilon(delta float64) (best float64, by string) { return a.within(delta, a.quick) }

// total is the best of all accountants' bounds, and of those of all but the pure releases with what these cost added.
func (a *accounts) total(delta float64) (best float64, by string) {
	best, by = a.within(delta, a.best)
	if rest, pure := a.besidePure(); rest != nil {
		if epsilon, name := rest.within(delta, rest.best); epsilon+pure < best {
			return epsilon + pure, name + " and pure"
		}
	}
	return best, by
}

// besidePure is all but the releases of which a pure epsilon alone is known, and what these cost together (T7 vii):
// nil where there are not both, where the profile of both is exact, or where a distance is of the pure ones, which
// e^epsilon of all together multiplies (T6 iii).
func (a *accounts) besidePure() (rest *accounts, pure float64) {
	rest = newAccounts()
	rest.failure, rest.distance = a.failure, a.distance
	for _, r := range a.others {
		if p, ok := r.m.(PureDP); ok {
			pure += times(int(r.n), p.Epsilon)
		} else {
			rest.compose(r.m, int(r.n))
		}
	}
	if pure == 0 || len(rest.others) == 0 || a.pureDistance > 0 {
		return nil, 0
	}
	if a.normal.Mu() > 0 {
		rest.compose(a.normal, 1)
	}
	return rest, pure
}

// within leaves to the accountants what failures and distances leave of delta: the least epsilon at which
// delta covers what prove needs, the failures, and (1+e^epsilon) times the distances (T6, T7).
func (a *accounts) within(delta float64, prove func(delta float64) (float64, string)) (float64, string) {
	if a.failure > 0 {
		delta -= a.failure
		if delta < -1e-9*a.failure { // sums of parts of one delta differ from it by rounding
			return math.Inf(1), ""
		}
		delta = max(delta, 0)
	}
	if a.distance == 0 {
		return prove(delta)
	}
	// any epsilon that holds at half of delta bounds e^epsilon in what the distances take of the other half
	epsilon, _ := prove(delta / 2)
	taken := slackDelta(epsilon, a.distance)
	if !(taken <= delta/2) {
		return math.Inf(1), ""
	}
	return prove(delta - taken)
}

// quick is the best of the accountants' bounds, pld apart. The profile of Gaussian releases alone is exact, so that no
// other accountant is asked about them, unless their slack takes a part of delta that could be felt.
func (a *accounts) quick(delta float64) (best float64, by string) {
	if len(a.others) == 0 && a.normal.Mu() > 0 {
		if e := a.gdp.Epsilon(delta); slackDelta(e, a.gdp.slack) < 0x1p-20*delta {
			return e, a.gdp.Name()
		}
	}
	best = math.Inf(1)
	for _, x := range a.at(delta) {
		if e := x.Epsilon(delta); e < best {
			best, by = e, x.Name()
		}
	}
	if e, name := a.apart(delta); e < best {
		best, by = e, name
	}
	return best, by
}

// apart is the epsilon of all Gaussian releases together beside the pure ones by the exact profile of both (T9 vi), or
// the sum of both: drawn ones of one kind are among the former (T16). It is infinite where there are not both or others
// too, or more drawn ones than are ever planned.
func (a *accounts) apart(delta float64) (sum float64, by string) {
	var drawn *repeated
	for i, r := range a.others {
		if _, ok := r.m.(Drawn); ok && drawn == nil {
			drawn = &a.others[i]
			continue
		}
		sum += r.Pure()
	}
	by = "gdp and pure"
	if sum == 0 {
		by = "gdp"
	}
	switch {
	case len(a.others) == 0 || math.IsInf(sum, 1) || drawn != nil && drawn.n*(1+drawn.m.(Drawn).mean()) > mostDrawn:
	case drawn != nil:
		p := newDrawnProfile(a.normal.Mu(), drawn.m.(Drawn), int(drawn.n))
		return sum + p.epsilon(delta, a.normal.Discretised+drawn.Slack()), by
	case a.normal.Mu() > 0:
		gaussian := new(GDPAccountant)
		gaussian.Compose(a.normal, 1)
		sum += gaussian.Epsilon(delta)
		if both := a.mixed(); both != nil {
			sum = math.Min(sum, both.Epsilon(delta, a.normal.Discretised))
		}
		return sum, by
	}
	return math.Inf(1), by
}

// mixed is the profile of the Gaussian releases beside the others, of which all have a pure epsilon; nil if it would
// take long.
func (a *accounts) mixed() *Mixed {
	var pure []Responses
	for _, r := range a.others {
		pure = append(pure, Responses{r.m.Pure(), int(r.n)})
	}
	return NewMixed(a.normal.Mu(), pure...)
}

// responses tells whether all that is beside Gaussian releases has its pure epsilon alone, so that the profile of both
// says all that is known.
func (a *accounts) responses() bool {
	for _, r := range a.others {
		if _, ok := r.m.(PureDP); !ok {
			return false
		}
	}
	return a.normal.Mu() > 0 && a.mixed() != nil
}

const (
	// pldPoints bounds the work of the pld accountant for a total: grid points times convolutions, some
	// half a second of it.
	pldPoints = 1 << 22
	// pldLeast is the least epsilon that it is asked to lower: near the smallest numbers that took it minutes.
	pldLeast = 0x1p-60
	// pldMantissa is how many bits of what it says are kept, rounded up: it searches for epsilon to
	// 1e-7, and its sums differ between architectures.
	pldMantissa = 18
)

// best is quick with the pld accountant, where it knows the losses and does not take long. For Gaussian
// releases alone gdp is exact.
func (a *accounts) best(delta float64) (float64, string) {
	best, by := a.quick(delta)
	if len(a.others) == 0 || delta <= 0 || a.normal.Discretised >= delta || best <= pldLeast || a.responses() {
		return best, by
	}
	acc, rounds := &PLDAccountant{}, 1.0
	if a.normal.Mu() > 0 {
		acc.Compose(a.normal, 1)
	}
	for _, r := range a.others {
		acc.Compose(r.m, int(r.n))
		rounds += r.n
	}
	// the grid has some 22 points per standard deviation of one of the rounds, and 20 deviations of all
	points := math.Max(1<<14, 444*math.Sqrt(rounds)) * float64(2+len(acc.parts)) * float64(acc.orders())
	if acc.unknown || points > pldPoints {
		return best, by
	}
	if e := ceilMantissa(acc.Epsilon(delta), pldMantissa); e < best {
		return e, acc.Name()
	}
	return best, by
}

// ceilMantissa rounds x >= 0 up to so many bits.
func ceilMantissa(x float64, bits int) float64 {
	if x == 0 || math.IsInf(x, 1) || math.IsNaN(x) {
		return x
	}
	frac, exp := math.Frexp(x)
	return math.Ldexp(math.Ceil(math.Ldexp(frac, bits)), exp-bits)
}

// roundUp raises x >= 0 to 33 bits: accountants use exp, log and erf of the math
// package, whose last bits differ between architectures. An excess of up to 2^-44
// over a number of 33 bits is the rounding of those sums and is dropped, so that
// a budget of 1 that was spent whole reads 1.
func roundUp(x float64) float64 {
	const low = 1<<20 - 1
	if x == 0 || math.IsInf(x, 1) || math.IsNaN(x) {
		return x
	}
	y := x * (1 - 0x1p-44)
	return math.Float64frombits((math.Float64bits(y) + low) &^ low)
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// repeated is a mechanism released several times.
type repeated struct {
	m Mechanism
	n float64
}

func (r repeated) Pure() float64             { return r.n * r.m.Pure() }
func (r repeated) Rho() float64              { return r.n * r.m.Rho() }
func (r repeated) RDP(alpha float64) float64 { return r.n * r.m.RDP(alpha) }
func (r repeated) Mu() float64               { return math.Sqrt(r.n) * r.m.Mu() }
func (r repeated) Slack() float64            { return r.n * r.m.Slack() }
