package method

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Option is an option of a method.
type Option struct {
	// Name is what flags and settings call it.
	Name string
	// Default says what holds if it is left out: a value, or a rule in words.
	Default string
	// About says in a line what it is for.
	About string
	Value
}

// MarshalJSON writes what a program that offers the option needs to know.
func (o Option) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"name": o.Name, "default": o.Default, "about": o.About, "type": o.Type(),
		"values": o.Values()})
}

// refuse is the error of a value that Set did not take.
func (o *Option) refuse(text string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.Range(o.Name, strconv.Quote(text), err.Error())
}

// Value writes the text of an option to a field of a job.
type Value interface {
	// Set reads the text. Its error is the rule that the text breaks, or a fault.
	Set(text string) error
	// Values lists the allowed values where they can be listed.
	Values() []string
	// Type is "text", "int", "real", "bool" or "list".
	Type() string
	// Check returns what the field holds and the rule that it breaks, nil if none. The zero value, which
	// stands for the default, breaks none.
	Check() (field any, rule error)
}

// value is an option whose text is handed to a function, which alone knows the rule.
type value struct {
	kind   string
	values []string
	set    func(string) error
}

func (v value) Set(text string) error { return v.set(text) }
func (v value) Values() []string      { return v.values }
func (v value) Type() string          { return v.kind }
func (v value) Check() (any, error)   { return nil, nil }

// Choice is one of the allowed values.
func Choice[T ~string](field *T, allowed ...T) Value {
	return choice{reflect.ValueOf(field).Elem(), words(allowed)}
}

// choice is of all kinds of text: a type of its own for each has methods of its own, which take room.
type choice struct {
	field   reflect.Value
	allowed []string
}

func (c choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		return c.rule()
	}
	c.field.SetString(text)
	return nil
}

func (c choice) Values() []string { return c.allowed }
func (c choice) Type() string     { return "text" }
func (c choice) rule() error      { return errors.New(strings.Join(c.allowed, ", ")) }

func (c choice) Check() (any, error) {
	text := c.field.String()
	if text == "" || slices.Contains(c.allowed, text) {
		return nil, nil
	}
	return strconv.Quote(text), c.rule()
}

// Text is handed to set; it is one of values where there are any.
func Text(set func(string) error, values ...string) Value {
	return value{kind: "text", values: values, set: func(text string) error {
		if values != nil && !slices.Contains(values, text) {
			return errors.New(strings.Join(values, ", "))
		}
		return set(text)
	}}
}

// number is a number from lo to hi; rule is what refuses others.
type number[T int | float64] struct {
	kind   string
	field  *T
	lo, hi T
	parse  func(string) (T, error)
	rule   func(lo, hi T) error
}

func (n number[T]) Values() []string { return nil }
func (n number[T]) Type() string     { return n.kind }

func (n number[T]) Set(text string) error {
	x, err := n.parse(text)
	if err != nil || !(x >= n.lo && x <= n.hi) {
		return n.rule(n.lo, n.hi)
	}
	*n.field = x
	return nil
}

func (n number[T]) Check() (any, error) {
	if x := *n.field; x != 0 && !(x >= n.lo && x <= n.hi) {
		return x, n.rule(n.lo, n.hi)
	}
	return nil, nil
}

// Int is a whole number from lo to hi.
func Int(field *int, lo, hi int) Value {
	return number[int]{"int", field, lo, hi, strconv.Atoi, func(lo, hi int) error {
		if hi == math.MaxInt {
			return fmt.Errorf("a number of at least %d", lo)
		}
		return fmt.Errorf("a number from %d to %d", lo, hi)
	}}
}

// Positive is the least of a Real that excludes 0.
const Positive = math.SmallestNonzeroFloat64

// Real is a finite number from lo to hi.
func Real(field *float64, lo, hi float64) Value {
	return number[float64]{"real", field, lo, min(hi, math.MaxFloat64), parseReal, func(lo, hi float64) error {
		text := fmt.Sprintf("a number of at least %g", lo)
		if lo == Positive {
			text = "a number above 0"
		}
		if hi < math.MaxFloat64 {
			text += fmt.Sprintf(", at most %g", hi)
		}
		return errors.New(text)
	}}
}

func parseReal(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// Bool is true or false.
func Bool(field *bool) Value {
	return value{kind: "bool", set: func(text string) error {
		x, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("true or false")
		}
		*field = x
		return nil
	}}
}

// Items is a list separated by commas, of which each item is handed to add.
func Items(add func(string) error) Value {
	return value{kind: "list", set: func(text string) error {
		for _, item := range strings.Split(text, ",") {
			if err := add(strings.TrimSpace(item)); err != nil {
				return err
			}
		}
		return nil
	}}
}

// The options that several methods have, worded alike.

// iterations is the number of rounds, 0 standing for the method's rule.
func iterations(field *int) Option {
	number := Int(field, 1, protocol.MostIterations)
	return Option{"iterations", "auto", "rounds: auto (the method's rule) or a number", Text(func(text string) error {
		if text == "auto" {
			*field = 0
			return nil
		}
		if number.Set(text) != nil {
			return errors.New(`"auto" or a number from 1 to 1000000`)
		}
		return nil
	})}
}

// Options are those of a method.
type Options []Option

// Check refuses what a job's fields hold where it breaks the rules of its options.
func (o Options) Check() error {
	for i := range o {
		if field, rule := o[i].Check(); rule != nil {
			return fault.Range(o[i].Name, field, rule.Error())
		}
	}
	return nil
}

// Reword says of an option what holds if it is left out and what it is for, where that is the
// method's own; an empty text keeps what is there.
func (o Options) Reword(name, byDefault, about string) {
	for i := range o {
		if o[i].Name == name {
			o[i].Default, o[i].About = cmp.Or(byDefault, o[i].Default), cmp.Or(about, o[i].About)
		}
	}
}

// Shared are the options of a problem that the method takes.
func Shared(name string, p *protocol.Problem, takes protocol.Takes) Options {
	var o Options
	if takes.Private {
		o = append(o, calibration(name, &p.Calibration, takes.Quiet), neighbours(name, &p.Neighbours))
		if takes.Mechanisms != nil {
			byDefault := string(takes.Mechanisms[0])
			if takes.Mechanisms[0] == protocol.Gaussian && len(takes.Mechanisms) > 1 {
				byDefault = "gaussian; laplace with --delta 0"
			}
			o = append(o, Option{"mechanism", byDefault, "kind of noise: laplace or gaussian",
				Choice(&p.Mechanism, takes.Mechanisms...)})
		}
		if !takes.Counted {
			o = append(o, publicRecords(&p.Records))
		}
		if takes.Weights {
			o = append(o, Option{"weight-cap", "1 with weights",
				"public most that a record may weigh, where records have weights: " +
					"heavier ones count as that, and noise hides so much", Real(&p.WeightCap, math.SmallestNonzeroFloat64,
					math.MaxFloat64)})
		}
	}
	if takes.Iterations {
		o = append(o, iterations(&p.Iterations))
	}
	if takes.Private && takes.Several {
		by := []protocol.NoiseBy{protocol.ByServer, protocol.ByEach, protocol.InShares}
		if takes.Servers {
			by = append(by, protocol.AmongServers)
		}
		o = append(o, Option{"noise", "split with several clients",
			"who adds the noise of several clients' sums: server, local or split", Choice(&p.Noise, by...)})
	}
	if takes.Private && takes.Several || takes.Colluders {
		o = append(o, Option{"colluders", "1",
			"clients that may read along with a viewer under --noise split, itself included: " +
				"all shares but so many make up the noise", Int(&p.Colluders, 1, math.MaxInt32)})
	}
	if takes.Private && takes.Several {
		o = append(o, Option{"survivors", "0 (all)", "least number of clients in a sum under --noise split, " +
			"where some may vanish: any so many shares, less those of colluders, make up the noise",
			Int(&p.Survivors, 0, math.MaxInt32)})
	}
	return o
}

// publicRecords is the public number of records.
func publicRecords(field *int) Option {
	return Option{"public-n", "0 (from the data)",
		"public number of records, which every parameter follows: rounds, sizes, noise, the default delta",
		Int(field, 1, math.MaxInt32)}
}

// calibration is what noise is calibrated by: those that the table of calibrations has for the method.
func calibration(name string, field *privacy.Calibration, quiet bool) Option {
	able, about := privacy.Calibrations(name), "proven, claimed (the paper's theorem) or published (its released code)"
	if quiet {
		able, about = append(able, privacy.None), about+", or none: without noise and budget"
	}
	return Option{"calibration", string(able[0]), about,
		value{kind: "text", values: words(able), set: func(text string) error {
			if slices.Contains(words(able), text) {
				*field = privacy.Calibration(text)
				return nil
			}
			c, err := privacy.ParseCalibration(text)
			if err != nil {
				return errors.New(strings.Join(words(able), ", "))
			}
			return privacy.CheckCalibration(name, c)
		}}}
}

// neighbours is the relation between data sets that epsilon speaks of: those for which the method
// has a proof.
func neighbours(name string, field *privacy.Neighbours) Option {
	able := privacy.Provable(name)
	return Option{"neighbours", string(able[0]), "neighbour relation: add-remove or replace-one",
		value{kind: "text", values: words(able), set: func(text string) error {
			n, err := privacy.ParseNeighbours(text)
			if err != nil {
				return errors.New("add-remove or replace-one")
			}
			*field = n
			return privacy.CheckNeighbours(name, n)
		}}}
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = string(x)
	}
	return out
}

// Init is the choice of the first centroids; the first one allowed is the default.
func Init[T ~string](field *T, allowed ...T) Option {
	return Option{"init", string(allowed[0]), list("first centroids: ", allowed), Choice(field, allowed...)}
}

// Post is what happens to noisy centroids outside the box; the first one allowed is the default.
func Post[T ~string](field *T, allowed ...T) Option {
	return Option{"post", string(allowed[0]), list("noisy centroids outside the bounds: ", allowed),
		Choice(field, allowed...)}
}

// list is text that lists values, made in one piece: jobs look at their options before every run.
func list[T ~string](text string, values []T) string {
	var b strings.Builder
	b.Grow(100)
	b.WriteString(text)
	for i, x := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(x))
	}
	return b.String()
}

// Outsiders are those whom a method on one table is private against.
const Outsiders = "whoever sees the result; the holder of the table runs the method"
