package privacy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

var (
	// ErrBudget is wrapped by the refusal of a run that its budget, or what a ledger file has left of
	// one, cannot pay for.
	ErrBudget = errors.New("the budget cannot pay")
	// ErrCorrupt is wrapped by the refusal of a ledger file whose lines are torn or altered.
	ErrCorrupt = errors.New("the ledger file is damaged")
	// ErrDataset is wrapped by the refusal of a ledger file that belongs to other data.
	ErrDataset = errors.New("the ledger file belongs to another data set")
)

// LedgerFile is a budget for one data set that several runs, in any processes, spend from. The file
// only ever grows: a header with the budget and a digest of the data, then a line when a run starts,
// which pays for it in full, then a line with its releases when it ends, by which tighter composition
// may show that less was spent. Lines are chained by hash, written with the file locked, and synced to the
// disk before the run goes on; a run that fails stays paid for. A run that is killed while it writes leaves a torn last line,
// which later runs refuse with how to mend it.
type LedgerFile struct{ Path string }

// lineHeader, lineStart and lineEnd are the JSON of the three kinds of line.
type lineHeader struct {
	Cohort  string `json:"cohort"` // "ledger 1"
	Dataset string `json:"dataset"`
	Budget  Budget `json:"budget"`
}

type lineStart struct {
	Run  int    `json:"run"`
	What string `json:"what"`
	Cost Budget `json:"cost"`
}

type lineEnd struct {
	End      int               `json:"end"`
	Releases map[string][]Spec `json:"releases"` // by viewer
}

// ledgerState is a ledger file as read.
type ledgerState struct {
	header lineHeader
	starts []lineStart
	ends   map[int]lineEnd
	chain  string
	empty  bool
}

// chained is the hash that leads a line.
func chained(previous string, body []byte) string {
	h := sha256.New()
	io.WriteString(h, previous)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// header is how the first line begins, as far as it was written.
var header = regexp.MustCompile(`^([0-9a-f]{0,24}|[0-9a-f]{24} (|\{|\{".*))$`)

func (f LedgerFile) read(file *os.File) (*ledgerState, error) {
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("ledger file %s: %w: name a file that can be read", f.Path, err)
	}
	s := &ledgerState{empty: len(data) == 0, ends: map[int]lineEnd{}}
	offset := 0
	for n := 1; offset < len(data); n++ {
		line := data[offset:]
		end := bytes.IndexByte(line, '\n')
		if end >= 0 {
			line = line[:end]
		}
		switch err := s.parse(line); {
		case n == 1 && !header.Match(line):
			return nil, fmt.Errorf("ledger file %s: it does not begin as one: %w: name another file, or a new one", f.Path, ErrCorrupt)
		case end < 0:
			return nil, fmt.Errorf("ledger file %s: line %d is torn, a write was cut short: %w: cut it off with: truncate -s %d %s; a run that it begins never began, one that it ends stays paid for",
				f.Path, n, ErrCorrupt, offset, f.Path)
		case err != nil:
			return nil, fmt.Errorf("ledger file %s: line %d was altered: %w: restore the file from a copy", f.Path, n, ErrCorrupt)
		}
		offset += end + 1
	}
	return s, nil
}

func (s *ledgerState) parse(line []byte) error {
	chain, body, ok := bytes.Cut(line, []byte(" "))
	if !ok || string(chain) != chained(s.chain, body) {
		return ErrCorrupt
	}
	var any struct {
		lineHeader
		lineStart
		lineEnd
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&any); err != nil {
		return ErrCorrupt
	}
	switch {
	case s.chain == "":
		if any.Cohort != "ledger 1" || any.Budget.Validate() != nil {
			return ErrCorrupt
		}
		s.header = any.lineHeader
	case any.End > 0:
		if any.End > len(s.starts) {
			return ErrCorrupt
		}
		s.ends[any.End] = any.lineEnd
	default:
		if any.Run != len(s.starts)+1 || any.Cost.Validate() != nil {
			return ErrCorrupt
		}
		s.starts = append(s.starts, any.lineStart)
	}
	s.chain = string(chain)
	return nil
}

// line encodes a body as the next line and advances the chain.
func (s *ledgerState) line(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("ledger file: %w", err)
	}
	s.chain = chained(s.chain, body)
	return append([]byte(s.chain+" "), append(body, '\n')...), nil
}

// spent is the epsilon of all runs together at the budget's delta. Runs add up; those that ended also
// by their releases, viewer by viewer, with the unfinished ones added at the price they paid.
func (s *ledgerState) spent() float64 {
	var plain, plainDelta, open, openDelta float64
	viewers := map[string]*accounts{}
	for i, r := range s.starts {
		plain += r.Cost.Epsilon
		plainDelta += r.Cost.Delta
		end, done := s.ends[i+1]
		if !done {
			open += r.Cost.Epsilon
			openDelta += r.Cost.Delta
			continue
		}
		for v, specs := range end.Releases {
			if viewers[v] == nil {
				viewers[v] = newAccounts()
			}
			for _, spec := range specs {
				m, err := spec.Mechanism()
				if err != nil {
					m = PureDP{math.Inf(1)}
				}
				viewers[v].compose(m, spec.Times())
				viewers[v].stray(spec)
			}
		}
	}
	const rounding = 1e-12 // of the sums
	best := math.Inf(1)
	if plainDelta <= s.header.Budget.Delta*(1+rounding) {
		best = plain
	}
	if delta := s.header.Budget.Delta - openDelta; delta >= 0 {
		worst := 0.0
		for _, a := range viewers {
			e, _ := a.total(delta)
			worst = math.Max(worst, e)
		}
		best = math.Min(best, worst+open)
	}
	return best * (1 - rounding)
}

// Left returns the file's budget and the epsilon spent of it so far; ok is false if there is no file
// yet. It reads without touching any data, so a run can be refused early.
func (f LedgerFile) Left() (total Budget, spent float64, ok bool, err error) {
	file, err := os.Open(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		return Budget{}, 0, false, nil
	}
	if err != nil {
		return Budget{}, 0, false, fmt.Errorf("ledger file: %w", err)
	}
	defer file.Close()
	if err := lock(file); err != nil {
		return Budget{}, 0, false, fmt.Errorf("ledger file %s: lock: %w", f.Path, err)
	}
	s, err := f.read(file)
	if err != nil || s.empty {
		return Budget{}, 0, false, err
	}
	return s.header.Budget, s.spent(), true, nil
}

// Start pays for a run on the data of the given digest, before it begins: it returns the run's number
// or refuses, saying what is missing. A new file gets total as its budget; for an old one a total
// that is not zero must agree with it.
func (f LedgerFile) Start(dataset string, total, cost Budget, what string) (int, error) {
	if err := cost.Validate(); err != nil {
		return 0, fmt.Errorf("ledger file: %w", err)
	}
	run := 0
	err := f.update(func(s *ledgerState) ([]byte, error) {
		var out []byte
		if s.empty {
			if err := total.Validate(); err != nil {
				return nil, fmt.Errorf("ledger file %s: budget: %w", f.Path, err)
			}
			s.header = lineHeader{"ledger 1", dataset, total}
			b, err := s.line(s.header)
			if err != nil {
				return nil, err
			}
			out = b
		}
		switch {
		case s.header.Dataset != dataset:
			return nil, fmt.Errorf("ledger file %s: %w: use another file for this data", f.Path, ErrDataset)
		case total != Budget{} && total != s.header.Budget:
			return nil, fmt.Errorf("ledger file %s: its budget of epsilon %v at delta %v was fixed when it was made: another is %w: leave the budget out",
				f.Path, s.header.Budget.Epsilon, s.header.Budget.Delta, ErrRange)
		}
		before := s.spent()
		run = len(s.starts) + 1
		start := lineStart{run, what, cost}
		s.starts = append(s.starts, start)
		if after := s.spent(); after > s.header.Budget.Epsilon {
			return nil, shortfall(f.Path, s.header.Budget, before, after, cost)
		}
		b, err := s.line(start)
		return append(out, b...), err
	})
	return run, err
}

func shortfall(path string, total Budget, before, after float64, cost Budget) error {
	if math.IsInf(after, 1) {
		return fmt.Errorf("ledger file %s: the run asks for delta %.3g and of %.3g in all too little is left: %w: ask for a smaller delta", path, cost.Delta, total.Delta, ErrBudget)
	}
	return fmt.Errorf("ledger file %s: the run asks for epsilon %v, of %v in all %.4g is spent, %.4g is missing: %w: ask for less or end here",
		path, cost.Epsilon, total.Epsilon, before, after-total.Epsilon, ErrBudget)
}

// End records what a run released, from its ledger. Without it the run stays counted at its price.
func (f LedgerFile) End(run int, l *Ledger) error {
	releases := map[string][]Spec{}
	for _, v := range l.Viewers() {
		for _, e := range l.Entries {
			switch {
			case e.Kind != Release || !slices.Contains(e.Viewers, v):
			case e.Cost.Family != "":
				releases[v] = append(releases[v], e.Cost)
			case e.Unbounded || e.Mechanism == "none":
				return fmt.Errorf("ledger file %s: run %d released %s, which has no bound: %w", f.Path, run, e.What, ErrBudget)
			}
		}
	}
	return f.update(func(s *ledgerState) ([]byte, error) {
		if run < 1 || run > len(s.starts) {
			return nil, fmt.Errorf("ledger file %s: run %d never began: %w", f.Path, run, ErrRange)
		}
		return s.line(lineEnd{run, releases})
	})
}

// update locks the file, hands its state to f and appends what f returns.
func (f LedgerFile) update(change func(*ledgerState) ([]byte, error)) (err error) {
	file, err := f.openLocked()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := file.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("ledger file %s: %w", f.Path, cerr)
		}
	}()
	s, err := f.read(file)
	if err != nil {
		return err
	}
	out, err := change(s)
	if err != nil {
		if s.empty { // leave nothing behind; whoever waits for the lock will look again
			os.Remove(f.Path)
		}
		return err
	}
	if _, err := file.Write(out); err != nil {
		return fmt.Errorf("ledger file %s: %w", f.Path, err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("ledger file %s: %w", f.Path, err)
	}
	if s.empty { // the name of a new file must last, too
		dir, err := os.Open(filepath.Dir(f.Path))
		if err != nil {
			return fmt.Errorf("ledger file %s: %w", f.Path, err)
		}
		defer dir.Close()
		if err := dir.Sync(); err != nil {
			return fmt.Errorf("ledger file %s: %w", f.Path, err)
		}
	}
	return nil
}

// openLocked opens and locks the file, making it if need be, until it is closed. A file that was
// removed while this process waited for the lock is left for the new one.
func (f LedgerFile) openLocked() (*os.File, error) {
	for {
		file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("ledger file: %w: name one in a folder that can be written", err)
		}
		if err := lock(file); err != nil {
			file.Close()
			return nil, fmt.Errorf("ledger file %s: lock: %w", f.Path, err)
		}
		held, err := file.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Stat(f.Path); err == nil && os.SameFile(held, named) {
				return file, nil
			}
		}
		file.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("ledger file: %w", err)
		}
	}
}
