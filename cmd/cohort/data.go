package main

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/parquet"
)

func newDataCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Built-in data sets, and where those of the papers come from",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDataListCommand(), newDataWriteCommand(), newDataFetchHelpCommand(), newDataImportCommand())
	return cmd
}

func newDataListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the built-in data sets",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h := newHelp(cmd)
			for _, b := range dataset.Builtins() {
				h.entryAt(21, "builtin:"+b.Name, b.About)
			}
			return nil
		},
	}
}

func newDataWriteCommand() *cobra.Command {
	var g dataset.Generator
	var out, labels string
	cmd := &cobra.Command{
		Use:     "write NAME",
		Short:   "Write a built-in data set as CSV",
		Example: "  cohort data write blobs --n 1000 --d 4 --k 8 --separation 5 --out blobs.csv",
		Args:    arguments(1, 1, "name one built-in set, see cohort data list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := refuseZero(cmd.Flags(), "positive", "n", "d", "k", "separation", "spread"); err != nil {
				return err
			}
			if err := refuseForms("--out", out, ".csv", ".parquet"); err != nil {
				return err
			}
			if err := refuseForms("--labels", labels, ".csv", ".txt"); err != nil {
				return err
			}
			t, err := dataset.Generate(cmd.Context(), args[0], g)
			if err != nil {
				return err
			}
			if out == "" {
				err = dataset.Write(cmd.OutOrStdout(), t)
			} else {
				err = writeWhole("--out", out, func(w io.Writer) error { return writeTable(w, t, out) })
			}
			if err == nil && labels != "" {
				err = writeWhole("--labels", labels, func(w io.Writer) error { return dataset.WriteLabels(w, t.Labels) }, out)
			}
			return err
		},
	}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return builtinSets(""), cobra.ShellCompDirectiveNoFileComp
	}
	fs := cmd.Flags()
	fs.IntVar(&g.N, "n", 0, "rows (default: the set's own)")
	fs.IntVar(&g.D, "d", 0, "columns (default: the set's own)")
	fs.IntVar(&g.K, "k", 0, "clusters (default: the set's own)")
	fs.Float64Var(&g.Separation, "separation", 0, "separation of clusters, for blobs, synth and timesynth")
	fs.Float64Var(&g.Spread, "spread", 0, "how much cluster sizes differ, as a share of their mean, for synth")
	fs.Uint64Var(&g.Seed, "seed", 1, "seed: the same seed gives the same bytes")
	fs.StringVar(&out, "out", "", "file to write, CSV or .parquet (default standard output)")
	fs.StringVar(&labels, "labels", "", "file to write the true labels to")
	return cmd
}

// writeTable writes records in the format that the name of the file asks for.
func writeTable(w io.Writer, t *dataset.Table, path string) error {
	if filepath.Ext(path) != ".parquet" {
		return dataset.Write(w, t)
	}
	columns := make([]parquet.Column, t.D)
	for j := range columns {
		columns[j] = parquet.Column{Name: columnName(t.Columns, j), Floats: func(i int) float64 { return t.Row(i)[j] }}
	}
	return parquet.Write(w, t.N, columns)
}
