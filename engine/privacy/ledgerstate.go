package privacy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/cohort-engine/cohort/internal/filelock"
)

// charge is what a run costs a viewer: what it paid or, if that turned out to be more, what it ended with.
// What the run does not charge a viewer for by name, it charges as an outsider.
func (s *ledgerState) charge(run int, viewer string) Charge {
	of := func(charges map[string]Charge) Charge {
		if c, ok := charges[viewer]; ok {
			return c
		}
		return charges[Outsider]
	}
	c, end := of(s.starts[run-1].Charges), of(s.ends[run].Charges)
	return Charge{math.Max(c.Amount, end.Amount), math.Max(c.Delta, end.Delta)}
}

// spent is what each viewer of any run was charged in all, outsiders among them.
func (s *ledgerState) spent() map[string]Charge {
	all := map[string]Charge{Outsider: {}}
	for i := range s.starts {
		for v := range s.starts[i].Charges {
			all[v] = Charge{}
		}
		for v := range s.ends[i+1].Charges {
			all[v] = Charge{}
		}
	}
	for v := range all {
		for i := range s.starts {
			all[v] = all[v].plus(s.charge(i+1, v))
		}
	}
	return all
}

// knows tells whether a table shares a column with an earlier one, or is the first.
func (s *ledgerState) knows(columns []string) (fresh []string, ok bool) {
	known := map[string]bool{}
	for _, r := range s.starts {
		for _, c := range r.Columns {
			known[c] = true
		}
	}
	for _, c := range columns {
		if known[c] {
			ok = true
		} else if !slices.Contains(fresh, c) {
			fresh = append(fresh, c)
		}
	}
	return fresh, ok || len(known) == 0
}

// FileState is what a ledger file says.
type FileState struct {
	Terms
	// Keyed says that the chain has a key.
	Keyed bool
	// Limit is what each viewer may be charged, Spent what each was; what Outsider was, every viewer was at least that
	// is not listed.
	Limit Charge
	Spent map[string]Charge
	Runs  []FileRun
	// Anchor names the last line: kept elsewhere, it shows later whether lines were cut off.
	Anchor string
}

// FileRun is one run of a ledger file.
type FileRun struct {
	What       string
	Charges    map[string]Charge
	NotCovered []string
	Mark       string
	Ended      bool
}

// Left is what a viewer may still be charged.
func (s *FileState) Left(viewer string) Charge {
	spent, ok := s.Spent[viewer]
	if !ok {
		spent = s.Spent[Outsider]
	}
	return Charge{math.Max(0, s.Limit.Amount-spent.Amount), math.Max(0, s.Limit.Delta-spent.Delta)}
}

// Viewers lists those who were charged, in order, and outsiders.
func (s *FileState) Viewers() []string { return slices.Sorted(maps.Keys(s.Spent)) }

// state is what is said of a file to those who do not write it.
func (s *ledgerState) state() *FileState {
	out := &FileState{Terms: s.header.Terms, Keyed: s.header.Keyed, Limit: s.header.Terms.limit(), Spent: s.spent(),
		Anchor: fmt.Sprintf("%d:%s", s.lines, s.chain)}
	for i, r := range s.starts {
		_, ended := s.ends[i+1]
		out.Runs = append(out.Runs, FileRun{r.What, r.Charges, r.NotCovered, r.Mark, ended})
	}
	return out
}

// State reads the file without touching any data; it is nil if there is none yet.
func (f LedgerFile) State() (*FileState, error) {
	s, err := f.look()
	if err != nil || s == nil {
		return nil, err
	}
	return s.state(), nil
}

// look reads the file, nil if there is none.
func (f LedgerFile) look() (*ledgerState, error) {
	file, err := os.Open(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		if f.Anchor != "" {
			return nil, fmt.Errorf("ledger file %s: there is none, and an anchor for it: %w: restore the file from a copy",
				f.Path, ErrCorrupt)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ledger file: %w", err)
	}
	defer file.Close()
	if err := filelock.Wait(file); err != nil {
		return nil, fmt.Errorf("ledger file %s: lock: %w", f.Path, err)
	}
	s, err := f.read(file)
	if err != nil || s.empty {
		return nil, err
	}
	return s, nil
}
