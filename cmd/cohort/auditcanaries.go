package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/cohort-engine/cohort/engine/audit"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/pages"
)

// runCanaries proves lower bounds of a method, or of all, and prints them beside the claims.
func runCanaries(ctx context.Context, o *options, a *auditOptions, out io.Writer) error {
	if a.runs < 0 {
		return fault.Range("--runs", a.runs, "at least 1")
	}
	if o.given("calibration") && o.setting("calibration") != string(privacy.Proven) {
		return fault.Request("--canaries", "prove bounds of the proven calibration", "leave --calibration out")
	}
	var methods []string
	for _, x := range audit.Audits() {
		if x.Calibration == privacy.Proven && (o.method == "" || o.method == x.Method) {
			methods = append(methods, x.Method)
		}
	}
	if len(methods) == 0 {
		if _, err := catalog.Methods().Find(o.method); err != nil {
			return err
		}
		return fault.Request("--canaries", o.method+" has no proven calibration", "choose another method")
	}
	pages.Heap()
	eng, err := newEngine(o.workers)
	if err != nil {
		return err
	}
	defer eng.Close()
	how := audit.Options{Seed: o.seedPointer()}
	if o.given("trials") {
		how.Trials = a.trials
	}
	if o.given("confidence") {
		how.Confidence = a.confidence
	}
	settings := audit.Settings{Epsilon: o.epsilon, Delta: o.delta, Mechanism: o.setting("mechanism")}
	var all []audit.Reached
	w := &lines{w: out}
	for i, m := range methods { // each takes up to minutes
		reached, err := audit.Canaries(ctx, eng.Pool(), m, settings, a.runs, how)
		if err != nil {
			return err
		}
		all = append(all, reached...)
		if o.format != "json" {
			w.reached(i == 0, reached)
		}
	}
	return verdict(slices.ContainsFunc(all, func(r audit.Reached) bool { return r.Violated }),
		show(out, o.format, all, func() error {
			w.printf("\nEpsilon at the ledger's delta; numbers is what a run releases; a case without canaries is a pair. " +
				"In sight is what more runs would tend to: who sees no more than the viewer of the case cannot show " +
				"more of the claim.\n")
			return w.err
		}))
}

// reached prints a method's bounds beside its claims, each above its case, the first one's below what they are.
func (w *lines) reached(first bool, reached []audit.Reached) {
	if first {
		w.printf("%-12s %7s %9s %9s %8s %7s %6s %9s\n",
			"method", "runs", "canaries", "numbers", "claimed", "proved", "share", "in sight")
	}
	for _, r := range reached {
		count := func(n int) string {
			if n == 0 {
				return "-"
			}
			return fmt.Sprint(n)
		}
		mark, sight := "", "-"
		if r.Asymptotic > 0 {
			sight = fmt.Sprintf("%.3f", r.Asymptotic)
		}
		if r.Violated {
			mark = "  VIOLATED"
		}
		w.printf("%-12s %7d %9s %9s %8.3f %7.3f %6.2f %9s\n", r.Method, r.Runs, count(r.Canaries), count(r.Numbers),
			r.Epsilon, r.Lower, r.Lower/r.Epsilon, sight)
		w.printf("  %s%s\n", r.Case, mark)
	}
}
