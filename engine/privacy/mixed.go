package privacy

import "math"

// Mixed is the privacy profile of Gaussian releases beside pure ones, of which each is a post-processing of randomised
// response (T7 v): the mean of the Gaussian profile over what the responses lose. No grid, no rounding (T9 vi).
type Mixed struct {
	// Mu is that of all Gaussian releases together (T8).
	Mu       float64
	outcomes []Outcome
}

// Outcome is a loss of all responses together, and its probability on the likelier side.
type Outcome struct{ Loss, Chance float64 }

// mostOutcomes bounds the work of a profile.
const mostOutcomes = 1 << 12

// Responses are Times pure releases of Epsilon each.
type Responses struct {
	Epsilon float64
	Times   int
}

// NewMixed is the profile of Gaussian releases of parameter mu in all and of pure ones; nil if they have more than
// 4,096 outcomes.
func NewMixed(mu float64, pure ...Responses) *Mixed {
	m := &Mixed{mu, []Outcome{{0, 1}}}
	for _, r := range pure {
		n := float64(r.Times)
		if float64(len(m.outcomes))*(n+1) > mostOutcomes {
			return nil
		}
		grown := make([]Outcome, 0, len(m.outcomes)*(r.Times+1))
		rest := math.Log1p(math.Exp(-r.Epsilon))
		for b := 0.0; b <= n; b++ { // responses that lose Epsilon, the others win it
			p := binomial(n, b, -rest, -r.Epsilon-rest)
			for _, o := range m.outcomes {
				grown = append(grown, Outcome{o.Loss + float64((2*b-n)*r.Epsilon), o.Chance * p})
			}
		}
		m.outcomes = grown
	}
	return m
}

// binomial is the probability of b successes in n trials, by the logs of those of a success and of a failure.
func binomial(n, b, success, failure float64) float64 {
	gamma := func(x float64) float64 { y, _ := math.Lgamma(x + 1); return y }
	return math.Exp(gamma(n) - gamma(b) - gamma(n-b) + float64(b*success) + float64((n-b)*failure))
}

// Outcomes are those of the responses.
func (m *Mixed) Outcomes() []Outcome { return m.outcomes }

// delta is the least delta at epsilon >= 0.
func (m *Mixed) delta(epsilon float64) float64 {
	sum := 0.0
	for _, o := range m.outcomes {
		sum += o.Chance * deltaBelow(m.Mu, epsilon-o.Loss)
	}
	return math.Min(1, sum*(1+1e-10)) // the profile is computed to that
}

// deltaBelow is the profile of a Gaussian mechanism at any epsilon, negative ones too: there, by symmetry, what the
// other side has beyond e^|epsilon| is added to what an event has of all.
func deltaBelow(mu, epsilon float64) float64 {
	if epsilon >= 0 {
		return DeltaOfMu(mu, epsilon)
	}
	return -math.Expm1(epsilon) + math.Exp(epsilon)*DeltaOfMu(mu, -epsilon)
}

// Within tells whether releases within a total variation distance of slack keep a budget.
func (m *Mixed) Within(b Budget, slack float64) bool {
	return m.delta(b.Epsilon)+slackDelta(b.Epsilon, slack) <= b.Delta
}

// Epsilon is the least epsilon at delta, of releases within a total variation distance of slack; +Inf if there is
// none below 2^10.
func (m *Mixed) Epsilon(delta, slack float64) float64 { return profileEpsilon(m.delta, delta, slack) }

// profileEpsilon is the least epsilon at which a profile, with what a total variation distance of slack adds to it, is
// at most delta; +Inf if there is none below 2^10.
func profileEpsilon(profile func(epsilon float64) float64, delta, slack float64) float64 {
	ok := func(e float64) bool { return profile(e)+slackDelta(e, slack) <= delta }
	hi, growth := 1.0/64, 2.0
	if slack > 0 { // what it adds grows with epsilon, so that the next may not do where one between would
		growth = 1.0625
	}
	for ; !ok(hi); hi *= growth {
		if hi > 1<<10 {
			return math.Inf(1)
		}
	}
	if ok(0) {
		return 0
	}
	_, least := bisect(ok, 0, hi, 1e-12)
	return least
}
