package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// ledgerOf runs a small job in this process and returns its ledger as the engine made it.
func ledgerOf(t *testing.T, eng *engine.Engine, args ...string) (*privacy.Ledger, error) {
	t.Helper()
	o, m, in, err := prepared(t, args...)
	if err != nil {
		return nil, err
	}
	res, err := repeat(context.Background(), eng, m, o, in, nil)
	if err != nil {
		return nil, err
	}
	return res.Ledger, nil
}

// plainly are the sensitivities, of one record added, that depend on d and k alone, by release and norm
// as they stand in the theorems or the papers; B = 1. The others have tests of their own.
var plainly = map[string]func(d, k float64) (l1, l2 float64){
	"sulloyd sums":                    func(d, _ float64) (float64, float64) { return d, math.Sqrt(d) },
	"csulloyd sums proven":            func(d, k float64) (float64, float64) { return 2 * k * d, 2 * math.Sqrt(k*d) },
	"csulloyd sums claimed":           func(d, _ float64) (float64, float64) { return d, math.NaN() },
	"sum of all records":              func(d, _ float64) (float64, float64) { return d, math.Sqrt(d) },
	"leaf sums":                       func(d, _ float64) (float64, float64) { return d, math.Sqrt(d) },
	"sums of the forest's leaves":     func(d, _ float64) (float64, float64) { return d, math.Sqrt(d) },
	"counts":                          func(_, _ float64) (float64, float64) { return 1, 1 },
	"counts per level":                func(_, _ float64) (float64, float64) { return 1, 1 },
	"tree counts per level":           func(_, _ float64) (float64, float64) { return 1, 1 },
	"cube counts per level":           func(_, _ float64) (float64, float64) { return 1, 1 },
	"histogram of distances":          func(_, _ float64) (float64, float64) { return 1, 1 },
	"counts of the forest":            func(_, _ float64) (float64, float64) { return 1, 1 },
	"sizes of the local clusters":     func(_, _ float64) (float64, float64) { return 1, 1 },
	"counts of the local tree":        func(_, _ float64) (float64, float64) { return 1, 1 },
	"number of records":               func(_, _ float64) (float64, float64) { return 1, 1 },
	"sketches":                        func(_, _ float64) (float64, float64) { return 1, 1 },
	"relative counts":                 func(_, _ float64) (float64, float64) { return 1, 1 },
	"sulloyd centroids claimed":       func(d, _ float64) (float64, float64) { return d, math.NaN() },
	"sulloyd centroids published":     func(_, _ float64) (float64, float64) { return 1, math.NaN() },
	"memberships under local privacy": func(_, _ float64) (float64, float64) { return 1, 1 },
}

// tableShape is that of the records and clusters of the runs whose ledgers are compared with the table.
const tableColumns, tableClusters = 4, 3

// onTable are the flags of those runs.
var onTable = []string{"--data=builtin:blobs", "--n=300", "--d=" + fmt.Sprint(tableColumns),
	"--k=" + fmt.Sprint(tableClusters), "--seed=7", "--quality=off"}

// tableRun is a run with lines in the table of calibrations, or one that is refused.
type tableRun struct {
	method      string
	calibration privacy.Calibration
	neighbours  privacy.Neighbours
	mechanism   string // "": the default
	extra       string // a flag more
	columns     int    // of the table
	vertical    bool   // parties hold some of them each
}

// flags are the run's own.
func (r tableRun) flags() []string {
	all := []string{"--method=" + r.method, "--calibration=" + string(r.calibration),
		"--neighbours=" + string(r.neighbours)}
	if r.mechanism != "" {
		all = append(all, "--mechanism="+r.mechanism)
	}
	if r.mechanism == "gaussian" {
		all = append(all, "--delta=1e-4")
	}
	if r.method == "ckks" {
		all = append(all, "--iterations=1")
	}
	if r.extra != "" {
		all = append(all, r.extra)
	}
	return all
}

// tableRuns are runs of every private method under every calibration, relation and mechanism, and
// with settings in which it releases something else.
func tableRuns(t *testing.T) (runs []tableRun) {
	weights := filepath.Join(t.TempDir(), "weights.csv")
	if err := os.WriteFile(weights, []byte(strings.Repeat("1\n0.5\n3\n", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	weighted := "--weights=" + weights
	more := map[string][]string{
		"sulloyd":   {"--release=centroid", weighted},
		"relative":  {"--radius-schedule=later-code", weighted},
		"csulloyd":  {"--radius=1"},
		"fastlloyd": {"--radius=1"},
		"hybrid": {"--frame=on", "--branch=grid", "--branch=projected", "--branch=high-d", "--branch=mean",
			"--clients=2", weighted},
		"eugkm":        {"--iterations=1", weighted},
		"evolve":       {weighted},
		"lsf":          {weighted},
		"sketch":       {"--local-start=lsf", "--local-start=rounds", "--return=noised"},
		"sketch-basic": {"--local-start=lsf", "--local-start=rounds"},
		"balcan":       {"--selection=exponential"},
		"balcan-edler": {"--rounds=2"},
	}
	for _, m := range catalog.Methods() {
		if !m.Private {
			continue
		}
		for _, c := range []privacy.Calibration{privacy.Proven, privacy.Claimed, privacy.Published} {
			for _, n := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
				for _, mechanism := range []string{"", "laplace", "gaussian"} {
					for _, extra := range append([]string{""}, more[m.Name]...) {
						if m.Name == "ckks" && (mechanism != "" || extra != "") {
							continue // seconds each
						}
						runs = append(runs, tableRun{m.Name, c, n, mechanism, extra, tableColumns, m.Holds == method.Columns})
					}
				}
			}
		}
	}
	return runs
}

// met are the rules under which something was released.
type met map[string]bool

func (m met) id(r privacy.Rule) string {
	return fmt.Sprint(r.Method, " ", r.Calibration, " ", r.Release)
}

// add adds an entry's.
func (m met) add(e privacy.Entry) {
	for _, b := range []*privacy.Bound{e.Bound, e.Beside} {
		if b != nil {
			m[m.id(b.Rule)] = true
		}
	}
}

// checkEntry compares an entry with its line of the table.
func checkEntry(t *testing.T, e privacy.Entry, run tableRun) {
	c, n, d := run.calibration, run.neighbours, run.columns
	t.Helper()
	if e.Bound == nil {
		t.Errorf("%q has no line of the table", e.What)
		return
	}
	b := *e.Bound
	rule, err := privacy.Lookup(run.method, c, b.Rule.Release, n)
	if err != nil {
		t.Errorf("%q: %v", e.What, err)
		return
	}
	s := b.Shape
	if s.D != d && !(run.vertical && s.D > 0 && s.D < d) || s.Neighbours != n &&
		!(s.Neighbours == "" && n == privacy.AddRemove) {
		t.Errorf("%q: evaluated for %d columns and %q, the run has %d and %q", e.What, s.D, s.Neighbours, d, n)
	}
	want := privacy.Bound{Rule: rule, Shape: s}
	if x := want.In(e.Norm); e.Sensitivity != x {
		t.Errorf("%q: %s sensitivity %v, the table says %v", e.What, e.Norm, e.Sensitivity, x)
	}
	of := run.method + " " + rule.Release
	for _, key := range []string{of + " " + string(c), of, rule.Release} {
		if f, ok := plainly[key]; ok && n == privacy.AddRemove {
			l1, l2 := f(float64(s.D), tableClusters)
			x := l1
			if e.Norm == "L2" {
				x = l2
			}
			if math.Abs(e.Sensitivity-x) > 1e-12*x {
				t.Errorf("%q: %s sensitivity %v, want %v", e.What, e.Norm, e.Sensitivity, x)
			}
			break
		}
	}
	if e.Theorem != rule.Theorem || e.Calibration != c || e.Neighbours != n ||
		!slices.Contains(rule.Mechanisms, e.Mechanism) {
		t.Errorf("%q: %s, %s, %s, %s; the table says %s, %v", e.What, e.Theorem, e.Calibration, e.Neighbours, e.Mechanism,
			rule.Theorem, rule.Mechanisms)
	}
	if c == privacy.Proven && !rule.Holds(n) {
		t.Errorf("%q runs under %s, for which the table has no proof", e.What, n)
	}
	for _, condition := range rule.Conditions {
		if c == privacy.Proven && rule.Release != "sketches" && !slices.Contains(e.Conditions, condition) {
			t.Errorf("%q lacks the condition %q", e.What, condition)
		}
	}
	switch e.Cost.Family {
	case "gaussian", "laplace", "discrete-gaussian", "discrete-laplace":
		if ratio := e.Scale / e.Sensitivity; e.Beside == nil && math.Abs(e.Cost.Scale-ratio) > 1e-9*ratio {
			t.Errorf("%q: costs scale %v, noise over sensitivity is %v", e.What, e.Cost.Scale, ratio)
		}
	}
}

// checkLedger compares what a run releases with the table, and what it costs with its budget.
func checkLedger(t *testing.T, ledger *privacy.Ledger, run tableRun, epsilon float64, seen met) {
	noisy := 0
	for _, e := range ledger.Entries() {
		if e.Kind == privacy.Release && e.Norm != "" {
			noisy++
			checkEntry(t, e, run)
			seen.add(e)
		}
	}
	if noisy == 0 {
		t.Error("no noisy release in the ledger")
	}
	for _, total := range ledger.Totals() {
		switch {
		case total.Epsilon == nil && total.Viewers[0] == privacy.Server && drawnByServer(ledger):
			// it subtracts its noise from what is public
		case total.Epsilon == nil:
			t.Errorf("%s has no bound", total.What)
		case *total.Epsilon > epsilon*(1+1e-9):
			t.Errorf("%s has epsilon %v, the budget is %v", total.What, *total.Epsilon, epsilon)
		}
	}
}

// checkShare compares what a share of epsilon 20 is spent on before a method runs.
func checkShare(t *testing.T, eng *engine.Engine, run tableRun, flags ...string) privacy.Entry {
	t.Helper()
	ledger, err := ledgerOf(t, eng, append(append(flags, "--epsilon=20"), onTable...)...)
	if err != nil {
		t.Fatal(err)
	}
	e := ledger.Entries()[0]
	checkEntry(t, e, run)
	total := ledger.TotalFor(privacy.Outsider)
	if !(*total.Epsilon <= 20*(1+1e-9)) || math.Abs(*e.Epsilon-10) > 1e-2 {
		t.Errorf("%s for half of epsilon 20 cost %v, the run with them %v", run.method, *e.Epsilon, *total.Epsilon)
	}
	return e
}

// Every private method under every calibration, relation and mechanism: what runs enters in its ledger
// what the table of calibrations says, what is refused has no line there, and every line is met.
func TestLedgersOfAllMethodsAgreeWithTheTable(t *testing.T) {
	eng := enginetest.New(t, engine.WithWorkers(2))
	seen := met{}
	for _, run := range tableRuns(t) {
		flags := run.flags()
		name := strings.Join(flags, " ")
		ledger, err := ledgerOf(t, eng, slices.Concat(onTable, []string{"--epsilon=2"}, flags)...)
		switch rules := privacy.Rules(run.method, run.calibration); {
		case err != nil:
			if reason := refusable(rules, run); reason == "" {
				t.Errorf("%s is refused, and the table has lines for it: %v", name, err)
			}
		case len(rules) == 0 || rules[0].None != "":
			t.Errorf("%s runs, and the table has no line for it", name)
		default:
			if checkLedger(t, ledger, run, 2, seen); t.Failed() {
				t.Fatalf("at %s", name)
			}
		}
	}
	for _, n := range []privacy.Neighbours{privacy.AddRemove, privacy.ReplaceOne} {
		seen.add(checkShare(t, eng, tableRun{method: "bounds", calibration: privacy.Proven, neighbours: n,
			columns: tableColumns}, "--neighbours="+string(n), "--private-bounds=0.5"))
	}
	seen.add(checkShare(t, eng, tableRun{method: "count", calibration: privacy.Proven,
		neighbours: privacy.AddRemove}, "--private-n=0.5")) // whatever the columns
	for _, r := range privacy.AllRules() {
		if r.None == "" && !seen[seen.id(r)] {
			t.Errorf("no run has released %s", seen.id(r))
		}
	}
}

// drawnByServer tells whether the server draws the noise of some release.
func drawnByServer(l *privacy.Ledger) bool {
	return slices.ContainsFunc(l.Entries(),
		func(e privacy.Entry) bool { return e.Noise != nil && e.Noise.Known[privacy.Server] == e.Noise.Shares })
}

// refusable says why a run may be refused, "" if it may not.
func refusable(rules []privacy.Rule, run tableRun) string {
	c, n, mechanism := run.calibration, run.neighbours, run.mechanism
	switch {
	case len(rules) == 0 || rules[0].None != "":
		return "no such calibration"
	case run.extra != "":
		return "a setting that not every calibration has"
	case c == privacy.Proven && !slices.Contains(privacy.Provers(n), rules[0].Method):
		return "no proof for the relation"
	case n == privacy.AddRemove && rules[0].Method == "ldp-agg":
		return "the number of reports is public"
	case n == privacy.ReplaceOne && c != privacy.Proven && rules[0].Method != "ldp-agg":
		return "the papers add or remove a record"
	case c == privacy.Published && rules[0].Method == "relative":
		return "the released code has a radius rule of its own"
	}
	for _, r := range rules {
		if mechanism == "gaussian" && r.L2 == nil || mechanism == "laplace" && r.L1 == nil {
			return "not in this norm"
		}
		if mechanism != "" && !slices.ContainsFunc(r.Mechanisms,
			func(s string) bool { return strings.HasSuffix(s, mechanism) }) {
			return "not with this noise"
		}
	}
	return ""
}
