package bench

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/bench/table"
)

// grid is a table of a section with its name. hints say more about the cells.
type grid struct {
	name string
	table.Table
	hints [][]string
}

// grids arranges the rows of a section, one grid per table: labels, then each
// value with its references.
func (s *Section) grids() []grid {
	var names []string
	for _, r := range s.Rows {
		if !slices.Contains(names, r.Table) {
			names = append(names, r.Table)
		}
	}
	var out []grid
	for _, name := range names {
		g := grid{name: name}
		var rows []*Row
		for i := range s.Rows {
			if s.Rows[i].Table == name {
				rows = append(rows, &s.Rows[i])
			}
		}
		var cells []func(*Row) string
		details := make(map[int]string) // column -> value whose details it has
		column := func(name, of string, numeric bool, cell func(*Row) string) {
			g.Columns, g.Of, g.Numeric, cells = append(g.Columns, name), append(g.Of, of), append(g.Numeric, numeric),
				append(cells, cell)
		}
		c := contentsOf(rows)
		for _, l := range c.labels {
			column(l, "", false, func(r *Row) string { return r.label(l) })
		}
		for _, n := range c.values {
			details[len(cells)] = n
			column(n, "", true, func(r *Row) string { return formatValue(r.value(n)) })
			for _, ref := range c.refs[n] {
				column(ref, n, true, func(r *Row) string { return formatColumn(r.value(n), ref) })
			}
		}
		if c.repeated {
			column("runs", "", true, func(r *Row) string { return formatCount(r.runs()) })
		}
		if c.seeded {
			column("seeds", "", false, func(r *Row) string { return r.Seeds })
		}
		if c.compared {
			column("agreement", "", false, (*Row).agreement)
		}
		if c.noted {
			column("note", "", false, func(r *Row) string {
				if r.Failed != "" {
					return "FAILED: " + r.Failed
				}
				return r.notes()
			})
		}
		for _, r := range rows {
			line, hints := make([]string, len(cells)), make([]string, len(cells))
			for i, cell := range cells {
				line[i] = cell(r)
				if n, ok := details[i]; ok {
					hints[i] = formatDetails(r.value(n))
				}
			}
			g.Rows, g.hints = append(g.Rows, line), append(g.hints, hints)
		}
		out = append(out, g)
	}
	return out
}

// contents are the columns that rows of a table need.
type contents struct {
	labels, values                    []string
	refs                              map[string][]string // names of references, by value
	noted, seeded, repeated, compared bool
}

func contentsOf(rows []*Row) contents {
	c := contents{refs: make(map[string][]string)}
	for _, r := range rows {
		c.repeated = c.repeated || r.runs() > 1
		c.seeded = c.seeded || r.Seeds != ""
		c.noted = c.noted || r.notes() != "" || r.Failed != ""
		c.compared = c.compared || r.agreement() != ""
		for _, l := range r.Labels {
			if !slices.Contains(c.labels, l.Name) {
				c.labels = append(c.labels, l.Name)
			}
		}
		for _, v := range r.Values {
			if !slices.Contains(c.values, v.Name) {
				c.values = append(c.values, v.Name)
			}
			for _, ref := range v.References {
				if n := ref.column(); !slices.Contains(c.refs[v.Name], n) {
					c.refs[v.Name] = append(c.refs[v.Name], n)
				}
			}
		}
	}
	return c
}

// formatColumn is the cell of a reference beside a value, empty where the value has none of that name.
func formatColumn(v *Value, ref string) string {
	if v == nil {
		return ""
	}
	for i := range v.References {
		if v.References[i].column() == ref {
			return formatReference(v, &v.References[i])
		}
	}
	return ""
}

// column is the heading of a reference.
func (r *Reference) column() string {
	if r.Name == r.Kind {
		return r.Name
	}
	return r.Name + ", " + r.Kind
}

// WriteText writes the report in lines of at most width characters, such as a
// terminal has. A width of 0 prints each row of a table on one line, for scripts.
func (r *Report) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	prose := func(indent, hang int, format string, a ...any) {
		b.WriteString(table.Paragraph(fmt.Sprintf(format, a...), indent, hang, width))
	}
	if m := r.Machine; m != nil { // stored results name theirs
		prose(0, 2, "cohort %s, %s %s/%s, %s, %d cores, %d workers, kernels %s", m.Version, m.Go, m.OS, m.Arch, m.CPU,
			m.Cores, m.Workers, m.ISA)
		prose(0, 2, "noise floor %.1f%% between equal code, p99 %.0f%% over the median%s", 100*m.NoiseFloor, 100*m.Spread,
			pinnedText(m))
		if m.Together > 0 {
			prose(0, 2, "%d workers at once do %.2f times the multiply-adds of one", m.Workers, m.Together)
		}
		if m.Between > 0 {
			prose(0, 2, "a word takes %.0f ns from core to core and back", m.Between)
		}
	}
	if r.Aside != "" {
		prose(0, 2, "an earlier results file of another build or machine was kept as %s", r.Aside)
	}
	if r.Resumed > 0 {
		prose(0, 2, "%d rows are from an earlier, interrupted or partial run", r.Resumed)
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		b.WriteString("\n")
		prose(0, 2, "%s: %s", s.Suite.Name, s.Suite.Title)
		b.WriteString(table.Paragraph(s.Suite.About, 2, 0, cmp.Or(width, 98)))
		if s.Stored != "" {
			prose(2, 2, "stored: %s", s.Stored)
		}
		if missing := s.missingText(r.DataDir); missing != "" {
			prose(2, 2, "%s", missing)
		}
		for _, g := range s.grids() {
			b.WriteString("\n")
			if g.name != "" {
				prose(2, 2, "%s", g.name)
			}
			for _, line := range g.Lines(width) {
				b.WriteString(line + "\n")
			}
		}
		b.WriteString("\n")
		for _, line := range s.remarks() {
			prose(2, 2, "%s", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func pinnedText(m *Machine) string {
	if m.Pinned {
		return ", timing threads pinned"
	}
	return ", threads cannot be pinned here"
}

// remarks say where the references come from and what is not in the section.
func (s *Section) remarks() []string {
	var out []string
	for i := range s.Rows {
		for _, v := range s.Rows[i].Values {
			for _, ref := range v.References {
				if ref.Source == "" {
					continue
				}
				if line := ref.column() + ": " + ref.Source; !slices.Contains(out, line) {
					out = append(out, line)
				}
			}
		}
	}
	if s.Left > 0 {
		out = append(out, fmt.Sprintf("%d instances are left out by --quick", s.Left))
	}
	if s.Seconds >= 0.1 { // less means that the rows were there
		out = append(out, fmt.Sprintf("took %.1f s", s.Seconds))
	}
	return out
}

// missingText says which data sets were not there and how to get them; empty if all
// were.
func (s *Section) missingText(dir string) string {
	if len(s.Missing) == 0 {
		return ""
	}
	return fmt.Sprintf("missing data sets, their rows are left out: %s (looked in %s; give their folder with "+
		"--data-dir); how to get them: %s",
		strings.Join(s.Missing, ", "), dir, howToGet(s.Missing))
}

// WriteJSON writes one line per row.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, s := range r.Sections {
		for _, row := range s.Rows {
			if err := e.Encode(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteCSV writes one line per value.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.Write(csvHeader); err != nil {
		return err
	}
	for _, s := range r.Sections {
		for i := range s.Rows {
			if err := c.WriteAll(csvLines(&s.Rows[i])); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

var csvHeader = []string{
	"suite", "table", "instance", "value", "unit", "mean", "ci95_half", "median", "p99", "n", "seeds",
	"reference", "reference_kind", "reference_value", "reference_half", "reference_source",
	"reference_rounding", "reference_apart", "reference_other", "agreement", "note",
}

// labelSeparator stands between the labels of an instance.
const labelSeparator = "; "

// csvLines has one line per value and reference.
func csvLines(r *Row) [][]string {
	var instance []string
	for _, l := range r.Labels {
		instance = append(instance, l.Name+"="+l.Value)
	}
	number := func(n Number) string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }
	var out [][]string
	for i := range r.Values {
		v := &r.Values[i]
		line := []string{r.Suite, r.Table, strings.Join(instance, labelSeparator), v.Name, v.Unit,
			number(v.Mean), number(v.Half), number(v.Median), number(v.P99), strconv.Itoa(v.N), r.Seeds}
		if len(v.References) == 0 {
			out = append(out, append(line, "", "", "", "", "", "", "", "", "", r.Note))
		}
		for j := range v.References {
			ref := &v.References[j]
			out = append(out, append(slices.Clone(line), ref.Name, ref.Kind, number(ref.Value), number(ref.Half), ref.Source,
				number(ref.Rounding), ref.Apart, strconv.FormatBool(ref.Other), r.agreementText(v, ref), r.Note))
		}
	}
	return out
}
