package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/cohort-engine/cohort/internal/fault"
)

// MaxWorkers is the largest number of workers an engine accepts.
const MaxWorkers = 1024

// Job is one clustering task: a plain struct of a protocol package. A job
// belongs to one Run at a time; it may be run again.
type Job interface {
	// Plan checks every field before any record is touched and works out what a run
	// will do. Its error names the field, the value and the allowed range.
	Plan() (Plan, error)
}

// Plan is a job that has been checked. It does not change; it may be run again.
type Plan interface {
	// Run does the work on rt's pool. It returns ctx.Err() within one shard of
	// work after ctx is cancelled.
	Run(ctx context.Context, rt *Runtime) (*Result, error)
	// Info describes the job for observers; the engine fills in ID and Workers.
	Info() JobInfo
	// Outline says what Run would do, cost and reveal at most.
	Outline() (*Outline, error)
}

// Engine runs jobs on a fixed pool of workers. Its methods may be called from
// several goroutines: parallel regions of concurrent jobs take turns.
type Engine struct {
	pool      *Pool
	observers []Observer
	closed    atomic.Bool
	jobs      atomic.Int64 // begun so far
}

type config struct {
	workers   int
	observers []Observer
}

// Option configures an Engine.
type Option func(*config) error

// WithWorkers sets the number of workers, 1 to MaxWorkers. The default is
// runtime.GOMAXPROCS(0). Results do not depend on it.
func WithWorkers(n int) Option {
	return func(c *config) error {
		if n < 1 || n > MaxWorkers {
			return fault.Range("workers", n, fmt.Sprintf("1 to %d", MaxWorkers))
		}
		c.workers = n
		return nil
	}
}

// WithObserver adds an observer of everything the engine runs.
func WithObserver(o Observer) Option {
	return func(c *config) error {
		c.observers = append(c.observers, o)
		return nil
	}
}

// New returns an engine whose workers are running. Close releases them.
func New(options ...Option) (*Engine, error) {
	c := config{workers: min(runtime.GOMAXPROCS(0), MaxWorkers)}
	for _, o := range options {
		if err := o(&c); err != nil {
			return nil, fmt.Errorf("engine: %w", err)
		}
	}
	pool := NewPool(c.workers)
	for _, o := range c.observers {
		if w, ok := o.(RegionObserver); ok {
			pool.watchers = append(pool.watchers, w)
		}
		if w, ok := o.(ProgressObserver); ok {
			pool.progress = append(pool.progress, w)
		}
	}
	return &Engine{pool: pool, observers: c.observers}, nil
}

// Workers returns the number of workers.
func (e *Engine) Workers() int { return e.pool.Workers() }

// Pool returns the engine's worker pool.
func (e *Engine) Pool() *Pool { return e.pool }

// Close stops the workers and waits for them. Runs must have ended.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.pool.Close()
	return nil
}

// Run plans job, runs it and returns its result with the timings filled in. Further observers see this job
// alone: not what goes on within a region or a phase, which is the engine's own observers' to see.
func (e *Engine) Run(ctx context.Context, job Job, further ...Observer) (*Result, error) {
	switch {
	case e.closed.Load():
		return nil, fault.Request("engine", "is closed", "make a new one")
	case ctx == nil:
		return nil, fault.Request("context", "is nil", "give context.Background()")
	case job == nil:
		return nil, fault.Request("job", "is nil", "give one")
	}
	e.pool.Wake() // while the job is planned
	plan, err := job.Plan()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	observers := e.observers
	if further != nil {
		observers = slices.Concat(observers, further)
	}
	rt := newRuntime(e.pool, observers)
	info := plan.Info()
	info.ID, info.Workers = e.jobs.Add(1), e.pool.Workers()
	for _, o := range observers {
		o.JobBegin(info)
	}
	res, err := plan.Run(ctx, rt)
	if err == nil {
		res.Timings = rt.Timings()
		res.Version = Version
	}
	for _, o := range observers {
		o.JobEnd(res, err)
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}
