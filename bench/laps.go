package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/engine"
)

// Laps is an observer that records how long each iteration takes, from its first
// phase to its end: set-up before the first iteration and the evaluation after
// the last do not count.
type Laps struct {
	mu    sync.Mutex
	begun bool
	from  time.Duration
	laps  []float64
}

// JobBegin implements engine.Observer.
func (l *Laps) JobBegin(engine.JobInfo) {
	l.mu.Lock()
	l.begun = false
	l.mu.Unlock()
}

// PhaseBegin implements engine.Observer.
func (l *Laps) PhaseBegin(s engine.Span) {
	l.mu.Lock()
	if !l.begun {
		l.begun, l.from = true, s.Begin
	}
	l.mu.Unlock()
}

// PhaseEnd implements engine.Observer.
func (l *Laps) PhaseEnd(engine.Span) {}

// IterationEnd implements engine.Observer.
func (l *Laps) IterationEnd(it engine.Iteration) {
	l.mu.Lock()
	l.laps = append(l.laps, float64(it.End-l.from))
	l.begun = false
	l.mu.Unlock()
}

// JobEnd implements engine.Observer.
func (l *Laps) JobEnd(*engine.Result, error) {}

// Take returns the nanoseconds of the iterations since the last call.
func (l *Laps) Take() []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.laps
	l.laps = nil
	return out
}

// Iterations times the iterations of a job with one worker and with all of them,
// in turns; make builds the job of a run (its seed is the run's number). One run
// of each is warm-up. It adds the values "iteration" (all workers; refs belong to
// it) and "one worker", and returns the last result.
func (c *Case) Iterations(ctx context.Context, runs int, build func(run int) (engine.Job, error), refs ...Reference) (*engine.Result, error) {
	counts := []int{c.Env.Pool.Workers(), 1}
	if counts[0] == 1 {
		counts = counts[:1]
	}
	samples := make([][]float64, len(counts))
	var last *engine.Result
	engines := make([]*engine.Engine, len(counts))
	laps := make([]Laps, len(counts))
	for i, workers := range counts {
		var err error
		if engines[i], err = engine.New(engine.WithWorkers(workers), engine.WithObserver(&laps[i])); err != nil {
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
			job, err := build(run)
			if err != nil {
				return nil, err
			}
			res, err := engines[i].Run(ctx, job)
			if err != nil {
				return nil, err
			}
			if l := laps[i].Take(); run > 0 {
				samples[i] = append(samples[i], l...)
			}
			last = res
		}
		done = run
	}
	c.Durations("iteration", samples[0], refs...)
	if len(counts) > 1 {
		c.Durations("one worker", samples[1])
	}
	c.Row.Seeds = fmt.Sprintf("1..%d", done)
	return last, c.Row.keepLedger(last)
}
