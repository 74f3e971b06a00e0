package privacy

import (
	"fmt"

	"github.com/cohort-engine/cohort/internal/fault"
)

// PlannedRun is a run that is to be paid for.
type PlannedRun struct {
	What string
	// Columns are the digests of the data's columns, under DigestKey of Salt.
	Columns []string
	Salt    string
	// Ledger is what the run will release at most: planned from public values alone.
	Ledger *Ledger
	// NotCovered lists what no budget covers.
	NotCovered []string
	// Mark tells the run from all others, for who wants to find it again; empty for nobody.
	Mark string
}

// WholeRun is the ledger of a run of which nothing is known but that it is (epsilon, delta)-differentially
// private: like a pure mechanism that fails with probability delta (T7 v).
func WholeRun(what string, b Budget, n Neighbours) (*Ledger, error) {
	l := &Ledger{Delta: b.Delta}
	return l, l.Add(Entry{What: what, Viewers: []string{Outsider}, Calibration: Proven, Neighbours: n,
		Cost: Spec{Family: "pure", Epsilon: b.Epsilon, Failure: b.Delta}})
}

// Start pays for a run before it begins: it returns the run's number or refuses, saying what is missing. A new file
// gets the terms; for an old one they must agree with its own where they are set.
func (f LedgerFile) Start(terms Terms, p PlannedRun) (int, error) {
	run := 0
	err := f.update(func(s *ledgerState) (out []byte, err error) {
		out, err = f.enter(s, terms, p)
		run = len(s.starts)
		return out, err
	})
	return run, err
}

// Afford is what Start would say to one run after the other. It writes nothing.
func (f LedgerFile) Afford(terms Terms, runs ...PlannedRun) error {
	s, err := f.look()
	if err != nil {
		return err
	}
	if s == nil {
		s = &ledgerState{file: f, empty: true, ends: map[int]fileEnd{}}
	}
	for _, p := range runs {
		if _, err := f.enter(s, terms, p); err != nil {
			return err
		}
		terms, s.empty = Terms{}, false
	}
	return nil
}

// enter adds a run to the state of the file and returns the lines that do it.
func (f LedgerFile) enter(s *ledgerState, terms Terms, p PlannedRun) ([]byte, error) {
	var out []byte
	if s.empty {
		if err := terms.validate(); err != nil {
			return nil, fmt.Errorf("ledger file %s: %w", f.Path, err)
		}
		s.header = fileHeader{fileVersion, p.Salt, len(f.Key) > 0, terms}
		b, err := s.line(s.header)
		if err != nil {
			return nil, err
		}
		out = b
	}
	if err := f.agree(s, terms, p); err != nil {
		return nil, err
	}
	prices, err := s.header.Terms.Prices(p.Ledger)
	if err != nil {
		return nil, fmt.Errorf("ledger file %s: %w", f.Path, err)
	}
	fresh, ok := s.knows(p.Columns)
	if !ok {
		return nil, f.otherPeople()
	}
	before := s.state()
	start := fileStart{len(s.starts) + 1, p.What, fresh, prices, p.NotCovered, p.Mark}
	s.starts = append(s.starts, start)
	for v, c := range s.spent() {
		if !c.within(before.Limit) {
			return nil, f.shortfall(before, v, s.charge(start.Run, v))
		}
	}
	b, err := s.line(start)
	return append(out, b...), err
}

// Knows refuses a table that shares no column with those that the file has paid for, as Start does.
func (f LedgerFile) Knows(columns []string) error {
	s, err := f.look()
	if err != nil || s == nil {
		return err
	}
	if _, ok := s.knows(columns); !ok {
		return f.otherPeople()
	}
	return nil
}

func (f LedgerFile) otherPeople() error {
	return fmt.Errorf("ledger file %s: %w: it shares no column with the tables before; use another file for other "+
		"people", f.Path, ErrDataset)
}

// agree refuses terms, or digests, that are not those of the file.
func (f LedgerFile) agree(s *ledgerState, terms Terms, p PlannedRun) error {
	has := s.header.Terms
	differs := func(what string, own, asked any) error {
		return fmt.Errorf("ledger file %s: its %s of %v was fixed when it was made, %v is %w: leave it out", f.Path, what,
			own, asked, ErrRange)
	}
	switch {
	case s.header.Salt != p.Salt:
		return fault.Failed("ledger file "+f.Path, "another run made it meanwhile", "give the same command again", nil)
	case terms.Budget != Budget{} && terms.Budget != has.Budget:
		return differs("budget", fmt.Sprintf("epsilon %v at delta %v", has.Budget.Epsilon, has.Budget.Delta), "another")
	case terms.Composition != "" && terms.Composition != has.Composition:
		return differs("composition", has.Composition, terms.Composition)
	}
	return nil
}

// shortfall says by how much a charge goes beyond what is left to a viewer.
func (f LedgerFile) shortfall(s *FileState, viewer string, c Charge) error {
	left := s.Left(viewer)
	if c.Amount <= left.Amount {
		return fmt.Errorf("ledger file %s: the run takes %.3g of delta from the %s and %.3g of %.3g is left: %w: ask for "+
			"a smaller delta", f.Path, c.Delta, viewer, left.Delta, s.Limit.Delta, ErrBudget)
	}
	unit := map[Composition]string{ZCDPComposition: "rho", GDPComposition: "mu^2",
		RDPComposition: "divergence"}[s.Composition]
	if unit == "" {
		unit = "epsilon"
	}
	return fmt.Errorf("ledger file %s: the run takes %s %.6g from the %s, %.6g of %.6g is left, %.4g is missing: %w: "+
		"ask for less or end here",
		f.Path, unit, c.Amount, viewer, left.Amount, s.Limit.Amount, c.Amount-left.Amount, ErrBudget)
}

// End records that a run has ended and, should it have released more than was planned, what it cost.
// Without it the run stays paid for.
func (f LedgerFile) End(run int, l *Ledger) error {
	return f.update(func(s *ledgerState) ([]byte, error) {
		if run < 1 || run > len(s.starts) {
			return nil, fmt.Errorf("ledger file %s: run %d never began: %w", f.Path, run, ErrRange)
		}
		end := fileEnd{End: run}
		prices, err := s.header.Terms.Prices(l)
		if err != nil {
			return nil, fmt.Errorf("ledger file %s: run %d: %w", f.Path, run, err)
		}
		for v, c := range prices {
			if !c.within(s.charge(run, v)) {
				end.Charges = prices
			}
		}
		if _, known := s.ends[run]; known && end.Charges == nil {
			return nil, nil // it was done again from its root
		}
		return s.line(end)
	})
}
