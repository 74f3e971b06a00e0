package main

import (
	"context"
	"io"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/internal/fault"
)

// runLeakage prints what each role holds after a run of every protocol of Thesis-H's
// leakage tables on a built-in set of three clients. A difference is a failure.
func runLeakage(ctx context.Context, o *options, out io.Writer) error {
	eng, err := newEngine(0)
	if err != nil {
		return err
	}
	defer eng.Close()
	const n, k, clients, seed = 900, 4, 3, 4
	t, err := dataset.Generate(ctx, "blobs", dataset.Generator{N: n, D: 2, K: k, Seed: seed})
	if err != nil {
		return err
	}
	bounds, err := dataset.BoundsFromData(t)
	if err != nil {
		return err
	}
	norm, err := dataset.Normalise(t, bounds, dataset.DefaultFractionBits)
	if err != nil {
		return err
	}
	parts, err := norm.Split(clients, nil, seed)
	if err != nil {
		return err
	}
	rows, err := lloyd.LeakageTables(ctx, eng.Pool(), parts, k, seed)
	if err != nil {
		return err
	}
	err = show(out, o.format, rows, func() error { return printLeakage(out, rows) })
	if err != nil {
		return err
	}
	for i := range rows {
		if !rows[i].Agrees() {
			return fault.Failed("leakage", "a role holds what the table of "+rows[i].Table+" does not give it",
				"see the cells that name the table", nil)
		}
	}
	return nil
}

func printLeakage(out io.Writer, rows []lloyd.LeakageRow) error {
	g := table.Table{Columns: []string{"Thesis-H", "role", "own counts", "own sums", "counts", "sums", "centroids"},
		Numeric: []bool{false, false, true, true, true, true, true}}
	differ := 0
	for i := range rows {
		r := &rows[i]
		for _, x := range []struct {
			role         string
			held, thesis lloyd.Leakage
		}{{"server", r.Server, r.ThesisServer}, {"client", r.Client, r.ThesisClient}} {
			line := []string{r.Table, x.role}
			for _, cell := range [][2]string{{x.held.LocalCounts, x.thesis.LocalCounts}, {x.held.LocalSums, x.thesis.LocalSums},
				{x.held.Counts, x.thesis.Counts}, {x.held.Sums, x.thesis.Sums}, {x.held.Centroids, x.thesis.Centroids}} {
				if cell[0] != cell[1] {
					differ++
					cell[0] += ", table: " + cell[1]
				}
				line = append(line, cell[0])
			}
			g.Rows = append(g.Rows, line)
		}
	}
	w := &lines{w: out}
	w.printf("Who has seen what after a run of three clients, by the values in the transcript:\nx nothing, own its " +
		"own value, exact the value itself, DP the value with noise\n\n")
	for _, line := range g.Lines(textWidth(out)) {
		w.printf("%s\n", line)
	}
	if differ == 0 {
		w.printf("\nAll is as the thesis's tables have it.\n")
	}
	w.printf("Of two clients that see exact sums each knows the other's: it subtracts its own.\n" +
		"A server that draws the noise knows the exact sums once it reads the result.\n")
	return w.err
}
