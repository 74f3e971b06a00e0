// Package census finds the number of records of all clients with noise, so that every
// parameter of a run can be a function of it (THEOREMS.md T14).
package census

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// Job is a run that counts records. Its result has no centroids, but a number: Of.
type Job struct {
	// Clients hold the records; of each its number counts.
	Clients []dataset.Part
	// Columns says that parties hold columns of the same records, and a server works with them: the
	// first party, the one client, counts for all.
	Columns bool
	// Epsilon is what the count costs, by Laplace noise.
	Epsilon float64
	// Noise is who adds the noise of several clients, protocol.DefaultNoise by default, and Colluders how
	// many of them may pool their shares, 1 by default.
	Noise     protocol.NoiseBy
	Colluders int
	// Seed makes the run a simulation; nil takes noise from the system.
	Seed *uint64
}

// Of is the number that a run has found: at least 1.
func Of(r *engine.Result) int { return r.Details["records"].(int) }

// plan is that of a run with one release.
type plan struct {
	*protocol.Plan
	job    *Job
	count  *protocol.Release
	layout []protocol.Group
}

// Plan implements engine.Job. It depends on no number of records.
func (j *Job) Plan() (engine.Plan, error) {
	if j == nil {
		return nil, protocol.ErrNoJob
	}
	if len(j.Clients) == 0 {
		return nil, fault.Range("clients", 0, "at least 1")
	}
	if !(j.Epsilon > 0) || math.IsInf(j.Epsilon, 0) {
		return nil, fault.Range("epsilon of the number of records", j.Epsilon, "a positive number")
	}
	bound, err := privacy.At("count", privacy.Proven, "number of records", privacy.Shape{})
	if err != nil {
		return nil, err
	}
	m, scale := len(j.Clients), bound.L1()/j.Epsilon
	pl := &plan{job: j, Plan: &protocol.Plan{Method: "count", Calibration: privacy.Proven, Private: true,
		Budget: privacy.Budget{Epsilon: j.Epsilon}, K: 1, D: 1, Parties: m, Rounds: 1, Coordinated: m > 1, Seed: j.Seed,
		PublicSeed: protocol.NewPublicSeed(j.Seed), Capacity: secagg.Capacity{Ring: secagg.Ring64,
			Records: math.MaxInt32, PerRecord: 1, Noise: math.Ldexp(1, 61)}}}
	e := bound.Entry("number of records, which every parameter follows", "discrete-laplace", "L1")
	e.Viewers, e.Scale, e.Unit = []string{privacy.Outsider}, scale, "records"
	e.Cost = privacy.Spec{Family: "discrete-laplace", Scale: scale / bound.L1()}
	e.Conditions = slices.Clone(bound.Rule.Conditions)
	e.Remark = "what is proved before the number is known is the sum of this epsilon and the run's; a smaller total is " +
		"that of the number that came out"
	if j.Columns {
		e.Viewers = append(e.Viewers, privacy.Server)
	}
	makers, shares := protocol.Holder, 0
	if m > 1 {
		by, err := protocol.NewDrawers(j.Noise, m, m, j.Colluders)
		if err != nil {
			return nil, err
		}
		makers, shares = by.By.Makers(), by.Shares()
		by.Enter(&e)
	}
	noise, err := protocol.NewDistribution(protocol.Noise{Mechanism: protocol.Laplace, Scale: scale, Shares: shares},
		nil)
	if err != nil {
		return nil, err
	}
	pl.layout = []protocol.Group{{Stream: "count", Values: 1, Noise: noise}}
	if makers == protocol.ServerAlone {
		pl.ServerNoise = func(int) []protocol.Group { return pl.layout }
	}
	pl.count = pl.Add(&protocol.Release{Name: "number of records", Makers: makers, Entries: []privacy.Entry{e},
		Words: 1})
	return pl, nil
}

// Run implements engine.Plan.
func (pl *plan) Run(ctx context.Context, rt *engine.Runtime) (*engine.Result, error) {
	return pl.Connect(ctx, rt, protocol.Options{})
}

// Connect implements protocol.Runner.
func (pl *plan) Connect(ctx context.Context, rt *engine.Runtime, o protocol.Options) (*engine.Result, error) {
	var programs []protocol.Program
	for _, c := range pl.job.Clients {
		programs = append(programs, pl.client(c))
	}
	var server protocol.Program
	if pl.Coordinated {
		server = protocol.Serve
	}
	return protocol.Start(rt, pl.Plan, programs, server, o).Finish(ctx, dataset.Bounds{})
}

// client is the program of a client.
func (pl *plan) client(part dataset.Part) protocol.Program {
	return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		own := protocol.NewPrivate(1)
		if err := own.Fill(func(words []int64) error {
			words[0] = int64(part.Points.N)
			return nil
		}); err != nil {
			return nil, err
		}
		noisy, err := p.Sum(ctx, pl.count, 0, pl.layout, own)
		if err != nil {
			return nil, err
		}
		n := int(min(max(noisy[0], 1), math.MaxInt32))
		return &protocol.Outcome{Details: map[string]any{"records": n}}, nil
	}
}
