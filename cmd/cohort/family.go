package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/fault"
)

// family is a group of methods that share flags and a protocol package. Each
// has its own file, family_<name>.go.
type family struct {
	name    string
	methods []method
	// flags declares the family's own flags on the commands that take the flags
	// of run. The values belong to the options that the flags are bound to.
	flags func(*pflag.FlagSet, *options)
	// check refuses a wrong request before any data is read.
	check func(*options) error
	// job builds the job for one run on data that has been read.
	job func(*options, *input) (engine.Job, error)
}

// method is one value of --method.
type method struct {
	name, about string
	// private methods spend a budget; the others ignore --epsilon and --delta.
	private bool
	// vertical methods split the data by columns among --parties, the others by
	// rows among --clients.
	vertical bool
}

// families lists every family, in the order of the help text.
func families() []family {
	return []family{horizontalFamily(), centralFamily(), verticalFamily(), heFamily()}
}

// findMethod returns the family and method called name.
func findMethod(name string) (family, method, error) {
	var names []string
	for _, f := range families() {
		for _, m := range f.methods {
			if m.name == name {
				return f, m, nil
			}
			names = append(names, m.name)
		}
	}
	return family{}, method{}, fault.Request("method", fmt.Sprintf("%q is unknown", name),
		"choose one of "+strings.Join(names, ", "))
}

// methodsHelp lists the methods for the help text.
func methodsHelp() string {
	var b strings.Builder
	for _, f := range families() {
		fmt.Fprintf(&b, "\n%s:\n", f.name)
		for _, m := range f.methods {
			fmt.Fprintf(&b, "  %-15s %s\n", m.name, m.about)
		}
	}
	return b.String()
}

// oneOf refuses a value that is not among the allowed ones.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fault.Request("--"+flag, fmt.Sprintf("%q is unknown", value), "choose "+strings.Join(allowed, ", "))
}
