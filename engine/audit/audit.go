package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/privacy"
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
	// Epsilon is the ledger's for the viewer at Delta; TrueEpsilon what the ledger says it really
	// is, nil if that is the same, and Unbounded that it has no bound.
	Epsilon, Delta float64
	TrueEpsilon    *float64
	Unbounded      bool
	Law            Law
	// Weight divides the number of trials: the cost of one, 1 for a protocol on a few records.
	Weight int
	// Draw runs the protocol once, with the record or without, on one worker, all randomness from st,
	// and returns what the viewer sees as numbers: always as many.
	Draw func(ctx context.Context, rt *engine.Runtime, st *privacy.Stream, present bool) ([]float64, error)
}

// Options are how to audit. Zero fields mean the defaults.
type Options struct {
	// Trials is the number of runs on each side of each case of weight 1, DefaultTrials if 0.
	Trials int
	// Confidence is that of each lower bound, DefaultConfidence if 0.
	Confidence float64
	// Seed repeats an audit; nil draws from the system.
	Seed *uint64
}

// DefaultTrials is the number of trials on each side of a case.
const DefaultTrials = 40000

// minTrials is the least number with which an audit says anything.
const minTrials = 100

// Finding is what came of one case.
type Finding struct {
	Case      string   `json:"case"`
	About     string   `json:"about"`
	Epsilon   *float64 `json:"epsilon"`
	Delta     float64  `json:"delta"`
	True      *float64 `json:"true_epsilon,omitempty"`
	Unbounded bool     `json:"unbounded,omitempty"`
	// Lower is the lower bound on epsilon at Delta.
	Lower float64 `json:"lower_bound"`
	// Event was seen With times in Trials runs with the record, Without in as many without.
	Event   string `json:"event"`
	With    int    `json:"with"`
	Without int    `json:"without"`
	Trials  int    `json:"trials"`
	// Violated says that Lower is above the ledger's epsilon.
	Violated bool `json:"violated"`
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
func Run(ctx context.Context, pool *engine.Pool, method string, calibration privacy.Calibration, cases []Case, o Options) (*Report, error) {
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
		return nil, fault.Request("audit", method+" has no worst case under "+string(calibration), "choose another method or calibration")
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

// examine audits one case: a fifth of the trials teaches the score, a fifth chooses the event, the rest
// counts it.
func examine(ctx context.Context, pool *engine.Pool, runtimes []*engine.Runtime, streams *privacy.Streams, c *Case, o Options) (*Finding, error) {
	n := max(o.Trials/max(1, c.Weight), minTrials)
	pilot := n / 5
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
	value := learn(c.Law, outcomes[0][:pilot], outcomes[1][:pilot])
	var scores [2][]float64
	for side, list := range outcomes {
		for _, out := range list[pilot:] {
			scores[side] = append(scores[side], value(out))
		}
	}
	alpha := 1 - o.Confidence
	e := choose(scores[0][:pilot], scores[1][:pilot], c.Delta, alpha)
	without, with := scores[0][pilot:], scores[1][pilot:]
	slices.Sort(without)
	slices.Sort(with)
	f := &Finding{Case: c.Name, About: c.About, Delta: c.Delta, True: c.TrueEpsilon, Unbounded: c.Unbounded, Event: e.String(),
		Without: e.count(without), With: e.count(with), Trials: len(with)}
	if e.with {
		f.Lower = epsilonAtLeast(f.With, len(with), f.Without, len(without), c.Delta, alpha)
	} else {
		f.Lower = epsilonAtLeast(f.Without, len(without), f.With, len(with), c.Delta, alpha)
	}
	if !math.IsInf(c.Epsilon, 1) {
		f.Epsilon = &c.Epsilon
	}
	f.Violated = f.Lower > c.Epsilon
	return f, nil
}
