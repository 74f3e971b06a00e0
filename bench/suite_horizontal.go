package bench

import (
	"context"
	"strconv"

	"github.com/cohort-engine/cohort/bench/profile"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/horizontal"
	"github.com/cohort-engine/cohort/engine/privacy"
)

func horizontalSuites() []Suite {
	return []Suite{{
		Name: "horizontal", Group: GroupPerformance, Title: "One iteration of the horizontal protocols",
		About: "Median time of one whole iteration over two clients at epsilon 1: assignment, sums, masks, aggregation, noise, " +
			"unmasking and post-processing, network excluded. The peer is the authors' own code of FastLloyd " +
			"(for relative: of its follow-up), medians of one thread on the machine named in the source.",
		Needs: []string{"s1", "adult", "birch2_25k", "lsun", "timesynth_k5_d2_n100000", "timesynth_k2_d2_n100000", "timesynth_k5_d5_n100000", "timesynth_k2_d5_n100000"},
		Figures: []Figure{
			{Table: "", Title: "Time of one iteration", X: "set", Y: "iteration", Series: []string{"method"}, LogY: true, Bars: true},
		},
		Run: runHorizontal,
	}}
}

// peerIterations are the medians of one iteration of the authors' code in
// milliseconds, two clients, epsilon 1, one thread.
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

const peerSource = "D-Diaa/privateclustering, two-core AVX-512 server, process CPU time"

// peerIteration returns the peer's reference for a set and method, if there is
// one.
func peerIteration(set string, m horizontal.Method) []Reference {
	for _, p := range peerIterations {
		if p.set != set {
			continue
		}
		ms := map[horizontal.Method]float64{horizontal.FastLloyd: p.fastlloyd, horizontal.CSuLloyd: p.csulloyd, horizontal.SuLloyd: p.sulloyd, horizontal.Relative: p.followUp}[m]
		if ms > 0 {
			return []Reference{{Name: "authors' code", Kind: PeerHere, Value: Number(ms * 1e6), Source: peerSource}}
		}
	}
	return nil
}

// clientsOf is the number of clients in the papers' experiments.
const clientsOf = 2

// horizontalJob builds a run on a set: its seed shuffles the records and draws
// noise, masks and start.
func horizontalJob(s *Set, m horizontal.Method, calibration privacy.Calibration, epsilon float64, run int, edit func(*horizontal.Job)) (engine.Job, error) {
	seed := uint64(run)
	parts, err := s.Parts(clientsOf, seed)
	if err != nil {
		return nil, err
	}
	j := horizontal.Job{Algorithm: m, K: s.K, Clients: parts, Seed: &seed, Calibration: calibration,
		Budget: privacy.Budget{Epsilon: epsilon, Delta: -1}}
	if edit != nil {
		edit(&j)
	}
	return j, nil
}

// runProfiler compares iterations of a few milliseconds with and without the
// profiler, in turns.
func runProfiler(ctx context.Context, e *Env) error {
	return e.Case(ctx, "cost of the profiler", []Label{L("instance", "lloyd, 2000000 x 2, k 10")}, func(ctx context.Context, c *Case) error {
		s, err := GeneratedSet(ctx, "blobs", dataset.Generator{N: 2000000, D: 2, K: 10, Seed: 1})
		if err != nil {
			return err
		}
		parts, err := s.Parts(clientsOf, 1)
		if err != nil {
			return err
		}
		var laps [2]Laps
		var engines [2]*engine.Engine
		for i := range engines {
			options := []engine.Option{engine.WithWorkers(c.Env.Pool.Workers()), engine.WithObserver(&laps[i])}
			if i == 1 {
				options = append(options, engine.WithObserver(profile.New(profile.Options{Workers: c.Env.Pool.Workers()})))
			}
			if engines[i], err = engine.New(options...); err != nil {
				return err
			}
			defer engines[i].Close()
		}
		var samples [2][]float64
		for run := range c.Env.Reps(60, 25) {
			for i := range engines {
				i ^= run & 1 // neither is always the second
				seed := uint64(1)
				job := horizontal.Job{Algorithm: horizontal.Lloyd, K: s.K, Clients: parts, Seed: &seed, NoQuality: true, Iterations: 10}
				if _, err := engines[i].Run(ctx, job); err != nil {
					return err
				}
				if l := laps[i].Take(); run > 0 {
					samples[i] = append(samples[i], l...)
				}
			}
		}
		c.Durations("plain", samples[0])
		c.Durations("profiled", samples[1])
		c.Number("cost", "%", 100*(c.Row.Value("profiled").Shown()/c.Row.Value("plain").Shown()-1))
		return nil
	})
}

func runHorizontal(ctx context.Context, e *Env) error {
	methods := []horizontal.Method{horizontal.FastLloyd, horizontal.SuLloyd, horizontal.Relative, horizontal.CSuLloyd, horizontal.Lloyd}
	for _, p := range peerIterations {
		for _, m := range methods {
			labels := []Label{L("set", p.set), L("method", m)}
			err := e.Case(ctx, "", labels, func(ctx context.Context, c *Case) error {
				s, err := c.Env.Set(ctx, p.set)
				if err != nil {
					return err
				}
				res, err := c.Iterations(ctx, c.Env.Reps(20, 4), func(run int) (engine.Job, error) {
					return horizontalJob(s, m, claimedOf(m), 1, run, withoutQuality)
				}, peerIteration(p.set, m)...)
				if err != nil {
					return err
				}
				c.Number("points", "/s", float64(s.N)/(c.Row.Value("iteration").Shown()/1e9))
				c.Number("bytes per iteration", Bytes, float64(Traffic(res.Comm))/float64(res.Iterations))
				c.Row.Note = "n " + strconv.Itoa(s.N) + ", d " + strconv.Itoa(s.D) + ", k " + strconv.Itoa(s.K)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return runProfiler(ctx, e)
}

// claimedOf is the calibration that reproduces a paper: its own theorem.
func claimedOf(m horizontal.Method) privacy.Calibration {
	if m.Private() {
		return privacy.Claimed
	}
	return ""
}

func withoutQuality(j *horizontal.Job) { j.NoQuality = true }
