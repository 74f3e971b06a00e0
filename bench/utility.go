package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/flow"
)

// peer_utility.csv has the mean NICV over 20 seeds of the authors' released code
// (D-Diaa/privateclustering 2fffc83; its follow-up D-Diaa/FastLloyd a4f65f1 for
// relative), two clients, by the calibration of ours that corresponds: "claimed"
// for fastlloyd is their code with the noise that the paper's theorem asks for,
// "published" their code as it is.
//
//go:embed peer_utility.csv
var peerUtility string

type peerKey struct{ set, method, calibration, epsilon string }

type peerScore struct {
	nicv, half, median, empty float64
}

// peerScores parses peer_utility.csv.
func peerScores() (map[peerKey]peerScore, error) {
	lines, err := readCSV("peer_utility.csv", peerUtility)
	if err != nil {
		return nil, err
	}
	out := make(map[peerKey]peerScore)
	for _, l := range lines {
		out[peerKey{l[0], l[1], l[2], l[3]}] = peerScore{chart.ParseNumber(l[4]), chart.ParseNumber(l[5]),
			chart.ParseNumber(l[6]), chart.ParseNumber(l[7])}
	}
	return out, nil
}

// protocol is a method under a calibration.
type variant struct {
	method      lloyd.Method
	calibration privacy.Calibration
}

// name is how figures call it.
func (p variant) name() string {
	if p.calibration == privacy.None {
		return string(p.method)
	}
	return string(p.method) + ", " + string(p.calibration)
}

var (
	plainLloyd    = variant{lloyd.Lloyd, privacy.None}
	plainCode     = variant{lloyd.Lloyd, privacy.Published} // sends empty clusters to the origin
	plainCLloyd   = variant{lloyd.CLloyd, privacy.None}
	suLloyd       = variant{lloyd.SuLloyd, privacy.Claimed}
	csuLloyd      = variant{lloyd.CSuLloyd, privacy.Claimed}
	csuLloydCode  = variant{lloyd.CSuLloyd, privacy.Published}
	fastLloyd     = variant{lloyd.FastLloyd, privacy.Claimed}
	fastLloydCode = variant{lloyd.FastLloyd, privacy.Published}
	relativeLater = variant{lloyd.Relative, privacy.Claimed}

	// The central methods run on the pooled data.
	hybridProven = variant{"hybrid", privacy.Proven}
	lsfProven    = variant{"lsf", privacy.Proven}
	balcanProven = variant{"balcan", privacy.Proven}
)

// byColumns are the protocols of two parties that hold different columns.
func byColumns() []variant {
	var out []variant
	for _, m := range []sketch.Method{sketch.Sketch, sketch.SketchBasic, sketch.Independent, sketch.LocalReports} {
		for _, c := range []privacy.Calibration{privacy.Proven, privacy.Claimed} {
			out = append(out, variant{lloyd.Method(m), c})
		}
	}
	return out
}

// mostLocal bounds the local clusters of a party: on birch2 with 100 clusters the
// joint estimator is better with 32 than with its limit of 64, and eight times as
// fast.
const mostLocal = 32

// columnJob builds a run of a protocol of byColumns.
func (p variant) columnJob(s *Set, epsilon float64, run int) *sketch.Job {
	j := &sketch.Job{Method: sketch.Method(p.method),
		Problem: s.problem(s.K, privacy.Budget{Epsilon: epsilon, Delta: -1}, run)}
	j.Columns, j.Calibration = sketch.EqualSplit(s.D, 2), p.calibration
	if s.K > mostLocal {
		j.LocalK.N = mostLocal
	}
	return j
}

// withoutNoise is the table of the protocols that have no epsilon.
const withoutNoise = "without noise"

// job builds run number run of the protocol; edit, if not nil, changes it.
func (p variant) job(s *Set, epsilon float64, run int, edit func(*lloyd.Job)) (engine.Job, error) {
	if slices.Contains(byColumns(), p) {
		return p.columnJob(s, epsilon, run), nil
	}
	if p == hybridProven || p == lsfProven || p == balcanProven {
		return centralJob(string(p.method), s, s.K, privacy.Budget{Epsilon: epsilon, Delta: -1}, run, true)
	}
	calibration := p.calibration
	if calibration == privacy.None {
		calibration = ""
	}
	return horizontalJob(s, p.method, calibration, epsilon, run, func(j *lloyd.Job) {
		if p.method == lloyd.SuLloyd && p.calibration != privacy.Proven {
			j.Post = step.Keep // as the authors' code runs it
		}
		if p == relativeLater {
			j.Schedule = lloyd.LaterCode
		}
		if edit != nil {
			edit(j)
		}
	})
}

// scores are the results of several runs: those of quality where the jobs measure it, and the wall and
// CPU time of each run in nanoseconds.
type scores struct {
	nicv, wcss, empty, accuracy []float64
	wall, cpu                   []float64
	iterations                  int
}

// add adds a result.
func (s *scores) add(res *engine.Result) {
	for _, x := range []struct {
		to   *[]float64
		from *float64
	}{{&s.nicv, res.NICV}, {&s.wcss, res.WCSS}, {&s.accuracy, res.Accuracy}} {
		if x.from != nil {
			*x.to = append(*x.to, *x.from)
		}
	}
	if res.EmptyClusters != nil {
		s.empty = append(s.empty, float64(*res.EmptyClusters))
	}
	s.iterations = res.Iterations
}

// runs repeats a protocol with seeds 1, 2, ... A quick run stops after a few
// seconds, with three runs at least. Runs whose constraints no assignment meets
// are left out and counted in the row's note, as the papers' code does.
// each is called with every result.
func (c *Case) runs(ctx context.Context, count int, build func(run int) (engine.Job, error),
	each ...func(*engine.Result) error) (scores, error) {
	var out scores
	start := time.Now()
	tried := 0
	for run := 1; run <= count; run++ {
		if c.Env.Quick && run > 3 && time.Since(start) > 2*time.Second {
			break
		}
		job, err := build(run)
		if err != nil {
			return out, err
		}
		cpu, begin := processTime(), time.Now()
		res, err := c.Env.Engine.Run(ctx, job)
		tried = run
		if errors.Is(err, flow.ErrInfeasible) {
			continue
		}
		if err != nil {
			return out, err
		}
		out.wall = append(out.wall, float64(time.Since(begin)))
		out.cpu = append(out.cpu, float64(processTime()-cpu))
		if c.Row.Ledger == "" {
			if err := c.Row.keepLedger(res); err != nil {
				return out, err
			}
		}
		out.add(res)
		for _, f := range each {
			if err := f(res); err != nil {
				return out, err
			}
		}
	}
	c.Row.Seeds = fmt.Sprintf("1..%d", tried)
	if lost := tried - len(out.wall); lost > 0 {
		c.Row.Note = fmt.Sprintf("%d of %d runs have no assignment within the constraints and are left out", lost, tried)
	}
	return out, nil
}

// over divides each value.
func over(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, x := range values {
		out[i] = x / by
	}
	return out
}

// differenceText says what stands beside a peer's NICV.
const differenceText = "\"Difference / bound\" is the difference of the means divided by 2 sqrt(h1² + h2²), h the " +
	"half widths of their 95% intervals: up to 1 the two agree."

func utilitySuites() []Suite {
	sets := []string{"s1", "lsun", "iris", "house", "adult", "birch2_25k"}
	return []Suite{{
		Name: "utility", Group: groupPerformance, Title: "Clustering quality against the authors' code",
		About: "Mean NICV (mean squared distance to the nearest centroid, lower is better) over seeds with two clients. " +
			"The peer is the authors' released code over 20 seeds, under the calibration that corresponds to it. " +
			differenceText + " The proven rows show what noise that provably suffices costs, drawn by the server (--noise " +
			"server) as the peer's is; hybrid, lsf and balcan run there on the pooled data. Two parties that hold columns " +
			"follow, at two epsilons; ckks, which takes minutes a run, has suites of its own.",
		Needs: sets,
		Figures: []Figure{
			{Table: "the papers' noise", Title: "NICV, papers' noise", X: "epsilon", Y: "NICV", Series: []string{"protocol"},
				Panel: "set", LogX: true, LogY: true, Level: withoutNoise},
			{Table: "proven noise", Title: "NICV, proven noise", X: "epsilon", Y: "NICV", Series: []string{"protocol"},
				Panel: "set", LogX: true, LogY: true, Level: withoutNoise},
		},
		Run: func(ctx context.Context, e *Env) {
			protocols := []variant{fastLloyd, fastLloydCode, suLloyd, csuLloyd, relativeLater}
			proven := []variant{hybridProven, {lloyd.Relative, privacy.Proven}, {lloyd.SuLloyd, privacy.Proven},
				{lloyd.CSuLloyd, privacy.Proven}, {lloyd.FastLloyd, privacy.Proven}, lsfProven, balcanProven}
			epsilons := []string{"1", "0.1", "0.25", "0.5", "0.75", "2"}
			for _, set := range sets {
				for _, p := range []variant{plainLloyd, plainCLloyd} {
					e.nicv(ctx, withoutNoise, set, p, "0", nil)
				}
				for _, epsilon := range epsilons[:e.reps(len(epsilons), 2)] {
					for _, p := range protocols {
						e.nicv(ctx, "the papers' noise", set, p, epsilon, nil)
					}
					for _, p := range proven {
						e.nicv(ctx, "proven noise", set, p, epsilon, nil)
					}
				}
			}
			for _, set := range sets {
				for _, epsilon := range epsilons[:2] {
					for _, p := range byColumns() {
						e.nicv(ctx, "columns at two parties", set, p, epsilon, nil)
					}
				}
			}
		},
	}}
}

// provenGoal is the largest mean NICV that a protocol under proven noise is to have on a set, if one is set.
func provenGoal(p variant, set, epsilon string) []Reference {
	goal := hybridGoal[set]
	switch {
	case p == hybridProven && epsilon == "1":
		return atMost(goal.goal1)
	case p == hybridProven && epsilon == "0.1":
		return atMost(goal.goal01)
	case p == variant{lloyd.FastLloyd, privacy.Proven} && set == "s1" && epsilon == "1":
		return atMost(0.062) // two rounds, which the claimed noise asks for, have .083
	}
	return nil
}

// nicv measures a protocol on a set at an epsilon ("0": without noise).
func (e *Env) nicv(ctx context.Context, table, set string, p variant, epsilon string, edit func(*lloyd.Job),
	extra ...Label) {
	labels := append([]Label{L("set", set), L("protocol", p.name()), L("epsilon", epsilon)}, extra...)
	e.on(ctx, set, table, labels, func(ctx context.Context, c *Case, s *Set) error {
		peers, err := peerScores()
		if err != nil {
			return err
		}
		budget := max(chart.ParseNumber(epsilon), 1e-9)
		r, err := c.runs(ctx, c.Env.reps(20, 6), func(run int) (engine.Job, error) { return p.job(s, budget, run, edit) })
		if err != nil {
			return err
		}
		key := peerKey{set, string(p.method), string(p.calibration), epsilon}
		if p == plainCode {
			key.calibration = string(privacy.None)
		}
		peer, known := peers[key]
		known = known && edit == nil
		if !known {
			c.samples("NICV", unitPlain, r.nicv, provenGoal(p, set, epsilon)...)
			c.samples("empty clusters", unitPlain, over(r.empty, float64(s.K)))
			c.number("iterations", unitPlain, float64(r.iterations))
			return nil
		}
		c.samples("NICV", unitPlain, r.nicv, Reference{Name: "authors' code", Kind: kindPeer, Value: Number(peer.nicv),
			Half: Number(peer.half), Source: peerSource})
		mine := c.Row.value("NICV")
		c.samples("empty clusters", unitPlain, over(r.empty, float64(s.K)),
			Reference{Name: "authors' code", Kind: kindPeer, Value: Number(peer.empty), Source: peerSource})
		c.number("iterations", unitPlain, float64(r.iterations))
		if bound := 2 * math.Hypot(float64(mine.Half), peer.half); bound > 0 {
			c.number("difference / bound", unitPlain, math.Abs(float64(mine.Mean)-peer.nicv)/bound)
		}
		return nil
	})
}
