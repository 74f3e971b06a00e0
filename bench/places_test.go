package bench

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/PAPERS.md anew")

// numbered returns a kind of places with the numbers of a chapter, appendix or paper.
func numbered(kind, chapter string, from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("%s %s%d", kind, chapter, i))
	}
	return out
}

// TestEveryTableAndFigure: the list has every table and figure of the five papers, each
// once, and what is said to print it exists; every suite of a paper is named by one.
func TestEveryTableAndFigure(t *testing.T) {
	want := map[string][]string{
		groupFastLloyd: slices.Concat(numbered("Table", "", 1, 3), numbered("Figure", "", 1, 10)),
		groupThesisH: slices.Concat(numbered("Table", "2.", 1, 1), numbered("Table", "5.", 1, 3), numbered("Table", "7.",
			1, 3),
			numbered("Table", "8.", 1, 7), numbered("Figure", "6.", 1, 1), numbered("Figure", "8.", 1, 8), numbered("Figure",
				"A.", 1, 2),
			numbered("Figure", "B.", 1, 2), numbered("Figure", "C.", 1, 2), numbered("Figure", "D.", 1, 2)),
		groupThesisB: slices.Concat(numbered("Table", "", 1, 17), numbered("Table", "5.", 1, 9), numbered("Figure", "4.",
			1, 6),
			numbered("Figure", "5.", 1, 8)),
		groupSketch: slices.Concat(numbered("Table", "", 1, 3), numbered("Figure", "", 1, 14)),
		groupCKKS:   slices.Concat(numbered("Table", "", 1, 4), numbered("Figure", "", 1, 5)),
	}
	all, err := Places()
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for i := range all {
		p := &all[i]
		at := slices.Index(want[p.Source], p.Name)
		if at < 0 {
			t.Errorf("%s %s is listed twice, or is not in the paper", p.Source, p.Name)
			continue
		}
		want[p.Source] = slices.Delete(want[p.Source], at, at+1)
		if p.Shows == "" || p.Command == "" && p.Deviation == "" {
			t.Errorf("%s %s does not say what it shows, or why nothing prints it", p.Source, p.Name)
		}
		if p.Suites() == nil {
			continue
		}
		suites, err := selectSuites(p.Suites())
		if err != nil {
			t.Errorf("%s %s: %v", p.Source, p.Name, err)
		}
		for _, s := range suites {
			named[s.Name] = true
			if !strings.Contains(s.Source, p.Source) {
				t.Errorf("%s %s is printed by %s, which says it is %s", p.Source, p.Name, s.Name, s.Source)
			}
		}
	}
	for source, left := range want {
		if len(left) > 0 {
			t.Errorf("%s: %s missing", source, strings.Join(left, ", "))
		}
	}
	for _, s := range Suites() {
		if s.Group != groupPerformance && !named[s.Name] {
			t.Errorf("suite %s is named by no table or figure of places.csv", s.Name)
		}
	}
}

// TestPapersDocumentListsAll: docs/PAPERS.md has the lines that the list and the stored
// results give. With -update they are written anew.
func TestPapersDocumentListsAll(t *testing.T) {
	const begin, end = "<!-- every table and figure: go test ./bench -run PapersDocument -update -->\n", "<!-- end -->"
	file := filepath.Join("..", "docs", "PAPERS.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("docs/PAPERS.md lacks the marks around its tables")
	}
	var want strings.Builder
	if err := writePlacesTable(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want.String() {
		t.Error("the tables of docs/PAPERS.md are not those of bench/places.csv and bench/results: " +
			"go test ./bench -run PapersDocument -update writes them")
	}
}

// has tells whether rows of a suite's table belong to the place.
func (p *Place) has(table string) bool {
	return p.Table == "" || p.Table == table || p.Table == "." && table == ""
}

// stands says how the stored results of the place's suites stand to the printed figures.
func (p *Place) stands() (string, error) {
	names := p.Suites()
	if names == nil {
		return "", nil
	}
	suites, err := selectSuites(names)
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

// writePlacesTable writes the table of docs/PAPERS.md: a line for each table and figure,
// with the command, how the stored results agree, and in what ours differs.
func writePlacesTable(w io.Writer) error {
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
		agreement, err := p.stands()
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
