package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
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

// checkLedger refuses, before any data is read, a run that cannot be entered in the ledger file or
// whose epsilon the file has no more left for.
func (o *options) checkLedger(m *method.Method) error {
	if o.ledger == "" {
		if o.ledgerBudget != "" {
			return fault.Request("--ledger-budget", "is given without --ledger", "name the ledger file")
		}
		return nil
	}
	if c := o.calibration(m); c != privacy.Proven {
		return fault.Request("--ledger", "a ledger file adds up proven guarantees and the calibration is "+string(c), "use --calibration proven")
	}
	if _, err := o.ledgerBudgetOver(privacy.Budget{Epsilon: o.epsilon}); err != nil {
		return err
	}
	total, spent, ok, err := privacy.LedgerFile{Path: o.ledger}.Left()
	if err != nil || !ok {
		return err
	}
	if want := o.epsilon * float64(o.runs); spent >= total.Epsilon*(1-1e-9) {
		return fault.Request("ledger file "+o.ledger, fmt.Sprintf("all of epsilon %v is spent, %v is missing", total.Epsilon, want), "end here")
	}
	return nil
}

// payer pays for repetitions of a run from the ledger file; the zero payer does nothing.
type payer struct {
	file        privacy.LedgerFile
	digest      string
	total, cost privacy.Budget
	what        string
}

// newPayer prepares to pay for runs on the data.
func newPayer(o *options, in *input) (*payer, error) {
	if o.ledger == "" {
		return &payer{}, nil
	}
	p := &payer{file: privacy.LedgerFile{Path: o.ledger}, digest: in.digest, cost: o.budget()}
	if p.cost.Delta < 0 {
		p.cost.Delta = privacy.DefaultDelta(in.table.N)
	}
	p.what = fmt.Sprintf("%s, k = %d", o.method, in.k)
	if o.ledgerBudget == "" {
		if _, _, ok, err := p.file.Left(); err != nil || ok {
			return p, err // the file has its budget
		}
	}
	var err error
	p.total, err = o.ledgerBudgetOver(p.cost)
	return p, err
}

// start pays for one run and returns its number. What the job's plan refuses is not paid for.
func (p *payer) start(job engine.Job) (int, error) {
	if p.file.Path == "" {
		return 0, nil
	}
	if _, err := job.Plan(); err != nil {
		return 0, err
	}
	run, err := p.file.Start(p.digest, p.total, p.cost, p.what)
	p.total = privacy.Budget{} // the file has it now
	return run, err
}

// lost is the error of a run that ended after it was paid for.
func (p *payer) lost(err error) error {
	if p.file.Path == "" {
		return err
	}
	return fault.Failed("run", fmt.Sprintf("ended (%v) after epsilon %.4g was charged to %s", err, p.cost.Epsilon, p.file.Path), "nothing was released to you", err)
}

// end enters what the run released and says in the result what is left.
func (p *payer) end(run int, res *engine.Result) error {
	if p.file.Path == "" {
		return nil
	}
	if err := p.file.End(run, res.Ledger); err != nil {
		return err
	}
	total, spent, _, err := p.file.Left()
	if err != nil {
		return err
	}
	res.Notes = append(res.Notes, fmt.Sprintf("run %d of the ledger file: epsilon %.4g of %v is spent, at delta %.3g", run, spent, total.Epsilon, total.Delta))
	return nil
}
