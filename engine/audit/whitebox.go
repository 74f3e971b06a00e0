package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// NoiseCheck is one test of the noise that runs drew.
type NoiseCheck struct {
	// Release is the release by its number in a run, Check what was tested: law, tail, scale or independence.
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
	// Runs were made, of several parties where the method has them; Releases and Numbers is what they drew.
	Runs     int `json:"runs"`
	Releases int `json:"releases"`
	Numbers  int `json:"numbers"`
	// Failure is the probability that a method without fault is called Violated.
	Failure float64 `json:"failure_probability"`
	Verdict Verdict `json:"verdict"`
	// Checks are those that are violated, and the nearest of the others.
	Checks  []NoiseCheck `json:"checks"`
	Seconds float64      `json:"-"`
}

// noiseFailure is the probability with which a white-box audit may call what is right violated.
const noiseFailure = 1e-6

// whitebox is a method whose noise can be watched.
type whitebox struct {
	// plan has the ledger of a run, draw makes a run with all randomness from a seed.
	plan func() (*privacy.Ledger, error)
	draw func(ctx context.Context, rt *engine.Runtime, seed uint64) ([]privacy.Drawn, error)
}

// WhiteBox runs a method and tests the noise that it drew: the distribution of each release, by chi-square in bins of equal
// probability and by the number in its tails; the scales against those of the plan's ledger; and the
// correlations between neighbouring coordinates, between releases of one run (other parties and rounds) and
// between runs.
func WhiteBox(ctx context.Context, pool *engine.Pool, method string, c privacy.Calibration, runs int, seed *uint64) (*NoiseReport, error) {
	if runs < 50 {
		return nil, fault.Range("trials", runs, "at least 50 for --white-box")
	}
	w, err := watched(method, c)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	ledger, err := w.plan()
	if err != nil {
		return nil, err
	}
	st := privacy.NewStreams(seed).Stream(0, 0, "white box")
	g := &noiseSamples{st: st}
	rt := engine.NewRuntime(pool)
	for range runs {
		drawn, err := w.draw(ctx, rt, st.Uint64())
		if err != nil {
			return nil, err
		}
		if err := g.add(drawn); err != nil {
			return nil, err
		}
	}
	checks := g.checks()
	checks = append(checks, g.planned(ledger)...)
	r := &NoiseReport{Method: method, Calibration: c, Runs: runs, Releases: len(g.releases), Failure: noiseFailure, Verdict: Consistent}
	for i := range g.releases {
		r.Numbers += g.releases[i].numbers
	}
	if len(g.releases) == 0 {
		return nil, fault.Failed("audit", method+" drew no noise", "", nil)
	}
	slices.SortStableFunc(checks, func(a, b NoiseCheck) int {
		switch x, y := a.Statistic/a.Limit, b.Statistic/b.Limit; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
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

// noiseSamples gathers what runs drew, as normal scores: the draw of a right distribution is standard normal.
type noiseSamples struct {
	st       *privacy.Stream
	releases []noiseRelease
}

// noiseRelease is the i-th release of every run.
type noiseRelease struct {
	numbers    int
	bins       [noiseBins]float64
	tails      float64
	scales     map[float64]bool
	last, now  []float64     // scores of the run before and of this one
	rows, runs correlation   // between coordinates, and between runs
	with       []correlation // with each release before
}

const (
	noiseBins = 20
	tailShare = 1e-3 // on either side
)

// correlation sums products of independent standard scores: over its root of the number it is normal.
type correlation struct{ sum, n float64 }

func (c *correlation) add(a, b []float64) {
	for i := range min(len(a), len(b)) {
		c.sum += a[i] * b[i]
		c.n++
	}
}

// add takes one run.
func (g *noiseSamples) add(drawn []privacy.Drawn) error {
	for i, d := range drawn {
		if i == len(g.releases) {
			g.releases = append(g.releases, noiseRelease{scales: map[float64]bool{}})
		}
		r := &g.releases[i]
		r.last, r.now = r.now, r.last[:0]
		if len(r.scales) < 100 {
			r.scales[d.Scale] = true
		}
		for _, z := range d.Noise {
			u, err := uniform(d, z, g.st.Float64Open())
			if err != nil {
				return err
			}
			r.bins[min(int(u*noiseBins), noiseBins-1)]++
			if u < tailShare || u > 1-tailShare {
				r.tails++
			}
			r.now = append(r.now, distuv.UnitNormal.Quantile(min(max(u, 1e-15), 1-1e-15)))
		}
		r.numbers += len(d.Noise)
		if len(r.now) > 1 {
			r.rows.add(r.now[:len(r.now)-1], r.now[1:])
		}
		r.runs.add(r.last, r.now)
		for len(r.with) < i {
			r.with = append(r.with, correlation{})
		}
		for j := range r.with {
			r.with[j].add(g.releases[j].now, r.now)
		}
	}
	return nil
}

// uniform maps a draw to (0,1), uniformly if its distribution is the one it should be; v is uniform and spreads an
// integer's probability.
func uniform(d privacy.Drawn, z int64, v float64) (float64, error) {
	x := math.Abs(float64(z))
	var below, at float64 // probabilities of a magnitude beyond x on one side, and of x
	switch {
	case d.Family == "laplace":
		r := math.Exp(-1 / d.Scale)
		below, at = math.Exp(-(x+1)/d.Scale)/(1+r), -math.Expm1(-1/d.Scale)/(1+r)*math.Exp(-x/d.Scale)
	case d.Scale >= 100: // the rounded normal law, at a distance below 1e-5 (T6 iii)
		below = math.Erfc((x+0.5)/d.Scale/math.Sqrt2) / 2
		at = math.Erfc((x-0.5)/d.Scale/math.Sqrt2)/2 - below
	default:
		norm := 0.0
		for i := range int(12*d.Scale) + 3 {
			p := math.Exp(-float64(i) * float64(i) / (2 * d.Scale * d.Scale))
			if float64(i) > x {
				below += p
			}
			if norm += 2 * p; i == 0 {
				norm -= p
			}
		}
		below, at = below/norm, math.Exp(-x*x/(2*d.Scale*d.Scale))/norm
	}
	if math.IsNaN(below + at) {
		return 0, fmt.Errorf("audit: noise of scale %v cannot be tested", d.Scale)
	}
	u := below + v*at
	if z > 0 {
		u = 1 - u
	}
	return u, nil
}

// checks are the tests of laws and independence, each with its share of the failure probability.
func (g *noiseSamples) checks() []NoiseCheck {
	n := max(len(g.releases), 1) // each has four checks, and one with each release before
	alpha := noiseFailure / float64(n*(4+n))
	chi := distuv.ChiSquared{K: noiseBins - 1}.Quantile(1 - alpha)
	normal := distuv.UnitNormal.Quantile(1 - alpha/2)
	var out []NoiseCheck
	for i := range g.releases {
		r := &g.releases[i]
		name := fmt.Sprintf("release %d", i+1)
		add := func(check string, n int, statistic, limit float64) {
			out = append(out, NoiseCheck{name, check, n, statistic, limit, statistic > limit})
		}
		if r.numbers >= 10*noiseBins {
			statistic, expected := 0.0, float64(r.numbers)/noiseBins
			for _, n := range r.bins {
				statistic += (n - expected) * (n - expected) / expected
			}
			add("law", r.numbers, statistic, chi)
		}
		// the largest number of tail draws that has probability alpha
		most := 0.0
		for b := (distuv.Binomial{N: float64(r.numbers), P: 2 * tailShare}); 1-b.CDF(most) > alpha; most++ {
		}
		add("tail", r.numbers, r.tails, most)
		independent := func(check string, c correlation) {
			if c.n >= 100 { // fewer products are not nearly normal
				add(check, int(c.n), math.Abs(c.sum)/math.Sqrt(c.n), normal)
			}
		}
		independent("independence of coordinates", r.rows)
		independent("independence of runs", r.runs)
		for j, c := range r.with {
			independent(fmt.Sprintf("independence of release %d", j+1), c)
		}
	}
	return out
}

// planned compares the scales: each that the plan's ledger states is that of some release on some grid of a power of two. The scales
// of sums and counts that are released together follow from what was released before: the plan has their price alone.
func (g *noiseSamples) planned(l *privacy.Ledger) []NoiseCheck {
	var out []NoiseCheck
	for _, e := range l.Entries {
		if e.Kind != privacy.Release || e.Scale == 0 || e.Beside != nil || e.Cost.Family != "gaussian" && e.Cost.Family != "laplace" && e.Cost.Family != "discrete-gaussian" && e.Cost.Family != "discrete-laplace" {
			continue
		}
		off := math.Inf(1)
		for i := range g.releases {
			for s := range g.releases[i].scales {
				ratio := math.Log2(s / e.Scale)
				off = min(off, math.Abs(ratio-math.Round(ratio)))
			}
		}
		out = append(out, NoiseCheck{e.What, "scale", 1, off, 1e-6, off > 1e-6})
	}
	return out
}

// watched prepares a method on records of its library.
func watched(method string, c privacy.Calibration) (*whitebox, error) {
	if c != privacy.Proven {
		return nil, fault.Request("--white-box", "watches the noise of what is proven", "use --calibration proven")
	}
	jobs, err := watchedRuns(method)
	if err != nil {
		return nil, err
	}
	p := fewRecords(3, 2, 60)
	whole := p.parts(true, privacy.AddRemove)
	b := privacy.Budget{Epsilon: 1, Delta: 1e-5}
	tape := &privacy.Tape{}
	plan := func(way int) (*privacy.Ledger, error) {
		seed := uint64(0)
		plan, err := jobs[way](&p, whole, b, &seed, nil).Plan()
		if err != nil {
			return nil, err
		}
		outline, err := plan.Outline()
		if err != nil {
			return nil, err
		}
		return outline.Ledger, nil
	}
	return &whitebox{
		plan: func() (*privacy.Ledger, error) {
			all := &privacy.Ledger{}
			for way := range jobs {
				l, err := plan(way)
				if err != nil {
					return nil, err
				}
				all.Entries = append(all.Entries, l.Entries...)
			}
			return all, nil
		},
		draw: func(ctx context.Context, rt *engine.Runtime, seed uint64) ([]privacy.Drawn, error) {
			var all []privacy.Drawn
			for way := range jobs {
				mine := seed + uint64(way)
				tape.Record()
				plan, err := jobs[way](&p, whole, b, &mine, tape).Plan()
				if err != nil {
					return nil, err
				}
				if _, err := plan.Run(ctx, rt); err != nil {
					return nil, err
				}
				for _, d := range tape.Drawn() {
					d.Noise = slices.Clone(d.Noise)
					all = append(all, d)
				}
			}
			return all, nil
		},
	}, nil
}

// watchedRun makes a job of a method that runs on a tape.
type watchedRun func(p *Pair, parts []dataset.Part, b privacy.Budget, seed *uint64, tape *privacy.Tape) engine.Job

// watchedRuns are the ways in which a method's noise is watched: by one client and by two, of either kind.
func watchedRuns(method string) ([]watchedRun, error) {
	var runs []watchedRun
	switch method {
	case "hybrid", "lsf", "balcan":
		for _, way := range []struct {
			mechanism string
			clients   int
		}{{"gaussian", 1}, {"gaussian", 2}, {"laplace", 1}, {"laplace", 2}} {
			if method != "hybrid" && way.clients > 1 {
				continue // it has one holder
			}
			runs = append(runs, func(p *Pair, parts []dataset.Part, b privacy.Budget, seed *uint64, tape *privacy.Tape) engine.Job {
				for len(parts) < way.clients {
					parts = append(parts[:len(parts):len(parts)], parts[0]) // another with the same records
				}
				return centralJob(method, *p, "tree", parts, b, Settings{Mechanism: way.mechanism}, seed, tape)
			})
		}
	case "ind-lap", "ldp-agg":
		runs = append(runs, func(p *Pair, parts []dataset.Part, b privacy.Budget, seed *uint64, tape *privacy.Tape) engine.Job {
			return localJob(method, *p, parts, b, privacy.Proven, Settings{}, seed, tape)
		})
	default:
		return nil, fault.Request("--white-box", "the noise of "+method+" cannot be watched", "choose among hybrid, lsf, balcan, ind-lap, ldp-agg")
	}
	return runs, nil
}
