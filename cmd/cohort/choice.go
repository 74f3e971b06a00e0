package main

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/internal/fault"
)

// choice is the flag of a value that is one of few; an empty one stands for what is not given.
type choice struct {
	name    string
	value   *string
	allowed []string
}

// choose declares a flag that takes the allowed values, of which the first is its default.
func choose(fs *pflag.FlagSet, value *string, name, usage string, allowed ...string) {
	*value = allowed[0]
	fs.Var(&choice{name, value, allowed}, name, usage)
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "string" }

// Set refuses what is not allowed.
func (c *choice) Set(text string) error {
	*c.value = text
	return oneOf(c.name, text, c.allowed...)
}

// notEmpty are the values that are there to be chosen.
func notEmpty(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(s string) bool { return s == "" })
}

// oneOf refuses a value that is not among the allowed ones; "" stands for a flag that is not given.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fault.Unknown("--"+flag, value, notEmpty(allowed))
}
