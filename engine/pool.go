package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// spinRounds bounds the busy wait of an idle worker (and of a caller that waits
// for the last worker) before it blocks: about 100 microseconds. Iterations of
// small jobs follow each other within microseconds, and waking a blocked thread
// costs up to a hundred on a virtual machine.
const spinRounds = 40000

// Pool is a fixed set of workers that run parallel regions. The goroutine that
// calls Run is worker 0, so a pool of one worker starts no goroutine and a
// region of one index is a plain call.
type Pool struct {
	workers int
	spin    int        // busy waits before blocking
	mu      sync.Mutex // held during a parallel region
	wake    []chan struct{}
	done    chan struct{}
	exit    sync.WaitGroup

	// The region that runs now. epoch is incremented when it is set up;
	// pending counts the helpers that have not left it yet.
	epoch   atomic.Uint64
	pending atomic.Int32
	next    atomic.Int64
	stop    atomic.Bool
	closing atomic.Bool
	n       int64
	fn      func(worker, index int)
	cancel  <-chan struct{}
	failure atomic.Pointer[any]

	watchers []RegionObserver // set before the first region
}

// NewPool starts workers-1 goroutines. It panics if workers < 1.
func NewPool(workers int) *Pool {
	if workers < 1 {
		panic("engine: NewPool needs at least one worker")
	}
	p := &Pool{workers: workers, spin: spinRounds, wake: make([]chan struct{}, workers-1), done: make(chan struct{}, 1)}
	if workers > runtime.GOMAXPROCS(0) {
		p.spin = 0 // someone else needs the core
	}
	for i := range p.wake {
		p.wake[i] = make(chan struct{}, 1)
		p.exit.Add(1)
		go p.work(i+1, p.wake[i])
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
	p.epoch.Add(1)
	p.notify()
	p.exit.Wait()
}

// Run calls fn(worker, index) once for every index in [0, n), on all workers,
// and returns when all calls have returned. A worker runs one call at a time,
// so scratch memory indexed by worker needs no lock. Indices are handed out in
// increasing order; which worker gets which is not determined, so results must
// not depend on it. If ctx is cancelled no further index is started and Run
// returns ctx.Err(). fn must not call Run of the same pool; a panic in fn
// reaches the caller. Run allocates nothing.
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
	p.n, p.fn, p.cancel = int64(n), fn, cancel
	p.next.Store(0)
	p.stop.Store(false)
	p.pending.Store(int32(len(p.wake)))
	p.epoch.Add(1)
	p.notify()
	p.share(0)
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

// notify leaves a token for every helper. A helper that saw the epoch while it
// was spinning finds the token later, and goes back to waiting.
func (p *Pool) notify() {
	for _, c := range p.wake {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// share runs indices of the current region until none is left.
func (p *Pool) share(worker int) {
	p.enter(worker)
	defer p.leave(worker)
	defer func() {
		if r := recover(); r != nil {
			p.fail(r)
		}
	}()
	for {
		i := p.next.Add(1) - 1
		if i >= p.n {
			return
		}
		if cancelled(p.cancel) {
			p.stop.Store(true)
			return
		}
		p.fn(worker, int(i))
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

// await returns when every helper has left the region.
func (p *Pool) await() {
	for i := 0; i < p.spin; i++ {
		if p.pending.Load() == 0 {
			<-p.done
			return
		}
		if i%64 == 63 {
			runtime.Gosched()
		}
	}
	<-p.done
}

func (p *Pool) work(worker int, wake <-chan struct{}) {
	defer p.exit.Done()
	var seen uint64
	for {
		for i := 0; p.epoch.Load() == seen; i++ {
			if i < p.spin {
				if i%64 == 63 {
					runtime.Gosched()
				}
				continue
			}
			<-wake
		}
		seen++
		if p.closing.Load() {
			return
		}
		p.share(worker)
		if p.pending.Add(-1) == 0 {
			p.done <- struct{}{}
		}
	}
}

// fail keeps the first panic of the region for its caller and hands out no
// further index.
func (p *Pool) fail(r any) {
	p.failure.CompareAndSwap(nil, &r)
	p.next.Store(p.n)
}

func cancelled(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
