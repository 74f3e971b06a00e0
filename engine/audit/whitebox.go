package audit

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// NoiseCheck is one test of the noise that runs drew, or of what the plan charges for it.
type NoiseCheck struct {
	// Release is the way in which the method ran, the role, and which of its draws in a run it is. Check is what
	// was tested: distribution, tail, scale, independence, or distance against the ledger's claim.
	Release string `json:"release"`
	Check   string `json:"check"`
	// Numbers is how many draws it saw; Statistic is beyond Limit if it is Violated.
	Numbers   int     `json:"numbers"`
	Statistic float64 `json:"statistic"`
	Limit     float64 `json:"limit"`
	Violated  bool    `json:"violated"`
}

// NoiseReport is a white-box audit: what runs drew, against what their plans say.
type NoiseReport struct {
	Method      string              `json:"method"`
	Calibration privacy.Calibration `json:"calibration"`
	// Ways are how the method ran: by so many parties, with which noise, drawn by whom.
	Ways []string `json:"ways"`
	// Runs were made in each way; Releases and Numbers is what they drew.
	Runs     int `json:"runs"`
	Releases int `json:"releases"`
	Numbers  int `json:"numbers"`
	// Distance is the greatest part of the claim that a record moved the releases of a run by, in units of the
	// noise: of the ledger's epsilon. It has no chance in it: above 1 the plan charges too little. 0 where it is not
	// compared: a mechanism without additive noise, or a claim that need not hold.
	Distance float64 `json:"distance,omitempty"`
	// Failure is the probability that a method without fault is called Violated.
	Failure float64 `json:"failure_probability"`
	Verdict Verdict `json:"verdict"`
	// Checks are those that are violated, and the nearest of the others.
	Checks  []NoiseCheck `json:"checks"`
	Seconds float64      `json:"-"`
}

// noiseFailure is the probability with which a white-box audit may call what is right violated.
const noiseFailure = 1e-6

// WhiteBox runs a method in several ways, by one party and by several, and tests the noise that its roles drew: the
// distribution of each, by chi-square in bins of equal probability and by the number in its tails; the scales
// against those of the plan's ledger; whether all that was drawn is in what was released; and the
// correlations between coordinates, between draws of one run (of other parties and rounds) and between
// runs. Under the proven calibration it also compares, without chance, how far a record moves the releases
// with what the ledger charges.
func WhiteBox(ctx context.Context, pool *engine.Pool, method string, c privacy.Calibration, runs int,
	seed *uint64) (*NoiseReport, error) {
	if runs < 50 {
		return nil, fault.Range("trials", runs, "at least 50 for --white-box")
	}
	ways, err := waysOf(method, c)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	st := privacy.NewStreams(seed).Stream(0, 0, "white box")
	rt := engine.NewRuntime(pool)
	r := &NoiseReport{Method: method, Calibration: c, Runs: runs, Failure: noiseFailure, Verdict: Consistent}
	var checks []NoiseCheck
	for i := range ways {
		w := &ways[i]
		g := &noiseSamples{st: st, way: w.name, failure: noiseFailure / float64(len(ways))}
		found, distance, err := w.watch(ctx, rt, g, max(20, runs/max(w.weight, 1)))
		if err != nil {
			return nil, err
		}
		checks = append(checks, found...)
		r.Ways, r.Releases, r.Distance = append(r.Ways, w.name), r.Releases+len(g.releases), max(r.Distance, distance)
		for i := range g.releases {
			r.Numbers += g.releases[i].numbers
		}
		if len(g.releases) == 0 {
			return nil, fault.Failed("audit", method+" drew no noise", "", nil)
		}
	}
	slices.SortFunc(checks, func(a, b NoiseCheck) int {
		switch x, y := a.Statistic/a.Limit, b.Statistic/b.Limit; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(a.Release+a.Check, b.Release+b.Check)
	})
	for i, x := range checks {
		if x.Violated {
			r.Verdict = Violated
		}
		if x.Violated || i < 3 {
			r.Checks = append(r.Checks, x)
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// watch runs a method in one way and returns all checks, with the part of the claim that a record moves releases by.
func (w *way) watch(ctx context.Context, rt *engine.Runtime, g *noiseSamples, runs int) (checks []NoiseCheck,
	distance float64, err error) {
	draw, ledger, err := w.prepare()
	if err != nil {
		return nil, 0, err
	}
	var replay *privacy.Replay
	if w.rounds == nil {
		replay = new(privacy.Replay)
	}
	missing := 0
	for range runs {
		replay.Record()
		drawn, err := draw(ctx, rt, g.st.Uint64(), replay)
		if err == nil {
			err = g.add(drawn)
		}
		if err != nil {
			return nil, 0, err
		}
		if replay != nil && !noised(replay, drawn) {
			missing++
		}
	}
	checks = append(g.checks(), g.planned(ledger)...)
	if replay != nil {
		checks = append(checks, NoiseCheck{Release: w.name, Check: "noise that is not in what was released",
			Numbers: runs, Statistic: float64(missing), Limit: 1, Violated: missing > 0})
	}
	for _, p := range w.pairs {
		part, err := w.distance(ctx, rt, p, g.st)
		if err != nil {
			return nil, 0, err
		}
		distance = max(distance, part)
		// the claim is rounded up to 13 digits
		checks = append(checks, NoiseCheck{w.name + ", " + p.Name, "distance", 1, part, 1 + 1e-9, !(part <= 1+1e-9)})
	}
	return checks, distance, nil
}

// noised tells whether all noise that was drawn, and some for each number, is in what was released.
func noised(replay *privacy.Replay, drawn []protocol.Draw) bool {
	if replay.Releases() == 0 {
		return true // by mechanisms that keep no replay
	}
	sum, numbers := replay.Noise()
	for _, d := range drawn {
		numbers -= len(d.Values)
		for _, z := range d.Values {
			sum -= z
		}
	}
	return sum == 0 && numbers <= 0
}

// distance is how far the record of a pair moves what a run releases, as a part of the ledger's epsilon: the most of
// several runs, from either side. Gaussian noise is priced exactly (THEOREMS.md T8), Laplace noise by its sum, which is
// exact at delta 0; where a run has both, each by itself.
func (w *way) distance(ctx context.Context, rt *engine.Runtime, p Pair, st *privacy.Stream) (float64, error) {
	const runs = 3
	most := 0.0
	for i := range 2 * runs {
		replay := &privacy.Replay{Records: (len(p.Records) + len(p.Extra)) / p.D}
		seed := st.Uint64()
		var total privacy.Entry
		for again := range 2 {
			side := (i + again) % 2
			job := w.job(&p, w.deal(p.parts(side == 1, w.neighbours)), &seed, replay)
			if again == 0 {
				replay.Record()
			} else {
				replay.Replay()
			}
			plan, err := connect(ctx, rt, job, nil, replay)
			if err != nil {
				return 0, err
			}
			ledger, err := plan.Ledger(nil)
			if err != nil {
				return 0, err
			}
			total = ledger.TotalFor(w.viewer)
		}
		if _, err := replay.Loss(); err != nil {
			return math.Inf(1), nil // the other side cannot release the same: no epsilon holds
		}
		laplace, gaussian := replay.Distance()
		if total.Epsilon == nil {
			return 0, fault.Failed("audit", "the ledger of "+w.name+" has no bound", "", nil)
		}
		most = max(most, laplace / *total.Epsilon, privacy.EpsilonOfMu(math.Sqrt(gaussian), *total.Delta, 0) / *total.Epsilon)
	}
	return most, nil
}
