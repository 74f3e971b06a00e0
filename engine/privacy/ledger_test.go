package privacy

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func sample(t *testing.T) *Ledger {
	t.Helper()
	l := &Ledger{Delta: 1e-6}
	for _, e := range []Entry{
		{What: "sums, 7 rounds", Viewers: []string{"clients", "outsider"}, Mechanism: "gaussian", Sensitivity: 1,
			Norm: "L2", Scale: 30,
			Cost: Spec{Family: "gaussian", Scale: 30, Rounds: 7}, Theorem: "T2", Conditions: []string{"the bounds are public"},
			Calibration: Proven},
		{What: "masked values", Viewers: []string{"server"}, Mechanism: "mask"},
		{What: "left half", Viewers: []string{"clients"}, Cost: Spec{Family: "laplace", Scale: 10, Group: "halves"},
			Theorem: "T6"},
		{What: "right half", Viewers: []string{"clients"}, Cost: Spec{Family: "laplace", Scale: 20, Group: "halves"},
			Theorem: "T6"},
	} {
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	l.Note("the bounds come from the data")
	return l
}

func TestLedgerTotalsPerViewer(t *testing.T) {
	l := sample(t)
	near(t, "outsider", *l.TotalFor("outsider").Epsilon, EpsilonOfMu(math.Sqrt(7)/30, 1e-6, 0), 1e-9)
	// the server is sent masks only, but what outsiders see is public
	if e := l.TotalFor("server").Epsilon; *e != *l.TotalFor("outsider").Epsilon {
		t.Errorf("the server pays %v for what is public", *e)
	}
	// disjoint halves cost as the dearer: epsilon 0.1 beside the Gaussian
	a := ZCDPAccountant{}
	a.Compose(Gaussian{Scale: 30}, 7)
	a.Compose(Laplace{Scale: 10}, 1)
	if e := *l.TotalFor("clients").Epsilon; e > a.Epsilon(1e-6)+1e-12 || e <= *l.TotalFor("outsider").Epsilon {
		t.Errorf("clients pay %v, zCDP of the dearer half gives %v", e, a.Epsilon(1e-6))
	}
}

// Totals take the pld accountant where it gives less: between what the losses cost at least and what
// the other accountants say.
func TestLedgerTotalsByLossDistribution(t *testing.T) {
	add := func(l *Ledger, specs ...Spec) {
		t.Helper()
		for _, s := range specs {
			if err := l.Add(Entry{What: "x", Viewers: []string{"outsider"}, Cost: s}); err != nil {
				t.Fatal(err)
			}
		}
	}
	halves := []Spec{{Family: "gaussian", Scale: 5, Group: "halves"}, {Family: "gaussian", Scale: 9, Group: "halves"}}
	for _, c := range []struct {
		specs []Spec
		by    string
	}{
		{[]Spec{{Family: "gaussian", Scale: 30, Rounds: 7}, {Family: "discrete-gaussian", Scale: 20, Slack: 1e-12}}, "gdp"},
		{[]Spec{{Family: "laplace", Scale: 40, Rounds: 40}}, "pld"},
		{[]Spec{{Family: "gaussian", Scale: 9, Rounds: 3}, {Family: "gaussian", Scale: 7}, {Family: "laplace", Scale: 10},
			{Family: "pure", Epsilon: .05, Rounds: 4}}, "pld"},
		{append([]Spec{{Family: "laplace", Scale: 20, Rounds: 3}}, halves...), "pld"},
		{[]Spec{{Family: "fm", Gamma: 1, Phantoms: 190, Parties: 2, Cells: 5, Rounds: 4096},
			{Family: "gaussian", Scale: 20}}, "pld"},
		// a discrete Gaussian whose distance to the continuous one is not known
		{[]Spec{{Family: "discrete-gaussian", Scale: 5}, {Family: "laplace", Scale: 10}}, "rdp"},
		{[]Spec{{Family: "discrete-gaussian", Scale: 5, Slack: 1e-9}, {Family: "laplace", Scale: 10}}, "pld"},
		// not quick
		{[]Spec{{Family: "laplace", Scale: 2e6, Rounds: 1e6},
			{Family: "fm", Gamma: 1, Phantoms: 1 << 20, Parties: 2, Cells: 5, Rounds: 1e6}}, "rdp"},
	} {
		l := &Ledger{Delta: 1e-5}
		add(l, c.specs...)
		total := l.TotalFor("outsider")
		if total.Accountant != c.by {
			t.Errorf("%+v: by %s, want %s", c.specs, total.Accountant, c.by)
		}
		low := &PLDAccountant{Optimistic: true}
		others := newAccounts()
		for _, s := range c.specs {
			m, err := s.Mechanism()
			if err != nil {
				t.Fatal(err)
			}
			if s.Group != "" && s.Scale > 5 {
				continue // the dearer half
			}
			low.Compose(m, s.Times())
			others.compose(m, s.Times())
		}
		most, _ := others.epsilon(l.Delta)
		if e := *total.Epsilon; e > most*(1+1e-9) {
			t.Errorf("%+v: %v, without pld %v", c.specs, e, most)
		}
		if e := *total.Epsilon; c.by == "pld" {
			if least := low.Epsilon(l.Delta); e < least || e > 1.01*least {
				t.Errorf("%+v: %v, at least %v", c.specs, e, least)
			}
		}
	}
}

// Viewers who see the same share a total; each is as if computed alone, and only totals of something
// name an accountant.
func TestLedgerTotalsAreThoseOfEachViewer(t *testing.T) {
	l := sample(t)
	if err := l.Add(Entry{What: "the same for two", Viewers: []string{"client 1", "client 2"},
		Cost: Spec{Family: "laplace", Scale: 3}}); err != nil {
		t.Fatal(err)
	}
	totals := l.Totals()
	if len(totals) != len(l.Viewers()) {
		t.Fatalf("%d totals for %v", len(totals), l.Viewers())
	}
	for i, v := range l.Viewers() {
		if want := l.TotalFor(v); !reflect.DeepEqual(totals[i], want) {
			t.Errorf("%s: %+v, alone %+v", v, totals[i], want)
		}
		if named := totals[i].Accountant != ""; named != (*totals[i].Epsilon > 0) {
			t.Errorf("%s: epsilon %v by %q", v, *totals[i].Epsilon, totals[i].Accountant)
		}
	}
}

func TestLedgerJSONIsAnArrayWithTotals(t *testing.T) {
	b, err := json.Marshal(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	kinds := map[any]int{}
	for _, e := range list {
		kinds[e["kind"]]++
	}
	if kinds["release"] != 4 || kinds["note"] != 1 || kinds["total"] != 3 {
		t.Errorf("kinds %v", kinds)
	}
	for _, field := range []string{"what", "viewers", "mechanism", "sensitivity", "norm", "scale", "epsilon", "delta",
		"rho", "mu", "theorem", "conditions", "calibration", "cost"} {
		if _, ok := list[0][field]; !ok {
			t.Errorf("the first entry lacks %s: %v", field, list[0])
		}
	}
	var empty Ledger
	if b, err := json.Marshal(&empty); err != nil || string(b) != "[]" {
		t.Errorf("an empty ledger is %s, %v", b, err)
	}
}

func TestLedgerSaysWhatAClaimIsWorth(t *testing.T) {
	l := &Ledger{}
	if err := l.Add(Entry{What: "centroids", Viewers: []string{"outsider"}, Mechanism: "laplace",
		Cost: Spec{Family: "laplace", Scale: 1}, True: &Spec{Family: "laplace", Scale: 0.1},
		Calibration: Claimed}); err != nil {
		t.Fatal(err)
	}
	if err := l.Add(Entry{What: "sketches", Viewers: []string{"server"}, Mechanism: "fm",
		Cost: Spec{Family: "pure", Epsilon: 1}, Unbounded: true, Calibration: Claimed}); err != nil {
		t.Fatal(err)
	}
	o, s := l.TotalFor("outsider"), l.TotalFor("server")
	if *o.Epsilon != 1 && math.Abs(*o.Epsilon-1) > 1e-12 || math.Abs(*o.TrueEpsilon-10) > 1e-9 {
		t.Errorf("outsider: %v, true %v", *o.Epsilon, o.TrueEpsilon)
	}
	if !s.Unbounded || s.TrueEpsilon != nil || s.Epsilon == nil {
		t.Errorf("server: %+v", s)
	}
	var text strings.Builder
	if err := l.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(true: 10)", "(true: unbounded)", "total"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, text.String())
		}
	}
}

// What reads alike is said once, and nothing else is.
func TestLedgerTextPutsTogether(t *testing.T) {
	l := &Ledger{}
	add := func(what string, scale float64, noise *Noise) {
		err := l.Add(Entry{What: what, Viewers: []string{"clients", "outsider"}, Mechanism: "laplace", Scale: scale,
			Noise: noise, Cost: Spec{Family: "laplace", Scale: scale}})
		if err != nil {
			t.Fatal(err)
		}
	}
	shared := Shared(3, 2, 1, "clients", "server")
	for _, what := range []string{"round 9: sums", "round 10: sums", "round 12: sums", "round 13: counts", "end", "end"} {
		add(what, 4, shared)
	}
	add("round 14: counts", 8, shared)
	add("round 15: counts", 8, Shared(3, 1, 1, "clients"))
	var text strings.Builder
	if err := l.Text(&text); err != nil {
		t.Fatal(err)
	}
	const shares = ", in 3 shares, any 2 of which are the whole; known to\n        clients, server: 1"
	const above, end = "      laplace, scale 4; drawn and seen as above\n", "; seen by clients, outsider\n"
	want := "  round 9 to 10: sums: epsilon 0.25 each\n      laplace, scale 4" + shares + end +
		"  round 12: sums: epsilon 0.25\n" + above + "  round 13: counts: epsilon 0.25\n" + above +
		"  end: epsilon 0.25\n" + above + "  end: epsilon 0.25\n" + above +
		"  round 14: counts: epsilon 0.125\n      laplace, scale 8; drawn and seen as above\n" +
		"  round 15: counts: epsilon 0.125\n      laplace, scale 8, in 3 shares, each of which is the whole; known to\n" +
		"        clients: 1" + end
	if got, _, _ := strings.Cut(text.String(), "  total"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestLedgerRefusesBadCosts(t *testing.T) {
	l := &Ledger{}
	for _, s := range []Spec{{Family: "gaussian"}, {Family: "laplace", Scale: -1},
		{Family: "laplace", Scale: math.NaN()}, {Family: "pure"}, {Family: "x", Scale: 1},
		{Family: "randomized-response", P: 0, Buckets: 2}, {Family: "randomized-response", P: .5, Buckets: 1},
		{Family: "fm"}, {Family: "laplace", Scale: 1, Rounds: -1}} {
		if err := l.Add(Entry{What: "x", Cost: s}); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if len(l.entries) != 0 {
		t.Error("a refused entry was added")
	}
}

// Whatever costs a file states, they are refused or come to an end: losses of any size, however many rounds.
func TestLedgerPricesAnyCost(t *testing.T) {
	huge, tiny := math.MaxFloat64, math.SmallestNonzeroFloat64
	for _, s := range []Spec{
		{Family: "pure", Epsilon: huge}, {Family: "pure", Epsilon: 1e155}, {Family: "exponential", Epsilon: huge},
		{Family: "laplace", Scale: tiny}, {Family: "discrete-laplace", Scale: 1e-300, Rounds: 2},
		{Family: "gaussian", Scale: 1e-200, Rounds: math.MaxInt32}, {Family: "discrete-gaussian", Scale: 1e-160},
		{Family: "randomized-response", P: tiny, Buckets: math.MaxInt32, Rounds: math.MaxInt32},
		{Family: "fm", Gamma: tiny, Phantoms: math.MaxInt32, Parties: 1000, Cells: 1 << 20, Rounds: math.MaxInt32},
		{Family: "drawn-gaussian", Scale: 1e-3, P: .5, Trials: 100, Rounds: 1e6},
	} {
		l := &Ledger{Delta: 1e-6, priced: 2, entries: []Entry{
			{Kind: Release, What: "x", Viewers: []string{Outsider}, Mechanism: "x", Cost: s, Calibration: Proven},
			{Kind: Release, What: "y", Viewers: []string{Outsider}, Mechanism: "y", Calibration: Proven,
				Cost: Spec{Family: "laplace", Scale: 1}}}}
		if e := l.TotalFor(Outsider).Epsilon; e != nil && !(*e >= 0) {
			t.Errorf("%+v costs %v", s, *e)
		}
		if m, err := s.Mechanism(); err == nil {
			lower, upper := &PLDAccountant{Optimistic: true}, &PLDAccountant{}
			lower.Compose(m, 1)
			upper.Compose(m, 1)
			if lo, hi := lower.Epsilon(1e-6), upper.Epsilon(1e-6); !(lo <= hi) {
				t.Errorf("%+v costs from %v to %v", s, lo, hi)
			}
		}
	}
}

// What a role can make of other releases and its own noise costs it nothing, and others what it costs.
func TestLedgerChargesNobodyTwice(t *testing.T) {
	l := &Ledger{Delta: 1e-5}
	for _, e := range []Entry{
		{What: "sketches", Viewers: []string{Server}, Calibration: Proven, Cost: Spec{Family: "gaussian", Scale: 4}},
		{What: "noised", Viewers: []string{Outsider}, Calibration: Proven, Noise: DrawnBy(Server), Derived: []string{Server},
			Cost: Spec{Family: "gaussian", Scale: 8}},
	} {
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	for viewer, mu := range map[string]float64{Server: 1. / 4, Clients: 1. / 8, Outsider: 1. / 8} {
		if total := l.TotalFor(viewer); total.Unbounded || math.Abs(*total.Epsilon-EpsilonOfMu(mu, 1e-5, 0)) > 1e-6 {
			t.Errorf("the %s sees what costs %+v", viewer, total)
		}
	}
	for _, total := range l.Totals() {
		if total.Unbounded {
			t.Errorf("%s has no bound", total.What)
		}
	}
	l.Entries()[1].Derived = nil
	if total := l.TotalFor(Server); !total.Unbounded {
		t.Error("who draws the noise of what is not its own sees no more than others")
	}
}

func TestSensitivitiesOfTheTable(t *testing.T) {
	s := Shape{D: 3, K: 4, Bound: 1, Lo: 10, Exclusivity: 1}
	for _, c := range []struct {
		method      string
		calibration Calibration
		release     string
		l1, l2      float64
	}{
		{"sulloyd", Proven, "sums", 3, math.Sqrt(3)}, {"csulloyd", Proven, "sums", 24, 2 * math.Sqrt(12)},
		{"fastlloyd", Proven, "centroids", 2.4, 2 * math.Sqrt(12) / 10}, {"fastlloyd", Claimed, "centroids", 0.3, -1},
		{"fastlloyd", Published, "centroids", 0.1, -1},
		{"sulloyd", Claimed, "centroids", 3, -1}, {"sulloyd", Published, "centroids", 1, -1},
		{"csulloyd", Published, "sums", 3, -1}, {"csulloyd", Published, "counts", 1, -1},
	} {
		r, err := Lookup(c.method, c.calibration, c.release, AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.method+" L1", r.L1(s), c.l1, 1e-12)
		if c.l2 >= 0 {
			near(t, c.method+" L2", r.L2(s), c.l2, 1e-12)
		}
	}
	// replacing a record, and a quotient rounded to a grid of a quarter: 2/10 moves by up to 1 unit
	replaced, rounded := s, s
	replaced.Neighbours, rounded.Unit = ReplaceOne, 0.25
	for _, c := range []struct {
		method, release string
		s               Shape
		l1, l2          float64
	}{
		{"sulloyd", "sums", replaced, 6, 2 * math.Sqrt(3)}, {"sulloyd", "counts", replaced, 2, math.Sqrt2},
		{"csulloyd", "sums", replaced, 24, 2 * math.Sqrt(12)},
		{"fastlloyd", "centroids", replaced, 2.4, 2 * math.Sqrt(12) / 10},
		{"fastlloyd", "centroids", rounded, 12 * 0.25, math.Sqrt(12) * 0.25},
	} {
		r, err := Lookup(c.method, Proven, c.release, c.s.Neighbours)
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.method+" "+c.release+" L1, "+string(c.s.relation())+", rounded", r.L1(c.s), c.l1, 1e-12)
		near(t, c.method+" "+c.release+" L2, "+string(c.s.relation())+", rounded", r.L2(c.s), c.l2, 1e-12)
	}
}

// Every method has a line for each calibration, or one that says why there is none, and no line
// lacks what a ledger prints.
func TestRulesOfTheTable(t *testing.T) {
	for _, r := range AllRules() {
		switch {
		case r.None != "":
			if r.Release != "" || r.Theorem != "" || len(Rules(r.Method, r.Calibration)) != 1 {
				t.Errorf("%s %s: a calibration that there is not has lines", r.Method, r.Calibration)
			}
			if _, err := Lookup(r.Method, r.Calibration, "sums", AddRemove); !errors.Is(err, ErrRange) ||
				!strings.Contains(err.Error(), r.None) {
				t.Errorf("%s %s: %v", r.Method, r.Calibration, err)
			}
		case r.Theorem == "" || r.Release == "" || r.L1 == nil && r.L2 == nil || len(r.Mechanisms) == 0 ||
			r.Calibration == Proven && (len(r.Neighbours) == 0 || r.Worth != ""):
			t.Errorf("incomplete rule: %s %s %s", r.Method, r.Calibration, r.Release)
		}
		same := 0
		for _, o := range Rules(r.Method, r.Calibration) {
			if o.Release == r.Release {
				same++
			}
		}
		if same != 1 {
			t.Errorf("%s %s: %d lines for %s", r.Method, r.Calibration, same, r.Release)
		}
		// claimed and proven stand side by side
		for _, c := range []Calibration{Claimed, Proven} {
			if len(Rules(r.Method, c)) == 0 {
				t.Errorf("%s has no line for %s, not even that there is none", r.Method, c)
			}
		}
	}
}

func TestLookupRefusesWhatTheTableLacks(t *testing.T) {
	if _, err := Lookup("sketch", Proven, "sketches", ReplaceOne); err == nil ||
		!strings.Contains(err.Error(), "sulloyd, relative, csulloyd") {
		t.Errorf("replace-one without a proof: %v", err)
	}
	if _, err := Lookup("ckks", Published, "decrypted counts and sums", AddRemove); err == nil {
		t.Error("a calibration without code is found")
	}
}

// BenchmarkLedgerTotal times the total of a viewer where the pld accountant joins in.
func BenchmarkLedgerTotal(b *testing.B) {
	for name, specs := range map[string][]Spec{
		"gaussian and selection": {{Family: "gaussian", Scale: 5}, {Family: "pure", Epsilon: .05, Rounds: 2}},
		"laplace":                {{Family: "laplace", Scale: 14, Rounds: 7}, {Family: "laplace", Scale: 20, Rounds: 7}},
		"sketches": {{Family: "fm", Gamma: 1. / 1024, Phantoms: 166, Parties: 2, Cells: 5, Rounds: 4096},
			{Family: "gaussian", Scale: 5}},
	} {
		b.Run(name, func(b *testing.B) {
			l := &Ledger{Delta: 1e-5}
			for _, s := range specs {
				if err := l.Add(Entry{What: "x", Viewers: []string{"server"}, Cost: s}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if l.TotalFor("server").Accountant == "" {
					b.Fatal("no accountant")
				}
			}
		})
	}
}

// A viewer pays for the noise that it does not know: all of it, enough shares, too few (T10).
func TestLedgerTotalsCountUnknownNoiseOnly(t *testing.T) {
	public := []string{Clients, Outsider}
	for _, c := range []struct {
		name    string
		viewers []string
		noise   *Noise
		bounded map[string]bool
	}{
		{"the server draws it and the result is public", public, DrawnBy(Server),
			map[string]bool{Server: false, Clients: true, Outsider: true}},
		{"the server draws it and sees nothing", []string{Clients}, DrawnBy(Server), map[string]bool{Clients: true}},
		{"the holder of the data draws it", []string{Outsider}, nil, map[string]bool{Outsider: true}},
		{"shares, one colluder", public, Shared(5, 4, 1, Clients, Server),
			map[string]bool{Server: true, Clients: true, Outsider: true}},
		{"shares, two colluders for four needed", public, Shared(5, 4, 2, Clients, Server),
			map[string]bool{Server: false, Clients: false, Outsider: true}},
		{"two sides", []string{"party 1", "party 2", Outsider}, Shared(2, 1, 1, "party 1", "party 2"),
			map[string]bool{"party 1": true, "party 2": true, Outsider: true}},
		{"one side", []string{"party 1", "party 2", Outsider}, DrawnBy("party 1"),
			map[string]bool{"party 1": false, "party 2": true, Outsider: true}},
	} {
		for _, calibration := range []Calibration{Proven, Claimed} {
			l := &Ledger{Delta: 1e-6}
			e := Entry{What: "sums", Viewers: c.viewers, Noise: c.noise, Cost: Spec{Family: "discrete-laplace", Scale: 2},
				Calibration: calibration}
			if err := l.Add(e); err != nil {
				t.Fatal(err)
			}
			if len(l.Viewers()) != len(c.bounded) {
				t.Errorf("%s: viewers %v", c.name, l.Viewers())
			}
			for viewer, bounded := range c.bounded {
				total := l.TotalFor(viewer)
				epsilon := total.Epsilon
				if calibration == Claimed && !bounded { // the claim stands, the truth beside it
					if epsilon == nil || *epsilon != 0.5 || total.TrueEpsilon != nil || !total.Unbounded {
						t.Errorf("%s, claimed: %s has %+v", c.name, viewer, total)
					}
					continue
				}
				if total.Unbounded == bounded || bounded != (epsilon != nil) || bounded && *epsilon != 0.5 {
					t.Errorf("%s: %s has %+v, bounded should be %v", c.name, viewer, total, bounded)
				}
			}
			for i, total := range l.Totals() {
				if alone := l.TotalFor(l.Viewers()[i]); !reflect.DeepEqual(total, alone) {
					t.Errorf("%s: %+v, alone %+v", c.name, total, alone)
				}
			}
		}
	}
}

// Failures are added to delta and distances times 1 + e^epsilon, whatever the accountant.
func TestLedgerTotalsHaveAdditiveDeltas(t *testing.T) {
	total := func(delta float64, specs ...Spec) *float64 {
		t.Helper()
		l := &Ledger{Delta: delta}
		for _, s := range specs {
			if err := l.Add(Entry{What: "x", Viewers: []string{Outsider}, Cost: s}); err != nil {
				t.Fatal(err)
			}
		}
		return l.TotalFor(Outsider).Epsilon
	}
	pure, with := Spec{Family: "discrete-laplace", Scale: 2}, Spec{Family: "discrete-laplace", Scale: 2, Failure: 1e-9}
	if e := total(0, with); e != nil {
		t.Errorf("a failure at delta 0 costs %v, want no bound", *e)
	}
	if e := total(2e-9, with, with); e == nil || *e != 1 {
		t.Errorf("two failures at their sum: %v, want 1", e)
	}
	if e := total(1.9e-9, with, with); e != nil {
		t.Errorf("two failures at less than their sum: %v, want no bound", *e)
	}
	if e := total(0, pure); e == nil || *e != 0.5 {
		t.Errorf("no failure: %v, want 0.5", e)
	}
	normal := Spec{Family: "gaussian", Scale: 3}
	failing, off := normal, normal
	failing.Failure, off.Distance = 5e-6, 1e-6
	near(t, "failure", *total(1e-5, failing), EpsilonOfMu(1.0/3, 5e-6, 0), 1e-9)
	e := *total(1e-5, off)
	if delta := DeltaOfMu(1.0/3, e) + (1+math.Exp(e))*1e-6; delta > 1e-5 || delta < 0.9e-5 {
		t.Errorf("a distance of 1e-6 at delta 1e-5: epsilon %v, whose delta is %v", e, delta)
	}
	if e := total(1e-5, Spec{Family: "gaussian", Scale: 3, Distance: 6e-6}); e != nil {
		t.Errorf("a distance that takes all of delta costs %v, want no bound", *e)
	}
	if err := new(Ledger).Add(Entry{What: "x",
		Cost: Spec{Family: "gaussian", Scale: 1, Failure: -1}}); !errors.Is(err, ErrRange) {
		t.Errorf("a negative failure: %v", err)
	}
}

// A distance of pure releases is multiplied by e^epsilon of all together, not of the others alone: what that leaves of
// delta is left to the others.
func TestDistanceOfPureReleases(t *testing.T) {
	const distance, pure = 1e-8, 7.2
	total := func(delta float64, costs ...Spec) float64 {
		l := &Ledger{Delta: delta}
		for _, c := range costs {
			if err := l.Add(Entry{What: c.Family, Viewers: []string{Outsider}, Calibration: Proven, Cost: c}); err != nil {
				t.Fatal(err)
			}
		}
		return *l.TotalFor(Outsider).Epsilon
	}
	sketches := Spec{Family: "fm", Gamma: 1, Phantoms: 190, Parties: 2, Cells: 5, Rounds: 4096}
	e := total(5e-5, sketches, Spec{Family: "discrete-laplace", Scale: 2 / pure, Rounds: 2, Distance: distance})
	if least := pure + total(5e-5-slackDelta(e, distance), sketches); e < least {
		t.Errorf("epsilon %v, want at least %v", e, least)
	}
}

// What pure and Gaussian releases cost together is never more than the sum of what they cost apart.
func TestPureAndGaussianReleasesAddUp(t *testing.T) {
	for _, c := range []struct{ pure, sigma, delta float64 }{{10, 0.6, 1e-5}, {18, 3, 1e-4}, {0.1, 4, 1e-6},
		{1, 1, 1e-9}} {
		gaussian := &Ledger{Delta: c.delta}
		both := &Ledger{Delta: c.delta}
		g := Entry{What: "g", Viewers: []string{Outsider}, Calibration: Proven,
			Cost: Spec{Family: "gaussian", Scale: c.sigma}}
		p := Entry{What: "p", Viewers: []string{Outsider}, Calibration: Proven,
			Cost: Spec{Family: "laplace", Scale: 1 / c.pure}}
		for _, err := range []error{gaussian.Add(g), both.Add(p), both.Add(g)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		sum, total := *gaussian.TotalFor(Outsider).Epsilon+c.pure, *both.TotalFor(Outsider).Epsilon
		if !(total <= sum*(1+1e-9)) || total < max(c.pure, sum-c.pure)*(1-1e-3) {
			t.Errorf("%+v: together %v, apart %v", c, total, sum)
		}
	}
}
