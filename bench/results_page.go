package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
)

// resultsPage is the name of the page of results among documents.
const resultsPage = "RESULTS.md"

// resultsWidth is the number of columns of the tables of the page.
const resultsWidth = 100

// WriteResults writes a page of results to a folder, with a picture of each figure beside it, and returns
// the names of the files.
func (r *Report) WriteResults(dir string) ([]string, error) {
	var page strings.Builder
	page.WriteString("# Results\n\nThis page and its pictures are written by `cohort bench ... --results docs`, " +
		"from results as they were measured.\n")
	pictures := make(map[string][]byte)
	names := []string{resultsPage}
	for i := range r.Sections {
		s := &r.Sections[i]
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", s.Suite.Title, s.Suite.About)
		switch m := r.Machine; {
		case s.Stored != "":
			fmt.Fprintf(&page, "\nMeasured: %s.\n", s.Stored)
		case m != nil:
			fmt.Fprintf(&page, "\nMeasured: cohort %s, %s, %d cores, %d workers, kernels %s, %s.\n",
				m.Version, m.CPU, m.Cores, m.Workers, m.ISA, m.Time)
		}
		for j := range s.Suite.Figures {
			f := &s.Suite.Figures[j]
			for n, p := range f.plots(s.Rows) {
				name := slug(s.Suite.Name + "-" + f.Title)
				if n > 0 {
					name += fmt.Sprintf("-%d", n+1)
				}
				name += ".svg"
				pictures[name], names = p.File(), append(names, name)
				fmt.Fprintf(&page, "\n![%s](%s)\n\n%s\n", p.Title, name, p.Caption())
			}
		}
		for _, g := range s.grids() {
			page.WriteString("\n")
			if g.name != "" {
				fmt.Fprintf(&page, "%s\n\n", g.name)
			}
			for _, line := range g.Lines(resultsWidth) {
				page.WriteString(strings.TrimRight("    "+line, " ") + "\n")
			}
		}
	}
	pictures[resultsPage] = []byte(page.String())
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), pictures[name], 0o644); err != nil {
			return nil, fault.Failed("--results", err.Error(), "name a folder that can be written to", err)
		}
	}
	return names, nil
}
