package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cohort-engine/cohort/engine"
)

// Suite is a benchmark suite, or one table or figure of a paper.
type Suite struct {
	Name   string   // what the command line calls it
	Also   []string // other names: figures that show parts of it
	Group  string   // Performance, or the paper's short name
	Title  string
	About  string   // what it measures and how to read it
	Source string   // paper, table or figure; empty for performance suites
	Needs  []string // data sets of the data folder that it reads
	// Figures are drawn from the suite's rows.
	Figures []Figure
	// Run makes the rows by calling Env.newCase, the most telling ones first: a
	// quick run stops when its time is up.
	Run func(ctx context.Context, e *Env)
}

// Figure describes plots of a suite's rows.
type Figure struct {
	Table string // rows of this table
	Title string
	X     string // label whose values, numbers, are the abscissa; the bars' names if Bars
	Y     string // name of the value
	// Series are labels that tell curves apart; Panel is a label that tells
	// plots apart (empty: one plot).
	Series     []string
	Panel      string
	LogX, LogY bool
	Bars       bool
	// Level is a table whose rows, which have no abscissa, are drawn as level lines.
	Level string
	// Heat draws a table of shaded cells: X across, the first of Series down.
	Heat bool
}

// quickSeconds is the time that a quick run gives a suite; a case that has not
// ended by then is left out.
const quickSeconds = 32

// Env is what a suite runs in.
type Env struct {
	// Quick asks for fewer runs and smaller sizes: every suite ends within 40 s.
	Quick bool
	// Simulated asks the suite network for simulated sums.
	Simulated *Simulated
	// Engine has all workers, which are those of Pool; Single has one.
	Engine       *engine.Engine
	Pool, Single *engine.Pool

	coordinator []string // see Options
	authors     *authors // nil without checkouts of their code

	suite    *Suite
	sets     *Sets
	printed  map[string]*printedTable // the papers' figures
	machine  *Machine
	store    *store
	rows     []Row // of this suite, in order
	deadline time.Time
	left     int
	missing  []string
	failed   error // why the run has to stop
	progress func(string)
}

// Case is one instance that is being measured.
type Case struct {
	Env *Env
	Row *Row

	apart map[string]string // by value: why published figures are not comparable
}

// newCase measures one instance: fn fills the row of that table with those labels.
// It is not called when the results file has the row already, or when a quick
// run has no time left. A data set that is missing leaves the case out; any
// other error is noted in the row, and the suite goes on. After a failure for which
// the whole run has to stop, Case does nothing.
func (e *Env) newCase(ctx context.Context, table string, labels []Label, fn func(ctx context.Context, c *Case) error) {
	if e.fail(ctx.Err()); e.failed != nil {
		return
	}
	row := Row{Suite: e.suite.Name, Table: table, Quick: e.Quick, Labels: slices.Clone(labels)}
	if old, ok := e.store.find(row.key()); ok {
		e.rows = append(e.rows, old)
		return
	}
	caseCtx := ctx
	if e.Quick {
		if time.Now().After(e.deadline) {
			e.left++
			return
		}
		var cancel context.CancelFunc
		caseCtx, cancel = context.WithDeadline(ctx, e.deadline)
		defer cancel()
	}
	e.progress(describe(e.suite.Name, table, labels))
	c := &Case{Env: e, Row: &row}
	err := fn(caseCtx, c)
	var absent *missingSetError
	switch {
	case ctx.Err() != nil:
		e.fail(ctx.Err())
	case errors.As(err, &absent):
		if !slices.Contains(e.missing, absent.Set) {
			e.missing = append(e.missing, absent.Set)
		}
	case errors.Is(err, context.DeadlineExceeded):
		e.left++
	case err != nil:
		row.Failed = err.Error()
		e.rows = append(e.rows, row)
	case len(row.Values) == 0:
		e.fail(fmt.Errorf("bench: %s: the case %s measured nothing", e.suite.Name, row.key()))
	default:
		if err = c.attach(); err == nil {
			e.rows = append(e.rows, row)
			err = e.store.add(row)
		}
		e.fail(err)
	}
}

// on is newCase on a set of the data folder.
func (e *Env) on(ctx context.Context, set, table string, labels []Label,
	fn func(ctx context.Context, c *Case, s *Set) error) {
	e.newCase(ctx, table, labels, func(ctx context.Context, c *Case) error {
		s, err := e.set(ctx, set)
		if err != nil {
			return err
		}
		return fn(ctx, c, s)
	})
}

// fail stops the run, if there is an error.
func (e *Env) fail(err error) {
	if e.failed == nil {
		e.failed = err
	}
}

func describe(suite, table string, labels []Label) string {
	s := suite
	if table != "" {
		s += " " + table
	}
	for _, l := range labels {
		s += " " + l.Name + "=" + l.Value
	}
	return s
}

// find returns the row of a table with those labels, nil if it was not measured.
func (e *Env) find(table string, labels []Label) *Row {
	for i := range e.rows {
		if e.rows[i].Table == table && slices.Equal(e.rows[i].Labels, labels) {
			return &e.rows[i]
		}
	}
	return nil
}

// reps returns full, or quick in a quick run.
func (e *Env) reps(full, quick int) int {
	if e.Quick {
		return quick
	}
	return full
}

// set reads a data set of the data folder by the name that its manifest gives
// it.
func (e *Env) set(ctx context.Context, name string) (*Set, error) { return e.sets.get(ctx, name) }

func (c *Case) add(v Value) { c.Row.Values = append(c.Row.Values, v) }

// setApart says why what the papers print for a value cannot be compared with it.
func (c *Case) setApart(value, why string) {
	if c.apart == nil {
		c.apart = make(map[string]string)
	}
	c.apart[value] = why
}

// samples records the mean and 95% interval of independent runs.
func (c *Case) samples(name, unit string, samples []float64, refs ...Reference) {
	v := summarise(name, unit, samples)
	v.References = refs
	c.add(v)
}

// number records a single figure, such as a count of bytes.
func (c *Case) number(name, unit string, x float64, refs ...Reference) {
	c.add(Value{Name: name, Unit: unit, Mean: Number(x), Median: Number(x), P99: Number(x), N: 1, References: refs})
}

// durations records timings that were taken elsewhere, in nanoseconds.
func (c *Case) durations(name string, ns []float64, refs ...Reference) {
	v := summarise(name, unitNanoseconds, ns)
	v.Timed = true
	v.References = refs
	c.add(v)
}
