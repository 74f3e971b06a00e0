package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
			p.Rouse()
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
