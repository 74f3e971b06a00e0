package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/flow"
)

func TestPoolRunsEveryIndexOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		p := NewPool(workers)
		for _, n := range []int{0, 1, 2, 7, 1000} {
			hits := make([]atomic.Int32, n)
			for range 50 {
				if err := p.Run(context.Background(), n, func(w, i int) {
					if w < 0 || w >= workers {
						t.Errorf("worker %d of %d", w, workers)
					}
					hits[i].Add(1)
				}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range hits {
				if got := hits[i].Load(); got != 50 {
					t.Fatalf("workers %d, n %d: index %d ran %d times in 50 regions", workers, n, i, got)
				}
			}
		}
		p.Close()
		p.Close()
	}
}

func TestPoolWakesBlockedWorkers(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for range 5 {
		time.Sleep(2 * time.Millisecond)
		var ran atomic.Int32
		if err := p.Run(context.Background(), 4, func(_, _ int) { ran.Add(1) }); err != nil || ran.Load() != 4 {
			t.Fatalf("ran %d of 4 indices, error %v", ran.Load(), err)
		}
	}
}

// Every worker begins with its own run of indices, so that data stay in its
// cache from region to region.
func TestPoolWorkersKeepTheirIndices(t *testing.T) {
	for _, workers := range []int{2, 5} {
		p := NewPool(workers)
		for range 20 {
			var inside sync.WaitGroup
			inside.Add(workers)
			first := make([]atomic.Bool, workers)
			if err := p.Run(context.Background(), 3*workers, func(w, i int) {
				if first[w].Swap(true) {
					return
				}
				if i != 3*w {
					t.Errorf("worker %d of %d begins with index %d", w, workers, i)
				}
				inside.Done()
				inside.Wait() // so that no one has time for the indices of others
			}); err != nil {
				t.Fatal(err)
			}
		}
		p.Close()
	}
}

// A worker that wakes up late joins the region that runs by then, or none.
func TestPoolRegionsAfterEachOther(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	for round := range 300 {
		if round%3 == 0 {
			time.Sleep(time.Millisecond)
		}
		if round%2 == 0 {
			p.Wake()
		}
		n := round%5 + 2
		hits := make([]int, n) // a lost or double index is also a data race
		if err := p.Run(context.Background(), n, func(_, i int) { hits[i]++ }); err != nil {
			t.Fatal(err)
		}
		for i, h := range hits {
			if h != 1 {
				t.Fatalf("round %d: index %d of %d ran %d times", round, i, n, h)
			}
		}
	}
}

// Callers and helpers that go to sleep at once, after a moment or hardly ever find each other: no worker begins its
// index before all have come.
func TestPoolSleepersWakeUp(t *testing.T) {
	const workers = 3
	for _, spin := range []int{0, 1, 20, 2000, spinRounds} {
		p := newPool(workers, spin)
		for round := range 200 {
			var inside sync.WaitGroup
			inside.Add(workers)
			if err := p.Run(t.Context(), workers, func(_, i int) {
				inside.Done()
				inside.Wait()
				if i == round%workers { // who leaves last, the caller or a helper
					time.Sleep(time.Duration(round%4) * 10 * time.Microsecond)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		p.Close()
	}
}

func TestPoolCancels(t *testing.T) {
	for _, workers := range []int{1, 2} {
		p := NewPool(workers)
		ctx, cancel := context.WithCancel(context.Background())
		var ran atomic.Int32
		err := p.Run(ctx, 1000, func(_, _ int) {
			if ran.Add(1) == 3 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("workers %d: error is %v", workers, err)
		}
		if got := ran.Load(); got > int32(2+2*workers) {
			t.Errorf("workers %d: %d indices ran after the third cancelled", workers, got)
		}
		p.Close()
	}
}

func TestPoolPassesPanicsOn(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = p.Run(context.Background(), 100, func(_, i int) {
			if i == 50 {
				panic("boom")
			}
		})
	}()
	var ran atomic.Int32
	if err := p.Run(context.Background(), 10, func(_, _ int) { ran.Add(1) }); err != nil || ran.Load() != 10 {
		t.Errorf("after a panic: ran %d of 10 indices, error %v", ran.Load(), err)
	}
}

// A panic of a watcher reaches the caller, on whatever worker it was.
func TestPoolPassesPanicsOfWatchersOn(t *testing.T) {
	for _, w := range []watcher{{begins: true}, {}} {
		p := NewPool(2)
		p.watchers = []RegionObserver{w}
		var found any
		for try := 0; try < 10_000 && found == nil; try++ { // of regions that the other worker may miss
			func() {
				defer func() { found = recover() }()
				_ = p.Run(context.Background(), 2, func(_, _ int) { time.Sleep(time.Millisecond) })
			}()
		}
		if found != "watcher" {
			t.Errorf("recovered %v", found)
		}
		p.watchers = nil
		var ran atomic.Int32
		if err := p.Run(context.Background(), 10, func(_, _ int) { ran.Add(1) }); err != nil || ran.Load() != 10 {
			t.Errorf("after a panic: ran %d of 10 indices, error %v", ran.Load(), err)
		}
		p.Close()
	}
}

// watcher panics on every worker but the caller, when a region begins or ends.
type watcher struct {
	Observer
	begins bool
}

func (w watcher) RegionBegin(worker int) {
	if w.begins && worker > 0 {
		panic("watcher")
	}
}

func (w watcher) RegionEnd(worker int) {
	if !w.begins && worker > 0 {
		panic("watcher")
	}
}

func TestPoolAllocatesNothing(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var sum atomic.Int64
	fn := func(_, i int) { sum.Add(int64(i)) }
	if a := testing.AllocsPerRun(100, func() { _ = p.Run(ctx, 64, fn) }); a != 0 {
		t.Errorf("a region allocates %v times", a)
	}
}

func BenchmarkPoolRegion(b *testing.B) {
	p := NewPool(2)
	defer p.Close()
	fn := func(_, _ int) {}
	for b.Loop() {
		_ = p.Run(context.Background(), 2, fn)
	}
}

// virtualTime lets the workers of a region take turns as they would at given speeds: a
// call ends when no other worker's call ends sooner.
type virtualTime struct {
	mu    sync.Mutex
	turn  sync.Cond
	cost  []float64 // by worker, of a call
	ends  []float64 // by worker, when its last call ends
	left  int       // calls that have not begun
	stuck bool
}

func (v *virtualTime) call(worker, _ int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left--
	v.ends[worker] += v.cost[worker]
	v.turn.Broadcast()
	for v.left > 0 && !v.stuck && v.ends[worker] > slices.Min(v.ends) {
		v.turn.Wait()
	}
}

// A worker that is three times as slow as the others, as an efficiency core is, takes so
// many shards fewer that a region loses less than 15 % to what all workers together could do.
func TestPoolSlowWorker(t *testing.T) {
	for _, shape := range []struct{ n, d, workers int }{{1000000, 2, 2}, {1000000, 16, 2}, {70000, 784, 2},
		{1000000, 16, 4}, {70000, 784, 8}} {
		shards := len(Shards(shape.n, shape.d))
		for slow := range shape.workers {
			v := &virtualTime{cost: make([]float64, shape.workers), ends: make([]float64, shape.workers), left: shards}
			v.turn.L = &v.mu
			speed := 0.0
			for w := range v.cost {
				v.cost[w] = 1
				if w == slow {
					v.cost[w] = 3
				}
				speed += 1 / v.cost[w]
			}
			p := NewPool(shape.workers)
			late := time.AfterFunc(20*time.Second, func() {
				v.mu.Lock()
				v.stuck = true
				v.mu.Unlock()
				v.turn.Broadcast()
			})
			err := p.Run(context.Background(), shards, v.call)
			late.Stop()
			p.Close()
			if err != nil || v.stuck {
				t.Fatalf("%+v, worker %d is slow: a worker had nothing to do while there was work: %v, %v", shape, slow,
					v.ends, err)
			}
			if ideal := float64(shards) / speed; slices.Max(v.ends) > 1.15*ideal {
				t.Errorf("%+v, worker %d is slow: %d shards take %v, ideally %.1f", shape, slow, shards, slices.Max(v.ends), ideal)
			}
		}
	}
}

// TestSolversAreKept takes a solver again, and a new one where none is idle.
func TestSolversAreKept(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	first := p.TakeSolver()
	first.Began = func(flow.Stage, int) {}
	if second := p.TakeSolver(); second == first {
		t.Error("two runs have one solver")
	}
	p.KeepSolver(first)
	if again := p.TakeSolver(); again != first || again.Began != nil {
		t.Errorf("a kept solver comes back as %p, was %p, with Began %t", again, first, again.Began != nil)
	}
	runtime.KeepAlive(first)
}
