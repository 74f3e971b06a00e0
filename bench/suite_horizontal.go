package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cohort-engine/cohort/bench/profile"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

func horizontalSuites() []Suite {
	return []Suite{{
		Name: "horizontal", Group: groupPerformance, Title: "One iteration of the horizontal protocols",
		About: "Median time of one whole iteration over two clients at epsilon 1: assignment, sums, masks, aggregation, " +
			"noise, unmasking and post-processing, network excluded. It is the median over all iterations of real runs. " +
			"lloyd, sulloyd and relative leave out records that cannot have changed since the iteration before, with the " +
			"same result: 'left out' is their share, and 'all records' the median of the iterations that left none out. The " +
			"peer is the authors' own code of FastLloyd (for relative: of its follow-up), medians of one thread: with " +
			"--peers DIR it runs in turns with ours, on the same records and as many rounds; else the figures are stored " +
			"ones of another machine.",
		Needs: []string{"s1", "adult", "birch2_25k", "lsun", "timesynth_k5_d2_n100000", "timesynth_k2_d2_n100000",
			"timesynth_k5_d5_n100000", "timesynth_k2_d5_n100000"},
		Figures: []Figure{
			{Table: "", Title: "Time of one iteration", X: "set", Y: "iteration", Series: []string{"method"},
				LogY: true, Bars: true},
		},
		Run: runHorizontal,
	}}
}

// peerIterations are the medians of one iteration of the authors' code in
// milliseconds, two clients, epsilon 1, one thread, from a two-core x86-64 server.
var peerIterations = []struct {
	set                                    string
	fastlloyd, csulloyd, sulloyd, followUp float64 // 0: not measured
}{
	{"s1", 22.068, 21.567, 4.248, 6.231},
	{"adult", 139.584, 0, 8.562, 13.674},
	{"birch2_25k", 862.994, 0, 117.56, 134.567},
	{"timesynth_k5_d2_n100000", 165.95, 0, 25.65, 39.125},
	{"timesynth_k2_d2_n100000", 71.664, 0, 12.607, 22.298},
	{"timesynth_k5_d5_n100000", 146.227, 0, 27.28, 43.232},
	{"timesynth_k2_d5_n100000", 73.248, 0, 13.777, 24.327},
	{"lsun", 0.695, 0, 0.259, 1.691},
}

const peerSource = "D-Diaa/privateclustering 2fffc83 and its follow-up D-Diaa/FastLloyd a4f65f1: stored figures, " +
	"measured with one thread on another machine (a two-core x86-64 server)"

// peerIteration returns the peer's reference for a set and method, if there is
// one.
func peerIteration(set string, m lloyd.Method) []Reference {
	for _, p := range peerIterations {
		if p.set != set {
			continue
		}
		ms := map[lloyd.Method]float64{lloyd.FastLloyd: p.fastlloyd, lloyd.CSuLloyd: p.csulloyd, lloyd.SuLloyd: p.sulloyd,
			lloyd.Relative: p.followUp}[m]
		if ms > 0 {
			return []Reference{{Name: "authors' code", Kind: kindPeer, Value: Number(ms * 1e6), Source: peerSource}}
		}
	}
	return nil
}

// clientsOf is the number of clients in the papers' experiments.
const clientsOf = 2

// horizontalJob builds a run on a set: its seed shuffles the records and draws
// noise, masks and start.
func horizontalJob(s *Set, m lloyd.Method, calibration privacy.Calibration, epsilon float64, run int,
	edit func(*lloyd.Job)) (engine.Job, error) {
	seed := uint64(run)
	parts, err := s.parts(clientsOf, seed)
	if err != nil {
		return nil, err
	}
	j := lloyd.Job{Method: m, Init: step.Sphere, Problem: protocol.Problem{K: s.K, Clients: parts, Seed: &seed,
		Calibration: calibration}}
	if m.Private() {
		j.Noise, j.Budget = protocol.ByServer, privacy.Budget{Epsilon: epsilon, Delta: -1}
	}
	if edit != nil {
		edit(&j)
	}
	return &j, nil
}

// gate is a profiler that works in every other iteration.
type gate struct {
	*profile.Profiler
	on    bool
	which []bool // of each iteration, whether it was on
}

// PhaseBegin implements engine.Observer.
func (g *gate) PhaseBegin(s engine.Span) {
	if g.on {
		g.Profiler.PhaseBegin(s)
	}
}

// PhaseEnd implements engine.Observer.
func (g *gate) PhaseEnd(s engine.Span) {
	if g.on {
		g.Profiler.PhaseEnd(s)
	}
}

// IterationEnd implements engine.Observer.
func (g *gate) IterationEnd(it engine.Iteration) {
	if g.on {
		g.Profiler.IterationEnd(it)
	}
	g.which = append(g.which, g.on)
	g.on = !g.on
}

// RegionBegin implements engine.RegionObserver.
func (g *gate) RegionBegin(worker int) {
	if g.on {
		g.Profiler.RegionBegin(worker)
	}
}

// RegionEnd implements engine.RegionObserver.
func (g *gate) RegionEnd(worker int) {
	if g.on {
		g.Profiler.RegionEnd(worker)
	}
}

// runProfiler compares iterations of more than a millisecond with and without
// the profiler, in pairs: each iteration with its neighbour, which does the same
// work, and which of the two comes first changes from run to run.
func runProfiler(ctx context.Context, e *Env) {
	const n, d, k, iterations = 150000, 16, 64, 52
	e.newCase(ctx, "cost of the profiler", []Label{L("instance", fmt.Sprintf("sulloyd, %d x %d, k %d", n, d, k))},
		func(ctx context.Context, c *Case) error {
			s, err := blobsOf(ctx, n, d, k)
			if err != nil {
				return err
			}
			parts, err := s.parts(clientsOf, 1)
			if err != nil {
				return err
			}
			x, err := c.profiled(ctx, parts, k, iterations)
			if err != nil {
				return err
			}
			c.durations("plain", x.times[0])
			c.durations("profiled", x.times[1])
			median, half := medianInterval(x.costs)
			c.add(Value{Name: "cost", Unit: "%", Mean: Number(median), Half: Number(half), Median: Number(median),
				N: len(x.costs)})
			c.Row.Note = fmt.Sprintf("cost is the median over %d pairs of neighbouring iterations with its 95%% interval: "+
				"differences below %.2g %% cannot be told apart here", len(x.costs), half)
			return c.profilerCalls(ctx, x.spans)
		})
}

// profiled are iterations without and with the profiler.
type profiled struct {
	times [2][]float64   // nanoseconds, without and with
	costs []float64      // of pairs of neighbours, in percent
	spans []profile.Span // of one iteration
}

// profiled runs sulloyd with the profiler in every other iteration.
func (c *Case) profiled(ctx context.Context, parts []dataset.Part, k, iterations int) (profiled, error) {
	var out profiled
	// One engine for both, so that they share its memory and its workers.
	var times iterationTimer
	workers := c.Env.Pool.Workers()
	g := &gate{Profiler: profile.New(profile.Options{Workers: workers})}
	eng, err := engine.New(engine.WithWorkers(workers), engine.WithObserver(&times), engine.WithObserver(g))
	if err != nil {
		return out, err
	}
	defer eng.Close()
	for run := range c.Env.reps(80, 12) {
		seed := uint64(run)
		g.on = run%2 == 0
		g.which = g.which[:0]
		job := lloyd.Job{Method: lloyd.SuLloyd, Problem: protocol.Problem{K: k, Clients: parts, Seed: &seed,
			NoQuality: true, Iterations: iterations, Calibration: privacy.Claimed,
			Budget: privacy.Budget{Epsilon: 1, Delta: -1}}}
		if _, err := eng.Run(ctx, &job); err != nil {
			return out, err
		}
		if taken := times.take(); run > 0 {
			out.add(taken, g.which)
		}
		last := &g.Runs()[0]
		out.spans = last.Spans[:len(last.Spans)/max(len(last.Iterations), 1)]
		g.Forget()
	}
	return out, nil
}

// add compares neighbouring iterations of a run; the first of them are slower.
func (p *profiled) add(taken []iterationTime, which []bool) {
	for i := 2; i+1 < len(taken); i += 2 {
		var pair [2]float64
		for q := range pair {
			with := 0
			if which[i+q] {
				with = 1
			}
			pair[with] = taken[i+q].NS
			p.times[with] = append(p.times[with], taken[i+q].NS)
		}
		p.costs = append(p.costs, 100*(pair[1]/pair[0]-1))
	}
}

// profilerCalls times the calls of one iteration by themselves, which resolves less than whole iterations do.
func (c *Case) profilerCalls(ctx context.Context, spans []profile.Span) error {
	const times = 100
	alone := profile.New(profile.Options{Workers: c.Env.Pool.Workers()})
	err := c.time(ctx, "calls alone", func() {
		alone.JobBegin(engine.JobInfo{})
		for range times {
			for _, s := range spans {
				alone.PhaseBegin(s.Span)
				alone.PhaseEnd(s.Span)
			}
			for range c.Env.Pool.Workers() {
				alone.RegionBegin(0)
				alone.RegionEnd(0)
			}
			alone.IterationEnd(engine.Iteration{})
		}
		alone.Forget()
	})
	if err != nil {
		return err
	}
	calls := c.Row.value("calls alone")
	for _, x := range []*Number{&calls.Mean, &calls.Half, &calls.Median, &calls.P99} {
		*x /= times
	}
	return nil
}

// medianInterval is the median of samples and half the width of its 95% interval.
func medianInterval(samples []float64) (median, half float64) {
	s := slices.Sorted(slices.Values(samples))
	if len(s) == 0 {
		return math.NaN(), math.NaN()
	}
	lo, hi := medianBounds(samples)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2, (hi - lo) / 2
}

// medianBounds is the 95% interval of the median by order statistics, which holds
// whatever the distribution of the samples.
func medianBounds(samples []float64) (lo, hi float64) {
	s := slices.Sorted(slices.Values(samples))
	half, reach := float64(len(s)-1)/2, 0.98*math.Sqrt(float64(len(s)))
	return s[max(int(half-reach), 0)], s[min(int(math.Ceil(half+reach)), len(s)-1)]
}

func runHorizontal(ctx context.Context, e *Env) {
	methods := []lloyd.Method{lloyd.FastLloyd, lloyd.SuLloyd, lloyd.Relative, lloyd.CSuLloyd, lloyd.Lloyd}
	for _, p := range peerIterations {
		for _, m := range methods {
			labels := []Label{L("set", p.set), L("method", m)}
			e.on(ctx, p.set, "", labels, func(ctx context.Context, c *Case, s *Set) error {
				res, err := c.iterations(ctx, c.Env.reps(20, 4), func(run int) (engine.Job, error) {
					return horizontalJob(s, m, claimedOf(m), 1, run, withoutQuality)
				}, c.Env.rival(s, m, 1))
				if err != nil {
					return err
				}
				c.number("points", "/s", float64(s.N)/(c.Row.value("iteration").shown()/1e9))
				c.number("bytes per iteration", unitBytes, float64(Traffic(res.Comm))/float64(res.Iterations))
				size := "n " + strconv.Itoa(s.N) + ", d " + strconv.Itoa(s.D) + ", k " + strconv.Itoa(s.K)
				if c.Row.Note != "" {
					size += "; " + c.Row.Note
				}
				c.Row.Note = size
				return nil
			})
		}
	}
	runProfiler(ctx, e)
}

// claimedOf is the calibration that reproduces a paper: its own theorem.
func claimedOf(m lloyd.Method) privacy.Calibration {
	if m.Private() {
		return privacy.Claimed
	}
	return ""
}

func withoutQuality(j *lloyd.Job) { j.NoQuality = true }
