package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/fault"
)

// textCentroids is the number of centroids that the text form shows in full.
const textCentroids = 20

// textColumns is the number of coordinates of a centroid that fit 80 columns.
const textColumns = 6

// printResult writes the result for people, within 80 columns where the data
// allows it.
func printResult(w io.Writer, r *engine.Result, d *delivery) error {
	var b strings.Builder
	in, width := d.in, textWidth(w)
	headline := fmt.Sprintf("%s on %s: %s, %s, %s", r.Method, in.table.Name, fault.Count(r.N, "point"),
		fault.Count(r.D, "dimension"), fault.Count(r.K, "cluster"))
	for _, text := range append([]string{headline, privacyLine(r)}, uncovered(r, d)...) {
		b.WriteString(table.Paragraph(text, 0, 0, width))
	}
	b.WriteString("\n")
	printCentroids(&b, r, in, width)
	printQuality(&b, r, width)
	if r.Epsilon != nil {
		b.WriteString("Privacy ledger\n")
		if err := r.Ledger.Text(&b); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	printTimings(&b, r)
	printComm(&b, r)
	for _, n := range append(r.Notes, d.said...) {
		b.WriteString(table.Paragraph(n, 2, 0, width))
	}
	_, err := io.WriteString(w, fault.Visible(b.String()))
	return err
}

// show writes an answer as JSON, or by text for people.
func show(out io.Writer, format string, answer any, text func() error) error {
	if format == "json" {
		return json.NewEncoder(out).Encode(answer)
	}
	return text()
}

func privacyLine(r *engine.Result) string {
	if r.Epsilon == nil {
		return "no privacy: " + r.Method + " adds no noise"
	}
	s := fmt.Sprintf("epsilon %g", *r.Epsilon)
	if r.Delta != nil && *r.Delta > 0 {
		s += fmt.Sprintf(", delta %.3g", *r.Delta)
	}
	s += ", calibration " + r.Calibration
	if r.Seed != nil {
		s += fmt.Sprintf("; SIMULATION with seed %d: reproducible, hence not private", *r.Seed)
	}
	return s
}

// uncovered says what of a private result its epsilon does not cover, and why it is
// of little use where that is known.
func uncovered(r *engine.Result, d *delivery) []string {
	if r.Epsilon == nil {
		return nil
	}
	lines := slices.Clone(r.Doubts)
	switch bounds, n := d.in.norm.Bounds.FromData, d.ownNumber; {
	case bounds && n:
		lines = append(lines, "epsilon does not cover the bounds and the number of records, which come from the data")
	case bounds:
		lines = append(lines, "epsilon does not cover the bounds, which come from the data")
	case n:
		lines = append(lines, "epsilon does not cover the number of records, which comes from the data")
	}
	if shown := shownOf(r); r.Seed == nil && shown != "" {
		lines = append(lines, "epsilon does not cover the "+shown+", which are shown because they were asked for")
	}
	return lines
}

// shownOf names what a result shows that depends on the records.
func shownOf(r *engine.Result) string {
	switch {
	case r.NICV != nil && r.Timings != nil:
		return "quality figures and times"
	case r.NICV != nil:
		return "quality figures"
	case r.Timings != nil:
		return "times"
	}
	return ""
}

func printCentroids(b *strings.Builder, r *engine.Result, in *input, width int) {
	fmt.Fprintf(b, "Centroids, in the data's units\n")
	shown := min(r.D, textColumns)
	if r.Sizes != nil {
		shown = min(r.D, textColumns-1)
	}
	lines := centroidLines(r, in, shown)
	for shown > 1 && slices.ContainsFunc(lines, func(line string) bool { return table.Width(line) > width }) {
		shown--
		lines = centroidLines(r, in, shown)
	}
	fmt.Fprintln(b, strings.Join(lines, "\n"))
	if r.D > shown || len(r.Centroids) > textCentroids {
		fmt.Fprintf(b, "  (%d of %d centroids, %d of %d columns; --format json or --out has all)\n",
			min(len(r.Centroids), textCentroids), len(r.Centroids), shown, r.D)
	}
	b.WriteString("\n")
}

// centroidLines is the table of the first centroids in so many columns.
func centroidLines(r *engine.Result, in *input, shown int) []string {
	t := table.Table{Columns: []string{""}, Right: true}
	switch {
	case r.Sizes != nil && r.Epsilon != nil:
		t.Columns = append(t.Columns, "size, noisy")
	case r.Sizes != nil:
		t.Columns = append(t.Columns, "size")
	}
	t.Columns = append(t.Columns, shortNames(in.table.Columns, shown)...)
	t.Numeric = slices.Repeat([]bool{true}, len(t.Columns))
	for j, c := range r.Centroids[:min(len(r.Centroids), textCentroids)] {
		row := []string{fmt.Sprint(j + 1)}
		if r.Sizes != nil {
			row = append(row, fmt.Sprintf("%.0f", r.Sizes[j]))
		}
		for _, x := range c[:shown] {
			row = append(row, fmt.Sprintf("%.5g", x))
		}
		t.Rows = append(t.Rows, row)
	}
	return t.Lines(0)
}

// shortNames are the first names as the head of a table has them; those that are cut alike have their number before.
func shortNames(names []string, shown int) []string {
	const most = 11
	whole, short, count := make([]string, shown), make([]string, shown), make(map[string]int)
	for h := range shown {
		whole[h] = strings.Join(strings.Fields(columnName(names, h)), " ")
		short[h] = table.Clip(whole[h], most)
		count[short[h]]++
	}
	for h, name := range short {
		if count[name] > 1 && name != whole[h] {
			short[h] = table.Clip(fmt.Sprintf("%d %s", h+1, whole[h]), most)
		}
	}
	return short
}

func columnName(names []string, h int) string {
	if names == nil {
		return fmt.Sprintf("x%d", h+1)
	}
	return names[h]
}

func printQuality(b *strings.Builder, r *engine.Result, width int) {
	if r.NICV == nil {
		if r.LossEstimate != nil {
			b.WriteString(table.Paragraph(fmt.Sprintf("Mean squared distance about %.2g in normalised units, estimated from "+
				"what was released", *r.LossEstimate), 0, 2, width) + "\n")
		}
		return
	}
	b.WriteString("Quality (from the private data, not covered by epsilon)\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	row := func(name string, value *float64, format string) {
		if value != nil {
			fmt.Fprintf(t, "  %s\t"+format+"\n", name, *value)
		}
	}
	if r.NICVHalf != nil {
		fmt.Fprintf(t, "  NICV\t%.6g ± %.2g (mean of %d runs, 95%%)\n", *r.NICV, *r.NICVHalf, len(r.Runs))
	} else {
		row("NICV", r.NICV, "%.6g")
	}
	row("WCSS", r.WCSS, "%.6g")
	if r.EmptyClusters != nil {
		fmt.Fprintf(t, "  empty clusters\t%d\n", *r.EmptyClusters)
	}
	if x := r.Separation; x != nil {
		row("BCSS", x.BCSS, "%.6g")
		of := ""
		if x.Sample < r.N {
			of = fmt.Sprintf(" (of %d records)", x.Sample)
		}
		row("silhouette"+of, x.Silhouette, "%.4f")
		row("Dunn"+of, x.Dunn, "%.3g")
		row("Davies-Bouldin", x.DaviesBouldin, "%.4f")
	}
	if r.Clamped != nil && *r.Clamped > 0 {
		fmt.Fprintf(t, "  clamped coordinates\t%d\n", *r.Clamped)
	}
	row("ARI", r.ARI, "%.4f")
	row("NMI", r.NMI, "%.4f")
	row("FMI", r.FMI, "%.4f")
	row("V-measure", r.VMeasure, "%.4f")
	row("accuracy", r.Accuracy, "%.4f")
	t.Flush()
	b.WriteString("\n")
}

func printTimings(b *strings.Builder, r *engine.Result) {
	if len(r.Timings) == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(r.Timings), func(x, y string) int {
		return int(r.Timings[y].TotalNS - r.Timings[x].TotalNS)
	})
	fmt.Fprintf(b, "Time by phase; iterations: %d\n", r.Iterations)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "phase\tcount\ttotal\tp50\tp99\tmax\t")
	for _, n := range names {
		x := r.Timings[n]
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t\n", n, x.Count, duration(x.TotalNS), duration(x.P50NS), duration(x.P99NS),
			duration(x.MaxNS))
	}
	t.Flush()
	b.WriteString("\n")
}

// duration prints nanoseconds with three digits.
func duration(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3gs", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3gms", float64(ns)/1e6)
	case d >= time.Microsecond:
		return fmt.Sprintf("%.3gµs", float64(ns)/1e3)
	}
	return fmt.Sprintf("%dns", ns)
}

func printComm(b *strings.Builder, r *engine.Result) {
	if len(r.Comm.BytesSent) == 0 {
		return
	}
	var sent, received int64
	for i := range r.Comm.BytesSent {
		sent += r.Comm.BytesSent[i]
		received += r.Comm.BytesReceived[i]
	}
	fmt.Fprintf(b, "Communication: rounds %d, bytes sent %d, bytes received %d, parties %d\n",
		r.Comm.Rounds, sent, received, len(r.Comm.BytesSent))
}
