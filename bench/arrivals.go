package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
)

// arrivalShapes are the sizes at which the registers of clusters are made, and how
// many times faster than with a hash for each record and register they are to be.
var arrivalShapes = []struct {
	records, clusters int
	goal              float64
}{{100_000, 5, 50}, {1_000_000, 5, 200}, {20_000, 8, 0}, {10_000_000, 5, 300}}

const arrivalRegisters = 4096

// slowerGoals are how many times as long the kernels of the sketches are to take at most
// on lesser instruction sets than AVX-512.
var slowerGoals = map[string]float64{"avx2": 3, "generic": 60}

// runSketchKernels times the kernels of the sketches and of what is made of them.
func runSketchKernels(ctx context.Context, e *Env, limits kernels.Limits) {
	for _, shape := range arrivalShapes {
		n, clusters := shape.records, shape.clusters
		if e.Quick && n > 1_000_000 {
			continue
		}
		e.newCase(ctx, "arrivals", []Label{L("registers", arrivalRegisters), L("records", n), L("clusters", clusters),
			L("isa", kernels.ISA())}, func(ctx context.Context, c *Case) error {
			limits = limits.Best(kernels.MeasureLimits())
			return timeArrivals(ctx, c, limits, n, clusters, shape.goal)
		})
	}
	for _, shape := range [][3]int{{25, 7, 20}, {25, 3, 180}, {15, 8, 5}, {49, 13, 8}} {
		cells, tails, events := shape[0], shape[1], shape[2]
		e.newCase(ctx, "expectation maximisation", []Label{L("heads", cells), L("tails", tails), L("events", events),
			L("isa", kernels.ISA())}, func(ctx context.Context, c *Case) error {
			return timeEvents(ctx, c, cells, tails, events)
		})
	}
}

// arrivalTimer makes the registers of clusters of random digests, each until none is
// without an arrival.
type arrivalTimer struct {
	digests   [][16]byte
	clusters  int
	key       *kernels.ArrivalKey
	registers [][]float64 // by worker
	scratch   []kernels.ArrivalScratch
	states    []kernels.ArrivalState
}

func newArrivalTimer(n, clusters, workers int) *arrivalTimer {
	t := &arrivalTimer{digests: make([][16]byte, n), clusters: clusters, registers: make([][]float64, workers),
		scratch: make([]kernels.ArrivalScratch, workers), states: make([]kernels.ArrivalState, (n+clusters-1)/clusters)}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range t.digests {
		binary.LittleEndian.PutUint64(t.digests[i][:8], rng.Uint64())
		binary.LittleEndian.PutUint64(t.digests[i][8:], rng.Uint64())
	}
	t.key = kernels.NewArrivalKey(t.digests[0])
	for w := range t.registers {
		t.registers[w] = make([]float64, arrivalRegisters)
	}
	return t
}

// run makes the registers of all clusters, the records of each in so many parts.
func (t *arrivalTimer) run(ctx context.Context, pool *engine.Pool, parts int) error {
	n := len(t.digests)
	kept := make([]int, parts)
	for a := range t.clusters {
		digests := t.digests[a*n/t.clusters : (a+1)*n/t.clusters]
		for _, r := range t.registers {
			for j := range r {
				r[j] = math.Inf(1)
			}
		}
		bounds := func(i int) (lo, hi int) { return i * len(digests) / parts, (i + 1) * len(digests) / parts }
		reach := kernels.NewReach(float64(len(digests)), arrivalRegisters)
		horizon := reach.Limit + kernels.KeptReach/float64(len(digests))
		err := pool.Run(ctx, parts, func(worker, i int) {
			lo, hi := bounds(i)
			kept[i] = kernels.Arrivals(t.key, digests[lo:hi], 1, reach.Limit, horizon, t.registers[worker],
				t.states[lo:hi], &t.scratch[worker])
		})
		for err == nil && t.latest() > reach.Limit {
			reach.Extend()
			err = pool.Run(ctx, parts, func(worker, i int) {
				lo, _ := bounds(i)
				kernels.Continue(t.key, t.states[lo:lo+kept[i]], 1, reach.Limit, t.registers[worker], &t.scratch[worker])
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// latest brings the workers' registers together and returns the largest.
func (t *arrivalTimer) latest() float64 {
	all := t.registers[0]
	for _, r := range t.registers[1:] {
		for j, x := range r {
			all[j] = min(all[j], x)
		}
	}
	return slices.Max(all)
}

// timeArrivals times the registers of all clusters on one core and on all workers,
// beside the least time of AES for a hash, half a block, for each record and
// register, which the arrivals do without. Ratios are of best times, as that is one.
func timeArrivals(ctx context.Context, c *Case, limits kernels.Limits, n, clusters int, goal float64) error {
	pool := c.Env.Pool
	alone := engine.NewPool(1)
	defer alone.Close()
	single, timer := newArrivalTimer(n, clusters, 1), newArrivalTimer(n, clusters, pool.Workers())
	timer.digests, timer.states = single.digests, single.states
	const parts = 16
	var failed error
	onOne := func() time.Duration {
		start := time.Now()
		failed = errors.Join(failed, single.run(ctx, alone, 1))
		return time.Since(start)
	}
	one, all := math.Inf(1), math.Inf(1)
	ownUsed, allUsed := math.Inf(1), math.Inf(1) // CPU seconds
	timed := []Timed{{Name: "one core", Fn: func() {
		used := processTime()
		one = min(one, onOne().Seconds())
		ownUsed = min(ownUsed, (processTime() - used).Seconds())
	}}}
	if pool.Workers() > 1 {
		timed = append(timed, Timed{Name: "all workers", Fn: func() {
			start, used := time.Now(), processTime()
			failed = errors.Join(failed, timer.run(ctx, pool, parts))
			all = min(all, time.Since(start).Seconds())
			allUsed = min(allUsed, (processTime() - used).Seconds())
		}})
	}
	if err := c.compare(ctx, timed); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	c.durations("best of one core", []float64{one * 1e9})
	if pool.Workers() > 1 {
		var refs []Reference
		if n >= 1_000_000 && pool.Workers() == 2 {
			refs = atLeast(1.7)
		}
		c.number("all workers, times as fast", "x", one/all, refs...)
		c.number("all workers, of the CPU time of one", "x", allUsed/ownUsed)
	}
	if old := limits.AESSeconds(float64(n) * arrivalRegisters / 2); old > 0 {
		c.durations("a hash for each register, AES alone", []float64{old * 1e9})
		c.number("times as fast", "x", old/one, atLeast(goal)...)
	}
	if n <= 1_000_000 {
		return c.slowerPaths(one, slowerGoals, onOne)
	}
	return nil
}
