package ckks

import (
	"context"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Opened is the first round of a two-party run up to its noise: keys made, columns encrypted, records
// compared and added up under encryption. It can be closed many times, with new noise each time, which an
// audit does: what comes after the noise is a thousandth of the work. It serves one goroutine at a
// time.
type Opened struct {
	run    *run
	alice  *alice
	bob    *bob
	rt     *engine.Runtime
	totals []total
}

// Open runs the job's setup and its first round up to the encrypted totals.
func Open(ctx context.Context, j *Job, rt *engine.Runtime) (*Opened, error) {
	pl, err := j.plan()
	if err != nil {
		return nil, err
	}
	if j.mode() != TwoParty || !j.private() {
		return nil, fault.Request("ckks round", "is opened for two parties with a budget only",
			"give two parties and a budget")
	}
	s, err := newRun(pl)
	if err != nil {
		return nil, err
	}
	o := &Opened{run: s, alice: s.newAlice(), bob: s.newBob(), rt: rt}
	alice := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
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
	bob := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		o.bob.join(p)
		if err := o.bob.sendTerms(ctx); err != nil {
			return nil, err
		}
		if err := o.bob.prepare(ctx); err != nil {
			return nil, err
		}
		_, err := o.bob.receiveCentroids(ctx, 0, 0)
		return nil, err
	}
	return o, protocol.Start(rt, pl.Plan, []protocol.Program{alice, bob}, nil, protocol.Options{}).Run(ctx)
}

// AliceView is what party 1 knows at the end of a round besides her columns.
type AliceView struct {
	// Noise is what she added to each count and sum, in records, in the order count, sum of column
	// 0, ... of cluster 0, then cluster 1.
	Noise []float64
	// Centroids are what the key holder decrypted, perturbed, divided and sent back.
	Centroids [][]float64
}

// Close ends the round with the noise of a seed: Alice perturbs the encrypted totals and sends them, the
// key holder decrypts them, adds his noise, divides and answers.
func (o *Opened) Close(ctx context.Context, seed uint64, options protocol.Options) (*AliceView, error) {
	o.bob.current, o.bob.average = o.run.start, averager{}
	o.run.log.Messages = o.run.log.Messages[:0]
	v := new(AliceView)
	alice := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		o.alice.Party = p
		msg, z, err := o.alice.perturb(0, o.totals)
		if err != nil {
			return nil, err
		}
		v.Noise = inRecords(z, msg.Units)
		v.Centroids, err = o.alice.decrypt(ctx, 1, msg, o.run.start)
		return nil, err
	}
	bob := func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
		o.bob.Party = p
		return nil, o.bob.answer(ctx, 1)
	}
	return v, protocol.Start(o.rt, o.run.Plan.Again(seed), []protocol.Program{alice, bob}, nil, options).Run(ctx)
}
