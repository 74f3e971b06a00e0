package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
)

func newPredictCommand() *cobra.Command {
	var model, data, out, format string
	files := new(fileOptions)
	cmd := &cobra.Command{
		Use:   "predict",
		Short: "Label new rows with a model",
		Long: `Find the cluster of each row of a file, by the centroids and bounds of a model.json
that cohort run --out has written. Columns are matched by name where the model and
the file have names, else by their order. Clusters are counted from 1, and so are
rows, below a header. Distances are taken with each column scaled from its bounds to
[-1,1]. Rows are scaled to length 1 first for a model of --metric cosine.`,
		Example: `  cohort run --data my.csv --k 8 --epsilon 1 --bounds 0:100 --out result
  cohort predict --model result/model.json --data new.csv`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, given := range []struct{ flag, value string }{{"model", model}, {"data", data}} {
				if given.value == "" {
					return fault.Request("--"+given.flag, "is not given", "name the file")
				}
			}
			read, err := files.read(0)
			if err != nil {
				return err
			}
			return predict(cmd.Context(), model, data, read, out, format, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&model, "model", "", "model.json of a run")
	fs.StringVar(&data, "data", "", "file of new rows")
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	files.bind(all)
	all.VisitAll(func(f *pflag.Flag) {
		if f.Name != "labels" && f.Name != "label-column" && f.Name != "max-memory" {
			fs.AddFlag(f)
		}
	})
	fs.StringVar(&out, "labels-out", "", "file to write, .csv, .npy or .parquet (default: standard output)")
	choose(fs, &format, "format", "csv or json, of standard output", "csv", "json")
	return cmd
}

func predict(ctx context.Context, model, data string, read dataset.ReadOptions, out, format string, w io.Writer) error {
	m, err := openModel(model)
	if err != nil {
		return err
	}
	if out != "" {
		if err := labelsWritable(out, model, data); err != nil {
			return err
		}
	}
	// The model's columns are read by their names, where the file has such, so that the others may hold anything.
	read.Named = m.Columns
	t, err := dataset.Open(ctx, data, read)
	if err != nil {
		return err
	}
	rows, err := columns{"model", m.Columns, len(m.Lower)}.of("--data", t)
	if err != nil {
		return err
	}
	for i, x := range rows { // NaN is a missing value under --missing mean-of-bounds
		if h := i % len(m.Lower); math.IsNaN(x) {
			rows[i] = m.Lower[h] + (m.Upper[h]-m.Lower[h])/2
		}
	}
	labels, distances, err := m.Nearest(ctx, rows)
	if err != nil {
		return err
	}
	switch {
	case out != "":
		return writeLabels("--labels-out", out, labels, distances, rowNames{t, 0})
	case format == "csv":
		return writeLabelRows(w, labels, distances, rowNames{t, 0})
	}
	for i := range labels {
		labels[i]++
	}
	return json.NewEncoder(w).Encode(map[string]any{"clusters": labels, "distances": distances})
}

// columns are those that a file must have: of a model, or of the data.
type columns struct {
	whose string
	names []string // nil if they have none
	d     int
}

// of returns the rows of a file that a flag has named with these columns in this order, by their names where both have
// such.
func (c columns) of(flag string, t *dataset.Table) ([]float64, error) {
	if c.names == nil || t.Columns == nil {
		if t.D != c.d {
			return nil, fault.Request(flag, fmt.Sprintf("has %s and the %s %d", fault.Count(t.D, "column"), c.whose, c.d),
				"give the columns of the "+c.whose)
		}
		return t.Rows, nil
	}
	at, err := c.places(flag, t.Columns)
	if err != nil {
		return nil, err
	}
	rows := make([]float64, 0, t.N*c.d)
	for i := range t.N {
		for _, h := range at {
			rows = append(rows, t.Row(i)[h])
		}
	}
	return rows, nil
}

// places are those of the columns in a file, by their names. Columns of one name are in one order in both; where the
// file has more of them, or fewer, nobody knows which are meant.
func (c columns) places(flag string, file []string) ([]int, error) {
	places, wanted := make(map[string][]int), make(map[string]int)
	for i, name := range file {
		places[name] = append(places[name], i)
	}
	for _, name := range c.names {
		wanted[name]++
	}
	at := make([]int, c.d)
	for _, name := range c.names {
		switch found := places[name]; {
		case len(found) == 0:
			return nil, fault.Request(flag, fmt.Sprintf("has no column %q", name),
				fmt.Sprintf("give the columns of the %s: %s", c.whose, strings.Join(c.names, ", ")))
		case len(found) != wanted[name]:
			return nil, fault.Request(flag, fmt.Sprintf("has %s of the name %q and the %s %d",
				fault.Count(len(found), "column"), name, c.whose, wanted[name]), "choose them by their numbers with --columns")
		}
	}
	for h, name := range c.names {
		at[h], places[name] = places[name][0], places[name][1:]
	}
	return at, nil
}
