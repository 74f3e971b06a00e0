package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	library "github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study"
	"github.com/cohort-engine/cohort/engine/study/page"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/pages"
	"github.com/cohort-engine/cohort/internal/wholefile"
)

// joinFlags are the flags of cohort join.
type joinFlags struct {
	options
	invite, state, page string
	traces              string
	yes                 bool
	watch               *study.Watch
	errOut              io.Writer
	records             *study.Records
	salt                string
}

func newJoinCommand() *cobra.Command {
	o := new(joinFlags)
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Take part in a study with the records of this machine",
		Long: `Take part in a study, as a party or, with a server's invitation and without --data, as a
server among which the parties share their vectors. It shows the terms, what they cost, and the fingerprint of all
parties' keys, which is to be compared by telephone, and asks. Nothing computed from the
records leaves before. Whoever is interrupted goes on by the same command.`,
		Example: "  cohort join --invite TOKEN --data mine.csv --state state --ledger mine.ledger",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.join(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.invite, "invite", "", "the invitation, or @FILE that has it")
	fs.StringVar(&o.state, "state", "party",
		"folder of the journal, which must outlive this process and stay on this machine")
	fs.StringVar(&o.page, "page", "none",
		"address of a page with this party's side, on this machine alone, such as 127.0.0.1:0")
	fs.StringVar(&o.traces, "traces", "", tracesHelp)
	fs.BoolVar(&o.yes, "yes", false, "agree without being asked, and without comparing fingerprints")
	o.bindSome(fs, func(flag string) bool {
		switch flag {
		case "data", "columns", "missing", "header", "separator", "decimal-comma", "comment", "max-memory", "workers",
			"out", "out-format", "format",
			"ledger", "ledger-budget", "ledger-composition", "ledger-key", "ledger-anchor":
			return true
		}
		return false
	})
	return cmd
}

// mostToken is the most bytes of a file with an invitation.
const mostToken = 64 << 10

func (o *joinFlags) join(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	text := o.invite
	if text == "" {
		return fault.Request("--invite", "is not given", "give the token that the coordinator sent, or @FILE with it")
	}
	if file, is := strings.CutPrefix(text, "@"); is {
		b, err := wholefile.Read(file, mostToken)
		if err != nil {
			return fault.Failed("--invite", err.Error(), "name the file of the invitation", err)
		}
		text = string(b)
	}
	invitation, err := study.ParseToken(text)
	if _, none := os.Stat(text); err != nil && none == nil {
		return fault.Request("--invite", text+" is a file, not the token in it", "give --invite @"+text)
	}
	if err != nil {
		return err
	}
	role := protocol.Role(invitation.Party)
	switch {
	case role.Serves() && (o.given("data") || o.given("ledger")):
		return fault.Request("--invite", "is a server's, which has no records and pays for nothing",
			"leave --data and --ledger out")
	case !role.Serves() && !o.given("data"):
		return fault.Request("--data", "is not given", "name the file of this party's records")
	}
	if err := folderWritable(o.out); err != nil {
		return err
	}
	pages.Heap()
	eng, err := newEngine(o.workers)
	if err != nil {
		return err
	}
	defer eng.Close()
	o.errOut = errOut
	if o.page != "none" || o.traces != "" {
		o.watch = study.NewPartyWatch()
	}
	log := slog.New(slog.NewTextHandler(errOut, nil))
	traced, err := startTraces(ctx, o.traces, fmt.Sprintf("study %s, %v", invitation.ID, role), o.watch, log)
	if err != nil {
		return err
	}
	defer traced()
	var shown *page.Server
	defer func() {
		if shown != nil {
			shown.Close()
		}
	}()
	openPage := func() (err error) {
		if o.page == "none" {
			return nil
		}
		if shown, err = page.Listen(o.page, o.state, o.watch, nil); err == nil {
			fmt.Fprintf(errOut, "page: %s\n", shown.URL())
		}
		return err
	}
	j := study.Join{Invitation: invitation, State: o.state, Log: log, Engine: eng, Held: openPage,
		Charge: o.charge, Watch: o.watch,
		Agree:   func(_ context.Context, t *study.Terms) error { return o.agree(t, in, errOut) },
		Load:    o.load,
		Deliver: func(t *study.Terms, res *engine.Result) error { return o.deliver(t, res, out) }}
	res, err := study.Take(ctx, j)
	if err == nil && res == nil {
		_, err = fmt.Fprintln(errOut,
			"The study has ended and its coordinator is gone. This party has had its result before.")
	}
	return err
}

// deliver prints what the party learns and writes it to its folder.
func (o *joinFlags) deliver(t *study.Terms, res *engine.Result, out io.Writer) error {
	if err := o.ended(t, res.Ledger); err != nil {
		return err
	}
	if res.Centroids == nil {
		who := "The coordinator has"
		if t.Role.Serves() {
			who = "Its parties have"
		}
		_, err := fmt.Fprintf(out, "The study has ended. %s the result.\n", who)
		return err
	}
	return deliverStudy(t.Study, res, &o.options, out)
}

// load reads the party's records.
func (o *joinFlags) load(ctx context.Context, s *study.Study, party int) (dataset.Part, []string, error) {
	read, err := o.read(o.workers)
	if err != nil {
		return dataset.Part{}, nil, err
	}
	read.MayLack = s.Epsilon > 0 // the number of records is public, and a party's own is not
	var digest *[16]byte
	if o.ledger != "" {
		f, err := o.ledgerFile()
		if err != nil {
			return dataset.Part{}, nil, err
		}
		if o.salt, err = f.Salt(); err != nil {
			return dataset.Part{}, nil, err
		}
		key := f.DigestKey(o.salt)
		digest = &key
	}
	if o.records, err = s.Load(ctx, party, o.data, read, digest); err != nil {
		return dataset.Part{}, nil, err
	}
	return o.records.Part, o.records.IDs, nil
}

// agree shows the terms and asks.
func (o *joinFlags) agree(t *study.Terms, in io.Reader, out io.Writer) error {
	if err := printStudy(out, t.Study); err != nil {
		return err
	}
	if o.ledger == "" && t.Study.Seed == nil && t.Study.Epsilon > 0 && !t.Role.Serves() {
		printSentence(out, "No ledger file was given: nothing keeps count of what this study and others cost together.")
	}
	who := fmt.Sprintf("This party: %s, with %s", t.Study.Name(t.Role), fault.Count(t.Rows, "record"))
	if t.Role.Serves() {
		who = "This server: " + t.Study.Name(t.Role)
	}
	if !t.Role.Serves() {
		outline, err := t.Study.Outline()
		if err != nil {
			return err
		}
		who += misfit(outline.ClusterSizes, t.Study.K, t.Rows)
	}
	printSentence(out, who)
	fmt.Fprintf(out, "Fingerprint of all keys: %s\n", t.Roster.Fingerprint())
	if o.yes {
		return nil
	}
	fmt.Fprint(out, "Compare the fingerprint with the other parties by telephone. Take part? Type yes: ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && err != io.EOF || strings.TrimSpace(line) != "yes" {
		return fault.Request("terms", "were not agreed to", "start the same command again, and type yes, or give --yes")
	}
	return nil
}

// misfit says, for the party alone, how far its number of records is from what the study's clusters can have.
func misfit(sizes *[2]int, k, rows int) string {
	switch {
	case sizes == nil:
	case rows > k*sizes[1]:
		return fmt.Sprintf("; %d clusters have %d at most each here, so %d or more are left out", k, sizes[1],
			rows-k*sizes[1])
	case rows < k*sizes[0]:
		return fmt.Sprintf("; %d clusters have %d at least each here, so %d of their places have no record", k, sizes[0],
			k*sizes[0]-rows)
	}
	return ""
}

// charge pays for the study from the ledger file, once.
func (o *joinFlags) charge(t *study.Terms, again bool) error {
	if o.ledger == "" || t.Study.Epsilon == 0 {
		return nil
	}
	if t.Study.Seed != nil {
		return fault.Request("--ledger", "the study is a simulation, which no budget covers", "leave --ledger out")
	}
	file, err := o.ledgerFile()
	if err != nil {
		return err
	}
	with := study.Payment{File: file, Terms: privacy.Terms{Composition: privacy.Composition(o.ledgerComposition)},
		Columns: o.records.Digests, Salt: o.salt}
	if with.Terms.Budget, err = o.parseLedgerBudget(); err != nil {
		return err
	}
	run, err := t.Pay(with, again)
	if err != nil {
		return err
	}
	said := fmt.Sprintf("charged to %s as its run %d", o.ledger, run)
	if run == 0 {
		said = fmt.Sprintf("charged to %s before an interruption", o.ledger)
	}
	o.watch.Pay(said)
	fmt.Fprintln(o.errOut, said)
	return nil
}

// ended enters into the ledger file that the study has ended, and what it has released.
func (o *joinFlags) ended(t *study.Terms, released *privacy.Ledger) error {
	if o.ledger == "" || t.Study.Epsilon == 0 {
		return nil
	}
	file, err := o.ledgerFile()
	if err != nil {
		return err
	}
	return t.Ended(file, released)
}

// deliverStudy prints a result and writes it to a folder; one that cannot be written there is printed whole.
func deliverStudy(s *study.Study, r *engine.Result, o *options, out io.Writer) error {
	if s.Seed == nil {
		r.Timings = nil // they depend on the records
	}
	bounds := s.Box()
	in := &input{k: s.K, table: &dataset.Table{Name: "study " + s.ID, N: s.Records, D: len(s.Bounds),
		Columns: s.Columns}, norm: dataset.Shape(s.Records, bounds, s.FractionBits)}
	d := &delivery{o: o, in: in, out: out}
	var err error
	if o.out != "" {
		model := library.NewModel(r, bounds, s.Columns, s.FractionBits)
		if d.folder, err = openFolder(o.out, studyFolder); err == nil {
			defer d.close()
			d.folder.parquet = o.outFormat == "parquet"
			err = d.folder.write(r, model)
		}
		if err == nil {
			d.said = append(d.said, strings.Join(d.folder.files(), ", ")+" are in "+o.out)
		}
	}
	format := o.format
	if err != nil {
		format = "json"
	}
	return errors.Join(err, d.print(func(w io.Writer) error {
		return show(w, format, r, func() error { return printResult(w, r, d) })
	}, r))
}
