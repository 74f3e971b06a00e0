package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/cohort-engine/cohort/bench"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/pages"
)

const benchLong = `Run benchmark suites: performance, and the papers' own tables and figures with
their published numbers beside ours. Without a name the performance suites run;
a paper's name runs all of its suites, that of a place in it ("Thesis-B Table 5.5")
the one that prints it, "all" everything.

With --stored nothing is measured: the results are those of the full forms, measured
once, with the machine and the revision that made them. With --summary one line per
suite tells how many of the printed figures lie inside our intervals: over all stored
results, or over the suites that are named, measured now.

With --out the rows go to results.jsonl in that folder as they are finished, so
an interrupted run goes on where it stopped; report.html there is one page that
needs no network.`

const benchExample = `  cohort bench --list
  cohort bench --quick --out report
  cohort bench fastlloyd-table3
  cohort bench --summary
  cohort bench network --simulate 100000`

// benchCommand is what the command line asks of cohort bench.
type benchCommand struct {
	bench.Options
	results, format       string
	list, summary, stored bool
	simulated             bench.Simulated
}

func newBenchCommand() *cobra.Command {
	var b benchCommand
	cmd := &cobra.Command{
		Use:     "bench [SUITE ...]",
		Short:   "Measure performance, and the tables and figures of the papers",
		Long:    benchLong,
		Example: benchExample,
		RunE:    b.run,
	}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
		for _, s := range bench.Suites() {
			names = append(names, s.Name+"\t"+s.Title)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&b.list, "list", false, "list the suites, and every table and figure of the papers")
	fs.BoolVar(&b.Quick, "quick", false, "fewer runs and smaller sizes: at most 40 s a suite")
	fs.BoolVar(&b.summary, "summary", false, "one line per suite: printed figures inside and outside our intervals")
	fs.BoolVar(&b.stored, "stored", false, "show stored results of the full forms instead of measuring")
	choose(fs, &b.format, "format", "text, json (one line per row) or csv", "text", "json", "csv")
	fs.StringVar(&b.Out, "out", "", "folder for results.jsonl, results.csv and report.html")
	fs.StringVar(&b.results, "results", "", "folder for RESULTS.md, a page of the results, and a picture of each figure")
	fs.StringVar(&b.DataDir, "data-dir", bench.DefaultDataDir, "folder with the data sets and their manifest.json")
	fs.IntVar(&b.Workers, "workers", 0, "worker threads (default all cores)")
	fs.StringVar(&b.Peers, "peers", "",
		"folder with checkouts of D-Diaa/privateclustering and D-Diaa/FastLloyd, whose code then runs in turns with ours")
	fs.StringVar(&b.PeerPython, "peer-python", "", "Python that has the packages of --peers (default python3)")
	simulationFlags(fs, &b.simulated)
	cmd.AddCommand(newCoordinatorCommand())
	return cmd
}

// coordinatorName is what cohort bench starts another process of its own as.
const coordinatorName = "coordinator"

// newCoordinatorCommand is not for people: the suite network has the coordinator in a
// process of its own.
func newCoordinatorCommand() *cobra.Command {
	return &cobra.Command{Use: coordinatorName, Hidden: true, Args: noArguments,
		Short: "Coordinate the sums that the suite network measures",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Coordinate(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		}}
}

// run does what is asked for.
func (b *benchCommand) run(cmd *cobra.Command, args []string) error {
	out, errOut := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := b.check(cmd, args); err != nil {
		return err
	}
	if b.list {
		return listSuites(out)
	}
	pages.Heap()
	if err := selectKernels(); err != nil {
		return err
	}
	b.Suites = args
	if program, err := os.Executable(); err == nil {
		b.Coordinator = []string{program, cmd.Name(), coordinatorName}
	}
	if b.simulated.Parties > 0 {
		b.Simulated = &b.simulated
	}
	if width := terminalWidth(errOut); width > 0 {
		b.Progress = func(what string) { fmt.Fprintf(errOut, "\r\033[K%.*s", width-1, what) }
		defer fmt.Fprint(errOut, "\r\033[K")
	}
	// The performance suites, which run without a name, have next to nothing printed to count.
	if b.summary && len(args) == 0 && b.Out == "" && !b.Quick && b.Peers == "" {
		b.stored = true
	}
	text := func(r *bench.Report, w io.Writer) error { return r.WriteText(w, terminalWidth(w)) }
	if b.summary {
		text = func(r *bench.Report, w io.Writer) error { return r.WriteSummary(w, terminalWidth(w)) }
	}
	if b.stored {
		r, err := bench.Stored(args)
		if err == nil {
			err = writeResults(r, b.results, errOut)
		}
		if err != nil {
			return err
		}
		return writeReport(r, b.format, text, out)
	}
	r, err := measure(cmd.Context(), b.Options, b.results, errOut)
	if err != nil {
		return err
	}
	if missing := r.MissingText(); missing != "" && b.format != "text" { // the text says it itself
		fmt.Fprintln(errOut, "cohort: bench: "+missing)
	}
	return errors.Join(writeReport(r, b.format, text, out), r.Failed())
}

// check refuses flags that do not fit each other.
func (b *benchCommand) check(cmd *cobra.Command, args []string) error {
	switch {
	case b.list:
		return nil
	case !cmd.Flags().Changed("simulate") && slices.ContainsFunc(simulationOnly, cmd.Flags().Changed):
		return fault.Request("--"+strings.Join(simulationOnly, ", --"), "are for simulated sums",
			"give --simulate, too, or leave them out")
	case cmd.Flags().Changed("workers") && (b.Workers < 1 || b.Workers > engine.MaxWorkers):
		return fault.Range("--workers", b.Workers, fmt.Sprintf("1 to %d", engine.MaxWorkers))
	case b.summary && b.format != "text":
		return fault.Request("--summary", "is text", "leave --format out; json and csv have the agreement of each row")
	case b.stored && (b.Out != "" || b.Quick || b.Peers != ""):
		return fault.Request("--stored", "measures nothing", "leave --out, --quick and --peers out")
	case b.PeerPython != "" && b.Peers == "":
		return fault.Request("--peer-python", "is for the code of --peers", "give --peers DIR, too")
	}
	if err := b.checkFolders(); err != nil {
		return err
	}
	return checkSimulated(&b.simulated, args)
}

// checkFolders refuses folders for results that are read, and one for rows that holds what no benchmark has written
// there: the page and the tables would take the place of files of their names.
func (b *benchCommand) checkFolders() error {
	for _, written := range [][2]string{{"--out", b.Out}, {"--results", b.results}} {
		for _, read := range [][2]string{{"--data-dir", b.DataDir}, {"--peers", b.Peers}} {
			info, err := os.Stat(written[1])
			if other, e := os.Stat(read[1]); err == nil && e == nil && os.SameFile(info, other) {
				return fault.Request(written[0], written[1]+" is the folder of "+read[0], "name another folder")
			}
		}
	}
	if _, err := os.Stat(filepath.Join(b.Out, bench.ResultsFile)); b.Out == "" || err == nil {
		return nil
	}
	entries, err := os.ReadDir(b.Out)
	if err != nil || len(entries) == 0 {
		return nil
	}
	return fault.Failed("--out", fmt.Sprintf("%s holds %s, which is not a result of cohort bench", b.Out,
		entries[0].Name()), "name a new or empty folder", nil)
}

// measure runs suites and writes their results where they are asked for.
func measure(ctx context.Context, o bench.Options, results string, errOut io.Writer) (*bench.Report, error) {
	r, err := bench.Run(ctx, o)
	if errors.Is(err, context.Canceled) && o.Out != "" {
		return nil, fault.Failed("bench", "was interrupted, the finished rows are in "+
			filepath.Join(o.Out, bench.ResultsFile),
			"give the same command to go on", nil)
	}
	if err != nil {
		return nil, err
	}
	if o.Out != "" {
		if err := writeFolder(r, o.Out); err != nil {
			return nil, err
		}
	}
	if err := writeResults(r, results, errOut); err != nil {
		return nil, err
	}
	return r, nil
}

// simulationOnly are the flags that say what --simulate does.
var simulationOnly = []string{"drop-out", "stragglers", "step-deadline"}

func simulationFlags(fs *pflag.FlagSet, simulated *bench.Simulated) {
	fs.IntVar(&simulated.Parties, "simulate", 0,
		"suite network: simulate sums of so many parties, up to 1000000, instead of measuring")
	fs.Float64Var(&simulated.DropOut, "drop-out", 0.01, "with --simulate: share of parties that vanish in a sum")
	fs.Float64Var(&simulated.Stragglers, "stragglers", 0.05,
		"with --simulate: share of parties that are ten times as slow")
	fs.DurationVar(&simulated.Deadline, "step-deadline", 2*time.Second,
		"with --simulate: how long a step waits for who has vanished")
}

// checkSimulated refuses what cannot be simulated.
func checkSimulated(s *bench.Simulated, suites []string) error {
	switch {
	case s.Parties == 0:
		return nil
	case s.Parties < 2 || s.Parties > 1e6:
		return fault.Range("--simulate", s.Parties, "2 to 1000000 parties")
	case !(s.DropOut >= 0 && s.DropOut <= 0.3):
		return fault.Range("--drop-out", s.DropOut, "0 to 0.3")
	case !(s.Stragglers >= 0 && s.Stragglers <= 1):
		return fault.Range("--stragglers", s.Stragglers, "0 to 1")
	case s.Deadline <= 0:
		return fault.Range("--step-deadline", s.Deadline, "a time, such as 2s")
	case len(suites) != 1 || suites[0] != "network":
		return fault.Request("--simulate", "is for the suite network", "give cohort bench network --simulate N")
	}
	return nil
}

// writeFolder writes the report's page and its tables into a folder.
func writeFolder(r *bench.Report, dir string) error {
	if err := writeWhole("--out", filepath.Join(dir, "report.html"), r.WriteHTML); err != nil {
		return err
	}
	if err := writeWhole("--out", filepath.Join(dir, "results.csv"), r.WriteCSV); err != nil {
		return err
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		name := filepath.Join(dir, s.Suite.Name+".csv")
		if err := writeWhole("--out", name, func(w io.Writer) error { return r.WriteSuite(w, s) }); err != nil {
			return err
		}
	}
	return nil
}

// writeResults writes the page of results, if one is asked for, and says so.
func writeResults(r *bench.Report, dir string, errOut io.Writer) error {
	if dir == "" {
		return nil
	}
	names, err := r.WriteResults(dir)
	if err == nil {
		fmt.Fprintf(errOut, "cohort: bench: %s are in %s\n", strings.Join(names, ", "), dir)
	}
	return err
}

// writeReport writes a report in a format; text says how as text.
func writeReport(r *bench.Report, format string, text func(*bench.Report, io.Writer) error, out io.Writer) error {
	switch format {
	case "json":
		return r.WriteJSON(out)
	case "csv":
		return r.WriteCSV(out)
	}
	return text(r, out)
}

// terminalWidth is the number of columns of the terminal that w is, 0 if it is
// none.
func terminalWidth(w io.Writer) int {
	if s, is := w.(*sink); is {
		w = s.Writer
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 40 {
		return 80
	}
	return width
}

// textWidth is the number of columns that text is folded at.
func textWidth(w io.Writer) int {
	if width := terminalWidth(w); width > 0 && width < 80 {
		return width
	}
	return 80
}

func listSuites(out io.Writer) error {
	h, group := help{out, textWidth(out)}, ""
	for _, s := range bench.Suites() {
		if s.Group != group {
			group = s.Group
			if _, err := fmt.Fprintln(out, group); err != nil {
				return err
			}
		}
		h.entryAt(20, s.Name, s.Title)
	}
	if _, err := fmt.Fprintln(out, "\nTables and figures of the papers, and the command that prints each:"); err != nil {
		return err
	}
	places, err := bench.Places()
	source := ""
	for _, p := range places {
		if p.Source != source {
			source = p.Source
			h.paragraph(source)
		}
		command := p.Command
		if command == "" {
			command = "no command"
		}
		h.entryAt(20, p.Name, p.Shows+": "+command)
	}
	return err
}
