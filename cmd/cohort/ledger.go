package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// ledgerBudgetOver is the value of --ledger-budget: EPSILON or EPSILON:DELTA. Without one the budget is
// what this run asks for; without a delta, as many of this run's as its epsilon fits.
func (o *options) ledgerBudgetOver(cost privacy.Budget) (privacy.Budget, error) {
	if o.ledgerBudget == "" {
		return cost, nil
	}
	wrong := func() (privacy.Budget, error) {
		return privacy.Budget{}, fault.Range("--ledger-budget", strconv.Quote(o.ledgerBudget), "EPSILON or EPSILON:DELTA, such as 2:1e-5")
	}
	eps, delta, two := strings.Cut(o.ledgerBudget, ":")
	var total privacy.Budget
	var err error
	if total.Epsilon, err = strconv.ParseFloat(eps, 64); err != nil {
		return wrong()
	}
	if two {
		if total.Delta, err = strconv.ParseFloat(delta, 64); err != nil {
			return wrong()
		}
	} else {
		total.Delta = math.Min(cost.Delta*math.Max(1, math.Floor(total.Epsilon/cost.Epsilon)), 0.5)
	}
	if total.Validate() != nil {
		return wrong()
	}
	return total, nil
}

// ledgerFile is the file of --ledger, with its key and anchor.
func (o *options) ledgerFile() (privacy.LedgerFile, error) {
	f := privacy.LedgerFile{Path: o.ledger, Anchor: o.ledgerAnchor}
	if o.ledgerKey == "" {
		return f, nil
	}
	key, err := os.ReadFile(o.ledgerKey)
	switch {
	case err != nil:
		return f, fault.Failed("--ledger-key", err.Error(), "name a file that can be read", err)
	case len(key) < 16:
		return f, fault.Request("--ledger-key", fmt.Sprintf("%s holds %d bytes", o.ledgerKey, len(key)), "give a file of at least 16 random bytes")
	}
	f.Key = key
	return f, nil
}

// checkLedger refuses, before any data is read, a run that cannot be entered in the ledger file or
// for which the file has nothing left.
func (o *options) checkLedger(m *method.Method) error {
	if o.ledger == "" {
		for flag, value := range map[string]string{"ledger-budget": o.ledgerBudget, "ledger-composition": o.ledgerComposition, "ledger-key": o.ledgerKey, "ledger-anchor": o.ledgerAnchor} {
			if value != "" {
				return fault.Request("--"+flag, "is given without --ledger", "name the ledger file")
			}
		}
		return nil
	}
	if c := o.calibration(m); c != privacy.Proven {
		return fault.Request("--ledger", "a ledger file adds up proven guarantees and the calibration is "+string(c), "use --calibration proven")
	}
	if o.given("seed") {
		return fault.Request("--ledger", "a run with --seed is a simulation, which no budget covers", "leave --seed out, or --ledger")
	}
	if _, err := o.ledgerBudgetOver(privacy.Budget{Epsilon: o.epsilon}); err != nil {
		return err
	}
	if _, err := privacy.ParseComposition(o.ledgerComposition); err != nil {
		return fault.Range("--ledger-composition", strconv.Quote(o.ledgerComposition), "basic, zcdp, gdp or rdp")
	}
	f, err := o.ledgerFile()
	if err != nil {
		return err
	}
	state, err := f.State()
	if err != nil || state == nil {
		return err
	}
	if left := state.Left(privacy.Outsider); left.Amount <= state.Limit.Amount*1e-9 {
		return fault.Request("ledger file "+o.ledger, fmt.Sprintf("all of epsilon %v is spent", state.Budget.Epsilon), "end here")
	}
	return nil
}

// payer pays for repetitions of a run from the ledger file; the zero payer does nothing.
type payer struct {
	file   privacy.LedgerFile
	terms  privacy.Terms
	run    privacy.PlannedRun
	budget privacy.Budget
	made   bool // by this run
}

// newPayer prepares to pay for runs on the data.
func newPayer(o *options, in *input, m *method.Method) (*payer, error) {
	if o.ledger == "" {
		return &payer{}, nil
	}
	if in.norm.Bounds.FromData {
		return nil, fault.Request("--ledger", "the bounds are read from the data, which no budget covers", "give public ones with --bounds or --bounds-file")
	}
	p := &payer{budget: o.budget()}
	if p.budget.Delta < 0 {
		p.budget.Delta = privacy.DefaultDelta(in.table.N)
	}
	p.run = privacy.PlannedRun{What: fmt.Sprintf("%s, k = %d", o.method, in.k), Columns: in.digests, Salt: in.salt}
	var err error
	if p.file, err = o.ledgerFile(); err != nil {
		return nil, err
	}
	p.terms.Composition = privacy.Composition(o.ledgerComposition)
	state, err := p.file.State()
	if err != nil {
		return nil, err
	}
	if p.made = state == nil; p.made || o.ledgerBudget != "" {
		p.terms.Budget, err = o.ledgerBudgetOver(p.budget)
	}
	if p.made {
		p.terms.Composition, _ = privacy.ParseComposition(o.ledgerComposition)
		p.terms.Neighbours = o.relation(m)
	}
	return p, err
}

// relation is what neighbouring data sets are to a run of the method.
func (o *options) relation(m *method.Method) privacy.Neighbours {
	if n := o.setting("neighbours"); n != "" {
		return privacy.Neighbours(n)
	}
	for _, option := range m.Options() {
		if option.Name == "neighbours" {
			return privacy.Neighbours(option.Default)
		}
	}
	return privacy.AddRemove
}

// start pays for one run of the job and returns its number. What the job's plan refuses is not paid for.
func (p *payer) start(job engine.Job) (int, error) {
	if p.file.Path == "" {
		return 0, nil
	}
	plan, err := job.Plan()
	if err != nil {
		return 0, err
	}
	outline, err := plan.Outline()
	if err != nil {
		return 0, err
	}
	p.run.Ledger = outline.Ledger
	p.run.NotCovered = nil
	for _, e := range p.run.Ledger.Entries {
		if e.Kind == privacy.Note {
			p.run.NotCovered = append(p.run.NotCovered, e.What)
		}
	}
	run, err := p.file.Start(p.terms, p.run)
	p.terms = privacy.Terms{} // the file has them now
	return run, err
}

// lost is the error of a run that ended after it was paid for.
func (p *payer) lost(err error) error {
	if p.file.Path == "" {
		return err
	}
	return fault.Failed("run", fmt.Sprintf("ended (%v) after epsilon %.4g was charged to %s", err, p.budget.Epsilon, p.file.Path), "nothing was released to you", err)
}

// end enters that the run has ended and says in the result what is left.
func (p *payer) end(run int, res *engine.Result) error {
	if p.file.Path == "" {
		return nil
	}
	if err := p.file.End(run, res.Ledger); err != nil {
		return err
	}
	p.file.Anchor = ""
	state, err := p.file.State()
	if err != nil {
		return err
	}
	spent := state.Spent[privacy.Outsider]
	for _, c := range state.Spent {
		if c.Amount > spent.Amount {
			spent = c
		}
	}
	res.Notes = append(res.Notes, fmt.Sprintf("run %d of the ledger file: epsilon %.4g of %v is spent, at delta %.3g, by %s composition; the file's anchor is %s",
		run, state.Epsilon(spent.Amount), state.Budget.Epsilon, state.Budget.Delta, state.Composition, state.Anchor))
	if p.made {
		p.made = false
		res.Notes = append(res.Notes, "the ledger file knows these people by their columns: another table of the same people must be charged to the same file")
	}
	return nil
}
