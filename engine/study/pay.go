package study

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// Payment is what a party pays for a study with.
type Payment struct {
	File privacy.LedgerFile
	// Terms are those of a new file: what is empty has the study's own budget and neighbours. For
	// an old one they must agree with its own where they are set.
	Terms privacy.Terms
	// Columns are the digests of the party's columns, under the key that File has for Salt.
	Columns []string
	Salt    string
}

// Pay charges a ledger file for the study before the party has told anybody anything, and
// returns the run's number in the file. again says that an earlier life may have paid: if it has,
// nothing is charged, and the number is 0.
func (t *Terms) Pay(with Payment, again bool) (run int, err error) {
	outline, err := t.Study.Outline()
	if err != nil {
		return 0, err
	}
	state, err := with.File.State()
	if err != nil {
		return 0, err
	}
	if again && state != nil {
		for _, r := range state.Runs {
			if r.What == t.Study.PaidAs() {
				return 0, nil
			}
		}
	}
	terms := with.Terms
	if state == nil {
		if terms.Composition, err = privacy.ParseComposition(string(terms.Composition)); err != nil {
			return 0, err
		}
		if terms.Budget == (privacy.Budget{}) {
			terms.Budget = privacy.Budget{Epsilon: *outline.Epsilon, Delta: *outline.Delta}
		}
		terms.Neighbours = privacy.AddRemove
		if n := t.Study.Options["neighbours"]; n != "" {
			terms.Neighbours = privacy.Neighbours(n)
		}
	}
	planned := privacy.PlannedRun{What: t.Study.PaidAs(), Columns: with.Columns, Salt: with.Salt, Ledger: outline.Ledger}
	for _, e := range outline.Ledger.Entries {
		if e.Kind == privacy.Note {
			planned.NotCovered = append(planned.NotCovered, e.What)
		}
	}
	return with.File.Start(terms, planned)
}

// PaidAs is what a ledger file calls the study.
func (s *Study) PaidAs() string { return fmt.Sprintf("study %s, %s, k = %d", s.ID, s.Method, s.K) }
