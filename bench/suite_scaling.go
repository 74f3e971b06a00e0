package bench

import (
	"context"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
)

func scalingSuites() []Suite {
	var figures []Figure
	for _, a := range axes {
		figures = append(figures, Figure{Table: a.table, Title: "Time by " + a.about, X: a.label, Y: "iteration",
			Series: []string{"method"}, LogX: true, LogY: true})
	}
	figures = append(figures, Figure{Table: "by n", Title: "Memory by number of points", X: "n", Y: "memory",
		Series: []string{"method"}, LogX: true, LogY: true})
	return []Suite{{
		Name: "scaling", Group: groupPerformance, Title: "How time and memory grow",
		About: "Median time of one iteration on generated blobs as one quantity grows and the others stay at n = 100000 " +
			"(20000 where d grows), d = 2, k = 10, two clients, all workers. The exponent is the slope of a straight line " +
			"through log time against log size: 1 is proportional. Memory is the largest resident set of the process during " +
			"the runs. Table 'more cores' takes the serial share and the memory traffic of an iteration on one core, predicts " +
			"2, 4, 8, 16 and 64 cores from them and the bandwidth measured in the same run, and compares 2 with the " +
			"measurement.",
		Figures: figures,
		Run:     runScaling,
	}}
}

// shape is an instance of the scaling suite.
type shape struct{ n, d, k, clients, workers int }

// axis is one quantity that grows.
type axis struct {
	table, label, about string
	set                 func(*shape, int)
	full, quick         []int
}

// scaledMethods are the methods that are scaled, in a quick run the first two.
var scaledMethods = []lloyd.Method{lloyd.Lloyd, lloyd.FastLloyd, lloyd.SuLloyd, lloyd.Relative}

var axes = []axis{
	{"by n", "n", "number of points", func(s *shape, v int) { s.n = v },
		[]int{10000, 30000, 100000, 300000, 1000000, 3000000, 10000000}, []int{10000, 100000, 1000000}},
	{"by d", "d", "number of dimensions", func(s *shape, v int) { s.d, s.n = v, 20000 },
		[]int{2, 4, 8, 16, 32, 64, 128, 256, 784}, []int{2, 16, 128}},
	{"by k", "k", "number of clusters", func(s *shape, v int) { s.k = v }, []int{2, 5, 10, 20, 50, 100, 200},
		[]int{2, 10, 50}},
	{"by clients", "clients", "number of clients", func(s *shape, v int) { s.clients = v }, []int{2, 4, 8, 16, 32, 64},
		[]int{2, 8, 64}},
	{"by workers", "workers", "number of workers", func(s *shape, v int) { s.workers = v }, nil, nil},
}

func runScaling(ctx context.Context, e *Env) {
	for _, a := range axes {
		values := a.full
		if e.Quick {
			values = a.quick
		}
		if a.label == "workers" {
			for w := 1; w < e.Pool.Workers(); w *= 2 {
				values = append(values, w)
			}
			values = append(values, e.Pool.Workers())
		}
		for _, m := range scaledMethods[:e.reps(len(scaledMethods), 2)] {
			for _, v := range values {
				s := shape{n: 100000, d: 2, k: 10, clients: clientsOf, workers: e.Pool.Workers()}
				a.set(&s, v)
				e.scale(ctx, a, m, s, v)
			}
		}
	}
	for _, a := range axes {
		e.fit(a.table, a.label, "iteration", "method")
	}
	runCores(ctx, e)
}

// scale times one shape.
func (e *Env) scale(ctx context.Context, a axis, m lloyd.Method, s shape, v int) {
	e.newCase(ctx, a.table, []Label{L("method", m), L(a.label, v)}, func(ctx context.Context, c *Case) error {
		set, err := blobsOf(ctx, s.n, s.d, s.k)
		if err != nil {
			return err
		}
		parts, err := set.parts(s.clients, 1)
		if err != nil {
			return err
		}
		watched := resetPeakMemory()
		var times iterationTimer
		eng, err := engine.New(engine.WithWorkers(s.workers), engine.WithObserver(&times))
		if err != nil {
			return err
		}
		defer eng.Close()
		var samples []float64
		for run := 0; run <= c.Env.reps(3, 1); run++ {
			seed := uint64(run)
			job := lloyd.Job{Method: m, Problem: protocol.Problem{K: s.k, Clients: parts, Seed: &seed,
				NoQuality: true, Iterations: c.Env.reps(7, 3), Calibration: claimedOf(m)}, Init: step.Sphere}
			if m.Private() {
				job.Budget = privacy.Budget{Epsilon: 1, Delta: -1}
			}
			if _, err := eng.Run(ctx, &job); err != nil {
				return err
			}
			if l := times.take(); run > 0 {
				samples = append(samples, nanoseconds(l)...)
			}
		}
		c.durations("iteration", samples)
		if watched {
			c.number("memory", unitBytes, float64(peakMemory()))
		}
		c.number("points", "/s", float64(s.n)/(c.Row.value("iteration").shown()/1e9))
		return nil
	})
}

// fit adds a row with the exponent of each series of a table: the slope of log
// value over log size. Two sizes at least are needed.
func (e *Env) fit(table, x, y, series string) {
	type line struct{ xs, ys []float64 }
	lines := make(map[string]*line)
	var order []string
	for i := range e.rows {
		r := &e.rows[i]
		v := r.value(y)
		if r.Table != table || v == nil || !(v.shown() > 0) {
			continue
		}
		name := r.label(series)
		if lines[name] == nil {
			lines[name] = new(line)
			order = append(order, name)
		}
		lines[name].xs = append(lines[name].xs, math.Log(chart.ParseNumber(r.label(x))))
		lines[name].ys = append(lines[name].ys, math.Log(v.shown()))
	}
	for _, name := range order {
		l := lines[name]
		if len(l.xs) < 2 {
			continue
		}
		offset, slope := stat.LinearRegression(l.xs, l.ys, nil, false)
		e.rows = append(e.rows, Row{Suite: e.suite.Name, Table: "fitted exponents", Quick: e.Quick,
			Labels: []Label{L("grows", x), L(series, name)}, Values: []Value{
				{Name: "exponent", Mean: Number(slope), Median: Number(slope), N: 1},
				{Name: "R²", Mean: Number(stat.RSquared(l.xs, l.ys, nil, offset, slope)), N: 1},
			}})
	}
}
