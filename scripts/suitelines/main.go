// Suitelines turns the results.csv of a benchmark suite, on standard input, into lines of Go benchmarks, which
// benchstat compares.
package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := convert(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "cohort: suite lines: %v\n", err)
		os.Exit(1)
	}
}

func convert(in io.Reader, out io.Writer) error {
	lines := csv.NewReader(in)
	lines.Comment, lines.FieldsPerRecord = '#', -1 // older revisions have fewer fields
	head, err := lines.Read()
	if err != nil {
		return err
	}
	var at [6]int
	for i, name := range []string{"suite", "table", "instance", "value", "unit", "median"} {
		if at[i] = slices.Index(head, name); at[i] < 0 {
			return fmt.Errorf("there is no column %s", name)
		}
	}
	before := "" // a value has a row for each of its references
	for {
		row, err := lines.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		unit := row[at[4]]
		if unit == "" {
			continue // ratios and counts
		}
		name := strings.Join([]string{row[at[0]], row[at[1]], row[at[2]], row[at[3]]}, "/")
		if name != before {
			// older revisions have no semicolon between labels
			fmt.Fprintf(out, "Benchmark/%s 1 %s %s\n", strings.NewReplacer(" ", "_", ";", "").Replace(name), row[at[5]], unit)
		}
		before = name
	}
}
