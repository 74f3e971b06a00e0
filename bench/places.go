package bench

import (
	_ "embed"
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
	lines, err := readCSV("places.csv", places)
	if err != nil {
		return nil, err
	}
	var out []Place
	for _, l := range lines {
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
