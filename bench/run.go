package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Options say what Run does.
type Options struct {
	Suites  []string // names; empty: the performance suites
	Quick   bool
	DataDir string // DefaultDataDir if empty
	Out     string // folder for results that survive an interruption; empty: none
	Workers int    // 0: all
	// Peers is a folder with checkouts of the code that the authors of FastLloyd released, which then
	// runs in turns with ours, by Python PeerPython if it is given; empty: its stored figures stand there.
	Peers, PeerPython string
	// Simulated, if not nil, has the suite network simulate sums instead of measuring them.
	Simulated *Simulated
	// Coordinator is the command line of a process that runs Coordinate, for the suite
	// network; without it the coordinator is in this process.
	Coordinator []string
	// Progress is told what is being measured; nil is allowed.
	Progress func(string)
}

// Section is one suite's part of a report.
type Section struct {
	Suite *Suite
	Rows  []Row
	// Missing are data sets that were not there, Left the number of instances
	// that a quick run had no time for.
	Missing []string
	Left    int
	Seconds float64
	// Stored says where and when stored rows were measured; empty for rows of this run.
	Stored string
}

// Report is what a run measured.
type Report struct {
	Machine  *Machine
	Quick    bool
	DataDir  string
	Sections []Section
	// Resumed is the number of rows that were taken from an earlier run; Aside is
	// where a results file of another build was moved.
	Resumed int
	Aside   string
	// Unstored are the suites of a report of stored results that have none.
	Unstored []string
}

// selectSuites returns the suites with the given names in their own order; no name
// means the performance suites, "all" everything, and the name of a group all of
// that group.
func selectSuites(names []string) ([]*Suite, error) {
	all := Suites()
	if len(names) == 0 {
		names = []string{groupPerformance}
	}
	wanted := make(map[string]bool)
	for _, name := range names {
		found, err := selectPlace(name, wanted)
		if err != nil {
			return nil, err
		}
		for i := range all {
			s := &all[i]
			if name == "all" || strings.EqualFold(s.Name, name) || strings.EqualFold(s.Group, name) ||
				slices.Contains(s.Also, name) {
				wanted[s.Name] = true
				found = true
			}
		}
		if !found {
			names := make([]string, len(all))
			for i := range all {
				names[i] = all[i].Name
			}
			return nil, fault.Request("suite "+name, "there is none of that name"+fault.Meant(name, names),
				"cohort bench --list shows all")
		}
	}
	var out []*Suite
	for i := range all {
		if wanted[all[i].Name] {
			out = append(out, &all[i])
		}
	}
	return out, nil
}

// selectPlace marks the suites that print a table or figure, named as "Thesis-B Table 5.5"; it
// returns false if no place has that name, and an error if another command prints it.
func selectPlace(name string, wanted map[string]bool) (bool, error) {
	places, err := Places()
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(places, func(p Place) bool { return strings.EqualFold(name, p.Source+" "+p.Name) })
	if at < 0 {
		return false, nil
	}
	p := &places[at]
	if p.Suites() == nil {
		hint := "see docs/PAPERS.md"
		if p.Command != "" {
			hint = "run cohort " + p.Command
		}
		return false, fault.Request("suite "+name, "no suite prints it", hint)
	}
	suites, err := selectSuites(p.Suites())
	for _, s := range suites {
		wanted[s.Name] = true
	}
	return true, err
}

// Run measures the suites. Rows that an earlier, interrupted run has left in
// the output folder are taken over. When ctx is cancelled, Run returns its error;
// finished rows are in the results file.
func Run(ctx context.Context, o Options) (*Report, error) {
	suites, err := selectSuites(o.Suites)
	if err != nil {
		return nil, err
	}
	if o.DataDir == "" {
		o.DataDir = DefaultDataDir
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	sets, err := OpenSets(o.DataDir)
	if err != nil {
		return nil, err
	}
	printed, err := printedFiles()
	if err != nil {
		return nil, err
	}
	var others *authors
	if o.Peers != "" {
		if others, err = openAuthors(o.Peers, o.PeerPython); err != nil {
			return nil, err
		}
		defer others.close()
	}
	machine := describeMachine(o.Workers)
	machine.Peers = others.names()
	st, err := openStore(o.Out, machine)
	if err != nil {
		return nil, err
	}
	defer st.close()
	report := &Report{Machine: machine, Quick: o.Quick, DataDir: o.DataDir, Resumed: st.resumed, Aside: st.aside}
	eng, err := engine.New(engine.WithWorkers(o.Workers))
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	single := engine.NewPool(1)
	defer single.Close()
	for _, s := range suites {
		start := time.Now()
		e := &Env{Quick: o.Quick, Simulated: o.Simulated, Engine: eng, Pool: eng.Pool(), Single: single,
			coordinator: o.Coordinator, authors: others, suite: s, sets: sets, printed: printed, machine: machine, store: st,
			deadline: start.Add(quickSeconds * time.Second), progress: o.Progress}
		for _, name := range s.Needs {
			if !sets.Has(name) {
				e.missing = append(e.missing, name)
			}
		}
		s.Run(ctx, e)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case e.failed != nil:
			return nil, fmt.Errorf("suite %s: %w", s.Name, e.failed)
		}
		report.Sections = append(report.Sections, Section{Suite: s, Rows: inOrder(e.rows), Missing: e.missing, Left: e.left,
			Seconds: time.Since(start).Seconds()})
	}
	return report, nil
}

// MissingText says which data sets were not there and how to get them, "" if all
// were.
func (r *Report) MissingText() string {
	missing := r.missing()
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("rows are left out for lack of data sets: %s lacks %s: give their folder with --data-dir: %s",
		r.DataDir, shortList(missing), howToGet(missing))
}

func (r *Report) missing() []string {
	var out []string
	for _, s := range r.Sections {
		for _, m := range s.Missing {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// Failed returns an error when some instance failed, after the rest has been
// measured, or when there is no row because data sets are missing.
func (r *Report) Failed() error {
	rows := 0 // and instances that there was no time for
	for _, s := range r.Sections {
		rows += len(s.Rows) + s.Left
	}
	if missing := r.missing(); rows == 0 && len(missing) > 0 {
		return fault.Failed("bench", "there is nothing to measure: "+r.DataDir+" lacks "+shortList(missing),
			"give the folder that has them with --data-dir", nil)
	}
	for _, s := range r.Sections {
		for i := range s.Rows {
			if row := &s.Rows[i]; row.Failed != "" {
				return fault.Failed("bench "+describe(row.Suite, row.Table, row.Labels), row.Failed,
					"the other rows are in the report", nil)
			}
		}
	}
	return nil
}

// shortList joins the first few names.
func shortList(names []string) string {
	const shown = 6
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return strings.Join(names, ", ")
}
