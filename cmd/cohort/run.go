package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
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
	return cmd
}

func runJob(ctx context.Context, o *options, out, errOut io.Writer) error {
	m, err := o.resolve()
	if err != nil {
		return err
	}
	in, err := load(ctx, o, m)
	if err != nil {
		return err
	}
	for _, w := range in.warnings() {
		fmt.Fprintln(errOut, "cohort: warning: "+w)
	}
	var engineOptions []engine.Option
	if o.workers > 0 {
		engineOptions = append(engineOptions, engine.WithWorkers(o.workers))
	}
	if p := newProgress(errOut, o.method); p != nil {
		engineOptions = append(engineOptions, engine.WithObserver(p))
	}
	eng, err := engine.New(engineOptions...)
	if err != nil {
		return err
	}
	defer eng.Close()
	res, err := repeat(ctx, eng, m, o, in)
	if err != nil {
		return err
	}
	if o.out != "" {
		if err := writeFolder(o.out, res, in.table.Columns); err != nil {
			return err
		}
	}
	if o.format == "json" {
		return json.NewEncoder(out).Encode(res)
	}
	return printResult(out, res, in)
}

// repeat runs the job --runs times and returns the first result, with the mean
// NICV of all and its confidence interval.
func repeat(ctx context.Context, eng *engine.Engine, m *method.Method, o *options, in *input) (*engine.Result, error) {
	var first *engine.Result
	var nicv []float64
	pay, err := newPayer(o, in)
	if err != nil {
		return nil, err
	}
	for r := 1; r <= o.runs; r++ {
		job, err := in.job(o.forRun(r), m)
		if err != nil {
			return nil, err
		}
		paid, err := pay.start()
		if err != nil {
			return nil, err
		}
		res, err := eng.Run(ctx, job)
		if err != nil {
			return nil, err
		}
		res.Notes = append(in.notes(o), res.Notes...)
		if in.joined != "" {
			res.Notes = append([]string{in.joined}, res.Notes...)
			res.Ledger.Note("which ids the parties have in common is known to all of them")
		}
		if err := pay.end(paid, res); err != nil {
			return nil, err
		}
		if first == nil {
			first = res
		}
		if res.NICV != nil {
			nicv = append(nicv, *res.NICV)
		}
	}
	if o.runs == 1 {
		return first, nil
	}
	first.Ledger.Note(fmt.Sprintf("centroids and ledger are those of run 1 of %d; each run is a full epsilon, so publishing all of them costs %d times the budget", o.runs, o.runs))
	if len(nicv) == o.runs {
		mean, half := meanInterval(nicv)
		first.NICV, first.NICVHalf, first.Runs = &mean, &half, nicv
	}
	return first, nil
}

// meanInterval returns the mean of x and the half width of its 95% Student-t
// interval.
func meanInterval(x []float64) (mean, half float64) {
	mean, sd := stat.MeanStdDev(x, nil)
	n := float64(len(x))
	return mean, distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975) * sd / math.Sqrt(n)
}
