// Package bounds finds bounds of columns from private records: a histogram of the
// magnitudes of each column, with noise, of which the outermost cells that are
// surely occupied are the bounds (THEOREMS.md T12; the idea is that of the
// approximate bounds of Google's differential privacy library, by Wilson et al.,
// "Differentially private SQL with bounded user contribution", 2020).
package bounds

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
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

// Failure is the probability that an empty cell of any column is taken for an
// occupied one.
const Failure = 1e-3

// Options say what bounds may cost.
type Options struct {
	// Epsilon is what all columns together cost, by Laplace noise.
	Epsilon    float64
	Neighbours privacy.Neighbours
	// Seed makes the run a simulation; nil takes noise from the system.
	Seed *uint64
}

// Found are bounds with what they cost.
type Found struct {
	Bounds dataset.Bounds
	Ledger *privacy.Ledger
}

// Find finds bounds of the columns of the parties' records, which all have the same
// columns; each party reads its own source. The server draws the noise if there are several.
// It refuses columns none of whose cells has surely more records than noise.
func Find(
	ctx context.Context,
	pool *engine.Pool,
	sources []dataset.Source,
	read dataset.ReadOptions,
	o Options,
) (*Found, error) {
	schema := sources[0].Schema()
	plan, err := newPlan(len(sources), schema.D, o)
	if err != nil {
		return nil, err
	}
	var programs []protocol.Program
	for _, s := range sources {
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			own := protocol.NewPrivate(cells * schema.D)
			err := own.Fill(func(words []int64) error {
				return dataset.Visit(ctx, s, read, func(rows []float64) { count(words, rows, schema.D) })
			})
			if err != nil {
				return nil, err
			}
			noisy, err := p.Sum(ctx, plan.release, 0, plan.layout, own)
			if err != nil {
				return nil, err
			}
			b, err := choose(noisy, schema, threshold(plan.scale, schema.D))
			return &protocol.Outcome{Details: map[string]any{"bounds": b}}, err
		})
	}
	var server protocol.Program
	if plan.Coordinated {
		server = protocol.Serve
	}
	s := protocol.Start(engine.NewRuntime(pool), plan.Plan, programs, server, protocol.Options{})
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		return nil, err
	}
	r, err := s.Result(dataset.Bounds{})
	if err != nil {
		return nil, err
	}
	return &Found{Bounds: r.Details["bounds"].(dataset.Bounds), Ledger: r.Ledger}, nil
}

// plan is that of a run with one release.
type plan struct {
	*protocol.Plan
	release *protocol.Release
	layout  []protocol.Group
	scale   float64 // of the noise, in records
}

func newPlan(parties, d int, o Options) (*plan, error) {
	if !(o.Epsilon > 0) || math.IsInf(o.Epsilon, 0) {
		return nil, fault.Range("epsilon of the bounds", o.Epsilon, "a positive number")
	}
	bound, err := privacy.At("bounds", privacy.Proven, "magnitudes", privacy.Shape{D: d, Neighbours: o.Neighbours})
	if err != nil {
		return nil, err
	}
	pl := &plan{scale: bound.L1() / o.Epsilon}
	noise, err := protocol.NewDistribution(protocol.Noise{Mechanism: protocol.Laplace, Scale: pl.scale}, nil)
	if err != nil {
		return nil, err
	}
	pl.layout = []protocol.Group{{Stream: "bounds", Values: cells * d, Noise: noise}}
	pl.Plan = &protocol.Plan{Method: "bounds", Calibration: privacy.Proven, Private: true,
		Budget: privacy.Budget{Epsilon: o.Epsilon}, K: 1, D: d, Parties: parties, Rounds: 1, Coordinated: parties > 1,
		Seed: o.Seed, PublicSeed: protocol.NewPublicSeed(o.Seed),
		ServerNoise: func(int) []protocol.Group { return pl.layout },
		Capacity: secagg.Capacity{
			Ring:      secagg.Ring64,
			Records:   math.MaxInt32,
			PerRecord: 1,
			Noise:     math.Ldexp(1, 61),
		}}
	e := bound.Entry("magnitudes of each column, for its bounds", "discrete-laplace", "L1")
	e.Viewers, e.Scale, e.Unit = []string{privacy.Outsider}, pl.scale, "records"
	e.Cost = privacy.Spec{Family: "discrete-laplace", Scale: pl.scale / bound.L1()}
	e.Conditions = bound.Rule.Conditions
	makers := protocol.Holder
	if parties > 1 {
		makers = protocol.ServerAlone
		e.Viewers, e.Noise = []string{privacy.Clients, privacy.Outsider}, privacy.DrawnBy(privacy.Server)
	}
	pl.release = pl.Add(&protocol.Release{Name: "magnitudes of each column", Makers: makers,
		Entries: []privacy.Entry{e}, Words: cells * d})
	return pl, nil
}

// count adds rows of d columns to the cells of each column. A missing value is in none.
func count(words []int64, rows []float64, d int) {
	for i, x := range rows {
		if !math.IsNaN(x) {
			words[i%d*cells+cell(x)]++
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
// probability Failure: b ln(cells d / Failure).
func threshold(scale float64, d int) int64 {
	return int64(math.Ceil(scale * math.Log(float64(cells*d)/Failure)))
}

// choose makes bounds of noisy counts: from the first to the last cell above the threshold. A range that
// ends nearer to zero than half of its far end begins at zero: cells there are narrow, and
// few records fall into each.
func choose(noisy []int64, schema dataset.Schema, above int64) (dataset.Bounds, error) {
	b := dataset.Bounds{Lo: make([]float64, schema.D), Hi: make([]float64, schema.D)}
	for h := range schema.D {
		first, last := -1, -1
		for c, x := range noisy[h*cells : (h+1)*cells] {
			if x > above {
				if last = c; first < 0 {
					first = c
				}
			}
		}
		if first < 0 {
			return b, fault.Failed(
				"--private-bounds",
				fmt.Sprintf(
					"no magnitude of column %s has more than %d records, what noise could be",
					columnName(schema, h),
					above,
				),
				"spend a larger share on them, or state --bounds",
				nil,
			)
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
	return b, nil
}

func columnName(schema dataset.Schema, h int) string {
	if schema.Columns != nil {
		return schema.Columns[h]
	}
	return fmt.Sprint(h + 1)
}
