package ckks

import (
	"context"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Opened is the first round of a private run, up to its noise: keys made,
// columns encrypted, records compared and added up under encryption. It can be closed many times, with new noise
// each time, which an audit does: what comes after the noise is a thousandth of the work. It serves one goroutine
// at a time.
type Opened struct {
	run *run
	*parties
	rt     *engine.Runtime
	totals []total
}

// Open runs the job's setup and its first round up to the encrypted totals.
func Open(ctx context.Context, j *Job, rt *engine.Runtime) (*Opened, error) {
	pl, err := j.plan()
	if err != nil {
		return nil, err
	}
	if !j.private() {
		return nil, fault.Request("ckks round", "is opened with a budget only", "give a budget")
	}
	s := newRun(pl)
	s.ready(alone)
	roles, programs := s.newParties()
	o := &Opened{run: s, parties: roles, rt: rt}
	programs[0] = func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		o.alice.join(p)
		if err := o.alice.prepare(ctx); err != nil {
			return nil, err
		}
		members, _, err := o.alice.compareAll(ctx, 0, s.start)
		if err == nil {
			o.totals, err = o.alice.computer.totals(ctx, p.Pool(), 0, members)
		}
		return nil, err
	}
	if o.bob != nil {
		bobsSetup := setupOf(o.bob)
		programs[1] = func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			if _, err := bobsSetup(ctx, p); err != nil {
				return nil, err
			}
			_, err := o.bob.receiveCentroids(ctx, 0, 0)
			return nil, err
		}
	}
	for i, m := range o.members {
		programs[1+i] = setupOf(m)
	}
	for i, v := range o.providers {
		programs[2+i] = setupOf(v)
	}
	return o, protocol.Start(rt, pl.Plan, programs, nil, protocol.Options{}).Run(ctx)
}

// setupOf is the setup of a party other than Alice.
func setupOf(x interface {
	join(p *protocol.Party)
	sendTerms(ctx context.Context) error
	prepare(ctx context.Context) error
}) protocol.Program {
	return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		x.join(p)
		if err := x.sendTerms(ctx); err != nil {
			return nil, err
		}
		return nil, x.prepare(ctx)
	}
}

// AliceView is what party 1 knows at the end of a round besides her columns.
type AliceView struct {
	// Noise is what she added to each count and sum, in records, in the order count, sum of column
	// 0, ... of cluster 0, then cluster 1.
	Noise []float64
	// Centroids are what the key holder decrypted, perturbed, divided and sent back.
	Centroids [][]float64
	// Told is what she then told the last of the other parties, nil where there is none.
	Told [][]float64
}

// Close ends the round with the noise of a seed: Alice perturbs the encrypted totals and sends them, the
// key holder decrypts them, adds his noise, divides and answers, or the key holders online return shares of the
// decryption with their noise, of which she makes the totals.
func (o *Opened) Close(ctx context.Context, seed uint64, options protocol.Options) (*AliceView, error) {
	o.alice.average = averager{}
	o.run.log.Messages = o.run.log.Messages[:0]
	v := new(AliceView)
	programs := []protocol.Program{func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		o.alice.Party = p
		msg, z, err := o.alice.perturb(0, o.totals)
		if err != nil {
			return nil, err
		}
		v.Noise = inRecords(z, msg.Units)
		v.Centroids, err = o.alice.decrypt(ctx, 1, msg, o.run.start)
		if err != nil || len(o.providers) == 0 {
			return nil, err
		}
		return nil, o.alice.tell(ctx, v.Centroids)
	}}
	if o.bob != nil {
		o.bob.current, o.bob.average = o.run.start, averager{}
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			o.bob.Party = p
			return nil, o.bob.answer(ctx, 1)
		})
	}
	for i, m := range o.members {
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			if m.Party = p; !slices.Contains(o.run.online, 1+i) {
				return nil, nil
			}
			return nil, m.answer(ctx, 1)
		})
	}
	for i, x := range o.providers {
		programs = append(programs, func(ctx context.Context, p *protocol.Party) (_ *protocol.Outcome, err error) {
			x.Party = p
			told, err := x.receiveCentroids(ctx, 0, x.job.rounds())
			if i == len(o.providers)-1 {
				v.Told = told
			}
			return nil, err
		})
	}
	return v, protocol.Start(o.rt, o.run.Plan.Again(seed), programs, nil, options).Run(ctx)
}
