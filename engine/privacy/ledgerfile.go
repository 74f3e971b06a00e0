package privacy

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/internal/filelock"
)

var (
	// ErrBudget is wrapped by the refusal of a run that its budget, or what a ledger file has left of
	// one, cannot pay for.
	ErrBudget = errors.New("the budget cannot pay")
	// ErrCorrupt is wrapped by the refusal of a ledger file whose lines are torn, altered or cut off.
	ErrCorrupt = errors.New("the ledger file is damaged")
	// ErrDataset is wrapped by the refusal of a ledger file that belongs to other data.
	ErrDataset = errors.New("the ledger file belongs to another data set")
)

// LedgerFile is a budget for one set of people that several runs, in any processes, spend from: a privacy filter (T11).
// The file only ever grows: a header with the terms, fixed when it is made, a line when a run starts, which pays
// for it in full, and a line when it ends. Lines are chained by hash, written with the file locked, and
// synced to the disk before the run goes on; a run that fails stays paid for. A run that is killed while it writes
// leaves a torn last line, which later runs refuse with how to mend it.
//
// The data are known by a keyed digest of each column that depends on no order of rows or columns: a table that shares
// a column with an earlier one is of the same people. Another table of the same people that shares none
// cannot be told from other people's.
type LedgerFile struct {
	Path string
	// Key, if not empty, keys the chain and the digests; without it whoever can write the file can write a
	// chain that is whole.
	Key []byte
	// Anchor, if not empty, is what State gave earlier: lines that were cut off since are noticed.
	Anchor string
}

// fileHeader, fileStart and fileEnd are the JSON of the three kinds of line.
type fileHeader struct {
	Cohort string `json:"cohort"` // fileVersion
	Salt   string `json:"salt"`
	Keyed  bool   `json:"keyed,omitempty"`
	Terms
}

type fileStart struct {
	Run        int               `json:"run"`
	What       string            `json:"what"`
	Columns    []string          `json:"columns,omitempty"` // digests that the lines before do not have
	Charges    map[string]Charge `json:"charges"`           // by viewer
	NotCovered []string          `json:"not_covered,omitempty"`
	Mark       string            `json:"mark,omitempty"`
}

type fileEnd struct {
	End     int               `json:"end"`
	Charges map[string]Charge `json:"ended,omitempty"` // where they are more than was paid
}

const fileVersion = "ledger 2"

// ledgerState is a ledger file as read.
type ledgerState struct {
	file   LedgerFile
	header fileHeader
	starts []fileStart
	ends   map[int]fileEnd
	chain  string
	lines  int
	empty  bool
}

// chained is the hash that leads a line.
func (s *ledgerState) chained(body []byte) string {
	var h hash.Hash
	if len(s.file.Key) > 0 {
		h = hmac.New(sha256.New, s.file.Key)
	} else {
		h = sha256.New()
	}
	io.WriteString(h, s.chain)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// beginsAsOne tells whether a first line is one of a ledger file, as far as it was written: 24 hexadecimal digits, a
// space, an object.
func beginsAsOne(line []byte) bool {
	const digits = 24
	for i, c := range line {
		var ok bool
		switch {
		case i < digits:
			ok = '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		case i < digits+3:
			ok = c == " {\""[i-digits]
		default:
			return true
		}
		if !ok {
			return false
		}
	}
	return true
}

func (f LedgerFile) read(file *os.File) (*ledgerState, error) {
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("ledger file %s: %w: name a file that can be read", f.Path, err)
	}
	s := &ledgerState{file: f, empty: len(data) == 0, ends: map[int]fileEnd{}}
	anchorLine, anchorHash, err := f.anchor()
	if err != nil {
		return nil, err
	}
	offset := 0
	for n := 1; offset < len(data); n++ {
		line := data[offset:]
		end := bytes.IndexByte(line, '\n')
		if end >= 0 {
			line = line[:end]
		}
		switch err := s.parse(line); {
		case n == 1 && !beginsAsOne(line):
			return nil, fmt.Errorf("ledger file %s: it does not begin as one: %w: name another file, or a new one",
				f.Path, ErrCorrupt)
		case end < 0:
			return nil, fmt.Errorf("ledger file %s: line %d is torn, a write was cut short: %w: cut it off with: truncate "+
				"-s %d %s; a run that it begins never began, one that it ends stays paid for",
				f.Path, n, ErrCorrupt, offset, f.Path)
		case err != nil && n == 1 && bytes.Contains(line, []byte(`"keyed":true`)):
			return nil, fmt.Errorf("ledger file %s: its chain has a key, and not this one: %w: give the key that it was "+
				"made with", f.Path, ErrCorrupt)
		case err != nil:
			return nil, fmt.Errorf("ledger file %s: line %d was altered, or is of another version: %w: restore the file "+
				"from a copy", f.Path, n, ErrCorrupt)
		}
		offset += end + 1
		if s.lines = n; n == anchorLine && s.chain != anchorHash {
			return nil, fmt.Errorf("ledger file %s: line %d is not the one of the anchor: %w: restore the file from a copy",
				f.Path, n, ErrCorrupt)
		}
	}
	if s.lines < anchorLine {
		return nil, fmt.Errorf("ledger file %s: it has %d lines and the anchor %d, lines were cut off: %w: restore the "+
			"file from a copy", f.Path, s.lines, anchorLine, ErrCorrupt)
	}
	return s, nil
}

// anchor parses Anchor: the number of a line and its hash.
func (f LedgerFile) anchor() (line int, hash string, err error) {
	if f.Anchor == "" {
		return 0, "", nil
	}
	number, hash, _ := strings.Cut(f.Anchor, ":")
	if line, err = strconv.Atoi(number); err != nil || line < 1 || len(hash) != 24 {
		return 0, "", fmt.Errorf("anchor is %q: %w: must be the number of a line and its hash, as cohort ledger show "+
			"prints it", f.Anchor, ErrRange)
	}
	return line, hash, nil
}

func (s *ledgerState) parse(line []byte) error {
	chain, body, ok := bytes.Cut(line, []byte(" "))
	if !ok || string(chain) != s.chained(body) {
		return ErrCorrupt
	}
	var any struct {
		fileHeader
		fileStart
		fileEnd
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&any); err != nil {
		return ErrCorrupt
	}
	switch {
	case s.chain == "":
		if any.Cohort != fileVersion || any.Terms.Validate() != nil || any.Keyed != (len(s.file.Key) > 0) {
			return ErrCorrupt
		}
		s.header = any.fileHeader
	case any.End > 0:
		if any.End > len(s.starts) {
			return ErrCorrupt
		}
		s.ends[any.End] = any.fileEnd
	default:
		if any.Run != len(s.starts)+1 {
			return ErrCorrupt
		}
		for _, c := range any.fileStart.Charges {
			if !(c.Amount >= 0 && c.Delta >= 0) {
				return ErrCorrupt
			}
		}
		s.starts = append(s.starts, any.fileStart)
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
	s.chain = s.chained(body)
	s.lines++
	return append([]byte(s.chain+" "), append(body, '\n')...), nil
}

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
	out := &FileState{Terms: s.header.Terms, Keyed: s.header.Keyed, Limit: s.header.Terms.Limit(), Spent: s.spent(),
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

// Salt is what keys the digests of columns, together with Key: that of the file, or a new one for a new file.
func (f LedgerFile) Salt() (string, error) {
	s, err := f.look()
	if err != nil {
		return "", err
	}
	if s != nil {
		return s.header.Salt, nil
	}
	var b [16]byte
	rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:]), nil
}

// DigestKey is the key of the columns' digests for a salt.
func (f LedgerFile) DigestKey(salt string) [16]byte {
	h := hmac.New(sha256.New, f.Key)
	io.WriteString(h, "cohort columns "+salt)
	return [16]byte(h.Sum(nil))
}

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
		if err := terms.Validate(); err != nil {
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
		return nil, fmt.Errorf("ledger file %s: %w: it shares no column with the tables before; use another file for "+
			"other people", f.Path, ErrDataset)
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

// agree refuses terms, or digests, that are not those of the file.
func (f LedgerFile) agree(s *ledgerState, terms Terms, p PlannedRun) error {
	has := s.header.Terms
	differs := func(what string, own, asked any) error {
		return fmt.Errorf("ledger file %s: its %s of %v was fixed when it was made, %v is %w: leave it out", f.Path, what,
			own, asked, ErrRange)
	}
	switch {
	case s.header.Salt != p.Salt:
		return fmt.Errorf("ledger file %s: another run made it meanwhile: %w: run again", f.Path, ErrDataset)
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
		if err := filelock.Wait(file); err != nil {
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
