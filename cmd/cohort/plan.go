package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

func newPlanCommand() *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "What a run would do, cost and reveal, without running it",
		Long: `Print the rounds of a run, what it would release with which noise, what each viewer
could learn, bytes and sizes, all from public values. The flags are those of run.

With --public-n, --d, --bounds (or --private-bounds) and --k no data is opened. Otherwise
the data is read for its size, its columns and, without --bounds, its bounds, and the plan
shows them.`,
		Example: `  cohort plan --public-n 50000 --d 4 --bounds 0:100 --k 8 --epsilon 1
  cohort plan --data a.csv,b.csv --k 15 --method fastlloyd --epsilon 1 --format json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return planJob(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	o.bindSome(cmd.Flags(), func(flag string) bool {
		switch flag {
		case "out", "out-format", "report", "labels-out", "timings", "runs":
			return false
		}
		return !strings.HasPrefix(flag, "ledger")
	})
	o.explain(cmd, "public-n", "d")
	return cmd
}

func planJob(ctx context.Context, o *options, out io.Writer) error {
	records, err := o.publicRecords()
	if err != nil {
		return err
	}
	shaped, bounded := records > 0 && o.given("d"), o.bounds != "" || o.boundsFile != "" || o.given("private-bounds")
	if records == 0 && o.given("d") && !o.given("data") {
		return fault.Request("--public-n", "is not given, and no data is opened",
			"say how many records there are about, such as --public-n 50000")
	}
	if shaped && !bounded && !o.given("data") {
		return fault.Request("--bounds", "is not given, and no data is opened", "say what they are, such as --bounds 0:100")
	}
	blind := shaped && bounded
	if blind && !o.given("k") {
		return fault.Request("--k", "is not given, and no data is opened", "say how many clusters to look for, such as --k 8")
	}
	o.planned = true
	m, err := o.resolve()
	if err != nil {
		return err
	}
	var in *input
	if blind {
		in, err = o.shape(ctx)
	} else {
		in, err = load(ctx, o, m, nil)
	}
	if err != nil {
		return err
	}
	if records > 0 { // nothing may follow from the data's own number
		in.norm = o.shapeOf(records, in.norm.Bounds)
		in.table = &dataset.Table{Name: in.table.Name, N: records, D: in.table.D, Columns: in.table.Columns}
		in.ids = nil
	}
	if o.given("private-n") { // the run follows a count
		in.counted = max(in.table.N, in.k)
	}
	plan, err := in.plan(o, m)
	if err != nil {
		return err
	}
	outline, err := plan.Outline()
	if err != nil {
		return err
	}
	if err := in.planCount(o, m, outline); err != nil {
		return err
	}
	if err := in.planBounds(o, m, outline); err != nil {
		return err
	}
	return show(out, o.format, outline, func() error {
		if o.given("private-bounds") {
			return printOutline(out, outline, nil)
		}
		return printOutline(out, outline, &in.norm.Bounds)
	})
}

// publicRecords is --public-n, 0 if it was not given. A method that has no such option
// is planned for so many records.
func (o *options) publicRecords() (int, error) {
	text := o.setting("public-n")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, fault.Range("--public-n", text, fmt.Sprintf("1 to %d", math.MaxInt32))
	}
	if m, err := catalog.Methods().Find(o.methodName()); err == nil && !m.Takes("public-n") {
		o.withdraw("public-n")
	}
	return n, nil
}

// shape is an input of the size and the bounds given, without records.
func (o *options) shape(ctx context.Context) (*input, error) {
	if o.genD < 1 || o.genD > dataset.MostColumns {
		return nil, fault.Range("--d", o.genD, fmt.Sprintf("1 to %d", dataset.MostColumns))
	}
	for _, flag := range []string{"id", "columns"} {
		if o.given(flag) {
			return nil, fault.Request("--"+flag, "names columns of the data, and none is opened", "leave it out, or --d")
		}
	}
	bounds, err := o.publicBounds(ctx, o.genD)
	if err != nil {
		return nil, err
	}
	in := &input{k: o.k, table: &dataset.Table{Name: "no data", D: o.genD},
		norm: dataset.Shape(0, *bounds, o.fractionBits)}
	return in, in.readStart(ctx, o.start)
}

// printOutline writes a plan for people, without bounds if they are yet to be found.
func printOutline(w io.Writer, p *engine.Outline, bounds *dataset.Bounds) error {
	var b strings.Builder
	width := textWidth(w)
	say := func(indent int, format string, args ...any) {
		b.WriteString(table.Paragraph(fmt.Sprintf(format, args...), indent, indent, width))
	}
	say(0, "%s would cluster %s of %s into %s, with %s", p.Method, fault.Count(p.N, "point"),
		fault.Count(p.D, "dimension"), fault.Count(p.K, "cluster"), fault.Count(p.Parties, "party"))
	if p.Epsilon == nil {
		say(0, "no privacy: %s adds no noise", p.Method)
	} else {
		say(0, "epsilon %g, delta %.3g, calibration %s", *p.Epsilon, *p.Delta, p.Calibration)
	}
	for _, doubt := range p.Doubts {
		say(0, "%s", doubt)
	}
	say(0, "at most %s", fault.Count(p.Rounds, "round"))
	b.WriteString("\nNoise of each value\n")
	printNoise(say, p.Releases, bounds)
	if s := p.ClusterSizes; s != nil {
		b.WriteString("\nSizes\n")
		say(2, "a cluster has %d to %s at each party", s[0], fault.Count(s[1], "record"))
		say(2, "records that go unassigned: at least %d", p.UnassignedAtLeast)
	}
	b.WriteString("\nCommunication\n")
	if p.Bytes == nil {
		say(2, "sizes of messages follow from what is released")
	} else {
		var sent, received int64
		for i := range p.Bytes.BytesSent {
			sent += p.Bytes.BytesSent[i]
			received += p.Bytes.BytesReceived[i]
		}
		most := "bytes"
		if p.BytesAtMost {
			most = "at most bytes" // messages are as long as what was released before them
		}
		say(2, "at most rounds %d, %s sent %d, bytes received %d, parties %d", p.Bytes.Rounds, most, sent, received,
			p.Parties)
	}
	if m := p.Memory; m != nil {
		b.WriteString("\nMemory\n")
		say(2, "at most %d MB and %d MB for each worker, of all parties in one process, beside the program and the records",
			megabytes(m.Bytes), megabytes(m.PerWorker))
	}
	b.WriteString("\nPrivacy ledger\n")
	if err := p.Ledger.Text(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, fault.Visible(b.String()))
	return err
}

// megabytes rounds up.
func megabytes(bytes int64) int64 { return (bytes + 999_999) / 1_000_000 }

// printNoise says how large the noise of each release is, beside the data's box.
func printNoise(say func(indent int, format string, args ...any), releases []engine.PlannedRelease,
	bounds *dataset.Bounds) {
	widest := 0.0
	if bounds != nil {
		for h := range bounds.Lo {
			widest = max(widest, bounds.Hi[h]-bounds.Lo[h])
		}
	}
	names, noise := make([]string, len(releases)), make([]string, len(releases))
	ofBox := make([]string, len(releases))
	for i, r := range releases {
		names[i], noise[i] = r.What, noiseOf(r)
		if r.OfBox != nil {
			of := "all"
			if k := r.Bound.Shape.K; k > 1 {
				of = fmt.Sprintf("n/%d", k)
			}
			ofBox[i] = fmt.Sprintf("a coordinate of a centroid of %s records: deviation %.4g where the box is %.4g wide "+
				"(%.3g%%)", of, *r.OfBox*widest, widest, 100**r.OfBox)
			if bounds == nil {
				ofBox[i] = fmt.Sprintf("a coordinate of a centroid of %s records: deviation %.3g%% of the width of the box", of,
					100**r.OfBox)
			}
		}
	}
	alike := func(i, j int) bool { return noise[i] == noise[j] && ofBox[i] == ofBox[j] }
	for _, r := range privacy.Stretches(names, alike) {
		say(2, "%s: %s", r.Name, noise[r.First])
		if ofBox[r.First] != "" {
			say(4, "%s", ofBox[r.First])
		}
	}
}

// noiseOf is the noise of a release in words.
func noiseOf(r engine.PlannedRelease) string {
	switch {
	case r.Mechanism == "mask":
		return "masked"
	case r.Deviation != nil:
		unit, _, _ := strings.Cut(r.Unit, ";")
		return strings.TrimRight(fmt.Sprintf("deviation %.4g %s", *r.Deviation, unit), " ")
	case r.Mechanism != "none":
		return r.Mechanism
	}
	return "no noise"
}
