package study

import (
	"crypto/sha256"
	"encoding/hex"
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
// returns the run's number in the file. again says that an earlier life may have paid: if it has, for
// these people, nothing is charged, and the number is 0.
func (t *Terms) Pay(with Payment, again bool) (run int, err error) {
	outline, err := t.Study.Outline()
	if err != nil {
		return 0, err
	}
	state, err := with.File.State()
	if err != nil {
		return 0, err
	}
	if again && t.paid(state) > 0 {
		return 0, with.File.Knows(with.Columns)
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
	planned := privacy.PlannedRun{What: t.Study.paidAs(), Columns: with.Columns, Salt: with.Salt, Ledger: outline.Ledger,
		Mark: t.mark()}
	for _, e := range outline.Ledger.Entries() {
		if e.Kind == privacy.Note {
			planned.NotCovered = append(planned.NotCovered, e.What)
		}
	}
	return with.File.Start(terms, planned)
}

// mark names this party's part in this study, of all that anybody could serve: another study may have its id.
func (t *Terms) mark() string {
	h := sha256.New()
	fmt.Fprintf(h, "cohort study paid %x %s", t.Hash, t.Roster.Entries[1+t.Study.index(t.Role)].Signing)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// paid is the number of the run in a ledger file that has paid for this study, 0 if none has.
func (t *Terms) paid(state *privacy.FileState) int {
	for i := 0; state != nil && i < len(state.Runs); i++ {
		if state.Runs[i].Mark == t.mark() {
			return i + 1
		}
	}
	return 0
}

// Ended enters into the ledger file that has paid for the study that it has ended, and what it has released.
func (t *Terms) Ended(file privacy.LedgerFile, released *privacy.Ledger) error {
	state, err := file.State()
	if err != nil {
		return err
	}
	if run := t.paid(state); run > 0 && !state.Runs[run-1].Ended {
		return file.End(run, released)
	}
	return nil
}

// paidAs is what a ledger file calls the study.
func (s *Study) paidAs() string { return fmt.Sprintf("study %s, %s, k = %d", s.ID, s.Method, s.K) }
