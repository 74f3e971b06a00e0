package bench

import (
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/internal/fault"
)

// stored has results that were measured before, one file per suite as WriteSuite
// writes it, with the machine and the revision in its first line.
//
//go:embed results
var stored embed.FS

// Stored is the report of the suites' stored results, of all that have some if no
// name is given.
func Stored(names []string) (*Report, error) {
	if len(names) == 0 {
		names = []string{"all"}
	}
	suites, err := selectSuites(names)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	for _, s := range suites {
		section, err := storedSuite(s)
		if err != nil {
			return nil, err
		}
		if section == nil {
			r.Unstored = append(r.Unstored, s.Name)
			continue
		}
		r.Sections = append(r.Sections, *section)
	}
	if len(r.Sections) == 0 {
		return nil, fault.Request("--stored", "there are no stored results of "+strings.Join(names, ", "),
			"run the suite itself, or leave its name out")
	}
	return r, nil
}

// storedSuite returns the stored results of a suite, nil if there are none.
func storedSuite(s *Suite) (*Section, error) {
	text, err := fs.ReadFile(stored, path.Join("results", s.Name+".csv"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	section, err := parseSuite(s, string(text))
	if err != nil {
		return nil, fmt.Errorf("bench: results/%s.csv: %w", s.Name, err)
	}
	return section, nil
}

// WriteSuite writes the rows of one section as it is stored: where and with what it
// was measured, then the lines of WriteCSV.
func (r *Report) WriteSuite(w io.Writer, s *Section) error {
	m := r.Machine
	form := "full"
	if r.Quick {
		form = "quick"
	}
	_, err := fmt.Fprintf(w, "# %s form, cohort %s, revision %s, %s, %d cores, %d workers, kernels %s, %s, %s\n",
		form, m.Version, m.Revision, m.CPU, m.Cores, m.Workers, m.ISA, m.Go, m.Time)
	if err != nil {
		return err
	}
	return (&Report{Sections: []Section{*s}}).WriteCSV(w)
}

// parseSuite reads what WriteSuite wrote.
func parseSuite(s *Suite, text string) (*Section, error) {
	first, _, _ := strings.Cut(text, "\n")
	about, ok := strings.CutPrefix(first, "# ")
	if !ok {
		return nil, errors.New("its first line does not say where it was measured")
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || !slices.Equal(lines[0], csvHeader) {
		return nil, errors.New("its columns are not those of a suite's results")
	}
	section := &Section{Suite: s, Stored: about}
	for _, line := range lines[1:] {
		section.addLine(line)
	}
	return section, nil
}

// addLine adds one value with one reference, to the row and the value before it where
// they are the same.
func (s *Section) addLine(line []string) {
	field := func(name string) string { return line[slices.Index(csvHeader, name)] }
	number := func(name string) Number { return Number(chart.ParseNumber(field(name))) }
	row := Row{Suite: field("suite"), Table: field("table"), Seeds: field("seeds"), Note: field("note")}
	for _, l := range strings.Split(field("instance"), labelSeparator) {
		name, value, _ := strings.Cut(l, "=")
		row.Labels = append(row.Labels, Label{name, value})
	}
	if n := len(s.Rows); n == 0 || s.Rows[n-1].key() != row.key() {
		s.Rows = append(s.Rows, row)
	}
	at := &s.Rows[len(s.Rows)-1]
	name := field("value")
	if v := at.value(name); v == nil {
		n, _ := strconv.Atoi(field("n"))
		unit := field("unit")
		at.Values = append(at.Values, Value{Name: name, Unit: unit, Mean: number("mean"), Half: number("ci95_half"),
			Median: number("median"), P99: number("p99"), N: n, Timed: unit == unitNanoseconds})
	}
	if ref := field("reference"); ref != "" {
		v := at.value(name)
		v.References = append(v.References,
			Reference{Name: ref, Kind: field("reference_kind"), Value: number("reference_value"),
				Half: number("reference_half"), Rounding: number("reference_rounding"), Source: field("reference_source"),
				Apart: field("reference_apart"), Other: field("reference_other") == "true"})
	}
}
