package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// accountOptions are the flags of account.
type accountOptions struct {
	set                               *pflag.FlagSet
	mechanism                         string
	scale, epsilon, delta, p, gamma   float64
	rounds                            int
	buckets, phantoms, parties, cells int
	releases                          []string
	accountant, format                string
}

// accountNames are the mechanisms that account knows.
var accountNames = []string{"gaussian", "laplace", "discrete-gaussian", "discrete-laplace", "randomized-response", "fm"}

func newAccountCommand() *cobra.Command {
	o := new(accountOptions)
	cmd := &cobra.Command{
		Use:   "account",
		Short: "Privacy calculator: what noise gives, or what a budget needs",
		Long: `Compute what releases cost by every accountant, or the noise that a budget needs.

Mechanisms: gaussian and laplace with their discrete forms (--scale is sigma or b over
the sensitivity; the discrete ones on integers of sensitivity 1), randomized-response
(--p, --buckets), fm (one key of the partition sketches: --gamma, --phantoms, --parties,
--cells; --rounds is the number of keys). Several releases compose: --release
mechanism:scale:rounds, repeated. With --epsilon the answer is the scale (the phantoms,
the probability) that keeps --rounds releases, and those of --release, within the budget.`,
		Example: `  cohort account --mechanism gaussian --scale 20 --rounds 100 --delta 1e-5
  cohort account --mechanism laplace --epsilon 1 --rounds 7
  cohort account --release gaussian:30:7 --release laplace:50:1 --delta 1e-6`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runAccount(o, cmd.OutOrStdout()) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	o.set = fs
	choose(fs, &o.mechanism, "mechanism", strings.Join(accountNames, ", "), append([]string{""}, accountNames...)...)
	fs.Float64Var(&o.scale, "scale", 0, "noise scale over the sensitivity")
	fs.IntVar(&o.rounds, "rounds", 1, "how often it is released")
	fs.StringArrayVar(&o.releases, "release", nil, "mechanism:scale:rounds, may be repeated")
	fs.Float64Var(&o.delta, "delta", 0, "delta at which epsilon is stated")
	fs.Float64Var(&o.epsilon, "epsilon", 0, "budget: print the noise that it needs")
	fs.Float64Var(&o.p, "p", 0, "randomized-response: probability of a uniform draw")
	fs.IntVar(&o.buckets, "buckets", 2, "randomized-response: number of answers")
	fs.Float64Var(&o.gamma, "gamma", 1, "fm: parameter of the heights")
	fs.IntVar(&o.phantoms, "phantoms", 0, "fm: phantoms per grid cell")
	fs.IntVar(&o.parties, "parties", 2, "fm: number of parties")
	fs.IntVar(&o.cells, "cells", 5, "fm: clusters of each party")
	choose(fs, &o.accountant, "accountant", "all, pure, zcdp-simple, zcdp, rdp, gdp or pld",
		append([]string{"all"}, accountantNames...)...)
	choose(fs, &o.format, "format", "text or json", "text", "json")
	return cmd
}

// accounted is one line of the answer. Epsilon is nil where the accountant has no bound; Lower and
// Upper enclose the true value.
type accounted struct {
	Accountant string   `json:"accountant"`
	Epsilon    *float64 `json:"epsilon"`
	Delta      float64  `json:"delta"`
	Lower      *float64 `json:"lower"`
	Upper      *float64 `json:"upper"`
	// Scale, P and Phantoms are what a budget needs, whichever the mechanism has.
	Scale    *float64 `json:"scale,omitempty"`
	P        *float64 `json:"p,omitempty"`
	Phantoms *float64 `json:"phantoms,omitempty"`
}

// need names the one of them that is there, and points at it.
func (a *accounted) need() (string, *float64) {
	switch {
	case a.Scale != nil:
		return "scale", a.Scale
	case a.P != nil:
		return "p", a.P
	case a.Phantoms != nil:
		return "phantoms", a.Phantoms
	}
	return "", nil
}

// released is a mechanism and how often.
type released struct {
	m      privacy.Mechanism
	rounds int
}

// scaled is the mechanism of a family with a noise scale.
func scaled(name string, scale float64) (privacy.Mechanism, error) {
	if !(scale > 0 && scale <= 1e150) { // its square is finite
		return nil, fault.Range("--scale", scale, "positive and at most 1e150")
	}
	switch name {
	case "gaussian":
		return privacy.Gaussian{Scale: scale}, nil
	case "laplace":
		return privacy.Laplace{Scale: scale}, nil
	case "discrete-gaussian":
		return privacy.DiscreteGaussianStep{Sigma: scale, Step: 1}, nil
	case "discrete-laplace":
		return privacy.DiscreteLaplaceStep{B: scale, Step: 1}, nil
	}
	return nil, fault.Request("--mechanism", fmt.Sprintf("%q has no noise scale", name),
		"choose gaussian, laplace, discrete-gaussian or discrete-laplace")
}

// mechanism is what --mechanism and its parameters describe.
func (o *accountOptions) build() (privacy.Mechanism, error) {
	switch o.mechanism {
	case "randomized-response":
		return privacy.Spec{Family: o.mechanism, P: o.p, Buckets: o.buckets}.Mechanism()
	case "fm":
		return privacy.Spec{Family: o.mechanism, Gamma: o.gamma, Phantoms: o.phantoms, Parties: o.parties,
			Cells: o.cells}.Mechanism()
	}
	return scaled(o.mechanism, o.scale)
}

// parseReleases reads --release.
func (o *accountOptions) parseReleases() ([]released, error) {
	var list []released
	for _, r := range o.releases {
		part := strings.Split(r, ":")
		wrong := fault.Range("--release", strconv.Quote(r), "mechanism:scale:rounds, such as gaussian:20:7")
		if len(part) < 2 || len(part) > 3 {
			return nil, wrong
		}
		if err := oneOf("release", part[0], accountNames[:4]...); err != nil {
			return nil, err
		}
		scale, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return nil, wrong
		}
		rounds := 1
		if len(part) == 3 {
			if rounds, err = strconv.Atoi(part[2]); err != nil || rounds < 1 {
				return nil, wrong
			}
		}
		m, err := scaled(part[0], scale)
		if err != nil {
			return nil, wrong
		}
		list = append(list, released{m, rounds})
	}
	return list, nil
}

// check refuses flags that do not belong together.
func (o *accountOptions) check() error {
	given := o.set.Changed
	if o.mechanism == "" && len(o.releases) == 0 {
		return fault.Request("--mechanism", "is not given", "choose "+strings.Join(accountNames, ", ")+", or give --release")
	}
	switch {
	case given("delta") && !(o.delta >= 0 && o.delta < 1):
		return fault.Range("--delta", o.delta, "in [0, 1)")
	case given("epsilon") && (!(o.epsilon > 0) || math.IsInf(o.epsilon, 1)):
		return fault.Range("--epsilon", o.epsilon, "positive and finite")
	case o.rounds < 1 || o.rounds > 1e9:
		return fault.Range("--rounds", o.rounds, "1 to 1000000000")
	case given("epsilon") && o.mechanism == "":
		return fault.Request("--epsilon", "asks for noise and no --mechanism says which", "name one")
	}
	for flag, of := range map[string]string{"scale": "gaussian, laplace, discrete-gaussian or discrete-laplace",
		"p":       "randomized-response",
		"buckets": "randomized-response", "gamma": "fm", "phantoms": "fm", "parties": "fm", "cells": "fm",
		"rounds": o.mechanism} {
		if given(flag) && (o.mechanism == "" || !strings.Contains(of, o.mechanism)) {
			return fault.Request("--"+flag, "does not belong to "+cmp.Or(o.mechanism, "--release"), "leave it out")
		}
	}
	for flag, answer := range map[string]bool{"scale": true, "p": true, "phantoms": true} {
		if given(flag) && given("epsilon") == answer {
			return fault.Request("--"+flag, "is given together with --epsilon, which asks for it", "give one of them")
		}
	}
	return nil
}

// accountantNames are the accountants that account asks, in no order.
var accountantNames = []string{"pld", "gdp", "rdp", "zcdp", "zcdp-simple", "pure"}

func runAccount(o *accountOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	list, err := o.parseReleases()
	if err != nil {
		return err
	}
	names := accountantNames
	if o.accountant != "all" {
		names = []string{o.accountant}
	}
	var answer []accounted
	if o.set.Changed("epsilon") {
		answer, err = o.calibrate(names, list)
	} else {
		answer, err = o.evaluate(names, list)
	}
	if err != nil {
		return err
	}
	return show(out, o.format, answer, func() error { return printAccounted(out, answer) })
}

// needsDelta refuses a delta of 0 where some release has no pure guarantee.
func (o *accountOptions) needsDelta(list []released) error {
	for _, r := range list {
		if o.delta == 0 && math.IsInf(r.m.Pure(), 1) {
			return fault.Request("--delta", "is 0 and Gaussian noise and fm sketches have no pure guarantee",
				"give a positive one such as --delta 1e-5, or use laplace")
		}
	}
	return nil
}

// epsilonBy composes the releases by one accountant.
func epsilonBy(name string, list []released, delta float64) (float64, error) {
	a, err := privacy.NewAccountant(name)
	if err != nil {
		return 0, err
	}
	for _, r := range list {
		a.Compose(r.m, r.rounds)
	}
	return a.Epsilon(delta), nil
}

// lowerBound is what the releases cost at least, where their loss distributions are known.
func lowerBound(list []released, delta float64) *float64 {
	a := &privacy.PLDAccountant{Optimistic: true}
	for _, r := range list {
		a.Compose(r.m, r.rounds)
	}
	return bounded(a.Epsilon(delta))
}

func bounded(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

func (o *accountOptions) evaluate(names []string, list []released) ([]accounted, error) {
	if o.mechanism != "" {
		if slices.Contains(accountNames[:4], o.mechanism) && !o.set.Changed("scale") {
			return nil, fault.Request("--scale", "is not given",
				"give the noise scale over the sensitivity, or --epsilon to ask for it")
		}
		m, err := o.build()
		if err != nil {
			return nil, err
		}
		list = append(list, released{m, o.rounds})
	}
	if err := o.needsDelta(list); err != nil {
		return nil, err
	}
	lower := lowerBound(list, o.delta)
	var answer []accounted
	for _, name := range names {
		line, err := o.cost(name, list, lower)
		if err != nil {
			return nil, err
		}
		answer = append(answer, line)
	}
	sortBy(answer, func(a *accounted) *float64 { return a.Epsilon })
	return answer, nil
}

// cost is what an accountant makes of the releases, which cost lower at least.
func (o *accountOptions) cost(name string, list []released, lower *float64) (accounted, error) {
	e, err := epsilonBy(name, list, o.delta)
	line := accounted{Accountant: name, Epsilon: bounded(e), Delta: o.delta, Upper: bounded(e)}
	if lower != nil {
		line.Lower = bounded(min(*lower, e))
	}
	return line, err
}

// sortBy sorts by a number, smallest first, those without one last.
func sortBy(list []accounted, key func(*accounted) *float64) {
	value := func(a accounted) float64 {
		if p := key(&a); p != nil {
			return *p
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(list, func(a, b accounted) int { return cmp.Compare(value(a), value(b)) })
}

// calibrate finds the noise that keeps everything within the budget, by each accountant that has a
// bound; it fails if none has.
func (o *accountOptions) calibrate(names []string, list []released) ([]accounted, error) {
	b := privacy.Budget{Epsilon: o.epsilon, Delta: o.delta}
	if err := o.needsDelta(list); err != nil {
		return nil, err
	}
	if (strings.HasSuffix(o.mechanism, "gaussian") || o.mechanism == "fm") && o.delta == 0 {
		return nil, fault.Request("--delta", "is 0 and "+o.mechanism+" has no pure guarantee",
			"give a positive one such as --delta 1e-5, or use laplace")
	}
	var answer []accounted
	var last error
	for _, name := range names {
		if o.delta == 0 && name != "pure" && name != "pld" {
			continue // no other answers at delta 0
		}
		family := func(x float64) privacy.Mechanism { m, _ := o.family(x); return m }
		x, err := privacy.CalibrateWith(name, b, o.rounds, family, func(a privacy.Accountant) {
			for _, r := range list {
				a.Compose(r.m, r.rounds)
			}
		})
		if err != nil {
			last = err
			continue
		}
		m, need := o.family(x)
		all := append(slices.Clone(list), released{m, o.rounds})
		line, err := o.cost(name, all, lowerBound(all, o.delta))
		if err != nil {
			return nil, err
		}
		switch o.mechanism {
		case "fm":
			line.Phantoms = &need
		case "randomized-response":
			line.P = &need
		default:
			line.Scale = &need
		}
		answer = append(answer, line)
	}
	switch {
	case len(answer) == 0 && last != nil:
		return nil, fmt.Errorf("account: %w", last)
	case len(answer) == 0:
		return nil, fault.Request("--accountant", o.accountant+" has no answer at delta 0",
			"use pure or pld, or a positive --delta")
	}
	sortBy(answer, func(a *accounted) *float64 { _, need := a.need(); return need })
	return answer, nil
}

// family is the mechanism as a function of a number that makes it cheaper as it grows, and its parameter.
func (o *accountOptions) family(x float64) (privacy.Mechanism, float64) {
	switch o.mechanism {
	case "fm":
		n := math.Ceil(min(max(x, 1), 1e12))
		return privacy.FM{Gamma: o.gamma, Phantoms: int(n), Parties: o.parties, Cells: o.cells}, n
	case "randomized-response":
		p := x / (1 + x)
		return privacy.RandomizedResponse{P: p, Buckets: o.buckets}, p
	}
	m, _ := scaled(o.mechanism, x) // the name and the number have been checked
	return m, x
}

func printAccounted(out io.Writer, answer []accounted) error {
	tw := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	number := func(p *float64) string {
		if p == nil {
			return "no bound"
		}
		return strconv.FormatFloat(*p, 'g', 7, 64)
	}
	head := "accountant\t"
	if name, _ := answer[0].need(); name != "" {
		head += name + "\t"
	}
	fmt.Fprintln(tw, head+"epsilon\tdelta\tat least\t")
	for _, a := range answer {
		cell := ""
		switch name, need := a.need(); name {
		case "":
		case "phantoms":
			cell = strconv.FormatFloat(*need, 'f', 0, 64) + "\t"
		default:
			cell = number(need) + "\t"
		}
		fmt.Fprintf(tw, "%s\t%s%s\t%.3g\t%s\t\n", a.Accountant, cell, number(a.Epsilon), a.Delta, number(a.Lower))
	}
	return tw.Flush()
}
