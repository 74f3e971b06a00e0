package privacy

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func sample(t *testing.T) *Ledger {
	t.Helper()
	l := &Ledger{Delta: 1e-6}
	for _, e := range []Entry{
		{What: "sums, 7 rounds", Viewers: []string{"clients", "outsider"}, Mechanism: "gaussian", Sensitivity: 1, Norm: "L2", Scale: 30,
			Cost: Spec{Family: "gaussian", Scale: 30, Rounds: 7}, Theorem: "T2", Conditions: []string{"the bounds are public"}, Calibration: Proven},
		{What: "masked values", Viewers: []string{"server"}, Mechanism: "mask"},
		{What: "left half", Viewers: []string{"clients"}, Cost: Spec{Family: "laplace", Scale: 10, Group: "halves"}, Theorem: "T6"},
		{What: "right half", Viewers: []string{"clients"}, Cost: Spec{Family: "laplace", Scale: 20, Group: "halves"}, Theorem: "T6"},
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
	if e := l.TotalFor("server").Epsilon; *e != 0 {
		t.Errorf("the server sees masks only, and pays %v", *e)
	}
	// disjoint halves cost as the dearer: epsilon 0.1 beside the Gaussian
	a := ZCDPAccountant{}
	a.Compose(Gaussian{Scale: 30}, 7)
	a.Compose(Laplace{10}, 1)
	if e := *l.TotalFor("clients").Epsilon; e > a.Epsilon(1e-6)+1e-12 || e <= *l.TotalFor("outsider").Epsilon {
		t.Errorf("clients pay %v, zCDP of the dearer half gives %v", e, a.Epsilon(1e-6))
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
	for _, field := range []string{"what", "viewers", "mechanism", "sensitivity", "norm", "scale", "epsilon", "delta", "rho", "mu", "theorem", "conditions", "calibration", "cost"} {
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
	if err := l.Add(Entry{What: "centroids", Viewers: []string{"outsider"}, Mechanism: "laplace", Cost: Spec{Family: "laplace", Scale: 1}, True: &Spec{Family: "laplace", Scale: 0.1}, Calibration: Claimed}); err != nil {
		t.Fatal(err)
	}
	if err := l.Add(Entry{What: "sketches", Viewers: []string{"server"}, Mechanism: "fm", Cost: Spec{Family: "pure", Epsilon: 1}, Unbounded: true, Calibration: Claimed}); err != nil {
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

func TestLedgerRefusesBadCosts(t *testing.T) {
	l := &Ledger{}
	for _, s := range []Spec{{Family: "gaussian"}, {Family: "laplace", Scale: -1}, {Family: "laplace", Scale: math.NaN()}, {Family: "pure"}, {Family: "x", Scale: 1},
		{Family: "randomized-response", P: 0, Buckets: 2}, {Family: "randomized-response", P: .5, Buckets: 1}, {Family: "fm"}, {Family: "laplace", Scale: 1, Rounds: -1}} {
		if err := l.Add(Entry{What: "x", Cost: s}); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if len(l.Entries) != 0 {
		t.Error("a refused entry was added")
	}
}

func TestCalibrationsTable(t *testing.T) {
	s := Shape{D: 3, K: 4, Bound: 1, Lo: 10, Exclusivity: 1}
	for _, c := range []struct {
		method      string
		calibration Calibration
		release     string
		l1, l2      float64
	}{
		{"sulloyd", Proven, "sums", 3, math.Sqrt(3)}, {"csulloyd", Proven, "sums", 24, 2 * math.Sqrt(12)},
		{"fastlloyd", Proven, "centroids", 2.4, 2 * math.Sqrt(12) / 10}, {"fastlloyd", Claimed, "centroids", 0.3, -1}, {"fastlloyd", Published, "centroids", 0.1, -1},
		{"sulloyd", Claimed, "centroids", 3, -1}, {"sulloyd", Published, "centroids", 1, -1}, {"csulloyd", Published, "sums", 3, -1}, {"csulloyd", Published, "counts", 1, -1},
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
	for _, r := range AllRules() {
		if r.Theorem == "" || r.L1 == nil || r.Calibration == Proven && (len(r.Neighbours) == 0 || r.Worth != "") {
			t.Errorf("incomplete rule: %s %s %s", r.Method, r.Calibration, r.Release)
		}
	}
	if _, err := Lookup("sketch", Proven, "sketches of one key", ReplaceOne); err == nil || !strings.Contains(err.Error(), "sulloyd") {
		t.Errorf("replace-one without a proof: %v", err)
	}
	if _, err := Lookup("sulloyd", Published, "sums", AddRemove); err == nil {
		t.Error("a calibration without code is found")
	}
}
