package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
		Long: `Show the methods side by side. --measure also runs each of them on a built-in set of
2000 records, 4 columns and 4 clusters (epsilon 1 for the private ones) and shows
what loss and time to expect. --format json has all options with their values too.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(format, "text", "json"); err != nil {
				return err
			}
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
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	cmd.Flags().BoolVar(&measure, "measure", false, "run every method on a small built-in set")
	return cmd
}

// measurement is what a method did on the set of --measure.
type measurement struct {
	NICV    float64 `json:"nicv"`
	Seconds float64 `json:"seconds"`
}

func measureMethods(ctx context.Context) (map[string]measurement, error) {
	eng, err := engine.New()
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	measured := make(map[string]measurement)
	for _, m := range catalog.Methods() {
		args := []string{"--data=builtin:blobs", "--n=2000", "--d=4", "--k=4", "--seed=1", "--method=" + m.Name}
		if m.Private {
			args = append(args, "--epsilon=1")
		}
		o := new(options)
		fs := pflag.NewFlagSet("methods", pflag.ContinueOnError)
		o.bind(fs)
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if _, err := o.resolve(); err != nil {
			return nil, err
		}
		in, err := load(ctx, o, &m, nil)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		res, err := once(ctx, eng, &m, o, in, nil)
		if err != nil {
			return nil, err
		}
		measured[m.Name] = measurement{*res.NICV, time.Since(start).Seconds()}
	}
	return measured, nil
}

func methodsText(w io.Writer, measured map[string]measurement) error {
	t := table.Table{Columns: []string{"method", "parties hold", "private"}}
	if measured != nil {
		t.Columns = append(t.Columns, "NICV", "time")
	}
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
		Measured     *measurement    `json:"measured,omitempty"`
	}
	var all []described
	for _, m := range catalog.Methods() {
		d := described{Method: m, Calibrations: m.Calibrations(), Options: m.Options()}
		if x, ok := measured[m.Name]; ok {
			d.Measured = &x
		}
		all = append(all, d)
	}
	return json.NewEncoder(w).Encode(all)
}
