package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/cohort-engine/cohort/bench/profile"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

// coreModel predicts an iteration on more cores from one on one: what is serial stays, the
// work on shards takes as many turns as the busiest core has shards, and the records
// cannot be read faster than memory gives them.
type coreModel struct {
	serial, parallel float64 // nanoseconds on one core
	shards           int
	bytes            float64 // that an iteration reads and writes in memory
	bandwidth        float64 // bytes per second, of all cores
}

func (m coreModel) iteration(cores int) float64 {
	turns := float64((m.shards+cores-1)/cores) / float64(m.shards)
	return m.serial + max(m.parallel*turns, m.bytes/m.bandwidth*1e9)
}

// regionTimer are times with the time that worker 0 spent in parallel regions in each.
type regionTimer struct {
	iterationTimer
	from   time.Time
	inside float64
	all    []float64
}

// RegionBegin implements engine.RegionObserver.
func (l *regionTimer) RegionBegin(worker int) {
	if worker == 0 {
		l.from = time.Now()
	}
}

// RegionEnd implements engine.RegionObserver.
func (l *regionTimer) RegionEnd(worker int) {
	if worker == 0 {
		l.inside += float64(time.Since(l.from))
	}
}

// PhaseBegin implements engine.Observer.
func (l *regionTimer) PhaseBegin(s engine.Span) {
	if !l.begun {
		l.inside = 0
	}
	l.iterationTimer.PhaseBegin(s)
}

// IterationEnd implements engine.Observer.
func (l *regionTimer) IterationEnd(it engine.Iteration) {
	l.all = append(l.all, l.inside)
	l.iterationTimer.IterationEnd(it)
}

// coreShapes are those for which more cores are predicted: records that leave the caches,
// and ones of much arithmetic.
var coreShapes = []struct{ n, d, k int }{{3000000, 2, 15}, {1000000, 16, 64}, {100000, 64, 256}}

// predictedCores are the numbers of cores that are predicted.
var predictedCores = []int{4, 8, 16, 64}

// runCores predicts more cores than there are, and two from one, which is compared with
// two.
func runCores(ctx context.Context, e *Env) {
	for _, s := range coreShapes {
		n := s.n
		if e.Quick {
			n /= 10
		}
		e.newCase(ctx, "more cores", []Label{L("n", n), L("d", s.d), L("k", s.k)},
			func(ctx context.Context, c *Case) error { return c.cores(ctx, n, s.d, s.k) })
	}
}

// cores measures one shape. The least of the iterations that look at all records counts,
// as other work on the machine only adds to it.
func (c *Case) cores(ctx context.Context, n, d, k int) error {
	set, err := blobsOf(ctx, n, d, k)
	if err != nil {
		return err
	}
	parts, err := set.parts(1, 1)
	if err != nil {
		return err
	}
	counts := []int{1, min(2, c.Env.Pool.Workers())}
	least := []float64{math.Inf(1), math.Inf(1)}
	model := coreModel{shards: len(engine.Shards(n, d)), bytes: float64(n) * float64(4*d+2)}
	for run := range c.Env.reps(5, 2) {
		for i, workers := range counts {
			var times regionTimer
			eng, err := engine.New(engine.WithWorkers(workers), engine.WithObserver(&times))
			if err != nil {
				return err
			}
			seed := uint64(run)
			_, err = eng.Run(ctx, &lloyd.Job{Method: lloyd.Lloyd, Problem: protocol.Problem{K: k, Clients: parts, Seed: &seed,
				NoQuality: true, Iterations: 5}, Init: step.Sphere})
			eng.Close()
			if err != nil {
				return err
			}
			for t, one := range times.take() {
				if one.Settled > 0 || one.NS >= least[i] {
					continue
				}
				least[i] = one.NS
				if i == 0 {
					model.parallel = min(times.all[t], one.NS)
					model.serial = one.NS - model.parallel
				}
			}
		}
	}
	limits, err := profile.MeasureLimits(ctx, c.Env.Pool)
	if err != nil {
		return err
	}
	model.bandwidth = limits.Bandwidth
	c.durations("one core", least[:1])
	c.number("serial", "%", 100*model.serial/least[0])
	c.number("memory traffic", unitBytes, model.bytes)
	c.number("bandwidth", "GB/s", model.bandwidth/1e9)
	if counts[1] == 2 {
		two := model.iteration(2)
		c.durations("two cores", least[1:])
		c.number("two cores, predicted", "ms", two/1e6)
		c.number("predicted, of measured", "%", 100*two/least[1])
	}
	for _, cores := range predictedCores {
		c.number(fmt.Sprintf("%d cores, predicted", cores), "x", least[0]/model.iteration(cores))
	}
	c.Row.Note = "the least of the iterations that look at all records counts; " +
		"bandwidth is this machine's, with all its cores"
	return nil
}
