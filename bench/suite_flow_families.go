package bench

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/flow/instance"
	"github.com/cohort-engine/cohort/flow/lemon"
)

// family is a kind of data or bounds on which an assigner may be much slower than on
// the plain case.
type family struct {
	name string
	n, k int
	make func(n, k int) *flow.Problem
	// before is the stored time of the former solver on two workers, in seconds; 0
	// where it did not end within 40 s.
	before float64
	// within is the goal in seconds; 0 means ten times the plain case.
	within float64
	// memory is the goal in bytes, 0 if there is none.
	memory float64
	// adversarial is whether the family is held against LEMON, at fewer points.
	adversarial bool
}

func mixture(n, k int) *instance.Set { return instance.Mixture("mixture", n, 2, k) }

func equalSizes(make func(n, k int) *instance.Set) func(n, k int) *flow.Problem {
	return func(n, k int) *flow.Problem {
		s := make(n, k)
		return s.Equal(s.Centroids(0))
	}
}

func ofSet(make func(n, k int) *instance.Set) func(n, k int) *flow.Problem {
	return func(n, k int) *flow.Problem {
		s := make(n, k)
		return s.Problem(s.Centroids(0))
	}
}

// families are sizes within a factor 1.25 of the mean unless their name says
// otherwise.
func families() []family {
	line := func(n, k int) *instance.Set { return instance.Mixture("line", n, 1, k) }
	ball := func(n, k int) *instance.Set { return instance.Ball(n, k, 1e-3) }
	places := func(n, k int) *instance.Set { return instance.Places(n, 50, k) }
	lattice := func(n, k int) *instance.Set { return instance.Lattice(n, 12, k) }
	with := func(change func(p *flow.Problem)) func(n, k int) *flow.Problem {
		return func(n, k int) *flow.Problem {
			p := ofSet(mixture)(n, k)
			change(p)
			return p
		}
	}
	zipf := func(n, k int) *flow.Problem {
		s := instance.Mixture("mixture", n, 2, k)
		return s.Zipf(s.Centroids(0))
	}
	return []family{
		{"radius .5", 100000, 100, with(func(p *flow.Problem) { p.Radius, p.Total = .5, true }), .32, 0, 0, false},
		{"exclusivity 2", 100000, 100, with(func(p *flow.Problem) { p.Exclusivity = 2 }), 2.63, 0, 0, false},
		{"soft sizes", 100000, 100, with(func(p *flow.Problem) {
			p.Penalty = &flow.Penalty{Under: .1, Over: .1}
		}), 0, 0, 0, false},
		{"d = 1", 100000, 100, ofSet(line), 2.07, 0, 0, true},
		{"d = 1, equal sizes", 100000, 100, equalSizes(line), 7.18, 0, 0, true},
		{"99 % in a ball", 100000, 100, ofSet(ball), 6.24, 0, 0, true},
		{"99 % in a ball", 100000, 500, ofSet(ball), 0, 2, 0, false},
		{"50 places", 100000, 100, ofSet(places), 2.26, 0, 0, true},
		{"50 places, equal sizes", 1000000, 50, equalSizes(places), 0, 1, 0, false},
		{"coarse lattice, equal sizes", 100000, 100, equalSizes(lattice), 1, 0, 0, true},
		{"Zipf sizes", 100000, 500, zipf, 10.8, 1.5, 0, false},
		{"many clusters", 100000, 512, ofSet(mixture), .203, 0, 0, false},
		{"many clusters", 100000, 513, ofSet(mixture), 2.5, 0, 0, false},
		{"many clusters", 100000, 1000, ofSet(mixture), 2.84, .6, 150e6, false},
		{"many clusters", 1000000, 1000, ofSet(mixture), 0, 8, 0, false},
		{"many clusters", 100000, 4096, ofSet(mixture), 0, 0, 0, false},
	}
}

// flowFamilies measures each family beside the plain mixture of the same n and k in
// the plane.
func flowFamilies(ctx context.Context, e *Env) {
	for _, f := range families() {
		n := f.n
		if e.Quick {
			n, f.before, f.within = n/20, 0, 0
			if f.k > 500 {
				continue
			}
		}
		e.newCase(ctx, "families", []Label{L("family", f.name), L("n", n), L("k", f.k)},
			func(ctx context.Context, c *Case) error {
				return c.family(ctx, f, n)
			})
	}
}

// familiesAgainstLEMON measures the adversarial families at the size that LEMON's algorithms take seconds for, on
// one thread. Without LEMON there is nothing to measure.
func familiesAgainstLEMON(ctx context.Context, e *Env, program *lemon.Program) {
	const n, k, wanted = 20000, 100, 50
	if program == nil {
		return
	}
	for _, f := range families() {
		if !f.adversarial {
			continue
		}
		labels := []Label{L("family", f.name), L("n", n), L("k", k)}
		e.newCase(ctx, "families against LEMON", labels, func(ctx context.Context, c *Case) error {
			p, s := f.make(n, k), flow.NewSolver()
			var res flow.Result
			if err := s.Solve(ctx, nil, p, &res); err != nil {
				return err
			}
			if err := flow.Verify(p, &res); err != nil {
				return err
			}
			theirs := &lemonTimes{program: program}
			if err := theirs.take(ctx, p, flow.Distance(p, &res)); err != nil {
				return err
			}
			var failed error
			err := c.compare(ctx, []Timed{{Name: "cold", Fn: func() {
				s.Forget()
				if err := s.Solve(ctx, nil, p, &res); err != nil {
					failed = err
				}
			}}})
			if err = cmp.Or(err, failed); err != nil {
				return err
			}
			ref := theirs.reference()
			c.Row.value("cold").References = append(c.Row.value("cold").References, ref)
			c.number("LEMON over cold", unitPlain, float64(ref.Value)/c.Row.value("cold").shown(),
				Reference{Name: "at least", Kind: kindGoal, Value: wanted})
			return nil
		})
	}
}

func (c *Case) family(ctx context.Context, f family, n int) error {
	problems := []*flow.Problem{ofSet(mixture)(n, f.k), f.make(n, f.k)}
	var times [3][]float64 // plain, cold, warm
	var res flow.Result
	var memory, kept, arcs float64 // allocated; in use between the solves, and its part for moves between clusters
	for rep := range c.Env.reps(5, 2) {
		for i, p := range problems {
			s := flow.NewSolver()
			var before, after runtime.MemStats
			if rep == 0 {
				runtime.GC()
			}
			runtime.ReadMemStats(&before)
			took, err := timeSolve(ctx, c.Env.Pool, s, p, &res)
			if err != nil {
				return err
			}
			times[i] = append(times[i], took)
			runtime.ReadMemStats(&after)
			if i == 1 {
				memory = float64(after.TotalAlloc - before.TotalAlloc)
				if rep == 0 {
					arcs = float64(res.Stats.MoveBytes)
					runtime.GC()
					runtime.ReadMemStats(&after)
					kept = float64(after.HeapAlloc) - float64(before.HeapAlloc)
				}
				if took, err = timeSolve(ctx, c.Env.Pool, s, p, &res); err != nil {
					return err
				}
				times[2] = append(times[2], took)
			}
		}
		if rep > 0 && times[1][rep] > 5e9 {
			break
		}
	}
	var refs []Reference
	if f.before > 0 {
		refs = append(refs, Reference{Name: "today", Kind: kindPublished, Value: Number(f.before * 1e9),
			Source: "stored: two workers of the reference machine"})
	}
	c.durations("plain", times[0])
	within := f.within * 1e9
	if within == 0 {
		within = 10 * c.Row.value("plain").shown()
	}
	refs = append(refs, Reference{Name: "at most", Kind: kindGoal, Value: Number(within)})
	c.durations("cold", times[1], refs...)
	c.durations("warm", times[2])
	c.number("cold over plain", unitPlain, c.Row.value("cold").shown()/c.Row.value("plain").shown(),
		Reference{Name: "at most", Kind: kindGoal, Value: 10})
	var most []Reference
	if f.memory > 0 {
		most = append(most, Reference{Name: "at most", Kind: kindGoal, Value: Number(f.memory)})
	}
	c.number("memory", unitBytes, memory, most...)
	c.number("moves between clusters", unitBytes, arcs)
	c.number("kept a record beside them", unitBytes, (kept-arcs)/float64(n),
		Reference{Name: "at most", Kind: kindGoal, Value: 64})
	c.number("paths", unitPlain, float64(res.Stats.Paths))
	return flow.Verify(problems[1], &res)
}

// timeSolve solves p and returns the time it took in nanoseconds.
func timeSolve(ctx context.Context, run flow.Runner, s *flow.Solver, p *flow.Problem,
	res *flow.Result) (float64, error) {
	from := time.Now()
	err := s.Solve(ctx, run, p, res)
	return float64(time.Since(from).Nanoseconds()), err
}
