package engine

import (
	"slices"
	"sync"
	"time"
)

// Runtime is what a job runs on: the pool, and the clock that times its phases.
type Runtime struct {
	pool      *Pool
	observers []Observer
	start     time.Time

	mu        sync.Mutex
	durations [phases][]int64 // nanoseconds
	spans     int             // room that a phase's first span takes
	room      []int64         // for the first spans of phases
	lastEnd   time.Duration
	last      time.Duration // end of the last span
}

func newRuntime(p *Pool, observers []Observer) *Runtime {
	return &Runtime{pool: p, observers: observers, start: time.Now()}
}

// NewRuntime returns a runtime on pool for code that drives a protocol step by
// step, such as tests, audits and benchmarks; jobs get theirs from Engine.Run.
func NewRuntime(pool *Pool, observers ...Observer) *Runtime { return newRuntime(pool, observers) }

// Pool returns the worker pool.
func (rt *Runtime) Pool() *Pool { return rt.pool }

// Reserve makes room for spans in each phase that has any, so that steady-state iterations
// do not allocate.
func (rt *Runtime) Reserve(spans int) {
	rt.mu.Lock()
	rt.spans, rt.room = spans, make([]int64, fewPhases*min(spans, fewSpans))
	rt.mu.Unlock()
}

const (
	// fewPhases is how many phases rounds have, and fewSpans how many spans of each have room from the beginning: of
	// more, the memory of a phase costs little beside them.
	fewPhases = 8
	fewSpans  = 64
)

// Begin starts a span; End ends it. Party is the party's index or Server.
// Spans of different parties may overlap.
func (rt *Runtime) Begin(p Phase, iteration, party int) Span {
	return rt.begin(p, iteration, party, time.Since(rt.start))
}

// Follow is Begin at the end of the last span of all, for roles that take turns, so that no span ends meanwhile: to
// look at the clock again would take as long as a phase of a small round.
func (rt *Runtime) Follow(p Phase, iteration, party int) Span {
	return rt.begin(p, iteration, party, rt.last)
}

func (rt *Runtime) begin(p Phase, iteration, party int, at time.Duration) Span {
	s := Span{Phase: p, Iteration: iteration, Party: party, Begin: at}
	for _, o := range rt.observers {
		o.PhaseBegin(s)
	}
	return s
}

// End ends a span begun by Begin and records its duration.
func (rt *Runtime) End(s Span) {
	s.End = time.Since(rt.start)
	rt.mu.Lock()
	d := rt.durations[s.Phase]
	switch {
	case d != nil:
	case len(rt.room) >= rt.spans:
		d, rt.room = rt.room[:0:rt.spans], rt.room[rt.spans:]
	default:
		d = make([]int64, 0, rt.spans)
	}
	rt.durations[s.Phase] = append(d, int64(s.End-s.Begin))
	rt.last = s.End
	rt.mu.Unlock()
	for _, o := range rt.observers {
		o.PhaseEnd(s)
	}
}

// Observed tells whether anybody watches the job.
func (rt *Runtime) Observed() bool { return len(rt.observers) > 0 }

// IterationEnd reports that iteration index of total (0 if unknown) has ended, and what
// everybody may see of it.
func (rt *Runtime) IterationEnd(index, total int, seen Seen) {
	if !rt.Observed() {
		return // reading the clock would be some percent of a small round
	}
	end := time.Since(rt.start)
	it := Iteration{Index: index, Total: total, Begin: rt.lastEnd, End: end, Seen: seen}
	rt.lastEnd = end
	for _, o := range rt.observers {
		o.IterationEnd(it)
	}
}

// Timings summarises the spans recorded so far, keyed by phase name.
func (rt *Runtime) Timings() map[string]Timing {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	t := make(map[string]Timing)
	for p := range rt.durations {
		if len(rt.durations[p]) > 0 {
			slices.Sort(rt.durations[p])
			t[Phase(p).String()] = summarise(rt.durations[p])
		}
	}
	return t
}

// Timing summarises the durations of one phase, in nanoseconds. Percentiles
// are by nearest rank.
type Timing struct {
	Count   int   `json:"count"`
	TotalNS int64 `json:"total_ns"`
	P50NS   int64 `json:"p50_ns"`
	P90NS   int64 `json:"p90_ns"`
	P99NS   int64 `json:"p99_ns"`
	MaxNS   int64 `json:"max_ns"`
}

// Summarise returns count, total and percentiles of durations in nanoseconds.
// It panics if there are none.
func Summarise(durations []int64) Timing {
	d := slices.Clone(durations)
	slices.Sort(d)
	return summarise(d)
}

// summarise is Summarise of what is sorted.
func summarise(d []int64) Timing {
	t := Timing{Count: len(d), MaxNS: d[len(d)-1]}
	for _, x := range d {
		t.TotalNS += x
	}
	rank := func(percent int) int64 { return d[(len(d)*percent+99)/100-1] }
	t.P50NS, t.P90NS, t.P99NS = rank(50), rank(90), rank(99)
	return t
}
