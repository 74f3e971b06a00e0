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

// Planned is the job of a plan that was made already.
func Planned(plan Plan) Job { return planned{plan} }

type planned struct{ plan Plan }

// Plan implements Job.
func (p planned) Plan() (Plan, error) { return p.plan, nil }

// Engine runs jobs on a fixed pool of workers. Its methods may be called from
// several goroutines: parallel regions of concurrent jobs take turns.
type Engine struct {
	workers   int
	pool      *Pool
	observers []Observer
	closed    atomic.Bool
	jobs      atomic.Int64 // begun so far
}

// Option configures an Engine.
type Option func(*Engine) error

// WithWorkers sets the number of workers, 1 to MaxWorkers. The default is
// runtime.GOMAXPROCS(0). Results do not depend on it.
func WithWorkers(n int) Option {
	return func(e *Engine) error {
		if n < 1 || n > MaxWorkers {
			return fault.Range("workers", n, fmt.Sprintf("1 to %d", MaxWorkers))
		}
		e.workers = n
		return nil
	}
}

// WithObserver adds an observer of everything the engine runs.
func WithObserver(o Observer) Option {
	return func(e *Engine) error {
		e.observers = append(e.observers, o)
		return nil
	}
}

// New returns an engine whose workers are running. Close releases them.
func New(options ...Option) (*Engine, error) {
	e := &Engine{workers: min(runtime.GOMAXPROCS(0), MaxWorkers)}
	for _, o := range options {
		if err := o(e); err != nil {
			return nil, fmt.Errorf("engine: %w", err)
		}
	}
	e.pool = NewPool(e.workers)
	for _, o := range e.observers {
		if w, ok := o.(RegionObserver); ok {
			e.pool.watchers = append(e.pool.watchers, w)
		}
		if w, ok := o.(ProgressObserver); ok {
			e.pool.progress = append(e.pool.progress, w)
		}
	}
	return e, nil
}

// Workers returns the number of workers.
func (e *Engine) Workers() int { return e.workers }

// Pool returns the engine's worker pool.
func (e *Engine) Pool() *Pool { return e.pool }

// Close stops the workers and waits for them. Runs must have ended.
func (e *Engine) Close() error {
	if e == nil || e.pool == nil || e.closed.Swap(true) {
		return nil
	}
	e.pool.Close()
	return nil
}

// ErrNoContext is the refusal of no context.
var ErrNoContext = fault.Request("context", "is nil", "give context.Background()")

// Run plans job, runs it and returns its result with the timings filled in. Further observers see this job
// alone: not what goes on within a region or a phase, which is the engine's own observers' to see.
func (e *Engine) Run(ctx context.Context, job Job, further ...Observer) (*Result, error) {
	switch {
	case e == nil || e.pool == nil || e.closed.Load():
		return nil, fault.Request("engine", "is closed, or was not made by New", "make a new one")
	case ctx == nil:
		return nil, ErrNoContext
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
