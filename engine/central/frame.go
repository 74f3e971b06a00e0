package central

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
	"github.com/cohort-engine/cohort/kernels"
)

// Data is what every job of this package works on.
type Data struct {
	// Clients holds each client's records on one grid; at least one client.
	Clients []dataset.Part
	// Bounds maps centroids back to the data's own units.
	Bounds dataset.Bounds
	// Labels has the true class of each row of the table, for scores; nil if
	// unknown.
	Labels []int32
	// Clamped counts coordinates that were outside the bounds.
	Clamped int
	// NoQuality leaves out what is computed from the private data.
	NoQuality bool
	// Tape makes the run one of two on neighbouring data sets, for an audit, which
	// may end after the last release, with an empty result. Edler does not use it.
	// nil for a run of its own.
	Tape *privacy.Tape
}

// validate checks the records against k.
func (x *Data) validate(k int) error {
	if len(x.Clients) == 0 {
		return fault.Range("clients", 0, "at least 1")
	}
	n, d := 0, x.Clients[0].Points.D
	for _, p := range x.Clients {
		n += p.Points.N
		if p.Points.D != d || p.FractionBits != x.Clients[0].FractionBits {
			return fault.Request("clients", "differ in their columns or fraction bits", "normalise all parts alike")
		}
	}
	if k < 1 || k > n || k >= math.MaxUint16 {
		return fault.Range("k", k, fmt.Sprintf("1 to %d", min(n, math.MaxUint16-1)))
	}
	if len(x.Bounds.Lo) != d || len(x.Bounds.Hi) != d {
		return fault.Request("bounds", fmt.Sprintf("%d pairs for %d columns", len(x.Bounds.Lo), d), "give one pair per column")
	}
	return x.capacity(n).Check()
}

// capacity is the check of the largest sum: every record at length 2 sqrt d from
// its centroid, in one cluster, on the release grid.
func (x *Data) capacity(n int) secagg.Capacity {
	return secagg.Capacity{Ring: secagg.Ring64, Records: n, PerRecord: math.Ldexp(2, releaseBits), Noise: math.Ldexp(1, 61)}
}

// records is the number of records of all clients that parameters follow.
func (x *Data) records() int {
	if x.Tape != nil && x.Tape.Records > 0 {
		return x.Tape.Records
	}
	n := 0
	for _, p := range x.Clients {
		n += p.Points.N
	}
	return n
}

// frame is the plan of a run of this package: public values alone.
type frame struct {
	*protocol.Plan
	law  law
	d, k int
	bits int // fraction bits of the records
	// makers draw the noise, which noise says to the ledger; audience sees releases.
	makers   protocol.Makers
	audience []string
	noise    *privacy.Noise
	// quality is nil where it is left out.
	quality *step.Quality
	// searching is how hard searches on released numbers try. What they find is
	// public, so to an audit of the releases a poor solution is as good.
	searching synopsis.SearchOptions
}

// newPlainFrame begins the plan of a run without privacy.
func newPlainFrame(method string, x *Data, k int, seed *uint64) *frame {
	first := x.Clients[0]
	f := &frame{d: first.Points.D, k: k, bits: first.FractionBits, makers: protocol.Holder, audience: []string{privacy.Outsider}}
	f.Plan = &protocol.Plan{Method: method, Calibration: privacy.None, K: k, D: f.d, N: x.records(), Parties: len(x.Clients), Rounds: 1,
		FractionBits: f.bits, Coordinated: len(x.Clients) > 1, Capacity: x.capacity(x.records()), Seed: seed}
	if x.Bounds.FromData {
		f.Notes = append(f.Notes, "the bounds are the data's own minimum and maximum")
	}
	return f
}

// planQuality plans what the result is measured by, of centroids whose coordinates
// stay within [-limit, limit].
func (f *frame) planQuality(x *Data, limit float64) (err error) {
	if !x.NoQuality {
		f.quality, err = step.PlanQuality(f.Plan, limit, x.Labels)
	}
	return err
}

// newFrame begins the plan of a private run. coordinates bounds the number of noise
// values that one record can influence.
func newFrame(method string, x *Data, k int, b privacy.Budget, laplace bool, neighbours privacy.Neighbours, coordinates int, seed *uint64) (*frame, error) {
	f := newPlainFrame(method, x, k, seed)
	f.Calibration, f.Private, f.Budget = privacy.Proven, true, b
	if f.Coordinated {
		f.makers, f.audience, f.noise = protocol.ServerAlone, []string{privacy.Clients, privacy.Outsider}, privacy.DrawnBy(privacy.Server)
	}
	if x.Tape != nil {
		f.searching = synopsis.SearchOptions{Starts: 1, Swaps: -1}
	}
	f.Notes = append(f.Notes, fmt.Sprintf("the number of records, %d, is treated as public", f.N))
	var err error
	if f.law, err = newLaw(b, laplace, neighbours, coordinates); err != nil {
		return nil, fault.Request(method, err.Error(), "raise --delta, or give --delta 0 for Laplace noise")
	}
	return f, nil
}

// bound is the line of the table of calibrations for a release of the method,
// stated for adding or removing one record.
func (f *frame) bound(release string, radius float64) privacy.Bound {
	b, err := privacy.At(f.Method, privacy.Proven, release, privacy.Shape{D: f.d, K: f.k, Bound: 1, Radius: radius})
	if err != nil {
		panic("central: " + err.Error()) // the table lacks what the method does
	}
	return b
}

// stage is a planned release with its share of the budget.
type stage struct {
	*protocol.Release
	purpose string // names the noise stream
	law     law
	scale   float64 // of releases with one scale, in data units
}

// add plans a release of one noise scale.
func (f *frame) add(purpose, what, line string, l law, coordinates int) *stage {
	b := f.bound(line, 0)
	s := &stage{purpose: purpose, law: l, scale: l.scale(b)}
	e := f.charge(l, l.entry(what, f.audience, s.scale, b, coordinates))
	s.Release = f.Add(&protocol.Release{Name: what, Makers: f.makers, Entries: []privacy.Entry{e}})
	return s
}

// addCounts plans a release of counts of disjoint sets of records.
func (f *frame) addCounts(purpose, line string, l law) *stage {
	return f.add(purpose, purpose+": counts of all cells", line, l, 1)
}

// charge completes an entry, stated for one record. Where the guarantee is for
// replacing a record it costs what two records that change together do
// (THEOREMS.md T7, T8).
func (f *frame) charge(l law, e privacy.Entry) privacy.Entry {
	e.Conditions = append(e.Conditions, e.Bound.Rule.Conditions...)
	e.Noise = f.noise
	if l.pair {
		e.Neighbours = privacy.ReplaceOne
		e.Bound.Shape.Neighbours = privacy.ReplaceOne
		e.Sensitivity = e.Bound.In(e.Norm)
		if e.Beside != nil {
			e.Beside.Shape.Neighbours = privacy.ReplaceOne
		}
		e.Cost.Scale /= 2
		e.Cost.Slack *= 2
		e.Cost.Epsilon *= 2
	}
	return e
}

// party is one party's side of a run: its records, and what has been released so
// far, which all parties know.
type party struct {
	*protocol.Party
	*frame
	records  *kernels.Panels
	released int // releases so far
}

// program is a party's program: `run` on its own records, and its part of the
// quality of the result.
func (f *frame) program(own step.Records, run func(ctx context.Context, p *party) (*protocol.Outcome, error)) protocol.Program {
	return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		o, err := run(ctx, &party{Party: p, frame: f, records: own.Part.Points})
		if err == nil && f.quality != nil {
			o.Quality, err = f.quality.Measure(ctx, p, f.Rounds, own, o.Centroids)
		}
		return o, err
	}
}

// planned is a plan in which every party runs the same program on its own records.
type planned struct {
	*frame
	data *Data
	run  func(ctx context.Context, p *party) (*protocol.Outcome, error)
}

// Run implements engine.Plan.
func (o planned) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return o.Connect(ctx, rt, protocol.Options{Replay: o.data.Tape})
}

// Connect implements protocol.Runner.
func (o planned) Connect(ctx context.Context, rt *engine.Runtime, options protocol.Options) (*engine.Result, error) {
	x := o.data
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
		programs[i] = o.program(own, o.run)
	}
	var server protocol.Program
	if o.Coordinated {
		server = protocol.Serve
	}
	s := protocol.Start(rt, o.Plan, programs, server, options)
	if err := s.Run(ctx); err != nil || x.Tape != nil {
		return &engine.Result{}, err
	}
	return s.Result(x.Bounds)
}

// noiseGroup is a run of consecutive values with one noise scale in data units.
// A value is an integer multiple of 2^-bits; it is released on the grid of
// 2^-releaseBits.
type noiseGroup struct {
	values, bits int
	scale        float64
}

// release adds up the parties' vectors with discrete noise and returns the noisy
// sums in data units. Noise streams are named by purpose and number, so that the
// same seed gives the same noise on any number of workers.
func (p *party) release(ctx context.Context, s *stage, groups []noiseGroup, own *protocol.Private) ([]float64, error) {
	layout := make([]protocol.Group, len(groups))
	for i, g := range groups {
		layout[i] = protocol.Group{Values: g.values, Shift: uint(releaseBits - g.bits)}
		if i > 0 && g.scale == groups[i-1].scale {
			layout[i].Noise = layout[i-1].Noise
			continue
		}
		var err error
		if layout[i].Noise, err = protocol.NewDistribution(protocol.Noise{Mechanism: s.law.noise(), Scale: g.scale * (1 << releaseBits)}, p.Replay); err != nil {
			return nil, fmt.Errorf("%s: %w", s.purpose, err)
		}
	}
	layout[0].Stream = s.purpose
	sum, err := p.Sum(ctx, s.Release, p.released, layout, own)
	p.released++
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(sum))
	for i, x := range sum {
		out[i] = float64(x) / (1 << releaseBits)
	}
	return out, nil
}

// releaseCounts releases counts of disjoint sets of records that count fills in.
func (p *party) releaseCounts(ctx context.Context, s *stage, cells int, count func(words []int64) error) ([]float64, error) {
	own := protocol.NewPrivate(cells)
	span := p.Begin(engine.PhaseAccumulate, p.released)
	err := own.Fill(count)
	p.End(span)
	if err != nil {
		return nil, err
	}
	return p.release(ctx, s, []noiseGroup{{cells, 0, s.scale}}, own)
}

// noteTopUp says that a search had too few points to place all centroids.
func (p *party) noteTopUp(found *synopsis.Solution) {
	switch {
	case found.TopUp == p.k:
		p.Note("no cell of the synopsis has a positive weight: all %d centroids are data-independent; more records or a larger budget would help", p.k)
	case found.TopUp > 0:
		p.Note("the synopsis has fewer weighted points than k: %d of the %d centroids are data-independent", found.TopUp, p.k)
	}
}

// outcome is what a run ends with. sizes are the noisy sizes of the clusters, if they
// were released.
func (p *party) outcome(centroids []float32, sizes []float64, iterations int, details map[string]any) *protocol.Outcome {
	return &protocol.Outcome{Centroids: widen(centroids), Sizes: sizes, Iterations: iterations, Details: details}
}

// budgetFor fills in the default delta: 1/(n ln n) for a negative one.
func budgetFor(b privacy.Budget, n int) privacy.Budget {
	if b.Delta < 0 {
		b.Delta = privacy.DefaultDelta(n)
	}
	return b
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
