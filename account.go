package cohort

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Account is a ledger file: a budget for one set of people that runs are charged to, in full before they begin.
type Account struct {
	File privacy.LedgerFile
	// Budget is that of a new file, by default what the first run asks for; without a delta as many of that run's as
	// its epsilon fits. Of a file that exists it must be the file's own, or zero. Composition is likewise that of a
	// new file, basic by default.
	Budget      privacy.Budget
	Composition privacy.Composition
}

// Terms are those of a new file whose first run costs so much.
func (a *Account) Terms(cost privacy.Budget, n privacy.Neighbours) privacy.Terms {
	t := privacy.Terms{Budget: a.Budget, Composition: a.Composition, Neighbours: n}
	if t.Budget.Epsilon == 0 {
		t.Budget = cost
	} else if t.Budget.Delta == 0 && cost.Epsilon > 0 {
		t.Budget.Delta = math.Min(cost.Delta*math.Max(1, math.Floor(t.Budget.Epsilon/cost.Epsilon)), 0.5)
	}
	if t.Composition == "" {
		t.Composition = privacy.BasicComposition
	}
	return t
}

// Payment pays for runs on one set of records from a ledger file; a nil one does nothing.
type Payment struct {
	file   privacy.LedgerFile
	terms  privacy.Terms
	run    privacy.PlannedRun
	budget privacy.Budget
	made   bool // by this run
}

// NewPayment prepares to pay from the file for runs of the method with such settings, which cost the budget each, on n
// records with such bounds. digests and salt are what the records were prepared with.
func (a *Account) NewPayment(m *method.Method, set method.Settings, k int, cost privacy.Budget, n int, b dataset.Bounds, digests []string, salt string) (*Payment, error) {
	if b.FromData {
		return nil, fault.Request("--ledger", "the bounds are read from the data, which no budget covers", "give public ones with --bounds or --bounds-file")
	}
	if cost.Delta < 0 {
		cost.Delta = privacy.DefaultDelta(n)
	}
	p := &Payment{file: a.File, budget: cost, run: privacy.PlannedRun{What: fmt.Sprintf("%s, k = %d", m.Name, k), Columns: digests, Salt: salt}}
	p.terms.Composition = a.Composition
	state, err := p.file.State()
	if err != nil {
		return nil, err
	}
	if p.made = state == nil; p.made {
		p.terms = a.Terms(cost, m.Neighbours(set))
	} else if a.Budget.Epsilon != 0 {
		p.terms.Budget = a.Terms(cost, "").Budget
	}
	return p, nil
}

// Start pays for one run of the job and returns its number. What the job's plan refuses is not paid for.
func (p *Payment) Start(job engine.Job) (int, error) {
	if p == nil {
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

// Lost is the error of a run that ended after it was paid for.
func (p *Payment) Lost(err error) error {
	if p == nil {
		return err
	}
	return fault.Failed("run", fmt.Sprintf("ended (%v) after epsilon %.4g was charged to %s", err, p.budget.Epsilon, p.file.Path), "nothing was released to you", err)
}

// End enters that the run has ended and says in the result what is left.
func (p *Payment) End(run int, res *engine.Result) error {
	if p == nil {
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
