package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// grid is a table of a section: rows of cells under column names.
type grid struct {
	name    string
	columns []string
	numeric []bool
	rows    [][]string
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
		column := func(name string, numeric bool, cell func(*Row) string) {
			g.columns, g.numeric, cells = append(g.columns, name), append(g.numeric, numeric), append(cells, cell)
		}
		var labels, values []string
		refs := make(map[string][]string) // value name -> reference names
		noted, seeded := false, false
		for _, r := range rows {
			seeded = seeded || r.Seeds != ""
			noted = noted || r.Note != "" || r.Failed != ""
			for _, l := range r.Labels {
				if !slices.Contains(labels, l.Name) {
					labels = append(labels, l.Name)
				}
			}
			for _, v := range r.Values {
				if !slices.Contains(values, v.Name) {
					values = append(values, v.Name)
				}
				for _, ref := range v.References {
					if n := ref.column(); !slices.Contains(refs[v.Name], n) {
						refs[v.Name] = append(refs[v.Name], n)
					}
				}
			}
		}
		for _, l := range labels {
			column(l, false, func(r *Row) string { return r.Label(l) })
		}
		for _, n := range values {
			column(n, true, func(r *Row) string { return formatValue(r.Value(n)) })
			for _, ref := range refs[n] {
				column(ref, true, func(r *Row) string {
					v := r.Value(n)
					if v == nil {
						return ""
					}
					for i := range v.References {
						if v.References[i].column() == ref {
							return formatReference(v, &v.References[i])
						}
					}
					return ""
				})
			}
		}
		if seeded {
			column("seeds", false, func(r *Row) string { return r.Seeds })
		}
		if noted {
			column("note", false, func(r *Row) string {
				if r.Failed != "" {
					return "FAILED: " + r.Failed
				}
				return r.Note
			})
		}
		for _, r := range rows {
			line := make([]string, len(cells))
			for i, cell := range cells {
				line[i] = cell(r)
			}
			g.rows = append(g.rows, line)
		}
		out = append(out, g)
	}
	return out
}

// column is the heading of a reference.
func (r *Reference) column() string { return r.Name + ", " + r.Kind }

// WriteText writes the report for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "cohort %s, %s %s/%s, %s, %d cores, %d workers, kernels %s\n", m.Version, m.Go, m.OS, m.Arch, m.CPU, m.Cores, m.Workers, m.ISA)
	fmt.Fprintf(&b, "noise floor %.1f%% between equal code, p99 %.0f%% over the median%s\n", 100*m.NoiseFloor, 100*m.Spread, pinnedText(m))
	if r.Aside != "" {
		fmt.Fprintf(&b, "an earlier results file of another version or machine was kept as %s\n", r.Aside)
	}
	if r.Resumed > 0 {
		fmt.Fprintf(&b, "%d rows are from an earlier, interrupted or partial run\n", r.Resumed)
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		fmt.Fprintf(&b, "\n%s: %s\n", s.Suite.Name, s.Suite.Title)
		for _, line := range fold(s.Suite.About, 96) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		for _, g := range s.grids() {
			b.WriteString("\n")
			if g.name != "" {
				fmt.Fprintf(&b, "  %s\n", g.name)
			}
			t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
			fmt.Fprintf(t, "  %s\n", strings.Join(g.columns, "\t"))
			for _, row := range g.rows {
				fmt.Fprintf(t, "  %s\n", strings.Join(row, "\t"))
			}
			t.Flush()
		}
		for _, line := range s.remarks(r) {
			fmt.Fprintf(&b, "  %s\n", line)
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
func (s *Section) remarks(r *Report) []string {
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
	if len(s.Missing) > 0 {
		out = append(out, fmt.Sprintf("missing data sets, their rows are left out: %s (looked in %s; give their folder with --data-dir)", strings.Join(s.Missing, ", "), r.DataDir),
			"how to get them: "+howToGet(s.Missing))
	}
	if s.Left > 0 {
		out = append(out, fmt.Sprintf("%d instances are left out by --quick", s.Left))
	}
	out = append(out, fmt.Sprintf("took %.1f s", s.Seconds))
	return out
}

// fold breaks text into lines.
func fold(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
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

var csvHeader = []string{"suite", "table", "instance", "value", "unit", "mean", "ci95_half", "median", "p99", "n", "seeds", "reference", "reference_kind", "reference_value", "reference_half", "reference_source"}

// csvLines has one line per value and reference.
func csvLines(r *Row) [][]string {
	var instance []string
	for _, l := range r.Labels {
		instance = append(instance, l.Name+"="+l.Value)
	}
	number := func(n Number) string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }
	var out [][]string
	for _, v := range r.Values {
		line := []string{r.Suite, r.Table, strings.Join(instance, " "), v.Name, v.Unit, number(v.Mean), number(v.Half), number(v.Median), number(v.P99), strconv.Itoa(v.N), r.Seeds}
		if len(v.References) == 0 {
			out = append(out, append(line, "", "", "", "", ""))
		}
		for _, ref := range v.References {
			out = append(out, append(slices.Clone(line), ref.Name, ref.Kind, number(ref.Value), number(ref.Half), ref.Source))
		}
	}
	return out
}
