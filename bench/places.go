package bench

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// places has a line for every table and figure of the papers.
//
//go:embed places.csv
var places string

// Place is a table or a figure of a paper.
type Place struct {
	Source string // the paper's short name
	Name   string // "Table 3", "Figure 8.1"
	Shows  string
	// Command is what prints it here, without "cohort" before it; empty where there is nothing
	// to run. Table is the one of the suite's tables that is meant, empty for all, "." for the
	// one without a name.
	Command, Table string
	// Deviation is in what ours differs from the paper's, empty if nothing is known.
	Deviation string
}

// Places returns every table and figure of the papers, in their order.
func Places() ([]Place, error) {
	lines, err := csv.NewReader(strings.NewReader(places)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("bench: places.csv: %w", err)
	}
	var out []Place
	for _, l := range lines[1:] {
		out = append(out, Place{Source: l[0], Name: l[1], Shows: l[2], Command: l[3], Table: l[4], Deviation: l[5]})
	}
	return out, nil
}

// Suites returns the names of the suites that print the place; none if another command
// does, or nothing.
func (p *Place) Suites() []string {
	names, ok := strings.CutPrefix(p.Command, "bench ")
	if !ok {
		return nil
	}
	return strings.Fields(names)
}

// has tells whether rows of a suite's table belong to the place.
func (p *Place) has(table string) bool {
	return p.Table == "" || p.Table == table || p.Table == "." && table == ""
}

// Agreement says how the stored results of the place's suites stand to the printed figures.
func (p *Place) Agreement() (string, error) {
	names := p.Suites()
	if names == nil {
		return "", nil
	}
	suites, err := Select(names)
	if err != nil {
		return "", err
	}
	printed, err := printedFiles()
	if err != nil {
		return "", err
	}
	var sum tally
	stored, figures := 0, false
	for _, s := range suites {
		for name := range printed {
			suite, table, _ := strings.Cut(name, "_")
			figures = figures || suite == s.Name && p.has(table)
		}
		section, err := storedSuite(s)
		if err != nil {
			return "", err
		}
		if section == nil {
			continue
		}
		stored++
		for i := range section.Rows {
			if row := &section.Rows[i]; p.has(row.Table) {
				sum.rows++
				sum.count(row)
			}
		}
	}
	switch comparable := sum.inside + sum.outside; {
	case stored == 0 && !figures:
		return "prints no numbers", nil
	case stored == 0:
		return "not stored", nil
	case !figures:
		return fmt.Sprintf("prints no numbers; %d rows stored", sum.rows), nil
	case comparable == 0:
		return fmt.Sprintf("not comparable; %d rows stored", sum.rows), nil
	case sum.outside == 0:
		return fmt.Sprintf("all %d inside", sum.inside), nil
	}
	text := fmt.Sprintf("%d of %d inside; furthest %s", sum.inside, sum.inside+sum.outside,
		agreement{by: sum.worstBy}.text())
	if sum.open > 0 {
		text += fmt.Sprintf("; no reason found for %d", sum.open)
	}
	return text, nil
}

// WritePlacesTable writes the table of docs/PAPERS.md: a line for each table and figure,
// with the command, how the stored results agree, and in what ours differs.
func WritePlacesTable(w io.Writer) error {
	all, err := Places()
	if err != nil {
		return err
	}
	source := ""
	for i := range all {
		p := &all[i]
		if p.Source != source {
			source = p.Source
			if _, err := fmt.Fprintf(w, "\n**%s**\n\n| place | shows | `cohort ...` | agreement | deviation "+
				"|\n|---|---|---|---|---|\n", source); err != nil {
				return err
			}
		}
		agreement, err := p.Agreement()
		if err != nil {
			return err
		}
		command := p.Command
		if command != "" {
			command = "`" + command + "`"
		}
		if _, err := fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", p.Name, p.Shows, command, agreement,
			p.Deviation); err != nil {
			return err
		}
	}
	return nil
}
