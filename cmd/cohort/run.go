package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	library "github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/bench"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/pages"
)

func newRunCommand() *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Cluster a data set, privately when a budget is given",
		Long: `Cluster a data set. With --epsilon the result is differentially private; the
ledger says what each released number costs and which theorem bounds it.`,
		Example: `  cohort run --data my.csv --k 8 --epsilon 1 --bounds 0:100
  cohort run --data a.csv,b.csv --k 15 --method fastlloyd --epsilon 1 --format json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runJob(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.bind(cmd.Flags())
	o.explain(cmd)
	return cmd
}

// manyValues is how many values of records it takes until huge pages save a run more time than asking for them costs.
// Sketches and ciphertexts of columns are many whatever the records are.
const manyValues = 1 << 15

func runJob(ctx context.Context, o *options, out, errOut io.Writer) error {
	m, err := o.resolve()
	if err != nil {
		return err
	}
	p := newProgress(errOut, o.method)
	var d *delivery
	in, err := loadAfter(ctx, o, m, p, func(in *input) (err error) {
		d, err = prepareDelivery(o, in, out)
		return err
	})
	if p != nil {
		p.JobEnd(nil, nil)
	}
	defer d.close()
	if err != nil {
		return err
	}
	defer in.pay.Close()
	for _, w := range in.warnings() {
		fmt.Fprintln(errOut, "cohort: warning: "+w)
	}
	var observers []engine.Option
	if p != nil {
		observers = append(observers, engine.WithObserver(p))
	}
	if o.keepsTrace() {
		observers = append(observers, engine.WithObserver(&in.trace))
	}
	if m.Holds == method.Columns || in.norm.Points.N*in.norm.Points.D >= manyValues {
		pages.Heap()
	}
	eng, err := newEngine(o.workers, observers...)
	if err != nil {
		return err
	}
	defer eng.Close()
	pay, err := newPayment(o, in, m)
	if err != nil {
		return in.lost(err)
	}
	defer pay.Close()
	res, err := repeat(ctx, eng, m, o, in, pay)
	if res == nil {
		return in.lost(err)
	}
	undelivered := d.deliver(ctx, eng, res)
	if undelivered == nil && !isLost(err) { // else the same request finishes all of its runs
		undelivered = pay.Delivered()
	}
	return errors.Join(undelivered, err)
}

// repeat runs the job --runs times and returns the first result, with the mean
// NICV of all and its confidence interval. If a later run fails it returns what
// the earlier ones gave as well as the error: they are paid for.
func repeat(ctx context.Context, eng *engine.Engine, m *method.Method, o *options, in *input,
	pay *library.Payment) (*engine.Result, error) {
	var results []*engine.Result
	var err error
	last := 0
	for last < o.runs && err == nil {
		last++
		var res *engine.Result
		if res, err = once(ctx, eng, m, o.forRun(last), in, pay); res != nil {
			results = append(results, res)
		}
	}
	switch {
	case len(results) == 0:
		return nil, err
	case o.runs == 1:
		return results[0], err
	case errors.Is(err, context.Canceled) && !isLost(err):
		err = fault.Failed(fmt.Sprintf("run %d of %d", last, o.runs), "was interrupted",
			"the result is that of the runs before", err)
	case err != nil:
		err = fmt.Errorf("run %d of %d: %w; the result is that of the runs before", last, o.runs, err)
	}
	first := results[0]
	first.Ledger.Note(fmt.Sprintf("centroids and ledger are those of run 1 of %d; each run is a full epsilon, so "+
		"publishing all of them costs %d times the budget", len(results), len(results)))
	var nicv []float64
	for _, res := range results {
		if res.NICV != nil {
			nicv = append(nicv, *res.NICV)
		}
	}
	if len(nicv) > 1 {
		mean, half := bench.MeanInterval(nicv)
		first.NICV, first.NICVHalf, first.Runs = &mean, &half, nicv
	}
	return first, err
}

// keepsTrace tells whether the iterations and the synopsis of a run go anywhere.
func (o *options) keepsTrace() bool { return o.report != "" || o.out != "" }

// once pays for one run and does it. A result that comes with an error is paid for.
func once(ctx context.Context, eng *engine.Engine, m *method.Method, o *options, in *input,
	pay *library.Payment) (*engine.Result, error) {
	in, err := in.count(ctx, eng, o, m, pay)
	if err != nil {
		return nil, err
	}
	job := in.ready
	if job == nil {
		if job, err = in.job(o, m); err != nil {
			return nil, err
		}
	}
	paid, err := pay.Start(job)
	if err != nil {
		return nil, err
	}
	res, err := eng.Run(ctx, paid.Job)
	if err != nil {
		return nil, pay.Lost(paid, err)
	}
	res.Convergence = in.trace.Steps
	err = pay.End(paid, res)
	in.addCount(o, res)
	in.addBounds(o, res)
	if o.quality == "full" {
		if err := in.separate(ctx, eng, res); err != nil { // the result is paid for
			res.Notes = append(res.Notes, "the separation of the clusters is left out: "+err.Error())
		}
	}
	if !o.timings && o.private(m) {
		res.Timings = nil
	}
	res.Notes = append(in.notes(o, o.showsQuality(m)), res.Notes...)
	if in.joined != nil {
		res.Ledger.Note("which ids the parties have in common is known to all of them")
	}
	if in.start != nil {
		res.Ledger.Note("the first centroids come from " + o.start + " and are taken to be public")
	}
	if res.Timings != nil && o.private(m) {
		res.Ledger.Note(timesNote)
	}
	return res, err
}

// timesNote is the ledger's line on times that are shown of a private run.
const timesNote = "the times depend on the records"

// separate adds to a result how its clusters stand to each other, all records together.
func (in *input) separate(ctx context.Context, eng *engine.Engine, res *engine.Result) error {
	centroids := make([]float64, 0, res.K*res.D)
	for _, row := range res.Centroids {
		centroids = append(centroids, in.norm.Bounds.Relative(row)...)
	}
	part := dataset.Part{Points: in.norm.Points, FractionBits: in.norm.FractionBits}
	separation, err := engine.MeasureSeparation(ctx, eng.Pool(), part, centroids, res.K)
	if err != nil {
		return err
	}
	res.Separation = &separation
	return nil
}

// newEngine is an engine of so many workers, all cores for 0, on the kernels that the environment asks for.
func newEngine(workers int, with ...engine.Option) (*engine.Engine, error) {
	if workers > 0 {
		with = append(with, engine.WithWorkers(workers))
	}
	if err := selectKernels(); err != nil {
		return nil, err
	}
	return engine.New(with...)
}
