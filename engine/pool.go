package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// spinRounds bounds the busy wait of an idle worker (and of a caller that waits
// for the last worker) before it blocks: about a millisecond. Iterations of
// small jobs follow each other within microseconds, and waking a blocked thread
// costs up to a hundred on a virtual machine.
//
// spinYield is the number of rounds between two offers of the core to other goroutines, some 7 us. Two workers that
// offer theirs at the same time go on on each other's, away from their caches, and one that finds none goes to sleep:
// with an offer each 0.4 us a run of 257 regions met five of that.
const (
	spinRounds = 1 << 19
	spinYield  = 1 << 12
)

// Pool is a fixed set of workers that run parallel regions. The goroutine that
// calls Run is worker 0, so a pool of one worker starts no goroutine and a
// region of one index is a plain call.
//
// Where cores are far apart a cache line takes half a microsecond from one to another, so the lines of a region are
// few: what idle workers look at all the time lies apart from what changes before a region begins.
type Pool struct {
	workers int
	spin    int        // busy waits before blocking
	mu      sync.Mutex // held during a parallel region
	helpers []helper   // workers 1, 2, ...
	done    chan struct{}
	exit    sync.WaitGroup
	shares  []share // by worker
	solvers solvers

	watchers []RegionObserver   // set before the first region
	progress []ProgressObserver // likewise

	_ [linePair]byte
	// state is the number of the region, whether it takes no more helpers, whether its
	// caller has gone to sleep until the last of them leaves, and how many are in it.
	// The caller waits for those alone: a helper that wakes up when the work is done
	// has missed the region.
	state   atomic.Uint64
	closing atomic.Bool
	_       [linePair]byte

	fn      func(worker, index int)
	cancel  <-chan struct{}
	stop    atomic.Bool
	failure atomic.Pointer[any]
}

// linePair is the size of two cache lines: neighbouring ones may be fetched together.
const linePair = 128

// The parts of Pool.state.
const (
	stateHelpers = 1<<16 - 1 // mask of the number of helpers in the region
	stateShut    = 1 << 16   // no more helpers
	stateSleeps  = 1 << 17   // the caller does
	stateRegion  = 1 << 18   // one region
)

// helper is a worker beside callers.
type helper struct {
	// asleep is set before the helper looks at the state for a last time and sleeps. Who is awake gets no token from Run:
	// it costs a lock.
	asleep atomic.Bool
	wake   chan struct{}
	_      [linePair - 16]byte
}

// share is the run of indices that a worker begins with, on a cache line of its
// own.
type share struct {
	next, end int64 // within a region next is atomic; what is set before one waits for no other core
	_         [linePair - 16]byte
}

// NewPool starts workers-1 goroutines. It panics if workers < 1.
func NewPool(workers int) *Pool {
	if workers < 1 {
		panic("engine: NewPool needs at least one worker")
	}
	if workers > runtime.GOMAXPROCS(0) {
		return newPool(workers, 0) // someone else needs the core
	}
	return newPool(workers, spinRounds)
}

// newPool is NewPool with a number of busy waits before blocking.
func newPool(workers, spin int) *Pool {
	p := &Pool{workers: workers, spin: spin, helpers: make([]helper, workers-1), done: make(chan struct{}, 1),
		shares: make([]share, workers)}
	p.state.Store(stateShut)
	for i := range p.helpers {
		p.helpers[i].wake = make(chan struct{}, 1)
		p.exit.Add(1)
		go p.work(i+1, &p.helpers[i])
	}
	return p
}

// Workers returns the number of workers, the caller of Run included.
func (p *Pool) Workers() int { return p.workers }

// Close ends the workers and waits for them.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Swap(true) {
		return
	}
	p.Wake()
	p.exit.Wait()
}

// Wake wakes the workers for a region that is about to come, which spares its
// start the wait. Without one they soon go back to sleep.
func (p *Pool) Wake() {
	for i := range p.helpers {
		p.helpers[i].signal()
	}
}

// signal leaves a token for a helper, which has it wake up, or go on waiting when it would have gone to sleep.
func (h *helper) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Report tells observers that done of total parts of some long work are done. It may
// be called by several workers at once.
func (p *Pool) Report(what string, done, total int) {
	for _, o := range p.progress {
		o.Progress(what, done, total)
	}
}

// Run calls fn(worker, index) once for every index in [0, n), on all workers,
// and returns when all calls have returned. A worker runs one call at a time,
// so scratch memory indexed by worker needs no lock. Worker w begins with the
// w-th of equal runs of indices, so that in regions over the same data the data
// stay in its cache, and takes indices of others when it has none left; which
// worker gets which is not determined, so results must not depend on it. If ctx
// is cancelled no further index is started and Run returns ctx.Err(). fn must not
// call Run of the same pool; a panic in fn reaches the caller. Run allocates
// nothing.
func (p *Pool) Run(ctx context.Context, n int, fn func(worker, index int)) error {
	if n <= 0 {
		return ctx.Err()
	}
	cancel := ctx.Done()
	if p.workers == 1 || n == 1 {
		p.enter(0)
		defer p.leave(0)
		for i := range n {
			if cancelled(cancel) {
				return ctx.Err()
			}
			fn(0, i)
		}
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fn, p.cancel = fn, cancel
	each, more, from := n/p.workers, n%p.workers, 0
	for w := range p.shares {
		count := each
		if w < more {
			count++
		}
		p.shares[w].next = int64(from)
		from += count
		p.shares[w].end = int64(from)
	}
	if p.stop.Load() {
		p.stop.Store(false)
	}
	p.state.Store(p.state.Load()&^(stateShut|stateSleeps|stateHelpers) + stateRegion)
	for i := range p.helpers {
		if h := &p.helpers[i]; h.asleep.Load() {
			h.signal()
		}
	}
	p.take(0)
	p.await()
	p.fn, p.cancel = nil, nil
	if f := p.failure.Swap(nil); f != nil {
		panic(*f)
	}
	if p.stop.Load() {
		return ctx.Err()
	}
	return nil
}

// take runs indices of the current region until none is left: the worker's own
// ones, then those of the workers after it.
func (p *Pool) take(worker int) {
	defer func() { // what watchers panic with, too
		if r := recover(); r != nil {
			p.fail(r)
		}
	}()
	p.enter(worker)
	defer p.leave(worker)
	for i := range p.shares {
		s := &p.shares[(worker+i)%len(p.shares)]
		for atomic.LoadInt64(&s.next) < s.end {
			index := atomic.AddInt64(&s.next, 1) - 1
			if index >= s.end {
				break
			}
			if cancelled(p.cancel) {
				p.stop.Store(true)
				return
			}
			p.fn(worker, int(index))
		}
	}
}

func (p *Pool) enter(worker int) {
	for _, w := range p.watchers {
		w.RegionBegin(worker)
	}
}

func (p *Pool) leave(worker int) {
	for _, w := range p.watchers {
		w.RegionEnd(worker)
	}
}

// await lets no more helpers in and returns when those inside have left. The last
// one to leave sends a token to a caller that sleeps, and to no other: one that looked
// for a token a moment before it came would sleep, too, for some 60 us.
func (p *Pool) await() {
	if p.state.Or(stateShut)&stateHelpers == 0 {
		return
	}
	for i := 1; i <= p.spin; i++ {
		if p.state.Load()&stateHelpers == 0 {
			return
		}
		if i%spinYield == 0 {
			runtime.Gosched()
		}
	}
	if p.state.Or(stateSleeps)&stateHelpers > 0 {
		<-p.done
	}
}

func (p *Pool) work(worker int, h *helper) {
	defer p.exit.Done()
	seen := uint64(0)
	for idle := 0; !p.closing.Load(); idle++ {
		s := p.state.Load()
		if open(s, seen) {
			if !p.state.CompareAndSwap(s, s+1) {
				continue
			}
			p.take(worker)
			seen, idle = s/stateRegion, 0
			if s = p.state.Add(^uint64(0)); s&stateSleeps != 0 && s&stateHelpers == 0 {
				p.done <- struct{}{}
			}
		}
		switch {
		case idle >= p.spin:
			h.asleep.Store(true)
			if !open(p.state.Load(), seen) { // a caller who opens a region later sees who is asleep
				<-h.wake
			}
			h.asleep.Store(false)
			idle = 0
		case idle%spinYield == spinYield-1:
			runtime.Gosched()
		}
	}
}

// open tells whether a region takes helpers, other than the one seen.
func open(state, seen uint64) bool { return state&stateShut == 0 && state/stateRegion != seen }

// fail keeps the first panic of the region for its caller and hands out no
// further index.
func (p *Pool) fail(r any) {
	p.failure.CompareAndSwap(nil, &r)
	for w := range p.shares {
		atomic.StoreInt64(&p.shares[w].next, p.shares[w].end)
	}
}

func cancelled(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
