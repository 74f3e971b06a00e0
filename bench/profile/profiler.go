package profile

import (
	"context"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cohort-engine/cohort/engine"
)

// Span is a phase of one iteration done for one party.
type Span struct {
	engine.Span
	Counts [events]uint64 // of the CPU, when they are on
	Allocs uint64         // heap objects, when they are counted
}

// Stay is the time that a worker spent in one parallel region. Begin and End
// count from the start of the job.
type Stay struct {
	Worker     int
	Begin, End time.Duration
}

// Run is one job that was observed.
type Run struct {
	Spans      []Span
	Iterations []engine.Iteration
	Stays      []Stay
	Result     *engine.Result
}

// Options choose what is recorded besides times.
type Options struct {
	Labels   bool // pprof labels: phase, client, iteration (from 1)
	Regions  bool // runtime/trace regions
	Counters *Counters
	// Allocations counts heap objects in each phase. Counting stops the world, so
	// it belongs in a run whose times are not used.
	Allocations bool
	Workers     int // workers of the engine, for their stays; 0: all cores
}

// Profiler is an observer; see the package's description. It observes one job at
// a time.
type Profiler struct {
	options Options

	mu     sync.Mutex
	runs   []Run
	run    *Run
	open   []opened
	start  time.Time
	memory runtime.MemStats

	labels  atomic.Pointer[context.Context]
	workers []worker
}

// opened is a span that has not ended.
type opened struct {
	span   Span
	region *trace.Region
}

// worker is what one worker writes; padded, so that workers do not share lines.
type worker struct {
	stays []Stay
	begin time.Duration
	since time.Time
	_     [64]byte
}

// New returns a profiler.
func New(o Options) *Profiler {
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	p := &Profiler{options: o, workers: make([]worker, o.Workers)}
	for i := range p.workers {
		p.workers[i].stays = make([]Stay, 0, 1<<10)
	}
	return p
}

// Runs returns the jobs observed so far.
func (p *Profiler) Runs() []Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs
}

// Forget drops the jobs observed so far.
func (p *Profiler) Forget() {
	p.mu.Lock()
	p.runs, p.run = nil, nil
	p.mu.Unlock()
}

// JobBegin implements engine.Observer.
func (p *Profiler) JobBegin(engine.JobInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, Run{Spans: make([]Span, 0, 1<<10), Iterations: make([]engine.Iteration, 0, 64)})
	p.run = &p.runs[len(p.runs)-1]
	p.open = p.open[:0]
	p.start = time.Now()
	for i := range p.workers {
		p.workers[i].stays, p.workers[i].since = p.workers[i].stays[:0], p.start
	}
}

// PhaseBegin implements engine.Observer.
func (p *Profiler) PhaseBegin(s engine.Span) {
	o := opened{span: Span{Span: s}}
	if p.options.Labels {
		ctx := pprof.WithLabels(context.Background(), pprof.Labels("phase", s.Phase.String(), "client",
			clientLabel(s.Party), "iteration", strconv.Itoa(s.Iteration+1)))
		pprof.SetGoroutineLabels(ctx)
		p.labels.Store(&ctx)
	}
	if p.options.Regions {
		o.region = trace.StartRegion(context.Background(), s.Phase.String()+" "+party(s.Party))
	}
	p.mu.Lock()
	if p.options.Allocations {
		runtime.ReadMemStats(&p.memory)
		o.span.Allocs = p.memory.Mallocs
	}
	if p.options.Counters != nil {
		p.options.Counters.read(&o.span.Counts)
	}
	p.open = append(p.open, o)
	p.mu.Unlock()
}

// PhaseEnd implements engine.Observer.
func (p *Profiler) PhaseEnd(s engine.Span) {
	p.mu.Lock()
	var now [events]uint64
	var allocs uint64
	if p.options.Counters != nil {
		p.options.Counters.read(&now)
	}
	if p.options.Allocations {
		runtime.ReadMemStats(&p.memory)
		allocs = p.memory.Mallocs
	}
	var region *trace.Region
	for i := len(p.open) - 1; i >= 0; i-- {
		o := &p.open[i]
		if o.span.Phase != s.Phase || o.span.Iteration != s.Iteration || o.span.Party != s.Party {
			continue
		}
		region = o.region
		done := Span{Span: s, Allocs: allocs - o.span.Allocs}
		for e := range now {
			done.Counts[e] = now[e] - o.span.Counts[e]
		}
		p.run.Spans = append(p.run.Spans, done)
		p.open[i] = p.open[len(p.open)-1]
		p.open = p.open[:len(p.open)-1]
		break
	}
	p.mu.Unlock()
	if region != nil {
		region.End()
	}
	if p.options.Labels {
		p.labels.Store(nil)
		pprof.SetGoroutineLabels(context.Background())
	}
}

// IterationEnd implements engine.Observer.
func (p *Profiler) IterationEnd(it engine.Iteration) {
	p.mu.Lock()
	p.run.Iterations = append(p.run.Iterations, it)
	p.mu.Unlock()
}

// RegionBegin implements engine.RegionObserver.
func (p *Profiler) RegionBegin(index int) {
	if p.options.Labels && index > 0 {
		if ctx := p.labels.Load(); ctx != nil {
			pprof.SetGoroutineLabels(*ctx)
		}
	}
	w := &p.workers[index]
	w.begin = time.Since(w.since)
}

// RegionEnd implements engine.RegionObserver.
func (p *Profiler) RegionEnd(index int) {
	w := &p.workers[index]
	w.stays = append(w.stays, Stay{index, w.begin, time.Since(w.since)})
	if p.options.Labels && index > 0 {
		pprof.SetGoroutineLabels(context.Background())
	}
}

// JobEnd implements engine.Observer.
func (p *Profiler) JobEnd(res *engine.Result, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run.Result = res
	for i := range p.workers {
		p.run.Stays = append(p.run.Stays, p.workers[i].stays...)
	}
}

// clientLabel is the value of the label "client": its number from 1, or "server".
func clientLabel(index int) string {
	if index == engine.Server {
		return "server"
	}
	return strconv.Itoa(index + 1)
}

// party names the party of a span.
func party(index int) string {
	if index == engine.Server {
		return "server"
	}
	return "party " + strconv.Itoa(index+1)
}

// Count makes the profiler read counters around each phase of the jobs that
// follow.
func (p *Profiler) Count(c *Counters) {
	p.mu.Lock()
	p.options.Counters = c
	p.mu.Unlock()
}
