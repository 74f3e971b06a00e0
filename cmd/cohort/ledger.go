package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	library "github.com/cohort-engine/cohort"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// parseLedgerBudget reads the value of --ledger-budget: EPSILON or EPSILON:DELTA, or nothing.
func (o *options) parseLedgerBudget() (privacy.Budget, error) {
	var total privacy.Budget
	if o.ledgerBudget == "" {
		return total, nil
	}
	wrong := func() (privacy.Budget, error) {
		return privacy.Budget{}, fault.Range("--ledger-budget", strconv.Quote(o.ledgerBudget),
			"EPSILON or EPSILON:DELTA, such as 2:1e-5")
	}
	eps, delta, two := strings.Cut(o.ledgerBudget, ":")
	var err error
	if total.Epsilon, err = strconv.ParseFloat(eps, 64); err != nil {
		return wrong()
	}
	if two {
		if total.Delta, err = strconv.ParseFloat(delta, 64); err != nil {
			return wrong()
		}
	}
	if total.Validate() != nil {
		return wrong()
	}
	return total, nil
}

// ledgerFile is the file of --ledger, with its key and anchor.
func (o *options) ledgerFile() (privacy.LedgerFile, error) {
	f := privacy.LedgerFile{Path: o.ledger, Anchor: o.ledgerAnchor}
	if o.ledger == "-" {
		return f, fault.Request("--ledger", `"-" names no file`, "name a file, or ./-")
	}
	if o.ledgerKey == "" {
		return f, nil
	}
	var err error
	f.Key, err = privacy.ReadKey("--ledger-key", o.ledgerKey)
	return f, err
}

// checkLedger refuses, before any data is read, a run that cannot be entered in the ledger file or
// for which the file has nothing left.
func (o *options) checkLedger(m *method.Method) error {
	if o.ledger == "" {
		for _, flag := range []string{"ledger-budget", "ledger-composition", "ledger-key", "ledger-anchor"} {
			if o.given(flag) {
				return fault.Request("--"+flag, "is given without --ledger", "name the ledger file")
			}
		}
		return nil
	}
	if c := o.calibration(m); c != privacy.Proven {
		return fault.Request("--ledger", "a ledger file adds up proven guarantees and the calibration is "+string(c),
			"use --calibration proven")
	}
	if o.given("seed") {
		return fault.Request("--ledger", "a run with --seed is a simulation, which no budget covers",
			"leave --seed out, or --ledger")
	}
	if _, err := o.parseLedgerBudget(); err != nil {
		return err
	}
	if _, err := privacy.ParseComposition(o.ledgerComposition); err != nil {
		return fault.Range("--ledger-composition", strconv.Quote(o.ledgerComposition), "basic, zcdp, gdp or rdp")
	}
	f, err := o.ledgerFile()
	if err != nil {
		return err
	}
	state, err := f.State()
	if err != nil || state == nil {
		return err
	}
	if left := state.Left(privacy.Outsider); left.Amount <= state.Limit.Amount*1e-9 && !library.Unfinished(o.ledger) {
		return fault.Request("ledger file "+o.ledger,
			fmt.Sprintf("all of epsilon %v is spent", state.Budget.Epsilon), "end here")
	}
	return nil
}

// newPayment prepares to pay for runs on the data, nil if there is no ledger file.
func newPayment(o *options, in *input, m *method.Method) (*library.Payment, error) {
	if o.ledger == "" {
		return nil, nil
	}
	account, err := o.account()
	if err != nil {
		return nil, err
	}
	if in.pay != nil { // for bounds, before
		return in.pay, in.pay.Next(o.charged(in, m))
	}
	return account.NewPayment(o.charged(in, m))
}

// charged is what each run is charged for, beside what is found first.
func (o *options) charged(in *input, m *method.Method) library.Charged {
	whole := o.budget()
	whole.Epsilon = o.epsilon
	return library.Charged{Method: m, Settings: o.settings(), K: in.k, Cost: o.budget(), Whole: whole,
		Request: o.request(in), Records: in.norm, Digests: in.digests, Salt: in.salt}
}

// account is the ledger file with the terms of a new one.
func (o *options) account() (*library.Account, error) {
	account := &library.Account{Composition: privacy.Composition(o.ledgerComposition)}
	var err error
	if account.File, err = o.ledgerFile(); err != nil {
		return nil, err
	}
	account.Budget, err = o.parseLedgerBudget()
	return account, err
}

// request has every flag that the result of a run depends on, the first centroids, the ids and how many records
// each file has.
func (o *options) request(in *input) string {
	given := []string{fmt.Sprintf("start=%v ids=%q files=%v", in.start, in.ids, in.table.Files)}
	o.set.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "data", "out", "out-format", "report", "format", "labels-out", "timings", "workers", "cache", "max-memory":
		default:
			if !strings.HasPrefix(f.Name, "ledger") {
				given = append(given, fmt.Sprintf("%s=%q", f.Name, f.Value))
			}
		}
	})
	slices.Sort(given)
	return strings.Join(given, " ")
}
