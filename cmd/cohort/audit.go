package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/audit"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/pages"
	"github.com/cohort-engine/cohort/kernels"
)

// auditOptions are the flags that audit has besides those of run.
type auditOptions struct {
	trials     int
	confidence float64
	pair       string
	cases      []string
	list       bool
	timing     bool
	whiteBox   bool
	leakage    bool
	canaries   bool
	runs       int
}

func newAuditCommand() *cobra.Command {
	o, a := new(options), new(auditOptions)
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Look for violations of a method's ledger",
		Long: `Run a method many times on pairs of neighbouring data sets, chosen to be bad for it,
and compute a lower bound on its epsilon from how often events happen. A bound above
the ledger's epsilon is a violation, and the exit status 1. Otherwise the status is 0,
which is no proof.

--method and --calibration are enough: the pairs come from a library of worst cases.
--list names them, --case keeps some. --data with --pair audits a pair of your own:
two files that differ in one record.

--canaries proves lower bounds and prints them beside the claims, of --method or of
every method: from whole runs with thousands of records, each put in or left out by
a coin, which are guessed from all that the run releases; and from many runs on the
worst pairs where a run releases little.

--timing compares instead the time of the functions that handle secrets in encrypted
k-means, on a fixed secret and on random ones, by Welch's t over --trials calls.

--leakage runs the protocols of Thesis-H's leakage tables and prints who has seen what,
judged by the values in the transcript, beside the tables.`,
		Example: `  cohort audit --method fastlloyd --calibration claimed
  cohort audit --method fastlloyd --calibration claimed --case "doubled mean" --trials 1000000
  cohort audit --method relative --data a.csv --pair b.csv --k 3 --bounds 0:1
  cohort audit --canaries --method sulloyd
  cohort audit --timing
  cohort audit --leakage`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runAudit(cmd.Context(), o, a, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	files := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(fileOptions).bind(files)
	o.bindSome(fs, func(flag string) bool {
		return files.Lookup(flag) != nil ||
			slices.Contains([]string{"method", "calibration", "neighbours", "mechanism", "epsilon", "delta", "k", "data",
				"bounds", "bounds-file", "fraction-bits", "seed", "workers", "format"}, flag)
	})
	fs.IntVar(&a.trials, "trials", audit.DefaultTrials, "runs on each side of a cheap case; dear ones get a fraction")
	fs.Float64Var(&a.confidence, "confidence", audit.DefaultConfidence, "confidence of each lower bound")
	fs.StringArrayVar(&a.cases, "case", nil, "audit this case of the library only; may be repeated")
	fs.BoolVar(&a.list, "list", false, "list the methods, calibrations and cases that can be audited")
	fs.BoolVar(&a.whiteBox, "white-box", false,
		"test the noise that runs drew instead: its distribution, scale and independence against the plan, over --trials "+
			"runs (default 400)")
	fs.BoolVar(&a.canaries, "canaries", false,
		"prove lower bounds beside the claims, from whole runs with many records put in by coins")
	fs.IntVar(&a.runs, "runs", 0, "whole runs with canaries (default as many as have 32,768 canaries together)")
	fs.StringVar(&a.pair, "pair", "", "file that differs from --data in one record")
	fs.BoolVar(&a.timing, "timing", false, "compare the time of functions on fixed and on random secrets")
	fs.BoolVar(&a.leakage, "leakage", false,
		"print who sees what in each protocol of Thesis-H's leakage tables, beside them")
	o.explain(cmd, "canaries", "runs", "leakage", "trials", "confidence", "case", "list", "pair", "timing", "white-box")
	return cmd
}

// oneKind refuses two kinds of audits at once: one of them would be left out without a word.
func (a *auditOptions) oneKind() error {
	first := ""
	for _, kind := range []struct {
		name  string
		asked bool
	}{
		{"list", a.list}, {"canaries", a.canaries}, {"leakage", a.leakage}, {"timing", a.timing},
		{"white-box", a.whiteBox},
	} {
		switch {
		case kind.asked && first != "":
			return fault.Request("--"+kind.name, "is an audit of its own, and so is --"+first, "give one of them")
		case kind.asked:
			first = kind.name
		}
	}
	return nil
}

func runAudit(ctx context.Context, o *options, a *auditOptions, out io.Writer) error {
	if err := a.oneKind(); err != nil {
		return err
	}
	if a.list {
		return listCases(out, o.method)
	}
	if a.canaries {
		return runCanaries(ctx, o, a, out)
	}
	if o.given("runs") {
		return fault.Request("--runs", "counts the runs of --canaries", "give --canaries too, or --trials")
	}
	if a.leakage {
		return runLeakage(ctx, o, out)
	}
	if a.timing {
		return runTimings(ctx, o, a, out)
	}
	if err := refuseZero(o.set, "at least 100", "trials"); err != nil {
		return err
	}
	m, err := audited(o, a)
	if err != nil {
		return err
	}
	neighbours, err := privacy.ParseNeighbours(o.setting("neighbours"))
	if err != nil {
		return err
	}
	for _, err := range []error{o.checkNumbers(), oneOf("mechanism", o.setting("mechanism"), "", "laplace", "gaussian")} {
		if err != nil {
			return err
		}
	}
	if err := selectKernels(); err != nil {
		return err
	}
	if a.whiteBox {
		return runWhiteBox(ctx, o, a, o.calibration(m), out)
	}
	settings := audit.Settings{Epsilon: o.epsilon, Delta: o.delta, Mechanism: o.setting("mechanism"),
		Neighbours: neighbours}
	if a.pair != "" {
		if settings.Pair, err = o.loadPair(ctx, a.pair, neighbours); err != nil {
			return err
		}
	}
	cases, err := audit.Cases(o.method, o.calibration(m), settings)
	if err != nil {
		return err
	}
	if cases, err = audit.Choose(cases, a.cases); err != nil {
		return err
	}
	pages.Heap()
	eng, err := newEngine(o.workers)
	if err != nil {
		return err
	}
	defer eng.Close()
	report, err := audit.Run(ctx, eng.Pool(), o.method, o.calibration(m), cases,
		audit.Options{Trials: a.trials, Confidence: a.confidence, Seed: o.seedPointer()})
	if err != nil {
		return err
	}
	return verdict(report.Verdict == audit.Violated,
		show(out, o.format, report, func() error { return printReport(out, report) }))
}

// audited is the method that an audit is asked of.
func audited(o *options, a *auditOptions) (m *method.Method, err error) {
	switch {
	case o.method == "":
		return m, fault.Request("--method", "is not given", "name the method to audit, such as --method fastlloyd")
	case o.given("data") != (a.pair != ""):
		return m, fault.Request("--pair", "and --data come together",
			"give the two files that differ in one record, or neither")
	}
	m, err = catalog.Methods().Find(o.method)
	if err != nil {
		return m, err
	}
	if !m.Private {
		return m, fault.Request("method", m.Name+" releases nothing that epsilon covers", "choose a private method")
	}
	return m, nil
}

// runWhiteBox tests the noise that runs of a method draw.
func runWhiteBox(ctx context.Context, o *options, a *auditOptions, c privacy.Calibration, out io.Writer) error {
	runs := 400
	if o.given("trials") {
		runs = a.trials
	}
	pool := engine.NewPool(1)
	defer pool.Close()
	r, err := audit.WhiteBox(ctx, pool, o.method, c, runs, o.seedPointer())
	if err != nil {
		return err
	}
	return verdict(r.Verdict == audit.Violated, show(out, o.format, r, func() error {
		w := &lines{w: out}
		w.printf("%s, %s calibration: %s of noise in %s of %s, %s, in %.1f s\n",
			r.Method, r.Calibration, fault.Count(r.Numbers, "number"), fault.Count(r.Releases, "draw"),
			fault.Count(len(r.Ways), "way"), fault.Count(r.Runs, "run"), r.Seconds)
		for _, way := range r.Ways {
			w.printf("  ran as %s\n", way)
		}
		if r.Distance > 0 {
			w.printf("A record moves the releases by %.4g of the ledger's epsilon, in units of the noise, at most 1\n",
				r.Distance)
		}
		for _, x := range r.Checks {
			w.printf("  %s: %s: %.4g, at most %.4g\n", x.Release, x.Check, x.Statistic, x.Limit)
		}
		w.printf("%s (what is right fails with probability %.0e)\n", r.Verdict, r.Failure)
		return w.err
	}))
}

// verdict is how an audit ends that has been shown: a violation is a failure.
func verdict(violated bool, err error) error {
	if err == nil && violated {
		return &statusError{exitFailed}
	}
	return err
}

// listCases prints the library, of one method if it is named.
func listCases(out io.Writer, method string) error {
	h := help{out, textWidth(out)}
	for _, a := range audit.Audits() {
		if method != "" && a.Method != method {
			continue
		}
		cases, err := audit.Cases(a.Method, a.Calibration, audit.Settings{})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s, %s\n", a.Method, a.Calibration); err != nil {
			return err
		}
		for _, c := range cases {
			h.hanging(2, c.Name+": "+c.About)
		}
	}
	return nil
}

// loadPair reads two files that differ in one record.
func (o *options) loadPair(ctx context.Context, second string, n privacy.Neighbours) (*audit.Pair, error) {
	if !o.given("k") || o.k < 1 || o.kLeast > 0 {
		return nil, fault.Request("--k", "is not given", "say how many clusters the pair is for, such as --k 3")
	}
	var rows [2][]string
	at := map[string][]float64{}
	d := 0
	for i, path := range []string{o.data, second} {
		read, err := o.read(o.workers)
		if err != nil {
			return nil, err
		}
		t, err := dataset.Open(ctx, path, read)
		if err != nil {
			return nil, err
		}
		if i == 1 && t.D != d {
			return nil, fault.Request("--pair", fmt.Sprintf("has %s and --data %d", fault.Count(t.D, "column"), d),
				"give files of the same columns")
		}
		d = t.D
		if o.bounds == "" && o.boundsFile == "" {
			return nil, fault.Request("--bounds", "is not given and both files need the same", "give the public bounds")
		}
		b, err := o.publicBounds(ctx, t.D)
		if err != nil {
			return nil, err
		}
		norm, err := dataset.Normalise(t, *b, o.fractionBits)
		if err != nil {
			return nil, err
		}
		point := make([]float32, d)
		for r := range t.N {
			row := make([]float64, d)
			for h, x := range norm.Points.Point(r, point) {
				row[h] = float64(x)
			}
			key := fmt.Sprint(row)
			at[key] = row
			rows[i] = append(rows[i], key)
		}
	}
	if len(rows[0]) > len(rows[1]) {
		rows[0], rows[1] = rows[1], rows[0]
	}
	p := &audit.Pair{Name: "the pair given", About: o.data + " and " + second, D: d, K: o.k}
	count := map[string]int{}
	for _, k := range rows[0] {
		count[k]++
	}
	var extra []string
	for _, k := range rows[1] {
		if count[k] > 0 {
			count[k]--
			p.Records = append(p.Records, at[k]...)
		} else {
			extra = append(extra, k)
		}
	}
	var other []string
	for k, c := range count {
		other = append(other, slices.Repeat([]string{k}, c)...)
	}
	want := 0
	if n == privacy.ReplaceOne {
		want = 1
	}
	if len(extra) != 1 || len(other) != want {
		return nil, fault.Request("--pair",
			fmt.Sprintf("one file has %s that the other lacks, and %d the other way round",
				fault.Count(len(extra), "record"), len(other)),
			fmt.Sprintf("give files that are %s neighbours", n))
	}
	p.Extra = at[extra[0]]
	if want == 1 {
		p.Other = at[other[0]]
	}
	return p, nil
}

// runTimings times functions on secrets and prints the comparison.
func runTimings(ctx context.Context, o *options, a *auditOptions, out io.Writer) error {
	if err := selectKernels(); err != nil {
		return err
	}
	calls := audit.DefaultTimingCalls
	if o.given("trials") {
		calls = a.trials
	}
	var seed uint64
	if p := o.seedPointer(); p != nil {
		seed = *p
	}
	timings, err := audit.Timings(ctx, calls, seed)
	if err != nil {
		return err
	}
	return show(out, o.format, timings, func() error {
		w := &lines{w: out}
		w.printf("Time on a fixed secret and on random ones, %d calls of each function on %s; |t| below %d shows no "+
			"dependence\n\n", calls, kernels.ISA(), audit.TimingLimit)
		w.printf("%-32s %10s %10s %8s\n", "function", "fixed", "random", "t")
		for _, t := range timings {
			mark := ""
			if math.Abs(t.T) >= audit.TimingLimit {
				mark = "  depends on the secret, or the machine is not quiet"
			}
			w.printf("%-32s %7.1f ns %7.1f ns %8.2f%s\n", t.Function, t.Fixed, t.Random, t.T, mark)
		}
		return w.err
	})
}

func printReport(out io.Writer, r *audit.Report) error {
	w := &lines{w: out}
	w.printf("Audit of %s, calibration %s: lower bounds at %.5g%% confidence\n", r.Method, r.Calibration, 100*r.Confidence)
	for _, f := range r.Cases {
		w.printf("\n%s\n  %s\n  watched: %s\n  %s on each side, %d of them counted\n", f.Case, f.About, f.Watched,
			fault.Count(f.Trials, "run"), f.Counted)
		w.bound(&f.Bound)
		switch {
		case f.True != nil:
			w.printf("  the ledger's true epsilon: %.4g\n", *f.True)
		case f.Unbounded:
			w.printf("  the ledger's true epsilon: without bound\n")
		}
		if f.Profile != nil {
			w.bound(f.Profile)
		}
		if g := f.Gaussian; g != nil {
			w.printf("  as a Gaussian mechanism: mu at least %.4g of the %.4g claimed, so epsilon at least %.4g at delta %.3g\n",
				g.Lower, g.Mu, g.Epsilon, f.Delta)
		}
	}
	// The case that came nearest to its ledger, or went farthest beyond it.
	most, at := math.Inf(-1), &r.Cases[0]
	for i := range r.Cases {
		for _, b := range []*audit.Bound{&r.Cases[i].Bound, r.Cases[i].Profile} {
			if b != nil && b.Epsilon != nil && b.Lower-*b.Epsilon > most {
				most, at = b.Lower-*b.Epsilon, &r.Cases[i]
			}
		}
	}
	w.printf("\nVerdict: %s\n  %s, %s on each side", r.Verdict, at.Case, fault.Count(at.Trials, "run"))
	for _, b := range []*audit.Bound{&at.Bound, at.Profile} {
		if b != nil {
			w.printf("; at delta %.3g epsilon at least %.4g", b.Delta, b.Lower)
			if b.Epsilon != nil {
				w.printf(" (ledger %.4g)", *b.Epsilon)
			}
		}
	}
	w.printf("\n")
	return w.err
}

func (w *lines) bound(b *audit.Bound) {
	w.printf("  at delta %.3g: epsilon at least %.4g", b.Delta, b.Lower)
	switch {
	case b.Epsilon == nil:
		w.printf(", the ledger has no bound\n")
	case b.Lower > *b.Epsilon:
		w.printf(", above the ledger's %.4g\n", *b.Epsilon)
	default:
		w.printf(", within the ledger's %.4g\n", *b.Epsilon)
	}
	w.printf("    event: %s; %d times with, %d without\n", b.Event, b.With, b.Without)
}

// lines writes until an error, and folds lines that are too long.
type lines struct {
	w    io.Writer
	text string // of a line that has not ended
	err  error
}

func (l *lines) printf(format string, args ...any) {
	whole := strings.Split(l.text+fmt.Sprintf(format, args...), "\n")
	l.text = whole[len(whole)-1]
	width := textWidth(l.w)
	for _, line := range whole[:len(whole)-1] {
		if table.Width(line) > width {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			line = strings.TrimSuffix(table.Paragraph(line, indent, 2, width), "\n")
		}
		if l.err == nil {
			_, l.err = fmt.Fprintln(l.w, line)
		}
	}
}
