package dataset

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine/fault"
)

// checkEvery is the number of rows between two looks at the context.
const checkEvery = 4096

// separator is how the cells of a text file are told apart; blank means runs of
// spaces and tabs.
type separator byte

const blank separator = ' '

// lineReader yields the lines of a text file without their line ends. A line is
// valid until the next call.
type lineReader struct {
	r    *bufio.Reader
	long []byte
	row  int
}

func newLineReader(r *bufio.Reader) *lineReader { return &lineReader{r: r} }

// next returns the next line, or io.EOF when there is none.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.long = append(l.long[:0], line...)
		for err == bufio.ErrBufferFull {
			line, err = l.r.ReadSlice('\n')
			l.long = append(l.long, line...)
		}
		line = l.long
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	l.row++
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if l.row == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, nil
}

// sniff picks the separator from the first row: a comma, else a tab, else a
// semicolon, else blanks.
func sniff(line []byte) separator {
	for _, c := range []byte{',', '\t', ';'} {
		if bytes.IndexByte(line, c) >= 0 {
			return separator(c)
		}
	}
	return blank
}

// splitCells appends the cells of line to dst. Blanks and one pair of double
// quotes around a cell are not part of it; a separator inside quotes is.
func splitCells(dst [][]byte, line []byte, sep separator) [][]byte {
	if sep == blank {
		i := 0
		for {
			for i < len(line) && isBlank(line[i]) {
				i++
			}
			if i == len(line) {
				return dst
			}
			start := i
			for i < len(line) && !isBlank(line[i]) {
				i++
			}
			dst = append(dst, unquote(line[start:i]))
		}
	}
	for {
		i := 0
		for i < len(line) && isBlank(line[i]) && separator(line[i]) != sep {
			i++
		}
		if i < len(line) && line[i] == '"' {
			if j := bytes.IndexByte(line[i+1:], '"'); j >= 0 {
				i += j + 2
			}
		}
		for i < len(line) && separator(line[i]) != sep {
			i++
		}
		dst = append(dst, unquote(trimBlank(line[:i])))
		if i == len(line) {
			return dst
		}
		line = line[i+1:]
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func trimBlank(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func unquote(b []byte) []byte {
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' {
		return trimBlank(b[1 : n-1])
	}
	return b
}

// isHeader reports whether a first row names the columns: none of its cells is
// a number (NaN and Inf count as numbers) and at least one is not empty.
func isHeader(cells [][]byte) bool {
	named := false
	for _, c := range cells {
		if len(c) > 0 {
			named = true
		}
		if _, err := parseFloat(c); !errors.Is(err, errNotNumber) {
			return false
		}
	}
	return named
}

// readText reads comma-, tab-, semicolon- or blank-separated numbers. id, if not
// empty, names a column of ids, which may be any text.
func readText(ctx context.Context, path string, r *bufio.Reader, columns, id string) (*Table, error) {
	lines := newLineReader(r)
	bad := func(row, column int, why, do string, err error) error {
		return fault.Failed(place(path, row, column), why, do, err)
	}
	line, err := lines.next()
	if err == io.EOF {
		return nil, bad(0, 0, "the file is empty", "give a file with one record per row", nil)
	}
	if err != nil {
		return nil, readFault(path, lines.row+1, err)
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return nil, bad(1, 0, "binary data", "give CSV, TSV, space-separated text, .npy or IDX, each also .gz", nil)
	}
	sep := sniff(line)
	cells := splitCells(nil, line, sep)
	t := &Table{Name: path}
	width := len(cells)
	var chosen []int
	idColumn := -1
	choose := func(names []string) error {
		if chosen, err = chooseColumns(columns, names, width); err != nil || id == "" {
			return err
		}
		one, err := chooseColumns(id, names, width)
		if err == nil && len(one) != 1 {
			err = fault.Request("id "+strconv.Quote(id), "is not one column", "name one column of "+path)
		}
		if err != nil {
			return err
		}
		idColumn = one[0]
		chosen = slices.DeleteFunc(chosen, func(c int) bool { return c == idColumn })
		return nil
	}
	if header := isHeader(cells); header {
		names := make([]string, width)
		for i, c := range cells {
			names[i] = string(c)
		}
		if err := choose(names); err != nil {
			return nil, err
		}
		for _, c := range chosen {
			t.Columns = append(t.Columns, names[c])
		}
		line, err = lines.next()
		if err == io.EOF {
			return nil, bad(0, 0, "the file has a header and no records", "give a file with one record per row", nil)
		}
		if err != nil {
			return nil, readFault(path, lines.row+1, err)
		}
	} else if err := choose(nil); err != nil {
		return nil, err
	}
	t.D = len(chosen)
	if t.D == 0 && idColumn >= 0 {
		return nil, bad(0, 0, "the file has no column but the id", "give at least one column of numbers", nil)
	}

	emptyRow := 0
	for {
		if len(line) == 0 || len(trimBlank(line)) == 0 {
			// Empty lines are fine at the end of the file only.
			if emptyRow == 0 {
				emptyRow = lines.row
			}
		} else {
			if emptyRow > 0 {
				return nil, bad(emptyRow, 0, "an empty row between records", "remove it, or fill in its cells", nil)
			}
			cells = splitCells(cells[:0], line, sep)
			if len(cells) != width {
				return nil, bad(lines.row, 0, fmt.Sprintf("%d cells where the rows above have %d", len(cells), width),
					"give every row the same number of cells", nil)
			}
			for _, c := range chosen {
				v, err := parseFloat(cells[c])
				if err != nil {
					return nil, cellFault(path, lines.row, c+1, cells[c], err)
				}
				t.Rows = append(t.Rows, v)
			}
			if idColumn >= 0 {
				if len(cells[idColumn]) == 0 {
					return nil, cellFault(path, lines.row, idColumn+1, nil, nil)
				}
				t.IDs = append(t.IDs, string(cells[idColumn]))
			}
			t.N++
			if t.N%checkEvery == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		line, err = lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, readFault(path, lines.row+1, err)
		}
	}
	if t.N == 0 {
		return nil, bad(0, 0, "the file has no records", "give a file with one record per row", nil)
	}
	return t, nil
}

func cellFault(path string, row, column int, cell []byte, err error) error {
	shown := string(cell)
	if len(shown) > 40 {
		shown = shown[:40] + "..."
	}
	why := fmt.Sprintf("%q is %v", shown, err)
	switch {
	case len(cell) == 0:
		why = "the cell is empty"
	case errors.Is(err, errNotFinite):
		why = fmt.Sprintf("%q: %v", shown, err)
	}
	return fault.Failed(place(path, row, column), why, "correct the cell, or leave the column out with --columns", err)
}

// readFault describes an error of the reader below, most often a damaged gzip
// stream.
func readFault(path string, row int, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Failed(place(path, row, 0), "the file ends too early (truncated)", "fetch or write the file again", err)
	}
	return fault.Failed(place(path, row, 0), err.Error(), "check the file", err)
}

// chooseColumns resolves a column choice: names of the header, indices from 0,
// or ranges lo-hi of indices, separated by commas. An empty choice is every
// column.
func chooseColumns(choice string, names []string, width int) ([]int, error) {
	if strings.TrimSpace(choice) == "" {
		all := make([]int, width)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	wrong := func(why string) error {
		return fault.Request("columns "+strconv.Quote(choice), why, fmt.Sprintf("give header names or indices 0 to %d, separated by commas", width-1))
	}
	byName := make(map[string]int, len(names))
	for i := len(names) - 1; i >= 0; i-- {
		byName[names[i]] = i
	}
	var chosen []int
	seen := make(map[int]bool)
	add := func(c int) error {
		if c < 0 || c >= width {
			return wrong(fmt.Sprintf("there is no column %d among %d", c, width))
		}
		if seen[c] {
			return wrong(fmt.Sprintf("column %d is named twice", c))
		}
		seen[c] = true
		chosen = append(chosen, c)
		return nil
	}
	for _, item := range strings.Split(choice, ",") {
		item = strings.TrimSpace(item)
		if c, ok := byName[item]; ok {
			if err := add(c); err != nil {
				return nil, err
			}
			continue
		}
		lo, hi, ranged := strings.Cut(item, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			return nil, wrong(fmt.Sprintf("%q is neither a header name nor an index", item))
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(hi); err != nil || b < a {
				return nil, wrong(fmt.Sprintf("%q is not a range of indices", item))
			}
		}
		for c := a; c <= b; c++ {
			if err := add(c); err != nil {
				return nil, err
			}
		}
	}
	return chosen, nil
}
