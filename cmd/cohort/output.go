package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
)

// textCentroids is the number of centroids that the text form shows in full.
const textCentroids = 20

// textColumns is the number of coordinates of a centroid that fit 80 columns.
const textColumns = 6

// printResult writes the result for people, within 80 columns where the data
// allows it.
func printResult(w io.Writer, r *engine.Result, in *input) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %d points, %d dimensions, %d clusters\n", r.Method, in.table.Name, r.N, r.D, r.K)
	for _, line := range table.Fold(privacyLine(r), 80) {
		fmt.Fprintln(&b, line)
	}
	b.WriteString("\n")
	printCentroids(&b, r, in)
	printQuality(&b, r)
	if r.Epsilon != nil {
		b.WriteString("Privacy ledger\n")
		if err := r.Ledger.Text(&b); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	printTimings(&b, r)
	printComm(&b, r)
	for _, n := range r.Notes {
		for _, line := range table.Fold(n, 78) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
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

func printCentroids(b *strings.Builder, r *engine.Result, in *input) {
	fmt.Fprintf(b, "Centroids, in the data's units\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	shown := min(r.D, textColumns)
	fmt.Fprint(t, "\t")
	for h := range shown {
		fmt.Fprintf(t, "%s\t", clip(columnName(in.table.Columns, h), 11))
	}
	fmt.Fprintln(t)
	for j, c := range r.Centroids[:min(len(r.Centroids), textCentroids)] {
		fmt.Fprintf(t, "%d\t", j+1)
		for _, x := range c[:shown] {
			fmt.Fprintf(t, "%.5g\t", x)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	if r.D > shown || len(r.Centroids) > textCentroids {
		fmt.Fprintf(b, "  (%d of %d centroids, %d of %d columns; --format json or --out has all)\n",
			min(len(r.Centroids), textCentroids), len(r.Centroids), shown, r.D)
	}
	b.WriteString("\n")
}

func columnName(names []string, h int) string {
	if names == nil {
		return fmt.Sprintf("x%d", h+1)
	}
	return names[h]
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func printQuality(b *strings.Builder, r *engine.Result) {
	if r.NICV == nil {
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
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t\n", n, x.Count, duration(x.TotalNS), duration(x.P50NS), duration(x.P99NS), duration(x.MaxNS))
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

// writeFolder writes the result to dir: everything to a temporary folder beside
// it, which then takes its place, so that nothing is ever half written. An
// existing folder is replaced only if it holds nothing but an earlier result.
func writeFolder(dir string, r *engine.Result, columns []string) (err error) {
	fail := func(err error) error {
		return fault.Failed("--out", fmt.Sprintf("%s cannot be written (%v)", dir, err), "check the path and its rights", err)
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fail(err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".cohort-*")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(tmp)
	if err := writeFiles(tmp, r, columns); err != nil {
		return fail(err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fail(err)
	}
	if err := retire(dir); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fail(err)
	}
	return nil
}

// writeWhole writes a file under a temporary name and renames it, so that a
// reader never sees half of it.
func writeWhole(flag, path string, write func(io.Writer) error) (err error) {
	fail := func(err error) error {
		return fault.Failed(flag, fmt.Sprintf("%s cannot be written (%v)", path, err), "check the path and its rights", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".cohort-*")
	if err != nil {
		return fail(err)
	}
	defer os.Remove(f.Name())
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// resultFiles are the files of an --out folder.
var resultFiles = []string{"centroids.csv", "ledger.txt", "result.json"}

// retire removes an earlier result folder and refuses to touch anything else.
func retire(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Failed("--out", err.Error(), "name another folder", err)
	}
	for _, e := range entries {
		if !slices.Contains(resultFiles, e.Name()) {
			return fault.Failed("--out", fmt.Sprintf("%s holds %s, which is not a result of cohort", dir, e.Name()), "name a new or empty folder", nil)
		}
	}
	return os.RemoveAll(dir)
}

func writeFiles(dir string, r *engine.Result, columns []string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "result.json"), append(b, '\n'), 0o644); err != nil {
		return err
	}
	var text strings.Builder
	if err := r.Ledger.Text(&text); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.txt"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	var csvText strings.Builder
	w := csv.NewWriter(&csvText)
	header := make([]string, r.D)
	for h := range header {
		header[h] = columnName(columns, h)
	}
	rows := [][]string{header}
	for _, c := range r.Centroids {
		row := make([]string, len(c))
		for h, x := range c {
			row[h] = strconv.FormatFloat(x, 'g', -1, 64)
		}
		rows = append(rows, row)
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "centroids.csv"), []byte(csvText.String()), 0o644)
}
