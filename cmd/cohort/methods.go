package main

import (
	"context"
	_ "embed" // the expected losses
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/method"
)

func newMethodsCommand() *cobra.Command {
	var format string
	var measure bool
	cmd := &cobra.Command{
		Use:   "methods",
		Short: "Compare the methods: who holds what, private against whom, when to choose, cost",
		Long: `Show the methods side by side. NICV is the loss to expect on a built-in set of 2000
records, 4 columns and 4 clusters, at epsilon 1 for the private ones, as the mean of
five runs; --measure runs them again and shows their times, too. --format json has all
options with their values.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var measured map[string]measurement
			if measure {
				var err error
				if measured, err = measureMethods(cmd.Context()); err != nil {
					return err
				}
			}
			if format == "json" {
				return methodsJSON(cmd.OutOrStdout(), measured)
			}
			return methodsText(cmd.OutOrStdout(), measured)
		},
	}
	choose(cmd.Flags(), &format, "format", "text or json", "text", "json")
	cmd.Flags().BoolVar(&measure, "measure", false, "run every method on the built-in set")
	return cmd
}

// measurement is what a method did on the built-in set, on average over measuredRuns runs.
type measurement struct {
	NICV    float64 `json:"nicv"`
	Seconds float64 `json:"seconds"`
}

const measuredRuns = 5

func measureMethods(ctx context.Context) (map[string]measurement, error) {
	eng, err := engine.New()
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	measured := make(map[string]measurement)
	for _, m := range catalog.Methods() {
		var mean measurement
		for seed := range measuredRuns {
			x, err := measureMethod(ctx, eng, &m, seed+1)
			if err != nil {
				return nil, err
			}
			mean.NICV += x.NICV / measuredRuns
			mean.Seconds += x.Seconds / measuredRuns
		}
		measured[m.Name] = mean
	}
	return measured, nil
}

func measureMethod(ctx context.Context, eng *engine.Engine, m *method.Method, seed int) (measurement, error) {
	args := []string{"--data=builtin:blobs", "--n=2000", "--d=4", "--k=4", fmt.Sprintf("--seed=%d", seed),
		"--method=" + m.Name}
	if m.Private {
		args = append(args, "--epsilon=1")
	}
	o := new(options)
	fs := pflag.NewFlagSet("methods", pflag.ContinueOnError)
	o.bind(fs)
	if err := fs.Parse(args); err != nil {
		return measurement{}, err
	}
	if _, err := o.resolve(); err != nil {
		return measurement{}, err
	}
	in, err := load(ctx, o, m, nil)
	if err != nil {
		return measurement{}, err
	}
	start := time.Now()
	res, err := once(ctx, eng, m, o, in, nil)
	if err != nil {
		return measurement{}, err
	}
	return measurement{*res.NICV, time.Since(start).Seconds()}, nil
}

// lossesFile has each method's NICV as measureMethods finds it.
//
//go:embed losses.txt
var lossesFile string

// expectedLosses are the lines of lossesFile by method.
func expectedLosses() map[string]string {
	losses := make(map[string]string)
	for line := range strings.Lines(lossesFile) {
		name, loss, _ := strings.Cut(strings.TrimSpace(line), " ")
		losses[name] = loss
	}
	return losses
}

func methodsText(w io.Writer, measured map[string]measurement) error {
	t := table.Table{Columns: []string{"method", "parties hold", "private", "NICV"}}
	if measured != nil {
		t.Columns = append(t.Columns, "time")
	}
	losses := expectedLosses()
	t.Columns = append(t.Columns, "choose it when", "what it is", "private against", "cost")
	for i := range t.Columns {
		t.Numeric = append(t.Numeric, i > 0)
	}
	for _, m := range catalog.Methods() {
		row := []string{m.Name, string(m.Holds), "no"}
		if m.Private {
			row[2] = "yes"
		}
		if measured != nil {
			x := measured[m.Name]
			row = append(row, fmt.Sprintf("%.4g", x.NICV), duration(int64(x.Seconds*1e9)))
		} else {
			row = append(row, losses[m.Name])
		}
		t.Rows = append(t.Rows, append(row, m.When, m.About, m.Against, m.Cost))
	}
	for _, line := range t.Lines(textWidth(w)) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\ncohort run --method NAME --help lists a method's options.")
	return err
}

func methodsJSON(w io.Writer, measured map[string]measurement) error {
	type described struct {
		method.Method
		Calibrations any             `json:"calibrations"`
		Options      []method.Option `json:"options"`
		ExpectedNICV json.Number     `json:"expected_nicv"`
		Measured     *measurement    `json:"measured,omitempty"`
	}
	var all []described
	losses := expectedLosses()
	for _, m := range catalog.Methods() {
		d := described{Method: m, Calibrations: m.Calibrations(), Options: m.Options(),
			ExpectedNICV: json.Number(losses[m.Name])}
		if x, ok := measured[m.Name]; ok {
			d.Measured = &x
		}
		all = append(all, d)
	}
	return json.NewEncoder(w).Encode(all)
}
