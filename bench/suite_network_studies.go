package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/study"
)

// studies runs every method together and apart: in one process, and with every role behind a
// connection of its own.
func (e *Env) studies(ctx context.Context) {
	set, err := generatedSet(ctx, "blobs", dataset.Generator{N: 5000, D: 4, K: 3, Separation: 6, Seed: 5})
	if err != nil {
		e.fail(err)
		return
	}
	for _, t := range study.Trials() {
		if e.Quick && t.Method == "ckks" {
			continue // seconds each
		}
		var options []string
		for name, value := range t.Options {
			options = append(options, name+" "+value)
		}
		slices.Sort(options)
		labels := []Label{L("method", t.Method), L("parties", t.Parties), L("options", strings.Join(options, ", "))}
		e.newCase(ctx, "studies", labels, func(ctx context.Context, c *Case) error { return c.study(ctx, t, set) })
	}
}

// nearest is the network by whose model the transfer of a trial's messages is told: each
// passes the coordinator's link on its way in and on its way out.
const nearest = "LAN1000"

// study measures a trial.
func (c *Case) study(ctx context.Context, t study.Trial, set *Set) error {
	r, err := t.Rehearse(set.Norm, 3)
	if err != nil {
		return err
	}
	var together, apart []time.Duration
	var comm engine.Comm
	same := 0
	for range c.Env.reps(3, 1) {
		one, all := newStopwatch(ctx, 1), newStopwatch(ctx, r.Roles())
		eng, err := engine.New(engine.WithObserver(one))
		if err != nil {
			return err
		}
		want, err := r.Together(ctx, eng)
		eng.Close()
		if err != nil {
			return err
		}
		results, err := rehearseApart(ctx, r, all)
		if err != nil {
			return err
		}
		same = 0
		for role, res := range results {
			switch {
			case res.Centroids == nil:
			case !slices.EqualFunc(res.Centroids, want.Centroids, slices.Equal):
				return fmt.Errorf("role %d has other centroids than one process", role+1)
			default:
				same++
			}
		}
		together, apart, comm = append(together, one.took()), append(apart, all.took()), want.Comm
	}
	lan, err := FindNetwork(nearest)
	if err != nil {
		return err
	}
	bytes := Traffic(comm)
	transfer := lan.Cost(comm.Rounds, bytes)
	c.durations("in one process", each(together))
	c.durations("apart", each(apart))
	c.number("apart to one process", "", float64(middle(apart))/float64(middle(together)))
	c.number("messages", unitBytes, float64(bytes))
	c.number("their transfer by "+nearest, unitNanoseconds, float64(transfer))
	c.number("apart to one process with it", "", float64(middle(apart))/float64(middle(together)+transfer))
	c.number("roles with its bits", "", float64(same))
	return nil
}

// rehearseApart runs all roles of a study, in whose time gathering does not count.
func rehearseApart(ctx context.Context, r *study.Rehearsal, watch *stopwatch) (results []*engine.Result, err error) {
	dir, err := memoryDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	engines := make([]*engine.Engine, r.Roles())
	for i := range engines {
		if engines[i], err = engine.New(engine.WithObserver(watch)); err != nil {
			return nil, err
		}
		defer engines[i].Close()
	}
	return r.Apart(ctx, dir, func(role int) *engine.Engine { return engines[role] })
}

// gathering is how long roles wait for each other at most.
const gathering = 20 * time.Second

// stopwatch is an observer of the time of a job whose roles run apart: they wait for each
// other before they begin.
type stopwatch struct {
	done  <-chan struct{} // nobody waits any more
	mu    sync.Mutex
	roles int           // that have not begun
	all   chan struct{} // closed when all have
	begun time.Time
	end   time.Time
}

func newStopwatch(ctx context.Context, roles int) *stopwatch {
	return &stopwatch{done: ctx.Done(), roles: roles, all: make(chan struct{})}
}

func (s *stopwatch) took() time.Duration { return s.end.Sub(s.begun) }

// JobBegin implements engine.Observer.
func (s *stopwatch) JobBegin(engine.JobInfo) {
	s.mu.Lock()
	if s.roles--; s.roles == 0 {
		s.begun = time.Now()
		close(s.all)
	}
	s.mu.Unlock()
	select {
	case <-s.all:
	case <-s.done:
	case <-time.After(gathering): // one of them has failed before
	}
}

// JobEnd implements engine.Observer.
func (s *stopwatch) JobEnd(*engine.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = time.Now()
}

// PhaseBegin implements engine.Observer.
func (s *stopwatch) PhaseBegin(engine.Span) {}

// PhaseEnd implements engine.Observer.
func (s *stopwatch) PhaseEnd(engine.Span) {}

// IterationEnd implements engine.Observer.
func (s *stopwatch) IterationEnd(engine.Iteration) {}
