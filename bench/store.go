package bench

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/filelock"
)

// ResultsFile is the name of the results in an output folder: JSON lines, the
// machine first, then one line per finished row.
const ResultsFile = "results.jsonl"

// resultsFormat changes when rows are no longer comparable.
const resultsFormat = 2

// header is the first line of a results file. Rows are taken over only from a
// file with the same header.
type header struct {
	Format   int    `json:"cohort_bench_format"`
	Version  string `json:"version"`
	Revision string `json:"revision"`
	// Build is the SHA-256 of the program, in hexadecimal: a revision can be unknown, or changed when it was built.
	Build   string `json:"build"`
	CPU     string `json:"cpu"`
	ISA     string `json:"isa"`
	Go      string `json:"go"`
	Workers int    `json:"workers"`
	Peers   string `json:"peers,omitempty"`
}

func headerOf(m *Machine, build string) header {
	return header{resultsFormat, m.Version, m.Revision, build, m.CPU, m.ISA, m.Go, m.Workers, m.Peers}
}

// thisBuild is the SHA-256 of the running program.
func thisBuild() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// store appends finished rows to a results file and knows those that are in it.
// Without a file it only remembers.
type store struct {
	file *os.File
	rows map[string]Row
	// resumed is the number of rows found; aside is where an older file was
	// moved.
	resumed int
	aside   string
}

// openStore opens or makes the results file of a folder; an empty folder name
// gives a store without a file. A file of another build or machine is renamed,
// never mixed with new rows and never deleted.
func openStore(dir string, m *Machine) (*store, error) {
	s := &store{rows: make(map[string]Row)}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fault.Failed("--out", fmt.Sprintf("%s cannot be made (%v)", dir, err),
			"name a folder that can be written", err)
	}
	build, err := thisBuild()
	if err != nil {
		return nil, fault.Failed("--out", fmt.Sprintf("this program's file cannot be read (%v), so rows of other builds "+
			"could not be told from its own", err), "make the program readable, or leave --out away", err)
	}
	head := headerOf(m, build)
	path := filepath.Join(dir, ResultsFile)
	if s.file, err = openAlone(path); err != nil {
		return nil, err
	}
	rows, end, err := readResults(s.file, head)
	if errors.Is(err, errOtherBuild) {
		for i := 1; s.aside == "" || exists(s.aside); i++ {
			s.aside = filepath.Join(dir, fmt.Sprintf("results.old-%d.jsonl", i))
		}
		if err := errors.Join(s.file.Close(), os.Rename(path, s.aside)); err != nil {
			return nil, fault.Failed("--out", err.Error(), "move "+path+" away", err)
		}
		if s.file, err = openAlone(path); err != nil {
			return nil, err
		}
	}
	// A line that an interruption cut off is dropped, and its row measured again.
	if err := s.file.Truncate(end); err != nil {
		return nil, errors.Join(fault.File(path, "check the disk", err), s.file.Close())
	}
	if _, err := s.file.Seek(end, 0); err != nil {
		return nil, errors.Join(fault.File(path, "check the disk", err), s.file.Close())
	}
	for _, r := range rows {
		s.rows[r.key()] = r
	}
	s.resumed = len(s.rows)
	if end == 0 {
		if err := s.line(head); err != nil {
			return nil, errors.Join(err, s.file.Close())
		}
	}
	return s, nil
}

var errOtherBuild = errors.New("results of another build or machine")

// openAlone opens or makes a file that no other process has open so: two benchmarks would overwrite each other's rows.
func openAlone(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fault.Failed("--out", fmt.Sprintf("%s cannot be written (%v)", path, err),
			"name a folder that can be written", err)
	}
	if err := filelock.Try(f); err != nil {
		return nil, errors.Join(fault.Failed("--out", path+" is in use by another benchmark",
			"wait for its end, or name another folder", err), f.Close())
	}
	return f, nil
}

// readResults returns the rows of a results file and the offset where the whole
// lines end.
func readResults(f io.Reader, want header) ([]Row, int64, error) {
	r := bufio.NewReader(f)
	var rows []Row
	var end int64
	for n := 0; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return rows, end, nil // what is left is no whole line
		}
		if n == 0 {
			var got header
			if json.Unmarshal(line, &got) != nil || got != want {
				return nil, 0, errOtherBuild
			}
		} else {
			var row Row
			if json.Unmarshal(line, &row) != nil || row.Suite == "" {
				return nil, 0, errOtherBuild
			}
			rows = append(rows, row)
		}
		end += int64(len(line))
	}
}

// find returns a finished row.
func (s *store) find(key string) (Row, bool) {
	r, ok := s.rows[key]
	return r, ok
}

// add remembers a finished row and appends it to the file.
func (s *store) add(r Row) error {
	s.rows[r.key()] = r
	if s.file == nil {
		return nil
	}
	return s.line(r)
}

// line writes one line at once, so that an interruption leaves at most one
// partial line.
func (s *store) line(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = s.file.Write(append(b, '\n'))
	}
	if err != nil {
		return fault.Failed("results", err.Error(), "check the disk and start again: finished rows are kept", err)
	}
	return nil
}

func (s *store) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
