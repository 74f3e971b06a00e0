// Package bounds finds bounds of columns from private records: a histogram of the
// magnitudes of each column, with noise, of which the outermost cells that are
// surely occupied are the bounds (THEOREMS.md T12; the idea is that of the
// approximate bounds of Google's differential privacy library, by Wilson et al.,
// "Differentially private SQL with bounded user contribution", 2020).
package bounds

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Cells of a column, in the order of the values in them: powers of the square root
// of two from 2^leastExponent to 2^mostExponent, negative ones before, and one cell
// of what is nearer to zero.
const (
	perOctave     = 2
	leastExponent = -64
	mostExponent  = 64
	steps         = perOctave * (mostExponent - leastExponent) // cells of either sign
	zero          = steps
	cells         = 2*steps + 1
)

// failure is the probability that an empty cell of any column is taken for an
// occupied one.
const failure = 1e-3

// Job is a run that finds bounds. Its result has no centroids, but bounds: Of.
type Job struct {
	// Parties read the records of each: its own rows of the same columns or, with Split, all rows.
	Parties []dataset.Source
	// Split, unless nil, has the columns that each party holds, by index; then all of them read Parties[0], and each
	// looks at its own columns alone.
	Split [][]int
	Read  dataset.ReadOptions
	// Epsilon is what all columns together cost, by Laplace noise.
	Epsilon    float64
	Neighbours privacy.Neighbours
	// Noise is who adds the noise of several parties that hold rows, protocol.DefaultNoise by default, and Colluders
	// how many of them may pool their shares, 1 by default. Parties that hold columns release theirs alone.
	Noise     protocol.NoiseBy
	Colluders int
	// Seed makes the run a simulation; nil takes noise from the system.
	Seed *uint64
}

// Method implements engine.Job.
func (j *Job) Method() string { return "bounds" }

// Of are the bounds that a run has found.
func Of(r *engine.Result) dataset.Bounds { return r.Details["bounds"].(dataset.Bounds) }

// Guessed are the columns, in order, no magnitude of which stands out of the noise: their bounds go to the magnitude
// that is likeliest to have records.
func Guessed(r *engine.Result) []int { return r.Details["guessed"].([]int) }

// Unseen is how many records of a column may lie beyond its bounds in one cell, whose values differ by a factor of less
// than 1.42, but with a probability of 1/1000: twice the threshold of the noise (THEOREMS.md T12 iii). It follows from
// the plan alone.
func Unseen(r *engine.Result) int64 { return r.Details["unseen"].(int64) }

// plan is that of a run with one release, or one of each party.
type plan struct {
	*protocol.Plan
	job    *Job
	schema dataset.Schema
	scale  float64 // of the noise, in records
	excess float64 // of the variance of all noise that is added to a count, in units of that of the scale
	ways   []way
}

// way is the release of the magnitudes of some columns.
type way struct {
	*protocol.Release
	columns []int
	layout  []protocol.Group
}

// Plan implements engine.Job.
func (j *Job) Plan() (engine.Plan, error) { return j.plan() }

func (j *Job) plan() (*plan, error) {
	if len(j.Parties) == 0 {
		return nil, fault.Request("bounds", "there are no records", "give a source")
	}
	if !(j.Epsilon > 0) || math.IsInf(j.Epsilon, 0) {
		return nil, fault.Range("epsilon of the bounds", j.Epsilon, "a positive number")
	}
	pl := &plan{job: j, schema: j.Parties[0].Schema(), excess: 1}
	m, d := len(j.Parties), pl.schema.D
	if j.Split != nil {
		m = len(j.Split)
	}
	bound, err := pl.bound(d)
	if err != nil {
		return nil, err
	}
	pl.scale = bound.L1() / j.Epsilon
	pl.Plan = &protocol.Plan{Method: "bounds", Calibration: privacy.Proven, Private: true,
		Budget: privacy.Budget{Epsilon: j.Epsilon}, K: 1, D: d, Parties: m, Rounds: 1,
		Coordinated: m > 1 && j.Split == nil, Seed: j.Seed, PublicSeed: protocol.NewPublicSeed(j.Seed),
		Capacity: secagg.Capacity{Ring: secagg.Ring64, Records: math.MaxInt32, PerRecord: 1, Noise: math.Ldexp(1, 61)}}
	for l, columns := range j.Split {
		what := protocol.Role(l).String() + ": magnitudes of its columns"
		if err := pl.add(what, ", for their bounds", columns, nil); err != nil {
			return nil, err
		}
	}
	if j.Split != nil {
		pl.Messages = protocol.NoMessages(m)
		for l, w := range pl.ways {
			w.Words = 0 // they stay with the party, which sends its bounds
			pl.Messages.BytesSent[l] = int64(columnBytes * len(w.columns))
		}
		return pl, nil
	}
	var by *protocol.Drawers
	if pl.Coordinated {
		drawers, err := protocol.NewDrawers(j.Noise, m, m, j.Colluders)
		if err != nil {
			return nil, err
		}
		by = &drawers
	}
	return pl, pl.add("magnitudes of each column", ", for its bounds", all(d), by)
}

// bound is the line of the table of calibrations for so many columns.
func (pl *plan) bound(d int) (privacy.Bound, error) {
	return privacy.At("bounds", privacy.Proven, "magnitudes", privacy.Shape{D: d, Neighbours: pl.job.Neighbours})
}

// add plans the release of the magnitudes of some columns: by one party that holds them or, with
// drawers of the noise, by all parties' rows.
func (pl *plan) add(what, purpose string, columns []int, by *protocol.Drawers) error {
	bound, err := pl.bound(len(columns))
	if err != nil {
		return err
	}
	e := bound.Entry(what+purpose, "discrete-laplace", "L1")
	e.Viewers, e.Scale, e.Unit = []string{privacy.Outsider}, pl.scale, "records"
	e.Cost = privacy.Spec{Family: "discrete-laplace", Scale: pl.scale / bound.L1()}
	e.Conditions = slices.Clone(bound.Rule.Conditions)
	makers, shares := protocol.Holder, 0
	if by != nil {
		makers, shares, pl.excess = by.By.Makers(), by.Shares(), by.Excess()
		by.Enter(&e)
	}
	noise, err := protocol.NewDistribution(
		protocol.Noise{Mechanism: protocol.Laplace, Scale: pl.scale, Shares: shares}, nil)
	if err != nil {
		return err
	}
	layout := []protocol.Group{{Stream: "bounds", Values: cells * len(columns), Noise: noise}}
	if makers == protocol.ServerAlone {
		pl.ServerNoise = func(int) []protocol.Group { return layout }
	}
	pl.ways = append(pl.ways, way{columns: columns, layout: layout, Release: pl.Add(&protocol.Release{Name: what,
		Makers: makers, Entries: []privacy.Entry{e}, Words: cells * len(columns)})})
	return nil
}

// all are the columns 0 to d-1.
func all(d int) []int {
	columns := make([]int, d)
	for h := range columns {
		columns[h] = h
	}
	return columns
}

// Run implements engine.Plan.
func (pl *plan) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return pl.Connect(ctx, rt, protocol.Options{})
}

// Connect implements protocol.Runner.
func (pl *plan) Connect(ctx context.Context, rt *engine.Runtime, o protocol.Options) (*engine.Result, error) {
	var programs []protocol.Program
	var server protocol.Program
	switch {
	case pl.job.Split != nil:
		for l := range pl.ways {
			programs = append(programs, pl.ofColumns(l))
		}
		server = pl.gather
	default:
		for _, s := range pl.job.Parties {
			programs = append(programs, pl.ofRows(s))
		}
		if pl.Coordinated {
			server = protocol.Serve
		}
	}
	return protocol.Start(rt, pl.Plan, programs, server, o).Finish(ctx, dataset.Bounds{})
}

// magnitudes is the private vector of a release: the records of a source in the cells of its columns.
func (pl *plan) magnitudes(ctx context.Context, s dataset.Source, columns []int) (*protocol.Private, error) {
	own := protocol.NewPrivate(cells * len(columns))
	return own, own.Fill(func(words []int64) error {
		return dataset.Visit(ctx, s, pl.job.Read, func(rows []float64) { count(words, rows, pl.D, columns) })
	})
}

// ofRows is the program of a party with rows.
func (pl *plan) ofRows(s dataset.Source) protocol.Program {
	return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		w := &pl.ways[0]
		own, err := pl.magnitudes(ctx, s, w.columns)
		if err != nil {
			return nil, err
		}
		noisy, err := p.Sum(ctx, w.Release, 0, w.layout, own)
		if err != nil {
			return nil, err
		}
		return &protocol.Outcome{Details: pl.details(pl.choose(noisy))}, nil
	}
}

// ofColumns is the program of party l of those with columns: its bounds go to the server.
func (pl *plan) ofColumns(l int) protocol.Program {
	return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		w := &pl.ways[l]
		own, err := pl.magnitudes(ctx, pl.job.Parties[0], w.columns)
		if err != nil {
			return nil, err
		}
		noisy, err := p.Own(w.Release, 0, w.layout, own)
		if err != nil {
			return nil, err
		}
		b, guessed := pl.choose(noisy)
		var message []byte
		for h := range w.columns {
			message = binary.LittleEndian.AppendUint64(message, math.Float64bits(b.Lo[h]))
			message = binary.LittleEndian.AppendUint64(message, math.Float64bits(b.Hi[h]))
			message = append(message, 0)
			if slices.Contains(guessed, h) {
				message[len(message)-1] = 1
			}
		}
		return nil, p.Send(ctx, w.Release, protocol.Server, message)
	}
}

// gather is the server's program where parties hold columns: it puts their bounds together.
func (pl *plan) gather(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
	b := dataset.Bounds{Lo: make([]float64, pl.D), Hi: make([]float64, pl.D)}
	var guessed []int
	for l := range pl.ways {
		message, err := p.Receive(ctx, protocol.Role(l))
		if err != nil {
			return nil, err
		}
		columns := pl.ways[l].columns
		if len(message) != columnBytes*len(columns) {
			return nil, fmt.Errorf("bounds: %d bytes for %d columns", len(message), len(columns))
		}
		for i, h := range columns {
			own := message[columnBytes*i:]
			b.Lo[h] = math.Float64frombits(binary.LittleEndian.Uint64(own))
			b.Hi[h] = math.Float64frombits(binary.LittleEndian.Uint64(own[8:]))
			if own[16] != 0 {
				guessed = append(guessed, h)
			}
		}
	}
	slices.Sort(guessed)
	return &protocol.Outcome{Details: pl.details(b, guessed)}, b.Validate("bounds")
}

// columnBytes is the length of what a party says of a column: its bounds, and whether they are guessed.
const columnBytes = 8 + 8 + 1

func (pl *plan) details(b dataset.Bounds, guessed []int) map[string]any {
	return map[string]any{"bounds": b, "guessed": guessed, "unseen": 2 * pl.threshold()}
}

// count adds some columns of rows of d columns to the cells of each. A missing value is in none.
func count(words []int64, rows []float64, d int, columns []int) {
	for at := 0; at < len(rows); at += d {
		for i, h := range columns {
			if x := rows[at+h]; !math.IsNaN(x) {
				words[i*cells+cell(x)]++
			}
		}
	}
}

// cell is the number of the cell that holds x.
func cell(x float64) int {
	fraction, exponent := math.Frexp(math.Abs(x)) // in [1/2, 1)
	step := steps - 1                             // of infinity
	if !math.IsInf(x, 0) {
		step = perOctave * (exponent - 1 - leastExponent)
		if fraction >= math.Sqrt2/2 {
			step++
		}
	}
	switch {
	case x == 0 || step < 0:
		return zero
	case x > 0:
		return zero + 1 + min(step, steps-1)
	}
	return zero - 1 - min(step, steps-1)
}

// edge is the lower edge, in magnitude, of a step.
func edge(step int) float64 {
	x := math.Ldexp(1, step/perOctave+leastExponent)
	if step%perOctave == 1 {
		x *= math.Sqrt2
	}
	return x
}

// limits are the lower and the upper end of a cell; zero stands for the one around it.
func limits(c int) (lo, hi float64) {
	switch {
	case c > zero:
		return edge(c - zero - 1), edge(c - zero)
	case c < zero:
		return -edge(zero - c), -edge(zero - c - 1)
	}
	return 0, 0
}

// threshold is what noise of such a scale exceeds in no cell of d columns, but with
// probability Failure: b ln(cells d / Failure). If the parties add excess times its variance, it is
// the least that Chernoff's bound gives (THEOREMS.md T12 ii).
func threshold(scale, excess float64, d int) int64 {
	rare := elementary.Log(float64(cells*d) / failure)
	if excess == 1 {
		return int64(math.Ceil(scale * rare))
	}
	const steps = 100
	q, least := elementary.Exp(-1/scale), math.Inf(1)
	for i := 1; i < steps; i++ {
		s := float64(i) / (steps * scale)
		up := elementary.Exp(s)
		moment := 2*elementary.Log(1-q) - elementary.Log(1-float64(q*up)) - elementary.Log(1-q/up)
		least = min(least, (float64(excess*moment)+rare)/s)
	}
	return int64(math.Ceil(least))
}

// threshold is that of the plan's noise: cells above it are surely occupied.
func (pl *plan) threshold() int64 { return threshold(pl.scale, pl.excess, pl.D) }

// choose makes bounds of noisy counts: from the first to the last cell above the threshold. A range that
// ends nearer to zero than half of its far end begins at zero: cells there are narrow, and
// few records fall into each. Where no cell is above it, the range goes from zero to the end of the largest: what is
// paid for gives an answer, and guessed names the column.
func (pl *plan) choose(noisy []int64) (b dataset.Bounds, guessed []int) {
	d := len(noisy) / cells
	b = dataset.Bounds{Lo: make([]float64, d), Hi: make([]float64, d)}
	above := pl.threshold()
	for h := range d {
		first, last, largest := -1, -1, zero
		column := noisy[h*cells : (h+1)*cells]
		for c, x := range column {
			if x > above {
				if last = c; first < 0 {
					first = c
				}
			}
			if x > column[largest] {
				largest = c
			}
		}
		if first < 0 {
			guessed = append(guessed, h)
			first, last = min(largest, zero), max(largest, zero)
		}
		b.Lo[h], _ = limits(first)
		_, b.Hi[h] = limits(last)
		switch lo, hi := b.Lo[h], b.Hi[h]; {
		case lo == hi: // all are zero
			b.Hi[h] = 1
		case lo > 0 && lo < hi/2:
			b.Lo[h] = 0
		case hi < 0 && hi > lo/2:
			b.Hi[h] = 0
		}
	}
	return b, guessed
}
