package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cohort-engine/cohort/bench/page"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/wholefile"
)

func newReportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report RESULT",
		Short: "Draw a result.json as one HTML page",
		Long: `Write one page, which needs no network, about a run: the clusters, their sizes, how it
converged, where the budget went, who saw what, time and bytes. It is made of the
folder of cohort run --out, or of a result.json and, where it lies beside it, model.json, which has the
bounds and the names of the columns. cohort run --report writes the same page.`,
		Example: `  cohort run --data my.csv --k 8 --epsilon 1 --bounds 0:100 --out result
  cohort report result/result.json`,
		Args: arguments(1, 1, "name a result.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			result := args[0]
			if within := filepath.Join(result, "result.json"); isFile(within) {
				result = within
			}
			if out == "" {
				out = filepath.Join(filepath.Dir(result), reportFile)
			}
			run, err := openResult(result)
			if err != nil {
				return err
			}
			if err := writeWhole("--out", out, run.WriteHTML, result, modelBeside(result)); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the report is %s\n", out)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write (default: report.html beside the result)")
	return cmd
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// modelBeside is the model of a result, where there is one.
func modelBeside(result string) string { return filepath.Join(filepath.Dir(result), "model.json") }

// mostResult is the most bytes of a result that a page can be made of.
const mostResult = 256 << 20

// openResult reads a result and, where it is, the model beside it.
func openResult(path string) (*page.Run, error) {
	b, err := wholefile.Read(path, mostResult)
	if err != nil {
		return nil, fault.File(path, "check the path", err)
	}
	r, why := readResult(b)
	if why != "" {
		return nil, fault.Failed(path, why, "give the result.json of a run", nil)
	}
	run := &page.Run{Result: r, Data: "a data set", Headline: []string{privacyLine(r)}}
	if m, err := openModel(modelBeside(path)); err == nil && len(m.Lower) == r.D {
		run.Columns, run.Bounds = m.Columns, dataset.Bounds{Lo: m.Lower, Hi: m.Upper, FromData: m.FromData}
	}
	return run, nil
}

// readResult reads a result that a page can be made of, or says why there is none.
func readResult(b []byte) (r *engine.Result, why string) {
	r = new(engine.Result)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, "is no result (" + err.Error() + ")"
	}
	columns := func(row []float64) bool { return len(row) == r.D }
	switch {
	case len(r.Centroids) == 0 || r.D < 1 || r.Ledger == nil:
		return nil, "has no centroids or no ledger"
	case r.Sizes != nil && len(r.Sizes) != len(r.Centroids):
		return nil, "has not one size for each centroid"
	case (r.Epsilon == nil) != (r.Delta == nil):
		return nil, "has an epsilon and no delta, or the reverse"
	case len(r.Comm.BytesSent) != len(r.Comm.BytesReceived):
		return nil, "has bytes sent and received of different parties"
	}
	for _, c := range r.Centroids {
		if !columns(c) {
			return nil, fmt.Sprintf("has a centroid of %s for %d", fault.Count(len(c), "column"), r.D)
		}
	}
	for _, c := range r.Synopsis {
		if !columns(c.Lo) || !columns(c.Hi) {
			return nil, fmt.Sprintf("has a cell of another number of columns than %d", r.D)
		}
	}
	return r, ""
}

// pagePoints is the number of records that a page shows of the reader's own file.
const pagePoints = 4000

// page is the page of a run that has just ended. It shows records only where quality figures are shown.
func (d *delivery) page(r *engine.Result) *page.Run {
	run := &page.Run{
		Result:   r,
		Data:     filepath.Base(d.in.table.Name),
		Columns:  d.in.table.Columns,
		Bounds:   d.in.norm.Bounds,
		Headline: append([]string{privacyLine(r)}, uncovered(r, d)...),
	}
	if r.NICV == nil {
		return run
	}
	points := d.in.norm.Points
	shown := min(points.N, pagePoints)
	row := make([]float32, points.D)
	for i := range shown {
		x := make([]float64, points.D)
		for h, v := range points.Point(i*points.N/shown, row) {
			x[h] = float64(v)
		}
		run.Points = append(run.Points, run.Bounds.Denormalise(nil, x))
	}
	return run
}
