package bench

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Origin says where data sets come from: all whose names begin with Prefix.
type Origin struct {
	Prefix string
	From   string // whose, and where
	// URL is the page that offers the file, and Licence what its owner allows.
	URL, Licence string
	Shape        string // records, columns and clusters
	// SHA256 is of the set's text, a record a line, as these suites read it; empty where
	// no copy was at hand.
	SHA256 string
	// Convert is how to make it from what URL offers: the arguments of cohort data
	// import after the set's name, or what else to do.
	Convert string
}

// origins has a line for each beginning of names; the first that fits counts.
//
//go:embed origins.csv
var origins string

// readOrigins returns where the sets of all suites come from.
func readOrigins() ([]Origin, error) {
	lines, err := readCSV("origins.csv", origins)
	if err != nil {
		return nil, err
	}
	var out []Origin
	for _, l := range lines {
		out = append(out, Origin{Prefix: l[0], From: l[1], URL: l[2], Licence: l[3], Shape: l[4], SHA256: l[5],
			Convert: l[6]})
	}
	return out, nil
}

// readCSV returns the lines of a file of this package below its header.
func readCSV(name, text string) ([][]string, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("bench: %s: %w", name, err)
	}
	return lines[1:], nil
}

// paperNames are the sets to which the papers give another name than the suites.
var paperNames = map[string]string{
	"birch2": "birch2_25k", "synthov": "synth_sep21_k10_d10", "synthsep": "synth_sep70_k10_d10", "taxi": "nyctaxi",
	"timesynth": "timesynth_k2_d2_n10000",
}

// SetName is the name by which the suites read a set that a paper calls name, in capitals or not.
func SetName(name string) string {
	name = strings.ToLower(name)
	return cmp.Or(paperNames[name], name)
}

// FindOrigin returns where a set comes from, by the name that the suites have for it (SetName).
func FindOrigin(name string) (Origin, error) {
	all, err := readOrigins()
	if err != nil {
		return Origin{}, err
	}
	var names []string
	for _, o := range all {
		family := strings.TrimSuffix(o.Prefix, "_")
		if strings.HasPrefix(name, o.Prefix) || name == family {
			return o, nil
		}
		names = append(names, family)
	}
	return Origin{}, fault.Request("data set "+name, "no suite reads one of that name", "name one of "+
		strings.Join(names, ", "))
}

// howToGet says where missing sets come from and how to make them known.
func howToGet(missing []string) string {
	names := make(map[string][]string)
	var from []string
	for _, m := range missing {
		if o, err := FindOrigin(m); err == nil {
			if names[o.From] == nil {
				from = append(from, o.From)
			}
			names[o.From] = append(names[o.From], m)
		}
	}
	var parts []string
	for _, f := range from {
		parts = append(parts, shortList(names[f])+" from "+f)
	}
	return strings.Join(append(parts,
		"cohort data fetch-help NAME says more, cohort data import puts it into a folder"), "; ")
}
