package bench

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// Repetitions of a timed piece of code: a full run repeats until both have been
// reached, a quick run until either has.
const (
	minRepetitions = 10
	minDuration    = time.Second
	maxDuration    = 10 * time.Second
	quickDuration  = 300 * time.Millisecond
	maxSamples     = 100000
)

// time measures fn, the only one to be timed.
func (c *Case) time(ctx context.Context, name string, fn func(), refs ...Reference) error {
	return c.compare(ctx, []Timed{{Name: name, Fn: fn, Refs: refs}})
}

// Timed is a piece of code to be timed under a name.
type Timed struct {
	Name string
	Fn   func()
	Refs []Reference

	Least float64 // of its samples, in seconds, once it was measured
}

// compare measures several pieces of code that take turns, A B C A B C, so that
// they meet the same disturbances. Each is warmed up first. Code that is faster
// than a few microseconds is repeated within a sample. The thread is pinned to a
// core where the system allows it.
func (c *Case) compare(ctx context.Context, timed []Timed) error {
	unpin := pin()
	defer unpin()
	inner := make([]int, len(timed))
	for i, t := range timed {
		t.Fn() // the first call also pays for page faults and cold caches
		inner[i] = 1
		for {
			start := time.Now()
			for range inner[i] {
				t.Fn()
			}
			if d := time.Since(start); d > 20*time.Microsecond || inner[i] >= 1<<20 {
				break
			}
			inner[i] *= 4
		}
	}
	samples := make([][]float64, len(timed))
	runtime.GC()
	start := time.Now()
	for n := 0; n < maxSamples; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, t := range timed {
			from := time.Now()
			for range inner[i] {
				t.Fn()
			}
			samples[i] = append(samples[i], float64(time.Since(from).Nanoseconds())/float64(inner[i]))
		}
		spent, reps := time.Since(start), n+1
		if c.Env.Quick && (spent >= quickDuration || spent >= 20*time.Millisecond && reps >= 10*minRepetitions) && reps >= 3 {
			break
		}
		if !c.Env.Quick && (reps >= minRepetitions && spent >= minDuration || reps >= 3 && spent >= maxDuration) {
			break
		}
	}
	for i, t := range timed {
		timed[i].Least = slices.Min(samples[i]) / 1e9
		c.durations(t.Name, samples[i], t.Refs...)
	}
	return nil
}

// noiseFloor compares a fixed piece of work with itself, interleaved, and
// returns the relative difference of the two medians and the spread (99th
// percentile over median, minus 1).
func noiseFloor() (difference, spread float64) {
	data := make([]uint64, 1<<16)
	sink := uint64(1)
	work := func() {
		for i := range data {
			sink = sink*6364136223846793005 + data[i]
		}
		data[0] = sink
	}
	var a, b []float64
	work()
	for range 200 {
		for _, s := range []*[]float64{&a, &b} {
			start := time.Now()
			work()
			*s = append(*s, float64(time.Since(start).Nanoseconds()))
		}
	}
	va, vb := summarise("", "", a), summarise("", "", b)
	difference = float64(va.Median/vb.Median) - 1
	return max(difference, -difference), float64(max(va.P99/va.Median, vb.P99/vb.Median)) - 1
}
