package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/engine/study/page"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/wholefile"
)

// studyFlags are the flags of run that a study has.
var studyFlags = []string{"k", "method", "epsilon", "delta", "bounds", "bounds-file", "fraction-bits", "columns",
	"seed", "quality", "id", "d", "public-n"}

// newStudy are the flags of cohort study new.
type newStudy struct {
	options
	names        []string
	servers      []string
	holdings     []int
	title        string
	threshold    int
	step, wait   time.Duration
	padRounds    time.Duration
	plain, force bool
}

func newStudyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "study",
		Short: "Studies of parties on machines of their own",
		Long: `A study is begun with cohort study new, run with cohort serve by a coordinator, who
holds no data, and with cohort join by each party. docs/STUDIES.md leads through one.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStudyNewCommand(), newStudyStatusCommand(), newStudyAbortCommand(), newStudyVerifyCommand())
	return cmd
}

func newStudyNewCommand() *cobra.Command {
	o := new(newStudy)
	cmd := &cobra.Command{
		Use:   "new [FILE]",
		Short: "Write the file of a study: what is public and what everybody signs",
		Long: `Write a study file (default study.json): the method, its parameters, the parties, what
each sees and what it costs. Everything follows from public values; no data is opened.`,
		Example: `  cohort study new --names North,South,East --method fastlloyd --k 5 --epsilon 1 --delta 1e-6 \
    --public-n 30000 --columns age,weight,pressure --bounds 0:120,0:300,0:300`,
		Args: arguments(0, 1, "name one file to write, or none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := "study.json"
			if len(args) == 1 {
				file = args[0]
			}
			return o.write(cmd.Context(), file, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&o.names, "names", nil, "names of the parties, comma-separated, in their order")
	fs.StringSliceVar(&o.servers, "server-names", nil,
		"names of the servers besides the coordinator, of --aggregator shares (default server 2, server 3)")
	fs.IntSliceVar(&o.holdings, "party-columns", nil, "number of columns of each party, of a method over columns")
	fs.StringVar(&o.title, "title", "", "what the study is about, for people")
	fs.IntVar(&o.threshold, "at-least", 0, "least number of parties in a sum (default all)")
	fs.DurationVar(&o.step, "step-deadline", 2*time.Minute, "how long a step of a sum waits for a party")
	fs.DurationVar(&o.wait, "message-deadline", time.Hour,
		"how long other messages, a coordinator that is away, and parties that are at the end, are waited for")
	fs.DurationVar(&o.padRounds, "pad-rounds", 0,
		"length of a round: a party's sums begin at multiples of it alone, so that its time of computing is not seen")
	fs.BoolVar(&o.plain, "plain-sums", false,
		"leave out the masks between pairs of parties: then one party and the coordinator together could open every "+
			"party's vectors")
	fs.BoolVar(&o.force, "force", false, "replace the file")
	takes := func(flag string) bool {
		return slices.Contains(studyFlags, flag) || isMethodOption(flag)
	}
	o.bindSome(fs, takes)
	o.complete(cmd)
	return cmd
}

// write makes the study and writes its file.
func (o *newStudy) write(ctx context.Context, file string, out io.Writer) error {
	s, err := o.study(ctx)
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err == nil && !o.force {
		return fault.Request(file, "is there already", "name another file, or give --force")
	}
	if err := writeWhole("study file", file, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}); err != nil {
		return err
	}
	hash, err := s.Hash()
	if err != nil {
		return err
	}
	if err := printStudy(out, s); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nThe study is in %s, its hash is %x.\nNext: cohort serve %s\n", file, hash[:8], file)
	return err
}

// study makes a study of the flags.
func (o *newStudy) study(ctx context.Context) (*study.Study, error) {
	o.method = o.methodName()
	m, err := catalog.Methods().Find(o.method)
	if err != nil {
		return nil, err
	}
	records, err := o.publicRecords()
	switch {
	case err != nil:
		return nil, err
	case records == 0:
		return nil, fault.Request("--public-n", "is not given",
			"say how many records all parties have about: it is public, and every parameter follows from it")
	case !o.given("k"):
		return nil, fault.Request("--k", "is not given", "say how many clusters to look for, such as --k 8")
	case len(o.names) < 2:
		return nil, fault.Request("--names", "names fewer than two parties", "give their names, such as --names North,South")
	case m.Private && !o.given("epsilon"):
		return nil, fault.Request("--epsilon", "is not given", m.Name+" is private and needs a budget, such as --epsilon 1")
	}
	if err := errors.Join(o.checkNumbers(), oneOf("quality", o.quality, "", "on", "off")); err != nil {
		return nil, err
	}
	s := &study.Study{Title: o.title, Method: m.Name, Options: o.settings(), K: o.k, Epsilon: o.epsilon,
		Records: records, FractionBits: o.fractionBits,
		IDColumn: o.id, Threshold: o.threshold, PlainSums: o.plain, Quality: o.quality == "on",
		PadRounds: int(o.padRounds.Milliseconds()), Seed: o.seedPointer(),
		Deadlines: study.Deadlines{Step: int(o.step.Seconds()), Message: int(o.wait.Seconds())}}
	if m.Private {
		s.Delta = o.budget().Delta
	}
	if s.Threshold == 0 || m.Holds == method.Columns {
		s.Threshold = len(o.names)
	}
	for i, name := range o.names {
		h := study.Holder{Name: strings.TrimSpace(name)}
		if i < len(o.holdings) {
			h.Columns = o.holdings[i]
		}
		s.Parties = append(s.Parties, h)
	}
	for _, name := range o.servers {
		s.Servers = append(s.Servers, study.Holder{Name: strings.TrimSpace(name)})
	}
	d := o.genD
	if o.columns != "" {
		s.Columns = dataset.ColumnNames(o.columns)
		d = len(s.Columns)
	}
	if d < 1 {
		return nil, fault.Request("--columns", "are not given",
			"name the columns that every party's file has, or say how many with --d")
	}
	bounds, err := o.publicBounds(ctx, d)
	switch {
	case err != nil:
		return nil, err
	case bounds == nil:
		return nil, fault.Request("--bounds", "are not given", "give public bounds lo:hi: nobody may read them from the data")
	}
	for h := range bounds.Lo {
		s.Bounds = append(s.Bounds, [2]float64{bounds.Lo[h], bounds.Hi[h]})
	}
	return s, s.Complete()
}

// printStudy shows a study's terms.
func printStudy(w io.Writer, s *study.Study) error {
	outline, err := s.Outline()
	if err != nil {
		return err
	}
	bounds := s.Box()
	if s.Title != "" {
		printSentence(w, s.Title)
	}
	if err := printOutline(w, outline, &bounds); err != nil {
		return err
	}
	var names []string
	for _, p := range s.Parties {
		names = append(names, p.Name)
	}
	fmt.Fprintln(w)
	printSentence(w, fmt.Sprintf("Parties: %s; every sum has at least %d of them", strings.Join(names, ", "),
		s.Threshold))
	printSentence(w, columnsOf(s))
	if most := s.Colluders(); most < len(s.Parties) {
		printSentence(w, fmt.Sprintf("With %d of the parties on its side, a coordinator that breaks the rules could show "+
			"two sets for one sum and open vectors of others.", most))
	}
	if len(s.Servers) > 0 {
		servers := []string{"the coordinator"}
		for _, h := range s.Servers {
			servers = append(servers, h.Name)
		}
		printSentence(w, fmt.Sprintf("Sums are shared among servers: %s; all of them together could open every party's "+
			"vectors", strings.Join(servers, ", ")))
	}
	if s.Seed != nil {
		printSentence(w, "This is a simulation: the seed is public, so nobody's data are protected.")
	}
	if s.PlainSums {
		printSentence(w, "Sums are plain: one party and the coordinator together could open every party's vectors.")
	}
	if s.IDColumn != "" && s.ByColumns() {
		printSentence(w, "Matching by id shows every party which of its ids all others have, and the coordinator how many "+
			"ids there are and are common; it sees no id.")
	}
	return nil
}

// printSentence writes a sentence for people, in lines as wide as the terminal.
func printSentence(w io.Writer, text string) {
	io.WriteString(w, fault.Visible(table.Paragraph(text, 0, 2, textWidth(w))))
}

// mostNamed is how many columns the terms name.
const mostNamed = 30

// columnsOf tells the columns that everybody's file has, or each party's, and their bounds.
func columnsOf(s *study.Study) string {
	b := new(strings.Builder)
	b.WriteString("Columns, and the bounds to which values beyond them are moved:")
	for h, bounds := range s.Bounds[:min(len(s.Bounds), mostNamed)] {
		name := fmt.Sprint("column ", h+1)
		if s.Columns != nil {
			name = s.Columns[h]
		}
		sep := ","
		if h == 0 {
			sep = ""
		}
		fmt.Fprintf(b, "%s %s %v to %v", sep, name, bounds[0], bounds[1])
	}
	if more := len(s.Bounds) - mostNamed; more > 0 {
		fmt.Fprintf(b, ", and %d more in the study file", more)
	}
	if s.ByColumns() {
		for p, h := range s.Parties {
			sep := ","
			if p == 0 {
				sep = ";"
			}
			fmt.Fprintf(b, "%s %s holds %d", sep, h.Name, h.Columns)
		}
	}
	return b.String()
}

// mostStudy is the most bytes of a study file, which has a plan and the names of parties and columns.
const mostStudy = 64 << 20

// readStudy reads a study file.
func readStudy(file string) (*study.Study, error) {
	b, err := wholefile.Read(file, mostStudy)
	if err != nil {
		return nil, fault.File(file, "name a file that cohort study new wrote", err)
	}
	s, err := study.Parse(b)
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.What == "study" { // one of several, perhaps
		f.What = file
	}
	return s, err
}

func newStudyStatusCommand() *cobra.Command {
	var state, format string
	cmd := &cobra.Command{
		Use: "status", Short: "How far the study of a running coordinator is, or how it ended", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := statusOf(cmd.Context(), state)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), format, s, func() error { return printStatus(cmd.OutOrStdout(), s) })
		},
	}
	cmd.Flags().StringVar(&state, "state", "coordinator", "folder of the coordinator")
	choose(cmd.Flags(), &format, "format", "text or json", "text", "json")
	return cmd
}

func printStatus(w io.Writer, s *study.Status) error {
	var b strings.Builder
	width := textWidth(w)
	fmt.Fprintf(&b, "study %s, %s: %s, %s done\n", s.ID, s.Method, s.State, fault.Count(s.Sums, "sum"))
	if s.Step != "" && !s.Ended {
		fmt.Fprintf(&b, "sum %d waits for %s\n", s.Sum, s.Step)
	}
	if s.Fingerprint != "" {
		fmt.Fprintf(&b, "fingerprint %s\n", s.Fingerprint)
	}
	for _, p := range s.Parties {
		how := "not here"
		switch {
		case p.Away:
			how = "away"
		case p.Late:
			how = "late"
		case p.Agreed:
			how = "agreed"
		case p.Enrolled:
			how = "enrolled"
		}
		name := p.Name
		if p.Server {
			name += " (server)"
		}
		name += strings.Repeat(" ", max(20-table.Width(name), 0))
		line := fmt.Sprintf("%s %-9s sent %d bytes, received %d, deadlines missed %d", name, how, p.Sent, p.Received,
			p.LateSteps)
		if table.Width(line) > width-2 {
			b.WriteString(table.Paragraph(line, 2, 4, width))
			continue
		}
		fmt.Fprintf(&b, "  %s\n", line)
	}
	_, err := io.WriteString(w, fault.Visible(b.String()))
	return err
}

func newStudyAbortCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "abort", Short: "End the study of a running coordinator: all parties are told, nothing more is released",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := page.Find(state)
			if err != nil {
				return err
			}
			_, err = c.Ask(cmd.Context(), "abort")
			return err
		},
	}
	cmd.Flags().StringVar(&state, "state", "coordinator", "folder of the coordinator")
	return cmd
}

func newStudyVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify PATH...", Short: "Check study files and the journals of state folders",
		Args: arguments(1, math.MaxInt, "name study files or state folders"),
		Long: `Check that study files are whole and that their plans are what their methods come to,
and that each record of the journals of state folders follows from those before it. Nothing is
changed. The hash that is printed stands for all records: who noted it at the end of the study can tell
later that none was altered. Without it a journal that somebody wrote anew, or cut off between records, looks whole.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, path := range args {
				if err := verify(cmd.OutOrStdout(), path); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func verify(w io.Writer, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fault.File(path, "check the path", err)
	case info.IsDir():
		file := filepath.Join(path, study.JournalName)
		if _, err := os.Stat(file); err != nil {
			return fault.Failed(path, "holds no journal", "name the folder of --state", err)
		}
		c, err := journal.Check(file)
		if err != nil {
			return err
		}
		how := fmt.Sprintf("a whole journal of %s", fault.Count(c.Records, "record"))
		switch {
		case c.Written:
			how = fmt.Sprintf("%s of a journal, and %s of one that its role is writing",
				fault.Count(c.Records, "whole record"), fault.Count(int(c.Torn), "byte"))
		case c.Torn > 0:
			how = fmt.Sprintf("%s of a journal, and %s of one that a crash, or somebody, cut off",
				fault.Count(c.Records, "whole record"), fault.Count(int(c.Torn), "byte"))
		}
		_, err = fmt.Fprintf(w, "%s: %s, %x\n", path, how, c.Head)
		return err
	}
	s, err := readStudy(path)
	if err != nil {
		return err
	}
	hash, err := s.Hash()
	if err == nil {
		_, err = fmt.Fprintf(w, "%s: study %s, hash %x\n", path, s.ID, hash)
	}
	return err
}
