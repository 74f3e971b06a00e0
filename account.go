package cohort

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
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
	file    privacy.LedgerFile
	terms   privacy.Terms
	run     privacy.PlannedRun
	epsilon float64 // that a run costs
	made    bool    // by this run

	key     [16]byte // of digests
	request string
	records *dataset.Normalised
	data    string     // digest of the records, once it is known
	open    []*pending // of runs whose results are not delivered
}

// Paid is a run that is paid for.
type Paid struct {
	// Job is to be run in place of the one that was paid for: its randomness waits beside the ledger file until the
	// result has been delivered.
	Job     engine.Job
	epsilon float64
	run     int
	pending *pending
}

// Charged says what is paid for.
type Charged struct {
	Method *method.Method
	// Settings are the run's.
	Settings method.Settings
	// What names the run in the file, "METHOD, k = K" by default.
	What string
	K    int
	// Cost is what each run may cost. Whole, unless zero, is what this run and those that follow it may cost together:
	// what a new file has by default.
	Cost, Whole privacy.Budget
	// Request has all else that the result depends on besides the records, in any form that is always the same.
	Request string
	// Records are those of the run; Digests and Salt what they were prepared with. A run before they are prepared has
	// their number, N, instead, and depends on no more of them than Digests do.
	Records *dataset.Normalised
	N       int
	Digests []string
	Salt    string
}

// NewPayment prepares to pay from the file for runs.
func (a *Account) NewPayment(c Charged) (*Payment, error) {
	if a == nil {
		return nil, fault.Request("account", "is nil", "give a ledger file")
	}
	p := &Payment{file: a.File, key: a.File.DigestKey(c.Salt)}
	p.terms.Composition = a.Composition
	if err := p.Next(c); err != nil {
		return nil, err
	}
	state, err := p.file.State()
	if err != nil {
		return nil, err
	}
	whole := c.Whole
	if whole.Epsilon == 0 {
		whole = c.Cost
	}
	if whole.Delta < 0 {
		whole.Delta = privacy.DefaultDelta(c.records())
	}
	if p.made = state == nil; p.made {
		p.terms = a.Terms(whole, c.Method.Neighbours(c.Settings))
	} else if a.Budget.Epsilon != 0 {
		p.terms.Budget = a.Terms(whole, "").Budget
	}
	return p, nil
}

// records is the number of records that parameters follow: the public one, where settings state one.
func (c *Charged) records() int {
	if n, err := strconv.Atoi(c.Settings["public-n"]); err == nil && n > 0 {
		return n
	}
	if c.Records == nil {
		return c.N
	}
	return c.Records.Points.N
}

// Next prepares to pay for further runs on the same records, under the same salt.
func (p *Payment) Next(c Charged) error {
	if p == nil {
		return nil
	}
	if c.Method == nil {
		return fault.Request("method", "is nil", "name the one that is paid for")
	}
	if c.Records != nil && c.Records.Bounds.FromData {
		return fault.Request("--ledger", "the bounds are read from the data, which no budget covers",
			"give public ones with --bounds or --bounds-file, or --private-bounds 0.1")
	}
	if c.What == "" {
		c.What = fmt.Sprintf("%s, k = %d", c.Method.Name, c.K)
	}
	p.epsilon = c.Cost.Epsilon
	p.request, p.records, p.data = c.Request, c.Records, ""
	if p.records == nil {
		p.data = strings.Join(c.Digests, " ")
	}
	p.run = privacy.PlannedRun{What: c.What, Columns: c.Digests, Salt: c.Salt}
	return nil
}

// Composition is how the file adds up what runs cost.
func (p *Payment) Composition() privacy.Composition {
	if p == nil {
		return privacy.BasicComposition
	}
	c := p.terms.Composition
	if state, err := p.file.State(); err == nil && state != nil {
		c = state.Composition
	}
	return cmp.Or(c, privacy.BasicComposition)
}

// afford refuses what the file cannot pay for: the run and then one of each further ledger.
func (p *Payment) afford(ledger *privacy.Ledger, further []*privacy.Ledger) error {
	runs := []privacy.PlannedRun{p.run}
	runs[0].Ledger = ledger
	for _, l := range further {
		runs = append(runs, privacy.PlannedRun{What: "a later run", Columns: p.run.Columns, Salt: p.run.Salt, Ledger: l})
	}
	return p.file.Afford(p.terms, runs...)
}

// numbered is the request with the number of the run among those of this payment.
func (p *Payment) numbered() string { return fmt.Sprintf("%d of %s", len(p.open)+1, p.request) }

// Payable refuses a plan whose run no ledger file takes.
func Payable(plan engine.Plan) error {
	if r, ok := plan.(protocol.Runner); ok && r.Core().Unpaid != "" {
		return fault.Request("--ledger", r.Core().Unpaid, "give a file of each client, or --neighbours replace-one")
	}
	return nil
}

// Start pays for one run of the job, unless it was paid for before and interrupted. What the job's plan refuses is
// not paid for, nor is a run after which the file could not pay for one of each further ledger.
func (p *Payment) Start(job engine.Job, further ...*privacy.Ledger) (*Paid, error) {
	if p == nil {
		return &Paid{Job: job}, nil
	}
	if job == nil {
		return nil, fault.Request("job", "is nil", "give one")
	}
	plan, err := job.Plan()
	if err == nil {
		err = Payable(plan)
	}
	if err != nil {
		return nil, err
	}
	outline, err := plan.Outline()
	if err != nil {
		return nil, err
	}
	digest, err := planDigest(p.key, p.numbered(), outline)
	if err == nil && len(further) > 0 && !waits(p.file.Path, digest) {
		err = p.afford(outline.Ledger, further)
	}
	if err != nil {
		return nil, err
	}
	paid, err := p.wait(plan, digest)
	if paid != nil {
		paid.epsilon = p.epsilon
	}
	if err != nil || paid.run > 0 {
		return paid, err
	}
	p.run.Ledger, p.run.Mark = outline.Ledger, paid.pending.mark()
	p.run.NotCovered = nil
	for _, e := range p.run.Ledger.Entries() {
		if e.Kind == privacy.Note {
			p.run.NotCovered = append(p.run.NotCovered, e.What)
		}
	}
	if paid.run, err = p.file.Start(p.terms, p.run); err != nil {
		if n, e := p.numberOf(paid.pending); e == nil && n == 0 { // nothing was paid
			p.open = p.open[:len(p.open)-1]
			err = errors.Join(err, paid.pending.erase())
		}
		return nil, err
	}
	p.terms = privacy.Terms{} // the file has them now
	return paid, nil
}

// wait puts the root of a run where it waits until the result is delivered, or finds that of an interrupted run, with
// the number under which it was paid for.
func (p *Payment) wait(plan engine.Plan, digest string) (*Paid, error) {
	if p.data == "" {
		p.data = hex.EncodeToString(p.records.Digest(p.key[:]))
	}
	open, err := openPending(p.file.Path, digest, p.data)
	if err != nil {
		return nil, err
	}
	p.open = append(p.open, open)
	root, err := open.root()
	if err != nil {
		return nil, err
	}
	job, err := protocol.Rooted(plan, root)
	if err != nil {
		return nil, err
	}
	number, err := p.numberOf(open)
	return &Paid{Job: job, run: number, pending: open}, err
}

// numberOf is the number of the run with a root in the ledger file, 0 if it was not paid for.
func (p *Payment) numberOf(open *pending) (number int, err error) {
	state, err := p.file.State()
	if err != nil || state == nil {
		return 0, err
	}
	for i, r := range state.Runs {
		if r.Mark == open.mark() {
			number = i + 1
		}
	}
	return number, nil
}

// Delivered says that the results of all runs have reached who paid for them: what could make them again is erased.
func (p *Payment) Delivered() error {
	if p == nil {
		return nil
	}
	var err error
	for _, open := range p.open {
		err = errors.Join(err, open.erase())
	}
	p.open = nil
	return err
}

// Close lets other processes go on with runs that have not been delivered.
func (p *Payment) Close() {
	if p == nil {
		return
	}
	for _, open := range p.open {
		open.file.Close()
	}
	p.open = nil
}

// LostRun is what the error of Lost is about.
const LostRun = "run"

// Lost is the error of a run that ended after it was paid for.
func (p *Payment) Lost(paid *Paid, err error) error {
	if p == nil {
		return err
	}
	return fault.Failed(LostRun, fmt.Sprintf("ended (%v) after epsilon %.4g was charged to %s", err, paid.epsilon,
		p.file.Path),
		"the same request on the same records finishes the same release without another charge: its randomness waits in "+
			paid.pending.file.Name()+", whose holder knows the noise", err)
}

// Ended enters that the run has ended, and what it has released.
func (p *Payment) Ended(paid *Paid, released *privacy.Ledger) error {
	if p == nil {
		return nil
	}
	return p.file.End(paid.run, released)
}

// End is Ended for the run whose result is delivered, and says in it what is left.
func (p *Payment) End(paid *Paid, res *engine.Result) error {
	if p == nil {
		return nil
	}
	if err := p.Ended(paid, res.Ledger); err != nil {
		return err
	}
	var waited []string
	for _, open := range p.open {
		waited = append(waited, open.file.Name())
	}
	res.Ledger.Note("until this result was delivered, the randomness of its noise was in " +
		strings.Join(waited, " and ") + ": who has read that file knows the noise")
	if paid.pending.found {
		res.Notes = append(res.Notes,
			fmt.Sprintf("run %d was paid for before and did not come to its end then: this is the same release", paid.run))
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
	res.Notes = append(res.Notes,
		fmt.Sprintf("run %d of the ledger file: epsilon %.4g of %v is spent, at delta %.3g, by %s composition; the "+
			"file's anchor is %s",
			paid.run, state.Epsilon(spent.Amount), state.Budget.Epsilon, state.Budget.Delta, state.Composition, state.Anchor))
	if p.made {
		p.made = false
		res.Notes = append(res.Notes,
			"the ledger file knows these people by their columns: another table of the same people must be charged to the "+
				"same file")
	}
	return nil
}
