package main

import (
	"context"
	"fmt"
	"strconv"

	library "github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/census"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// follow sets the number of records that parameters follow after a noisy count of at least k: that count, or the
// first of its halves that a run can be planned for, which is the plan of the run. It can for k records, which was
// seen before anything was paid for.
func (in *input) follow(o *options, m *method.Method, count int) error {
	for n := max(count, in.k); ; n = max(n/2, in.k) {
		in.counted = n
		plan, err := in.plan(o, m)
		in.ready = engine.Planned(plan)
		if err == nil || n == in.k {
			return err
		}
	}
}

// plan plans a run.
func (in *input) plan(o *options, m *method.Method) (engine.Plan, error) {
	job, err := in.job(o, m)
	if err != nil {
		return nil, err
	}
	plan, err := job.Plan()
	if err == nil && o.ledger != "" {
		err = library.Payable(plan)
	}
	return plan, err
}

// count is the input of one run, with the number of records found for a share of epsilon where
// that is asked for.
func (in *input) count(ctx context.Context, eng *engine.Engine, o *options, m *method.Method, pay *library.Payment) (
	*input, error) {
	if !o.given("private-n") {
		return in, nil
	}
	job, err := in.countJob(o, m)
	if err != nil {
		return nil, err
	}
	mine := *in
	if err := mine.follow(o, m, 0); err != nil { // what is refused is a matter of public values alone
		return nil, err
	}
	paid, err := in.payForCount(o, m, pay, job)
	if err != nil {
		return nil, err
	}
	if mine.countedBy, err = eng.Run(ctx, paid.Job); err != nil {
		return nil, pay.Lost(paid, err)
	}
	if err := mine.follow(o, m, census.Of(mine.countedBy)); err != nil {
		return nil, err
	}
	if err := pay.Ended(paid, mine.countedBy.Ledger); err != nil || pay == nil {
		return &mine, err
	}
	return &mine, pay.Next(o.charged(in, m))
}

// payForCount pays for the number of records from the ledger file, if there is one and it has enough for the run that
// follows. What that costs is known before the number is only where guarantees add up as they are stated.
func (in *input) payForCount(o *options, m *method.Method, pay *library.Payment, job *census.Job) (*library.Paid,
	error) {
	if pay == nil {
		return pay.Start(job)
	}
	charged := o.charged(in, m)
	charged.What, charged.Cost, charged.Request = "number of records", privacy.Budget{Epsilon: job.Epsilon},
		"number of records, "+charged.Request
	if err := pay.Next(charged); err != nil {
		return nil, err
	}
	later, err := afterCount(o, pay)
	if err != nil {
		return nil, err
	}
	return pay.Start(job, later...)
}

// afterCount is what a run costs that follows a number of records, which is known before the number only where
// guarantees add up as they are stated.
func afterCount(o *options, pay *library.Payment) ([]*privacy.Ledger, error) {
	if pay.Composition() != privacy.BasicComposition {
		return nil, nil
	}
	l, err := privacy.WholeRun("a run", o.budget(), privacy.AddRemove)
	return []*privacy.Ledger{l}, err
}

// addCount puts what the number of records has cost into the ledger of a run that follows it.
func (in *input) addCount(o *options, r *engine.Result) {
	if in.countedBy == nil {
		return
	}
	r.Ledger, r.Epsilon = r.Ledger.After(in.countedBy.Ledger), &o.epsilon
	r.Comm.Add(&in.countedBy.Comm)
	count := max(census.Of(in.countedBy), in.k)
	r.Notes = append(r.Notes, fmt.Sprintf("%s by a noisy count, for %g of epsilon; every parameter follows it",
		fault.Count(count, "record"), o.countShare))
	if in.counted < count {
		r.Notes = append(r.Notes, fmt.Sprintf("parameters follow %s: the method has none for so many",
			fault.Count(in.counted, "record")))
	}
}

// countJob counts the records of all clients, or of the first party where all hold the same.
func (in *input) countJob(o *options, m *method.Method) (*census.Job, error) {
	job := &census.Job{Clients: in.norm.Table(), Epsilon: o.epsilon * o.countShare, Seed: o.seedPointer(),
		Columns: m.Holds == method.Columns}
	if m.Holds == method.Rows {
		shares, err := in.shares(o)
		if err != nil {
			return nil, err
		}
		job.Clients, job.Noise = shares, protocol.NoiseBy(o.setting("noise"))
		job.Colluders, _ = strconv.Atoi(o.setting("colluders"))
	}
	return job, nil
}

// planCount puts a planned count of records before what is planned: for a number of records as the data
// have, or as is stated, while the run follows the noisy one.
func (in *input) planCount(o *options, m *method.Method, outline *engine.Outline) error {
	if !o.given("private-n") {
		return nil
	}
	job, err := in.countJob(o, m)
	if err != nil {
		return err
	}
	return o.planBefore(job, outline)
}

// planBefore puts a job that a share of epsilon pays for before what is planned.
func (o *options) planBefore(job engine.Job, outline *engine.Outline) error {
	plan, err := job.Plan()
	if err != nil {
		return err
	}
	before, err := plan.Outline()
	if err != nil {
		return err
	}
	outline.Epsilon, outline.Ledger = &o.epsilon, outline.Ledger.After(before.Ledger)
	for i := range before.Releases {
		before.Releases[i].Entry = outline.Ledger.Entries()[i] // its price is at the delta of the run
	}
	outline.Releases = append(before.Releases, outline.Releases...)
	if outline.Bytes != nil {
		outline.Bytes.Add(before.Bytes)
	}
	return nil
}
