package bench

import (
	"cmp"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// published has the figures that the papers print, one file per table:
// SUITE.csv, or SUITE_TABLE.csv for one of several tables of a suite. Columns that
// have the name of a label tell which row a line belongs to; the others are values:
//
//	VALUE            what the paper prints for the value of that name
//	VALUE ±          the half width of its interval
//	VALUE [ms]       in another unit than the value's own
//	VALUE, NAME      somebody else's figure for it, by the name that the paper gives
//
// A cell may have a unit of its own, as papers print them: 1.2m, 3.4GB, 5%.
//
// A column "apart" says why the figures of its line cannot be compared with ours, a column
// "why" why ours differs where it does. An empty cell is not printed. Lines that begin with #
// say something about all figures of the file: "# name: ..." whose they are, "# source: ..."
// where they stand, "# runs: ..." of how many runs they are means, "# apart: ..." why they
// cannot be compared with ours, "# why: ..." and "# why VALUE: ..." why ours differ.
//
//go:embed published/*.csv
var published embed.FS

// printedTable is one file of published figures.
type printedTable struct {
	source, apart, name string
	runs                int               // behind each figure, 0 if that is not known
	why                 map[string]string // why ours differ, by value; "" for all others
	header              []string
	lines               [][]string
}

// printedFiles are the files of this package.
var printedFiles = sync.OnceValues(func() (map[string]*printedTable, error) { return printedTables(published) })

// printedTables reads all files, by their names without the suffix.
func printedTables(files fs.FS) (map[string]*printedTable, error) {
	names, err := fs.Glob(files, "published/*.csv")
	if err != nil {
		return nil, err
	}
	tables := make(map[string]*printedTable, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		t, err := parsePrinted(string(text))
		if err != nil {
			return nil, fmt.Errorf("bench: %s: %w", name, err)
		}
		tables[strings.TrimSuffix(path.Base(name), ".csv")] = t
	}
	return tables, nil
}

func parsePrinted(text string) (*printedTable, error) {
	t := &printedTable{why: make(map[string]string)}
	for line := range strings.Lines(text) {
		about, ok := strings.CutPrefix(line, "# ")
		if !ok {
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSpace(about), ": ")
		if of, ok := strings.CutPrefix(key, "why"); ok {
			t.why[strings.TrimPrefix(of, " ")] = value
			continue
		}
		switch key {
		case "runs":
			runs, err := strconv.Atoi(value)
			if err != nil || runs < 1 {
				return nil, fmt.Errorf("%q is no number of runs", value)
			}
			t.runs = runs
		case "source":
			t.source = value
		case "apart":
			t.apart = value
		case "name":
			t.name = value
		default:
			return nil, fmt.Errorf("%q is none of name, source, runs, apart and why", key)
		}
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) < 2 || t.name == "" || t.source == "" {
		return nil, errors.New("it lacks its name, its source or figures")
	}
	t.header, t.lines = lines[0], lines[1:]
	return t, nil
}

// units are those of columns, as multiples of the units of values.
var units = map[string]float64{"": 1, "ms": 1e6, "s": 1e9, "min": 60e9}

// printedColumn is the heading of a value.
type printedColumn struct {
	value, name string
	scale       float64
	half        bool
}

func parseColumn(head string) (printedColumn, error) {
	c := printedColumn{scale: 1}
	head, c.name, _ = strings.Cut(head, ", ")
	head, c.half = strings.CutSuffix(head, " ±")
	if at := strings.LastIndex(head, " ["); at >= 0 && strings.HasSuffix(head, "]") {
		scale, ok := units[head[at+2:len(head)-1]]
		if !ok {
			return c, fmt.Errorf("column %q has an unknown unit", head)
		}
		c.scale, head = scale, head[:at]
	}
	c.value = head
	return c, nil
}

// reason says why a value differs from a figure that stands in this table: by what the
// paper's own runs vary, taken to deviate as ours do, or by what its file says; "" if
// nothing is known.
func (t *printedTable) reason(labels []Label, v *Value, r *Reference) string {
	if n := float64(v.N); t.runs > 0 && v.N > 1 {
		open := float64(v.Half)*math.Sqrt(1+n/float64(t.runs)) + float64(r.Rounding)
		if math.Abs(float64(v.Mean-r.Value)) <= open {
			return fmt.Sprintf("within what a mean of %d runs varies", t.runs)
		}
	}
	if at := slices.Index(t.header, "why"); at >= 0 {
		for _, line := range t.lines {
			if line[at] != "" && t.belongs(line, labels) {
				return line[at]
			}
		}
	}
	return cmp.Or(t.why[v.Name], t.why[""])
}

// attach adds to the values of the row what the papers print for them.
func (c *Case) attach() error {
	for i := range c.Row.Values {
		v := &c.Row.Values[i]
		refs, err := c.Env.printedFor(c.Row.file(), c.Row.Labels, v.Name)
		if err != nil {
			return err
		}
		for j := range refs {
			refs[j].Apart = cmp.Or(c.apart[v.Name], refs[j].Apart)
		}
		v.References = append(v.References, refs...)
	}
	return nil
}

// file is the name of the file with the figures that are printed for a row.
func (r *Row) file() string {
	if r.Table == "" {
		return r.Suite
	}
	return r.Suite + "_" + r.Table
}

// printedFor returns what a file of published figures has for a value of an
// instance. An empty cell below a label stands for any.
func (e *Env) printedFor(file string, labels []Label, value string) ([]Reference, error) {
	t := e.printed[file]
	if t == nil {
		return nil, nil
	}
	var out []Reference
	for _, line := range t.lines {
		if !t.belongs(line, labels) {
			continue
		}
		refs, err := t.references(line, value)
		if err != nil {
			return nil, fmt.Errorf("bench: published/%s.csv: %w", file, err)
		}
		out = append(out, refs...)
	}
	return out, nil
}

// belongs tells whether a line's labels are those of an instance.
func (t *printedTable) belongs(line []string, labels []Label) bool {
	found := false
	for i, head := range t.header {
		at := slices.IndexFunc(labels, func(l Label) bool { return l.Name == head })
		if at < 0 {
			continue
		}
		if line[i] != "" && labels[at].Value != line[i] {
			return false
		}
		found = true
	}
	return found
}

// references are the figures of a line for a value.
func (t *printedTable) references(line []string, value string) ([]Reference, error) {
	var out []Reference
	for i, head := range t.header {
		column, err := parseColumn(head)
		if err != nil {
			return nil, err
		}
		if column.value != value || line[i] == "" {
			continue
		}
		x, rounding, err := printedNumber(line[i])
		if err != nil {
			return nil, err
		}
		name := cmp.Or(column.name, t.name)
		if column.half {
			if at := slices.IndexFunc(out, func(r Reference) bool { return r.Name == name }); at >= 0 {
				out[at].Half = Number(x * column.scale)
			}
			continue
		}
		ref := Reference{Name: name, Kind: kindPublished, Value: Number(x * column.scale),
			Rounding: Number(rounding * column.scale),
			Source:   t.source, Apart: t.apart, Other: column.name != ""}
		if at := slices.Index(t.header, "apart"); at >= 0 {
			ref.Apart = cmp.Or(line[at], ref.Apart)
		}
		out = append(out, ref)
	}
	return out, nil
}

// suffixes are units of single cells, as multiples of seconds, of MB and of one.
var suffixes = map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400, "MB": 1, "GB": 1e3, "TB": 1e6, "%": 0.01}

// printedNumber parses a printed number, with or without the unit of its cell;
// rounding is half a unit of its last digit.
func printedNumber(s string) (x, rounding float64, err error) {
	for suffix, scale := range suffixes {
		if number, ok := strings.CutSuffix(s, suffix); ok && number != "" &&
			strings.ContainsAny(number[len(number)-1:], "0123456789") {
			x, rounding, err = printedNumber(number)
			return x * scale, rounding * scale, err
		}
	}
	if x, err = strconv.ParseFloat(s, 64); err != nil {
		return 0, 0, err
	}
	mantissa, exponent, _ := strings.Cut(s, "e")
	last := 0
	if exponent != "" {
		if last, err = strconv.Atoi(exponent); err != nil {
			return 0, 0, err
		}
	}
	if _, decimals, ok := strings.Cut(mantissa, "."); ok {
		last -= len(decimals)
	}
	return x, 0.5 * math.Pow10(last), nil
}
