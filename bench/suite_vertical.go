package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/kernels"
)

func verticalSuites() []Suite {
	return []Suite{{
		Name: "vertical", Group: GroupPerformance, Title: "Vertical clustering by sketches",
		About: "Table server: the whole server phase, weights of the grid and k-means on it, at n = 20000 on the shapes " +
			"of Sketch-V's Table 1, whose time is for the weights alone. Table small: whole runs on mixgauss. Tables " +
			"sketches and large: the making of sketches (digests, grouping and phantoms included) and a whole run of two " +
			"parties, with the most memory that the process had meanwhile, records included, beside the least time of AES " +
			"for a hash of each record under each key on all workers. Table ids: two parties' records joined by ids in " +
			"another order, and the sketches of such records.",
		Needs: []string{"mixgauss"},
		Figures: []Figure{{Table: "server", Title: "Server phase", X: "shape", Y: "server phase",
			Series: []string{"estimator"}, LogY: true, Bars: true}},
		Run: runVertical,
	}}
}

// sketchJob is a run of a vertical protocol on a set with the paper's delta, 1/n.
func sketchJob(data *dataset.Normalised, labels []int32, parties, k int, epsilon float64, run int) *sketch.Job {
	seed := uint64(run)
	return &sketch.Job{Method: sketch.Sketch, Problem: protocol.Problem{Clients: data.Table(), Bounds: data.Bounds,
		Clamped: data.Clamped, Labels: labels, Columns: sketch.EqualSplit(data.Points.D, parties), K: k,
		Budget: privacy.Budget{Epsilon: epsilon, Delta: 1 / float64(data.Points.N)}, Seed: &seed},
		LocalK: sketch.LocalK{N: k}}
}

// estimators of the timing tables: the paper's under its own calibration, and
// ours.
var timedEstimators = []struct {
	name string
	edit func(*sketch.Job)
}{
	{"paper", func(j *sketch.Job) { j.Calibration = privacy.Claimed }},
	{"pair-mle", func(j *sketch.Job) { j.Estimator = sketch.EstimatorPair }},
	{"em", func(j *sketch.Job) { j.Estimator = sketch.EstimatorEM }},
}

func runVertical(ctx context.Context, e *Env) {
	data, err := blobsOf(ctx, 20_000, 8, 5)
	if err != nil {
		e.fail(err)
		return
	}
	for _, parties := range []int{4, 2} {
		e.Case(ctx, "small", []Label{L("set", "mixgauss"), L("parties", parties)},
			func(ctx context.Context, c *Case) error {
				return timeSmall(ctx, c, parties)
			})
	}
	for _, n := range []int{1_000_000, 10_000_000} {
		if e.Quick && n > 1_000_000 {
			continue
		}
		e.Case(ctx, "large", []Label{L("n", n), L("parties", 2), L("d", 8)}, func(ctx context.Context, c *Case) error {
			return timeLarge(ctx, c, n)
		})
	}
	for _, form := range idForms {
		e.Case(ctx, "ids", []Label{L("n", 1_000_000), L("ids", form.name)}, func(ctx context.Context, c *Case) error {
			return timeIDs(ctx, c, 1_000_000, form.format)
		})
	}
	e.Case(ctx, "sketches", []Label{L("n", 100_000), L("parties", 2), L("M", 4096)}, timeSketches)
	counts := []int{4096, 2048}
	if e.Quick {
		counts = counts[:1]
	}
	for _, localK := range []int{8, 5} {
		for _, parties := range []int{4, 2} {
			for _, sketches := range counts {
				for _, estimator := range timedEstimators {
					shape := fmt.Sprintf("S=%d k'=%d M=%d", parties, localK, sketches)
					e.Case(ctx, "server", []Label{L("shape", shape), L("estimator", estimator.name)},
						func(ctx context.Context, c *Case) error {
							j := sketchJob(data, nil, parties, 5, 1, 1)
							j.LocalK.N, j.Sketches = localK, sketches
							estimator.edit(j)
							printed, err := c.Env.printedFor("sketch-table1",
								[]Label{L("k'", localK), L("method", "sketch"), L("parties", parties), L("M", sketches)}, "weights")
							if err != nil {
								return err
							}
							return timeServer(ctx, c, j, printed)
						})
				}
			}
		}
	}
}

// timeSmall times whole runs on mixgauss without the quality of their result.
func timeSmall(ctx context.Context, c *Case, parties int) error {
	s, err := c.Env.Set(ctx, "mixgauss")
	if err != nil {
		return err
	}
	var times, used []float64
	sketches := 0
	for run := range c.Env.Reps(20, 5) + 1 {
		j := sketchJob(s.Norm, nil, parties, paperK, 1, run)
		j.NoQuality = true
		start, from := time.Now(), processTime()
		plan, err := j.Plan()
		if err != nil {
			return err
		}
		r, err := plan.Run(ctx, engine.NewRuntime(c.Env.Pool))
		if err != nil {
			return err
		}
		sketches = r.Details["sketches"].(int)
		if run > 0 { // the first warms up
			times = append(times, float64(time.Since(start)))
			used = append(used, float64(processTime()-from)/float64(c.Env.Pool.Workers()))
		}
	}
	var refs []Reference
	if parties == 4 {
		refs = []Reference{{Name: "at most", Kind: Goal, Value: 150e6}}
	}
	c.Durations("whole run", times, append(refs, oneHashPerKey(c.Env.Pool, s.N, parties, sketches)...)...)
	c.Durations("CPU time, by worker", used)
	c.Number("sketches", Plain, float64(sketches))
	return nil
}

// timeServer times phases 3 and 4 on all workers.
func timeServer(ctx context.Context, c *Case, j *sketch.Job, refs []Reference) error {
	server, err := j.Exchange(ctx, engine.NewRuntime(c.Env.Pool))
	if err != nil {
		return err
	}
	var failed error
	weights := func() *sketch.Grid {
		if failed != nil {
			return nil
		}
		var g *sketch.Grid
		g, failed = server.Weights(ctx)
		return g
	}
	err = c.Compare(ctx, []Timed{
		{Name: "server phase", Refs: refs, Fn: func() {
			if g := weights(); failed == nil {
				_, failed = server.Cluster(ctx, g)
			}
		}},
		{Name: "weights", Refs: refs, Fn: func() { weights() }},
	})
	if failed != nil {
		return failed
	}
	return err
}

// timeSketches compares the making of sketches with the kernel alone.
func timeSketches(ctx context.Context, c *Case) error {
	const n, sketches, parties = 100_000, 4096, 2
	data, err := blobsOf(ctx, n, 8, 5)
	if err != nil {
		return err
	}
	var making []float64
	for run := range c.Env.Reps(10, 3) + 1 {
		rt := engine.NewRuntime(c.Env.Pool)
		j := sketchJob(data, nil, parties, 5, 1, run)
		j.Sketches = sketches
		if _, err := j.Exchange(ctx, rt); err != nil {
			return err
		}
		if run > 0 { // the first warms up
			making = append(making, float64(rt.Timings()["sketch"].TotalNS))
		}
	}
	c.Durations("making sketches", making, oneHashPerKey(c.Env.Pool, n, parties, sketches)...)
	return nil
}

// oneHashPerKey is the least time of AES on all workers for a hash, half a block,
// of each record at each party under each key.
func oneHashPerKey(pool *engine.Pool, n, parties, sketches int) []Reference {
	limits := kernels.MeasureLimits()
	seconds := limits.AESSeconds(float64(n) * float64(parties) * float64(sketches) / 2 / float64(pool.Workers()))
	if seconds == 0 {
		return nil
	}
	return []Reference{{Name: "a hash for each key, AES alone", Kind: Limit, Value: Number(seconds * 1e9)}}
}

// timeLarge runs the whole protocol once on n records and reports the time of
// each phase and the memory that the process got from the system.
func timeLarge(ctx context.Context, c *Case, n int) error {
	data, err := blobsOf(ctx, n, 8, 5)
	if err != nil {
		return err
	}
	rt := engine.NewRuntime(c.Env.Pool)
	j := sketchJob(data, nil, 2, 5, 1, 1)
	reset := resetPeakMemory() // what made the records is gone
	start, used := time.Now(), processTime()
	plan, err := j.Plan()
	if err != nil {
		return err
	}
	r, err := plan.Run(ctx, rt)
	if err != nil {
		return err
	}
	c.Durations("CPU time, by worker", []float64{float64(processTime()-used) / float64(c.Env.Pool.Workers())})
	goal := Reference{Name: "at most", Kind: Goal, Value: Number(400 * float64(n))}
	c.Durations("whole run", []float64{float64(time.Since(start))}, goal)
	for _, phase := range []string{"accumulate", "assign", "sketch", "weights", "search", "postprocess"} {
		var refs []Reference
		if phase == "sketch" {
			refs = oneHashPerKey(c.Env.Pool, n, 2, r.Details["sketches"].(int))
		}
		c.Durations(phase, []float64{float64(rt.Timings()[phase].TotalNS)}, refs...)
	}
	c.Number("sketches", Plain, float64(r.Details["sketches"].(int)))
	if peak := peakMemory(); reset && peak > 0 {
		c.Number("memory", Bytes, float64(peak), Reference{Name: "at most", Kind: Goal, Value: 1.5e9})
	}
	return nil
}

// idForms are forms of ids: one that is its own digest, one joined by a permutation, and
// one that is hashed for both.
var idForms = []struct{ name, format string }{
	{"9 digits", "%09d"}, {"14 characters", "user-%09d"}, {"36 characters", "%09d-4000-8000-0123456789abcdef01"},
}

// timeIDs times the join of two parties' records and what their ids cost the sketches.
func timeIDs(ctx context.Context, c *Case, n int, format string) error {
	data, err := blobsOf(ctx, n, 8, 5)
	if err != nil {
		return err
	}
	ids, shuffled := make([]string, n), make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf(format, i)
	}
	for i, at := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		shuffled[at] = ids[i]
	}
	var joins, used, with, without []float64
	for range c.Env.Reps(5, 2) {
		start, from := time.Now(), processTime()
		secret := sketch.Secret{1}
		digests := [][]sketch.Digest{sketch.JoinDigests(secret, ids), sketch.JoinDigests(secret, shuffled)}
		if _, _, err := sketch.MatchDigests(digests, false); err != nil {
			return err
		}
		joins = append(joins, float64(time.Since(start)))
		used = append(used, float64(processTime()-from)/float64(c.Env.Pool.Workers()))
		for _, named := range []bool{true, false} {
			j := sketchJob(data, nil, 2, 5, 1, 1)
			j.Sketches = sketch.DefaultSketches
			times := &without
			if named {
				j.IDs, times = ids, &with
			}
			rt := engine.NewRuntime(c.Env.Pool)
			if _, err := j.Exchange(ctx, rt); err != nil {
				return err
			}
			*times = append(*times, float64(rt.Timings()["sketch"].TotalNS))
		}
	}
	c.Durations("join of two parties", joins)
	c.Durations("CPU time of the join, by worker", used)
	c.Durations("sketches of both", with)
	c.Durations("of row numbers", without)
	return nil
}
