package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Verdict is the outcome of an audit.
type Verdict string

// The verdicts.
const (
	Consistent Verdict = "consistent"
	Violated   Verdict = "VIOLATED"
)

// Case is a pair of neighbouring data sets and a protocol that runs on either.
type Case struct {
	Name string
	// About says in a sentence what the pair is.
	About string
	// Watched says what the viewer sees of a trial.
	Watched string
	// Epsilon is the ledger's for the viewer at Delta; TrueEpsilon what the ledger says it really
	// is, nil if that is the same, and Unbounded that it has no bound.
	Epsilon, Delta float64
	TrueEpsilon    *float64
	Unbounded      bool
	// Profile has the ledger's epsilon at larger deltas too, where fewer trials show more.
	Profile []Point
	// Mu is the claim as a Gaussian mechanism (THEOREMS.md T8), 0 where the ledger makes none; Pure are the
	// choices beside it.
	Mu           float64
	Pure         []privacy.Responses
	Distribution Distribution
	// Ratio says that scores are log ratios of the probabilities of an outcome.
	Ratio bool
	// Weight divides the number of trials: the cost of one, 1 for a protocol on a few records. Weights keep an audit of
	// DefaultTrials, of all cases of a method, within 20 s on two cores.
	Weight int
	// Draw runs the protocol once, with the record or without, on one worker, all randomness from st,
	// and returns what the viewer sees as numbers: always as many.
	Draw func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error)
}

// Point is a point of a ledger's privacy profile.
type Point struct{ Delta, Epsilon float64 }

// profileDeltas are the deltas of a Profile.
var profileDeltas = []float64{1e-3, 5e-3, 0.02, 0.05}

// sideOf is the index of the data set with the record or without.
func sideOf(present bool) int {
	if present {
		return 1
	}
	return 0
}

// state takes what the ledger says about a viewer.
func (c *Case) state(l *privacy.Ledger, viewer string) error {
	t := l.TotalFor(viewer)
	if t.Epsilon == nil {
		return fault.Request("audit", "the ledger has no bound for "+viewer, "choose a private method")
	}
	c.Epsilon, c.Delta, c.TrueEpsilon, c.Unbounded = *t.Epsilon, *t.Delta, t.TrueEpsilon, t.Unbounded
	if c.Delta == 0 || c.Epsilon == 0 {
		return nil // pure: no smaller at any delta
	}
	m := claimed(l, viewer, c.Epsilon, c.Delta)
	c.Mu, c.Pure = m.mu, m.pure
	for _, delta := range profileDeltas {
		if t := l.At(delta).TotalFor(viewer); delta > c.Delta && t.Epsilon != nil {
			c.Profile = append(c.Profile, Point{delta, *t.Epsilon})
		}
	}
	return nil
}

// Options are how to audit. Zero fields mean the defaults.
type Options struct {
	// Trials is the number of runs on each side of each case of weight 1, DefaultTrials if 0.
	Trials int
	// Confidence is that of each lower bound, DefaultConfidence if 0.
	Confidence float64
	// Seed repeats an audit; nil draws from the system.
	Seed *uint64
	// tradeoff has all confidence spent on the trade-off, where the ledger claims one.
	tradeoff bool
}

// DefaultTrials is the number of trials on each side of a case.
const DefaultTrials = 100000

// minTrials is the least number with which an audit says anything.
const minTrials = 100

// Bound is what the trials prove at one delta.
type Bound struct {
	// Epsilon is the ledger's at Delta, Lower the lower bound on the real one.
	Epsilon *float64 `json:"epsilon"`
	Delta   float64  `json:"delta"`
	Lower   float64  `json:"lower_bound"`
	// Event was seen With times in the counted runs with the record, Without in as many without.
	Event   string `json:"event"`
	With    int    `json:"with"`
	Without int    `json:"without"`
	// Violated says that Lower is above Epsilon.
	Violated bool `json:"violated"`
}

// Finding is what came of one case.
type Finding struct {
	Case      string   `json:"case"`
	About     string   `json:"about"`
	Watched   string   `json:"watched"`
	True      *float64 `json:"true_epsilon,omitempty"`
	Unbounded bool     `json:"unbounded,omitempty"`
	// Bound is that at the ledger's delta; Violated is true if either bound is above the ledger.
	Bound
	// Profile is the bound at a larger delta, chosen for being the most telling one; nil for a pure
	// mechanism.
	Profile *Bound `json:"profile,omitempty"`
	// Gaussian is the bound on the whole trade-off between both errors of a test, where the ledger claims that of a
	// Gaussian mechanism: it shows more of epsilon at a small delta than events of that size can. nil elsewhere.
	Gaussian *GaussianBound `json:"gaussian,omitempty"`
	// Trials is the number of runs on each side, Counted that of those in which events were counted;
	// the others chose the event.
	Trials  int `json:"trials"`
	Counted int `json:"counted"`
}

// Report is an audit.
type Report struct {
	Method      string              `json:"method"`
	Calibration privacy.Calibration `json:"calibration"`
	Confidence  float64             `json:"confidence"`
	Verdict     Verdict             `json:"verdict"`
	Cases       []Finding           `json:"cases"`
	Seconds     float64             `json:"-"`
}

// Run audits the cases on the pool: the trials of a case are spread over its workers.
func Run(ctx context.Context, pool *engine.Pool, method string, calibration privacy.Calibration, cases []Case,
	o Options) (*Report, error) {
	if o.Trials == 0 {
		o.Trials = DefaultTrials
	}
	if o.Confidence == 0 {
		o.Confidence = DefaultConfidence
	}
	switch {
	case o.Trials < minTrials:
		return nil, fault.Range("trials", o.Trials, fmt.Sprintf("at least %d", minTrials))
	case !(o.Confidence > 0 && o.Confidence < 1):
		return nil, fault.Range("confidence", o.Confidence, "in (0, 1)")
	case len(cases) == 0:
		return nil, fault.Request("audit", method+" has no worst case under "+string(calibration),
			"choose another method or calibration")
	}
	start := time.Now()
	r := &Report{Method: method, Calibration: calibration, Confidence: o.Confidence, Verdict: Consistent}
	streams := privacy.NewStreams(o.Seed)
	// Each worker of the pool drives parties that run on that worker alone.
	runtimes := make([]*engine.Runtime, pool.Workers())
	for i := range runtimes {
		p := engine.NewPool(1)
		defer p.Close()
		runtimes[i] = engine.NewRuntime(p)
	}
	for i := range cases {
		f, err := examine(ctx, pool, runtimes, streams.Run(i), &cases[i], o)
		if err != nil {
			return nil, err
		}
		if f.Violated {
			r.Verdict = Violated
		}
		r.Cases = append(r.Cases, *f)
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// examine audits one case: a fifth of the trials teaches the score, unless the outcome is one, a fifth
// chooses the event, the rest counts it.
func examine(ctx context.Context, pool *engine.Pool, runtimes []*engine.Runtime, streams *privacy.Streams, c *Case,
	o Options) (*Finding, error) {
	n := max(o.Trials/max(1, c.Weight), minTrials)
	training := n / 5
	pilot := training
	if c.Distribution == direct {
		pilot = 0
	}
	var outcomes [2][][]float64
	for side := range outcomes {
		outcomes[side] = make([][]float64, n)
		errs := make([]error, len(runtimes))
		sts := make([]privacy.Stream, len(runtimes))
		err := pool.Run(ctx, n, func(worker, i int) {
			if errs[worker] != nil {
				return
			}
			st := &sts[worker]
			streams.Reset(st, side, i, "trial")
			out, err := c.Draw(ctx, runtimes[worker], st, side == 1)
			if err != nil {
				errs[worker] = fmt.Errorf("%s: %w", c.Name, err)
			}
			outcomes[side][i] = out
		})
		if err != nil {
			return nil, err
		}
		for _, err := range errs {
			if err != nil {
				return nil, err
			}
		}
	}
	value := learn(c.Distribution, outcomes[0][:pilot], outcomes[1][:pilot])
	var train, counted [2][]float64
	for side, list := range outcomes {
		for i, out := range list[pilot:] {
			if i < training {
				train[side] = append(train[side], value(out))
			} else {
				counted[side] = append(counted[side], value(out))
			}
		}
		slices.Sort(train[side])
		slices.Sort(counted[side])
	}
	f := &Finding{Case: c.Name, About: c.About, Watched: c.Watched, True: c.TrueEpsilon, Unbounded: c.Unbounded,
		Trials: n, Counted: len(counted[0])}
	f.bounds(c, train, counted, &o)
	return f, nil
}

// bounds derives all bounds of a case from sorted scores, together wrong with the probability that the
// confidence leaves.
func (f *Finding) bounds(c *Case, train, counted [2][]float64, o *Options) {
	alpha := 1 - o.Confidence
	if o.tradeoff && c.Mu > 0 {
		f.Gaussian = proveGaussian(c, train, counted, alpha)
		f.Delta, f.Violated = c.Delta, f.Gaussian.Violated
		return
	}
	if len(c.Profile) > 0 {
		alpha /= 2
	}
	if c.Mu > 0 {
		alpha /= 2
		f.Gaussian = proveGaussian(c, train, counted, alpha)
	}
	if len(c.Profile) > 0 {
		// Which delta to look at is chosen by the training scores, relative to the ledger's epsilon there.
		best, most := event{}, math.Inf(-1)
		var at Point
		for _, p := range c.Profile {
			if e, promise := choose(train[0], train[1], p.Delta, alpha); math.Log(promise)-p.Epsilon > most {
				best, most, at = e, math.Log(promise)-p.Epsilon, p
			}
		}
		b := prove(best, counted, at, alpha)
		f.Profile = &b
	}
	e, _ := choose(train[0], train[1], c.Delta, alpha)
	f.Bound = prove(e, counted, Point{c.Delta, c.Epsilon}, alpha)
	f.Violated = f.Violated || f.Profile != nil && f.Profile.Violated || f.Gaussian != nil && f.Gaussian.Violated
}

// prove counts an event and derives the lower bound at a point of the ledger's profile.
func prove(e event, counted [2][]float64, at Point, alpha float64) Bound {
	b := Bound{Delta: at.Delta, Event: e.String(), Without: e.count(counted[0]), With: e.count(counted[1])}
	n := len(counted[0])
	if e.with {
		b.Lower = epsilonAtLeast(b.With, n, b.Without, n, at.Delta, alpha)
	} else {
		b.Lower = epsilonAtLeast(b.Without, n, b.With, n, at.Delta, alpha)
	}
	if !math.IsInf(at.Epsilon, 1) {
		b.Epsilon = &at.Epsilon
	}
	b.Violated = b.Lower > at.Epsilon
	return b
}
