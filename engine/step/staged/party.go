package staged

import (
	"context"
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// Party is one party's side of a run: its records, and what has been released so
// far, which all parties know.
type Party struct {
	*protocol.Party
	*Plan
	Records  *kernels.Panels
	Weights  Weights
	Released int // releases so far
}

// Program is a party's program: `run` on its own records, and its part of the
// quality of the result.
func (f *Plan) Program(own step.Records, run Run) protocol.Program {
	return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		party := &Party{Party: p, Plan: f, Records: own.Part.Points}
		if f.problem.Weighted() { // also of a party that has no records
			party.Weights = newWeights(own.Part.Weights, f.problem.MostWeight())
		}
		party, err := party.withTotal(ctx)
		if err != nil {
			return nil, err
		}
		o, err := run(ctx, party)
		if err == nil && o != nil {
			party.weigh(o)
		}
		if err == nil && f.quality != nil {
			o.Quality, err = f.quality.Measure(ctx, p, f.Rounds, own, o.Centroids)
		}
		return o, err
	}
}

// Run is what every party does with its own records.
type Run func(ctx context.Context, p *Party) (*protocol.Outcome, error)

// Does says what every party does, and that the coordinates of its centroids stay within
// [-limit, limit].
func (f *Plan) Does(limit float64, run Run) { f.limit, f.run = limit, run }

// finish plans what the result is measured by, and refuses what could not be run to its end.
func (f *Plan) finish() (engine.Plan, error) {
	if err := f.CheckNoise(); err != nil {
		return nil, err
	}
	if !f.problem.NoQuality {
		var err error
		if f.quality, err = step.PlanQuality(f.Plan, f.limit, f.problem.Labels); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Run implements engine.Plan.
func (f *Plan) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return f.Connect(ctx, rt, protocol.Options{Replay: f.problem.Replay})
}

// Connect implements protocol.Runner.
func (f *Plan) Connect(ctx context.Context, rt *engine.Runtime, options protocol.Options) (*engine.Result, error) {
	x := f.problem
	programs := make([]protocol.Program, len(x.Clients))
	for i, c := range x.Clients {
		if !options.Plays(protocol.Role(i)) {
			continue
		}
		c = options.Records(c)
		if err := step.CheckRecords(ctx, rt.Pool(), c, protocol.Role(i).String()); err != nil {
			return nil, err
		}
		own := step.Records{Part: c, Labels: x.Labels}
		if i == 0 {
			own.Clamped = x.Clamped
		}
		programs[i] = f.Program(own, f.run)
	}
	var server protocol.Program
	if f.Coordinated {
		server = protocol.Serve
	}
	return protocol.Start(rt, f.Plan, programs, server, options).Finish(ctx, x.Bounds)
}

// Group is a run of consecutive values with one noise scale in data units. A value
// is an integer multiple of 2^-Bits; it is released on the grid of
// 2^-releaseBits.
type Group struct {
	Values, Bits int
	Scale        float64
}

// Release adds up the vectors that the parties fill in over their records, with discrete noise, and returns the
// noisy sums in data units. Noise streams are named by purpose and number, so that the
// same seed gives the same noise on any number of workers.
func (p *Party) Release(ctx context.Context, s *Release, groups []Group,
	fill func(words []int64) error) ([]float64, error) {
	layout, err := p.layout(ctx, s, groups)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Purpose, err)
	}
	layout[0].Stream = s.Purpose
	length := 0
	for _, g := range groups {
		length += g.Values
	}
	own := protocol.NewPrivate(length)
	span := p.Begin(engine.PhaseAccumulate, p.Released)
	err = own.Fill(fill)
	p.End(span)
	if err != nil {
		return nil, err
	}
	var sum []int64
	if p.alone {
		sum, err = p.Own(s.Release, p.Released, layout, own)
	} else {
		sum, err = p.Sum(ctx, s.Release, p.Released, layout, own)
	}
	p.Released++
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(sum))
	for i, x := range sum {
		out[i] = float64(x) / (1 << releaseBits)
	}
	return out, nil
}

// layout is that of a release, without its streams. Groups may differ in their noise, which takes a while to
// prepare: all workers do.
func (p *Party) layout(ctx context.Context, s *Release, groups []Group) ([]protocol.Group, error) {
	layout, errs := make([]protocol.Group, len(groups)), make([]error, len(groups))
	repeats := func(i int) bool { return i > 0 && groups[i].Scale == groups[i-1].Scale }
	prepare := func(_, i int) {
		if g := groups[i]; !repeats(i) {
			layout[i].Noise, errs[i] = protocol.NewDistribution(protocol.Noise{Mechanism: s.Share.noise(),
				Scale: g.Scale * (1 << releaseBits), Shares: s.Share.shares}, p.Replay)
		}
	}
	if p.Replay == nil {
		if err := p.Pool().Run(ctx, len(groups), prepare); err != nil {
			return nil, err
		}
	} else { // which keeps what it has prepared, and serves one goroutine
		for i := range groups {
			prepare(0, i)
		}
	}
	for i, g := range groups {
		if errs[i] != nil {
			return nil, errs[i]
		}
		layout[i].Values, layout[i].Shift = g.Values, uint(releaseBits-g.Bits)
		if repeats(i) {
			layout[i].Noise = layout[i-1].Noise
		}
	}
	return layout, nil
}

// ReleaseCounts releases counts of disjoint sets of records that count fills in, each record for its weight.
func (p *Party) ReleaseCounts(ctx context.Context, s *Release, cells int,
	count func(words []int64) error) ([]float64, error) {
	return p.Release(ctx, s, []Group{{cells, p.Weights.Bits(), s.Scale}}, count)
}

// Search is the free search for k centres on released numbers, the number-th of
// the run.
func (p *Party) Search(ctx context.Context, points *synopsis.Weighted, k, number int) (*synopsis.Solution, error) {
	return p.SearchBy(ctx, points, k, number, p.Searching)
}

// SearchBy is Search with options of its own.
func (p *Party) SearchBy(ctx context.Context, points *synopsis.Weighted, k, number int,
	how synopsis.SearchOptions) (*synopsis.Solution, error) {
	return protocol.Once(p.Party, "search", number, func() (*synopsis.Solution, error) {
		span := p.Begin(engine.PhaseSearch, p.Released)
		defer p.End(span)
		return synopsis.Search(ctx, p.Pool(), points, k, how, p.Public.Stream(int(protocol.Server), number, "search"))
	})
}

// WithClusters is the party in a run for k clusters, at most those planned.
func (p *Party) WithClusters(k int) *Party {
	return p.with(func(core *protocol.Plan) { core.K = k })
}

// with is the party under a plan that differs in what `change` sets.
func (p *Party) with(change func(core *protocol.Plan)) *Party {
	q, f, core := *p, *p.Plan, *p.Plan.Plan
	change(&core)
	f.Plan, q.Plan = &core, &f
	return &q
}

// NoteTopUp says that a search had too few points to place all centroids, beside those that are more than k.
func (p *Party) NoteTopUp(found *synopsis.Solution) {
	missing := found.TopUp - (len(found.Weights) - p.K)
	switch {
	case missing == p.K:
		p.Note("no cell of the synopsis has a positive weight: all %d centroids are data-independent; "+
			"more records or a larger budget would help", p.K)
	case missing > 0:
		p.Note("the synopsis has fewer weighted points than k: %d of the %d centroids are data-independent",
			missing, p.K)
	}
}

// Outcome is what a run ends with. sizes are the noisy sizes of the clusters, if they
// were released.
func (p *Party) Outcome(centroids []float32, sizes []float64, iterations int,
	details map[string]any) *protocol.Outcome {
	return &protocol.Outcome{Centroids: Widen(centroids), Sizes: sizes, Iterations: iterations, Details: details}
}

// Widen is x in float64.
func Widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
