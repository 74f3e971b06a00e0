package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/flow/instance"
	"github.com/cohort-engine/cohort/flow/lemon"
)

func flowSuites() []Suite {
	return []Suite{{
		Name: "flow", Group: groupPerformance, Title: "Size-constrained assignment",
		About: "One exact assignment with sizes within a factor 1.25 of the mean, costs included, on one thread. " +
			"Centroids: random in the box (bad) or three Lloyd steps later (good). Cold: without prices; warm, second and " +
			"sixth: that size-constrained Lloyd step with the prices of the one before. The ratio is LEMON's best algorithm, " +
			"build and solve, given its costs, over ours: on one thread before and after ours in the same run where there are " +
			"g++ and liblemon-dev (make peers installs them; not in a quick run), else stored figures of another machine. " +
			"Families against LEMON: the same on data that assigners are slow on, where LEMON is installed. " +
			"Families: all workers; data and bounds on which assigners are slow, each beside the plain mixture of the same n " +
			"and k in the same run, and beside the time of the former solver; kept a record beside them: what the solver " +
			"keeps between solves, moves between clusters left out. Growth: the same on generated mixtures; the " +
			"exponent is the slope of log time over log size. The limit of a speed-up is what assignments that have nothing " +
			"in common gain beside its laps: less than 1.6 while two processors of a virtual machine share a core.",
		Needs: []string{"s1", "birch2_25k", "adult"},
		Figures: []Figure{
			{Table: "against n", Title: "Cold assignment by number of points, k=50", X: "n", Y: "one worker",
				Series: []string{"d"}, LogX: true, LogY: true},
			{Table: "against k", Title: "Cold assignment by number of clusters, n=100000", X: "k", Y: "one worker",
				Series: []string{"d"}, LogX: true, LogY: true},
		},
		Run: runFlow,
	}}
}

// lemonSets are the sets of the comparison, with stored figures of LEMON's best algorithm,
// build and solve, in milliseconds: cost scaling on adult (bad), blobs50k and blobs5k
// (bad), network simplex elsewhere. cold and warm are the least ratios to ours that are wanted.
var lemonSets = []struct {
	name, set  string
	k          int
	bad, good  float64
	cold, warm float64
}{
	{"adult", "adult", 3, 170, 27.3, 600, 800},
	{"blobs50k", "", 5, 549, 565, 1500, 1500},
	{"s1", "s1", 15, 4.81, 4.89, 40, 80},
	{"birch2", "birch2_25k", 100, 360, 326, 120, 120},
	{"blobs5k", "", 5, 13.2, 9.68, 0, 0},
}

const (
	lemonStored = "stored: one core of the reference machine"
	lemonHere   = "run here before and after ours, CPU time of one thread"
)

// againstLEMON measures the sets and the adversarial families of the comparison.
func againstLEMON(ctx context.Context, e *Env) {
	var program *lemon.Program
	if !e.Quick {
		var err error
		if program, err = lemon.Build(ctx, "-O3", "-march=native"); err != nil && !errors.Is(err, lemon.ErrMissing) {
			e.fail(err)
			return
		}
		defer program.Close()
	}
	for _, in := range lemonSets {
		for _, start := range []struct {
			name  string
			steps int
			lemon float64
		}{{"bad", 0, in.bad}, {"good", 3, in.good}} {
			labels := []Label{L("set", in.name), L("centroids", start.name)}
			e.newCase(ctx, "against LEMON", labels, func(ctx context.Context, c *Case) error {
				set, err := flowSet(ctx, e, in.name, in.set, in.k)
				if err != nil {
					return err
				}
				other := &lemonTimes{program: program, stored: start.lemon * 1e6}
				if start.name == "bad" {
					other.cold, other.warm = in.cold, in.warm
				}
				return c.assign(ctx, set, set.Centroids(start.steps), other)
			})
		}
	}
	familiesAgainstLEMON(ctx, e, program)
}

// lemonTimes are LEMON's nanoseconds on one problem.
type lemonTimes struct {
	program    *lemon.Program // nil: the stored figure stands for it
	samples    []float64
	stored     float64
	cold, warm float64 // the least ratios to ours that are wanted, 0 if none
}

// take solves the problem some times and holds our optimum against LEMON's.
func (l *lemonTimes) take(ctx context.Context, p *flow.Problem, ours flow.Sum) error {
	if l.program == nil {
		return nil
	}
	for range 3 {
		s, err := l.program.Solve(ctx, p)
		if err != nil {
			return err
		}
		if (flow.Sum{Lo: s.Simplex}) != ours || s.Simplex != s.Scaling {
			return fmt.Errorf("bench: flow: our optimum is %v, LEMON's are %d and %d", ours, s.Simplex, s.Scaling)
		}
		l.samples = append(l.samples, float64(s.Time))
	}
	return nil
}

// reference is the median, or the stored figure.
func (l *lemonTimes) reference() Reference {
	if l.samples == nil {
		return Reference{Name: "LEMON", Kind: kindPublished, Value: Number(l.stored), Source: lemonStored}
	}
	return Reference{Name: "LEMON", Kind: kindPeer, Source: lemonHere,
		Value: summarise("", unitNanoseconds, l.samples).Median}
}

func runFlow(ctx context.Context, e *Env) {
	againstLEMON(ctx, e)
	flowFamilies(ctx, e)
	millionPoints(ctx, e)
	sizes := []int{10000, 31623, 100000, 316228, 1000000}
	counts := []int{2, 5, 10, 20, 50, 100, 200}
	if e.Quick {
		sizes, counts = sizes[:3], []int{2, 10, 50, 200}
	}
	for _, n := range sizes {
		growth(ctx, e, "against n", n, 4, 50, L("n", n))
	}
	for _, k := range counts {
		n := 100000
		if e.Quick {
			n = 20000
		}
		growth(ctx, e, "against k", n, 4, k, L("k", k))
	}
	e.fit("against n", "n", "one worker", "d")
	e.fit("against k", "k", "one worker", "d")
}

// flowSet makes half of a public set, or blobs where there is none.
func flowSet(ctx context.Context, e *Env, name, file string, k int) (*instance.Set, error) {
	switch {
	case file != "":
		t, err := e.sets.Table(ctx, file)
		if err != nil {
			return nil, err
		}
		return instance.Half(name, t.Rows, t.N, t.D, k), nil
	case name == "blobs50k":
		return instance.Blobs(name, 50000), nil
	}
	return instance.Blobs(name, 5000), nil
}

// assign measures one instance, cold and warm, and its ratios to LEMON's time.
func (c *Case) assign(ctx context.Context, set *instance.Set, centroids []float64, other *lemonTimes) error {
	before := set.Problem(centroids)
	var res flow.Result
	if err := flow.NewSolver().Solve(ctx, nil, before, &res); err != nil {
		return err
	}
	if err := flow.Verify(before, &res); err != nil {
		return err
	}
	optimum := flow.Distance(before, &res)
	if err := other.take(ctx, before, optimum); err != nil {
		return err
	}
	// The Lloyd steps that follow, each with the prices of the one before.
	steps := map[int]*flow.Problem{}
	prices := map[int][]int64{}
	for step := 2; step <= 6; step++ {
		prices[step], steps[step] = slices.Clone(res.Prices), set.Problem(set.Means(&res))
		if err := flow.NewSolver().Solve(ctx, nil, steps[step], &res); err != nil {
			return err
		}
	}
	cold, warm := flow.NewSolver(), flow.NewSolver()
	var failed error
	solve := func(s *flow.Solver, p *flow.Problem) {
		if err := s.Solve(ctx, nil, p, &res); err != nil {
			failed = err
		}
	}
	err := c.compare(ctx, []Timed{
		{Name: "cold", Fn: func() { cold.Forget(); solve(cold, before) }},
		{Name: "warm, second", Fn: func() { warm.StartFrom(prices[2]); solve(warm, steps[2]) }},
		{Name: "warm, sixth", Fn: func() { warm.StartFrom(prices[6]); solve(warm, steps[6]) }},
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if err := other.take(ctx, before, optimum); err != nil {
		return err
	}
	ref := other.reference()
	c.Row.value("cold").References = append(c.Row.value("cold").References, ref)
	theirs := float64(ref.Value)
	want := func(ratio float64) []Reference {
		if ratio == 0 {
			return nil
		}
		return []Reference{{Name: "at least", Kind: kindGoal, Value: Number(ratio)}}
	}
	c.number("LEMON over cold", unitPlain, theirs/c.Row.value("cold").shown(), want(other.cold)...)
	c.number("over second", unitPlain, theirs/c.Row.value("warm, second").shown(), want(other.warm)...)
	c.number("over sixth", unitPlain, theirs/c.Row.value("warm, sixth").shown(), want(other.warm)...)
	cold.Forget()
	solve(cold, before)
	c.number("paths", unitPlain, float64(res.Stats.Paths))
	c.number("free points", unitPlain, float64(res.Stats.Free))
	return failed
}

// growth measures a generated instance with one worker and with all.
func growth(ctx context.Context, e *Env, table string, n, d, k int, label Label) {
	e.newCase(ctx, table, []Label{label, L("d", d)}, func(ctx context.Context, c *Case) error {
		set := instance.Mixture("mixture", n, d, k)
		return c.workers(ctx, set.Problem(set.Centroids(0)))
	})
}

// millionPoints measures 10^6 points in 150 dimensions, 50 clusters, sizes from
// half to twice the mean.
func millionPoints(ctx context.Context, e *Env) {
	const n, d, k = 1000000, 150, 50
	rows := n
	if e.Quick {
		rows = n / 20
	}
	e.newCase(ctx, "large", []Label{L("n", rows), L("d", d), L("k", k)}, func(ctx context.Context, c *Case) error {
		set := instance.Mixture("mixture", rows, d, k)
		mean := float64(rows) / k
		p := set.Bounded(set.Centroids(0), int(math.Ceil(mean/2)), int(2*mean))
		set.Rows = nil
		return c.workers(ctx, p, Reference{Name: "at most", Kind: kindGoal, Value: 30e9})
	})
}

// workers measures a cold assignment with one worker and with all, which are not
// pinned, and beside each lap what all workers make of assignments that have nothing in common: the
// processors of a virtual machine may share one core for some tenths of a second.
func (c *Case) workers(ctx context.Context, p *flow.Problem, refs ...Reference) error {
	one, all := flow.NewSolver(), flow.NewSolver()
	var res flow.Result
	apart := newApart(c.Env)
	reps, begun := c.Env.reps(10, 3), time.Now()
	var times [2][]float64
	var limit []float64
	for rep := 0; rep <= reps || !c.Env.Quick && time.Since(begun) < 2*minDuration; rep++ {
		for i, s := range []*flow.Solver{one, all} {
			run := flow.Runner(c.Env.Single)
			if i == 1 {
				run = c.Env.Pool
			}
			s.Forget()
			took, err := timeSolve(ctx, run, s, p, &res)
			if err != nil {
				return err
			}
			if rep > 0 {
				times[i] = append(times[i], took)
			}
		}
		gain, err := apart.gain(ctx)
		if err != nil {
			return err
		}
		limit = append(limit, gain)
	}
	c.durations("one worker", times[0], refs...)
	c.durations("all workers", times[1], refs...)
	bounds := []Reference{{Name: "assignments apart", Kind: kindLimit, Value: summarise("", unitPlain, limit).Median}}
	if p.Points.N >= 100000 && c.Env.Pool.Workers() == 2 {
		bounds = append(bounds, Reference{Name: "at least", Kind: kindGoal, Value: 1.6})
	}
	c.number("speed-up", unitPlain, c.Row.value("one worker").shown()/c.Row.value("all workers").shown(), bounds...)
	perCost := c.Row.value("one worker").shown() / (float64(p.Points.N) * float64(len(p.Lo)) * float64(p.Points.D))
	c.number("time per n*k*d", unitNanoseconds, perCost)
	c.number("paths", unitPlain, float64(res.Stats.Paths))
	return flow.Verify(p, &res)
}

// apart is assignments that have nothing in common, some for each worker.
type apart struct {
	env     *Env
	problem *flow.Problem
	solvers []flow.Solver
	results []flow.Result
}

func newApart(e *Env) *apart {
	set := instance.Mixture("mixture", 10000, 4, 50)
	workers := e.Pool.Workers()
	return &apart{e, set.Problem(set.Centroids(0)), make([]flow.Solver, workers), make([]flow.Result, workers)}
}

// gain returns how many times as long one worker takes for them as all do.
func (a *apart) gain(ctx context.Context) (float64, error) {
	var seconds [2]float64
	failed := make([]error, len(a.solvers))
	for i, pool := range []*engine.Pool{a.env.Single, a.env.Pool} {
		pool.Wake()
		from := time.Now()
		err := pool.Run(ctx, 2*len(a.solvers), func(worker, _ int) {
			a.solvers[worker].Forget()
			failed[worker] = cmp.Or(failed[worker], a.solvers[worker].Solve(ctx, nil, a.problem, &a.results[worker]))
		})
		if err = cmp.Or(err, errors.Join(failed...)); err != nil {
			return 0, err
		}
		seconds[i] = time.Since(from).Seconds()
	}
	return seconds[0] / seconds[1], nil
}
