package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/engine"
)

// iterationTimer is an observer that records how long each iteration takes, from the end of the one before, the first
// from its first phase: set-up before the first iteration and the evaluation after the last do not count.
type iterationTimer struct {
	mu      sync.Mutex
	begun   bool
	from    time.Duration
	settled int
	times   []iterationTime
}

// iterationTime is one iteration.
type iterationTime struct {
	NS float64
	// Settled is the number of records that the assignment left out.
	Settled int
}

// nanoseconds are those of times.
func nanoseconds(times []iterationTime) []float64 {
	ns := make([]float64, len(times))
	for i, l := range times {
		ns[i] = l.NS
	}
	return ns
}

// JobBegin implements engine.Observer.
func (l *iterationTimer) JobBegin(engine.JobInfo) {
	l.mu.Lock()
	l.begun = false
	l.mu.Unlock()
}

// PhaseBegin implements engine.Observer.
func (l *iterationTimer) PhaseBegin(s engine.Span) {
	l.mu.Lock()
	if !l.begun {
		l.begun, l.from, l.settled = true, s.Begin, 0
	}
	l.mu.Unlock()
}

// PhaseEnd implements engine.Observer.
func (l *iterationTimer) PhaseEnd(s engine.Span) {
	if s.Settled > 0 && s.Phase == engine.PhaseAssign {
		l.mu.Lock()
		l.settled += s.Settled
		l.mu.Unlock()
	}
}

// IterationEnd implements engine.Observer.
func (l *iterationTimer) IterationEnd(it engine.Iteration) {
	l.mu.Lock()
	l.times = append(l.times, iterationTime{NS: float64(it.End - l.from), Settled: l.settled})
	l.begun, l.from, l.settled = true, it.End, 0
	l.mu.Unlock()
}

// JobEnd implements engine.Observer.
func (l *iterationTimer) JobEnd(*engine.Result, error) {}

// take returns the iterations since the last call.
func (l *iterationTimer) take() []iterationTime {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.times
	l.times = nil
	return out
}

// allocated is the number of bytes allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// muchSetUp is the number of bytes of a set-up from which its garbage is collected
// before the run: iterations allocate nothing, but the collection that a set-up
// sets off would go on during the first ones. Small set-ups set off few, and to
// collect every time would empty the caches.
const muchSetUp = 128 << 10

// Values of rows that iterations adds.
const (
	iteration  = "iteration"
	allRecords = "all records" // iterations that left none out
)

// iterations times the iterations of a job with one worker and with all of them,
// in turns; make builds the job of a run (its seed is the run's number). One run
// of each is warm-up. It adds the values "iteration" (all workers) and "one worker",
// and returns the last result. A rival, if not nil, takes its turn after each run; its
// times stand beside both, stored ones beside the first. If there were iterations that
// left records out, because they could not have changed, it also adds the share left
// out and "all records", the iterations that left none out.
func (c *Case) iterations(ctx context.Context, runs int, build func(run int) (engine.Job, error),
	other *rival) (*engine.Result, error) {
	counts := []int{c.Env.Pool.Workers(), 1}
	if counts[0] == 1 {
		counts = counts[:1]
	}
	samples := make([][]iterationTime, len(counts))
	var last *engine.Result
	engines := make([]*engine.Engine, len(counts))
	times := make([]iterationTimer, len(counts))
	for i, workers := range counts {
		var err error
		if engines[i], err = engine.New(engine.WithWorkers(workers), engine.WithObserver(&times[i])); err != nil {
			return nil, err
		}
		defer engines[i].Close()
	}
	runtime.GC()
	start := time.Now()
	done := 0
	for run := 0; run <= runs; run++ {
		if c.Env.Quick && run > 2 && time.Since(start) > 3*time.Second {
			break
		}
		for i := range counts {
			before := allocated()
			job, err := build(run)
			if err != nil {
				return nil, err
			}
			if allocated()-before > muchSetUp {
				runtime.GC()
			}
			res, err := engines[i].Run(ctx, job)
			if err != nil {
				return nil, err
			}
			if l := times[i].take(); run > 0 {
				samples[i] = append(samples[i], l...)
			}
			last = res
		}
		if err := other.take(ctx, run, last); err != nil {
			return nil, cmp.Or(ctx.Err(), err) // a run that ends takes the rival along
		}
		done = run
	}
	refs := other.references()
	c.durations(iteration, nanoseconds(samples[0]), refs...)
	if len(counts) > 1 {
		if other.stored() {
			refs = nil // of another machine
		}
		c.durations("one worker", nanoseconds(samples[1]), refs...)
	}
	if other != nil && other.absent != "" {
		c.Row.Note = other.name + " does not run: " + other.absent
	}
	var whole []iterationTime
	settled := 0
	for _, l := range samples[0] {
		settled += l.Settled
		if l.Settled == 0 {
			whole = append(whole, l)
		}
	}
	if settled > 0 {
		c.durations(allRecords, nanoseconds(whole))
		c.number("left out", "%", 100*float64(settled)/(float64(last.N)*float64(len(samples[0]))))
	}
	c.Row.Seeds = fmt.Sprintf("1..%d", done)
	return last, c.Row.keepLedger(last)
}
