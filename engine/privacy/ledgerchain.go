package privacy

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
)

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
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() { // a device may have no end
		return nil, fmt.Errorf("ledger file %s: is no regular file: name one, or a new one", f.Path)
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(file)
	}
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
		case end < 0 && n == 1 && bytes.Contains(line, []byte(`"run":`)): // no header, torn or whole, has runs
			return nil, fmt.Errorf("ledger file %s: its lines do not end as they were written: %w: restore the file from a "+
				"copy", f.Path, ErrCorrupt)
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
		if any.Cohort != fileVersion || any.Terms.validate() != nil || any.Keyed != (len(s.file.Key) > 0) {
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
