package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/sketch"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

func verticalSuites() []Suite {
	return []Suite{{
		Name: "vertical", Group: groupPerformance, Title: "Vertical clustering by sketches",
		About: "Table server: the whole server phase, weights of the grid and k-means on it, at n = 20000 on the shapes " +
			"of Sketch-V's Table 1, whose time is for the weights alone. Table small: whole runs on mixgauss. Tables " +
			"sketches and large: the making of sketches (digests, grouping and phantoms included) and a whole run of two " +
			"parties, with the most memory that the process had meanwhile, records included, beside the least time of AES " +
			"for a hash of each record under each key on all workers. Table ids: two parties' records joined by ids in " +
			"another order, and the sketches of such records. Table parties: the loss of sketch and of ind-lap at epsilon 1 " +
			"over that of k-means on all columns (the best of ten starts), each by its own rules for the number of local " +
			"clusters; ind-lap lists the whole grid, and has none of more than a million cells. Sets are made of separated " +
			"clusters (6 deviations) or of hardly separated ones (3). Table skewed: the loss of sketch over that of " +
			"sketch-basic at epsilon 1 where most records lie close together: adult, and nine of ten records squeezed into " +
			"an eighth of the box.",
		Needs: []string{"mixgauss", "letter", "adult"},
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
	e.verticalLosses(ctx)
	e.skewedLosses(ctx)
	set, err := blobsOf(ctx, 20_000, 8, 5)
	if err != nil {
		e.fail(err)
		return
	}
	for _, parties := range []int{4, 2} {
		e.newCase(ctx, "small", []Label{L("set", "mixgauss"), L("parties", parties)},
			func(ctx context.Context, c *Case) error {
				return timeSmall(ctx, c, parties)
			})
	}
	for _, n := range []int{1_000_000, 10_000_000} {
		if e.Quick && n > 1_000_000 {
			continue
		}
		e.newCase(ctx, "large", []Label{L("n", n), L("parties", 2), L("d", 8)}, func(ctx context.Context, c *Case) error {
			return timeLarge(ctx, c, n)
		})
	}
	for _, form := range idForms {
		e.newCase(ctx, "ids", []Label{L("n", 1_000_000), L("ids", form.name)}, func(ctx context.Context, c *Case) error {
			return timeIDs(ctx, c, 1_000_000, form.format)
		})
	}
	e.newCase(ctx, "sketches", []Label{L("n", 100_000), L("parties", 2), L("M", 4096)}, timeSketches)
	counts := []int{4096, 2048}
	if e.Quick {
		counts = counts[:1]
	}
	for _, localK := range []int{8, 5} {
		for _, parties := range []int{4, 2} {
			for _, sketches := range counts {
				for _, estimator := range timedEstimators {
					shape := fmt.Sprintf("S=%d k'=%d M=%d", parties, localK, sketches)
					e.newCase(ctx, "server", []Label{L("shape", shape), L("estimator", estimator.name)},
						func(ctx context.Context, c *Case) error {
							j := sketchJob(set.Norm, nil, parties, 5, 1, 1)
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

// verticalCase is a set of a table of losses.
type verticalCase struct {
	name string
	d, k int
	set  func(context.Context) (*Set, error)
}

func (e *Env) namedCase(name string, d, k int) verticalCase {
	return verticalCase{fmt.Sprintf("%s k=%d", name, k), d, k,
		func(ctx context.Context) (*Set, error) { return e.set(ctx, name) }}
}

// verticalLosses is the table of losses by the number of parties.
func (e *Env) verticalLosses(ctx context.Context) {
	made := func(n, d, k int, separation float64) verticalCase {
		f := floorCase{n, d, k, separation, "blobs"}
		return verticalCase{fmt.Sprintf("n=%d d=%d k=%d sep=%g", n, d, k, separation), d, k, f.set}
	}
	for _, x := range []verticalCase{made(20000, 16, 10, 6), e.namedCase("letter", 16, 26), made(5000, 16, 5, 6),
		made(1000, 16, 5, 6), made(20000, 32, 26, 6), made(20000, 16, 10, 3),
		made(5000, 8, 20, 6), made(5000, 32, 20, 6), made(1000, 8, 5, 6), e.namedCase("letter", 16, 5),
		e.namedCase("adult", 6, 5)} {
		for _, parties := range []int{8, 16, 4, 2} {
			e.lossCase(ctx, "parties", x, parties, (*Case).verticalLoss)
		}
	}
}

// skewedLosses is the table of losses where most records lie close together.
func (e *Env) skewedLosses(ctx context.Context) {
	sets := []verticalCase{e.namedCase("adult", 6, 5), e.namedCase("adult", 6, 3)}
	for _, n := range []int{20000, 5000, 1000} {
		for _, d := range []int{16, 8} {
			f := floorCase{n, d, 5, 6, "corner"}
			sets = append(sets, verticalCase{fmt.Sprintf("corner n=%d d=%d k=5", n, d), d, 5, f.set})
		}
	}
	for _, x := range sets {
		for _, parties := range []int{4, 2} {
			e.lossCase(ctx, "skewed", x, parties, (*Case).skewedLoss)
		}
	}
}

// lossCase makes a case of a set that has a column for each party.
func (e *Env) lossCase(ctx context.Context, table string, x verticalCase, parties int,
	measure func(c *Case, ctx context.Context, s *Set, parties, k int) error) {
	if parties > x.d {
		return
	}
	e.newCase(ctx, table, []Label{L("set", x.name), L("parties", parties)}, func(ctx context.Context, c *Case) error {
		s, err := x.set(ctx)
		if err != nil {
			return err
		}
		return measure(c, ctx, s, parties, x.k)
	})
}

// verticalSamples are the losses of methods, each by its own rules for the number of local
// clusters, without ind-lap where it refuses the set; and the processor time of sketch by worker.
func (c *Case) verticalSamples(ctx context.Context, s *Set, parties, k int, methods ...string) (map[string][]float64,
	[]float64, error) {
	loss := make(map[string][]float64)
	var used []float64
	for run := 1; run <= c.Env.reps(20, 2); run++ {
		for _, method := range methods {
			j := sketchJob(s.Norm, nil, parties, k, 1, run)
			j.LocalK = sketch.LocalK{}
			editMethod(j, method)
			from := processTime()
			r, err := c.Env.Engine.Run(ctx, j)
			switch {
			case err == nil:
				loss[method] = append(loss[method], *r.NICV)
			case method != "ind-lap" || !fault.IsRequest(err):
				return nil, nil, err
			}
			if method == "sketch" {
				used = append(used, float64(processTime()-from)/float64(c.Env.Pool.Workers()))
			}
		}
	}
	return loss, used, nil
}

// verticalLoss records the losses of sketch and ind-lap over that of k-means on all columns.
func (c *Case) verticalLoss(ctx context.Context, s *Set, parties, k int) error {
	central, err := centralKMeans(ctx, c.Env.Engine, s, nil, k, 1)
	if err != nil {
		return err
	}
	loss, used, err := c.verticalSamples(ctx, s, parties, k, "sketch", "ind-lap")
	if err != nil {
		return err
	}
	for _, l := range loss {
		floats.Scale(1 / *central.NICV, l)
	}
	c.samples("sketch / k-means", unitPlain, loss["sketch"], atMost(1.5)...)
	if len(loss["ind-lap"]) > 0 {
		c.samples("ind-lap / k-means", unitPlain, loss["ind-lap"])
		c.number("sketch / ind-lap", unitPlain, stat.Mean(loss["sketch"], nil)/stat.Mean(loss["ind-lap"], nil),
			atMost(1)...)
	}
	c.durations("CPU time of sketch, by worker", used)
	return nil
}

// skewedLoss records the losses of sketch and sketch-basic and the ratio of their means.
func (c *Case) skewedLoss(ctx context.Context, s *Set, parties, k int) error {
	loss, _, err := c.verticalSamples(ctx, s, parties, k, "sketch", "sketch-basic")
	if err != nil {
		return err
	}
	for _, method := range []string{"sketch", "sketch-basic"} {
		c.samples(method, unitPlain, loss[method])
	}
	c.number("sketch / sketch-basic", unitPlain, stat.Mean(loss["sketch"], nil)/stat.Mean(loss["sketch-basic"], nil),
		atMost(1.05)...)
	return nil
}

// timeSmall times whole runs on mixgauss without the quality of their result.
func timeSmall(ctx context.Context, c *Case, parties int) error {
	s, err := c.Env.set(ctx, "mixgauss")
	if err != nil {
		return err
	}
	var times, used []float64
	sketches := 0
	for run := range c.Env.reps(20, 5) + 1 {
		j := sketchJob(s.Norm, nil, parties, paperK, 1, run)
		j.NoQuality = true
		start, from := time.Now(), processTime()
		r, err := c.Env.Engine.Run(ctx, j)
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
		refs = atMost(150e6)
	}
	c.durations("whole run", times, append(refs, oneHashPerKey(c.Env.Pool, s.N, parties, sketches)...)...)
	c.durations("CPU time, by worker", used)
	c.number("sketches", unitPlain, float64(sketches))
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
	err = c.compare(ctx, []Timed{
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
	set, err := blobsOf(ctx, n, 8, 5)
	if err != nil {
		return err
	}
	var making []float64
	for run := range c.Env.reps(10, 3) + 1 {
		rt := engine.NewRuntime(c.Env.Pool)
		j := sketchJob(set.Norm, nil, parties, 5, 1, run)
		j.Sketches = sketches
		if _, err := j.Exchange(ctx, rt); err != nil {
			return err
		}
		if run > 0 { // the first warms up
			making = append(making, float64(rt.Timings()["sketch"].TotalNS))
		}
	}
	c.durations("making sketches", making, oneHashPerKey(c.Env.Pool, n, parties, sketches)...)
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
	return []Reference{{Name: "a hash for each key, AES alone", Kind: kindLimit, Value: Number(seconds * 1e9)}}
}

// timeLarge runs the whole protocol once on n records and reports the time of
// each phase and the memory that the process got from the system.
func timeLarge(ctx context.Context, c *Case, n int) error {
	set, err := blobsOf(ctx, n, 8, 5)
	if err != nil {
		return err
	}
	j := sketchJob(set.Norm, nil, 2, 5, 1, 1)
	reset := resetPeakMemory() // what made the records is gone
	var cpu, whole []float64
	var r *engine.Result
	for range c.Env.reps(3, 1) {
		runtime.GC() // no run pays for what others left
		start, used := time.Now(), processTime()
		if r, err = c.Env.Engine.Run(ctx, j); err != nil {
			return err
		}
		cpu = append(cpu, float64(processTime()-used)/float64(c.Env.Pool.Workers()))
		whole = append(whole, float64(time.Since(start)))
	}
	c.durations("CPU time, by worker", cpu)
	c.durations("whole run", whole, atMost(400*n)...)
	for _, phase := range []string{"accumulate", "assign", "sketch", "weights", "search", "postprocess"} {
		var refs []Reference
		if phase == "sketch" {
			refs = oneHashPerKey(c.Env.Pool, n, 2, r.Details["sketches"].(int))
		}
		c.durations(phase, []float64{float64(r.Timings[phase].TotalNS)}, refs...)
	}
	c.number("sketches", unitPlain, float64(r.Details["sketches"].(int)))
	if peak := peakMemory(); reset && peak > 0 {
		c.number("memory", unitBytes, float64(peak), atMost(1.5e9)...)
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
	set, err := blobsOf(ctx, n, 8, 5)
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
	for range c.Env.reps(5, 2) {
		start, from := time.Now(), processTime()
		secret := sketch.Secret{1}
		digests := [][]sketch.Digest{sketch.JoinDigests(secret, ids), sketch.JoinDigests(secret, shuffled)}
		if _, _, err := sketch.MatchDigests(digests, false); err != nil {
			return err
		}
		joins = append(joins, float64(time.Since(start)))
		used = append(used, float64(processTime()-from)/float64(c.Env.Pool.Workers()))
		for _, named := range []bool{true, false} {
			j := sketchJob(set.Norm, nil, 2, 5, 1, 1)
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
	c.durations("join of two parties", joins)
	c.durations("CPU time of the join, by worker", used)
	c.durations("sketches of both", with)
	c.durations("of row numbers", without)
	return nil
}
