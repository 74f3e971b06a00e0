package privacy

import (
	"math"
	"os"
	"strings"
	"testing"
)

// What a run has ended with is charged to viewers that its plan did not name, too.
func TestLedgerFileChargesWhoRunsEndWith(t *testing.T) {
	f := newFile(t)
	if _, err := f.Start(Terms{Budget{1, 0}, BasicComposition, AddRemove},
		planned(t, Spec{Family: "pure", Epsilon: 0.25}, 0)); err != nil {
		t.Fatal(err)
	}
	if err := f.End(1, planned(t, Spec{Family: "pure", Epsilon: 0.75}, 0, Server).Ledger); err != nil {
		t.Fatal(err)
	}
	state, err := f.State()
	if err != nil || state.Spent[Server].Amount != 0.75 || state.Left(Server).Amount != 0.25 {
		t.Errorf("the server saw .75 of 1: %+v, %v", state, err)
	}
}

// FuzzLedgerLines reads files whose lines are anybody's and whose chain is whole, as who has no key, or has it, can
// write them: no state has less than nothing spent, or more left than the budget, and no run starts that what is left
// cannot pay for.
func FuzzLedgerLines(f *testing.F) {
	const header = `{"cohort":"ledger 2","salt":"salt","budget":{"epsilon":1,"delta":1e-5},"composition":"basic",` +
		`"neighbours":"add-remove"}`
	start := `{"run":1,"what":"run","columns":["a"],"charges":{"outsider":{"amount":0.5}}}`
	for _, lines := range []string{header, header + "\n" + start, header + "\n" + start + "\n" + `{"end":1}`,
		header + "\n" + start + "\n" + `{"end":1,"ended":{"server":{"amount":0.75}}}`,
		header + "\n" + start + "\n" + `{"end":1,"ended":{"server":{"amount":-0.75}}}`,
		header + "\n" + strings.Replace(start, "0.5", "1e308", 1) + "\n" +
			strings.NewReplacer("0.5", "1e308", `"run":1`, `"run":2`).Replace(start),
		strings.Replace(header, "basic", "zcdp", 1) + "\n" + start, strings.Replace(header, "basic", "gdp", 1) + "\n" + start,
		strings.Replace(header, "basic", "rdp", 1) + "\n" + start,
		strings.NewReplacer("basic", "zcdp", `"epsilon":1`, `"epsilon":1e300`).Replace(header)} {
		f.Add(lines, false)
		f.Add(lines, true)
	}
	dir := f.TempDir()
	run := PlannedRun{What: "run", Columns: []string{"a"}, Salt: "salt", Ledger: &Ledger{Delta: 1e-6}}
	if err := run.Ledger.Add(Entry{What: "sums", Viewers: []string{Outsider}, Cost: Spec{Family: "pure", Epsilon: 0.25},
		Calibration: Proven, Neighbours: AddRemove}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, lines string, keyed bool) {
		file := LedgerFile{Path: dir + "/ledger"}
		if keyed {
			file.Key = []byte("key")
			lines = strings.Replace(lines, `"salt":`, `"keyed":true,"salt":`, 1)
		}
		s := &ledgerState{file: file}
		var text []byte
		for _, body := range strings.Split(lines, "\n") {
			s.chain = s.chained([]byte(body))
			text = append(text, s.chain+" "+body+"\n"...)
		}
		if err := os.WriteFile(file.Path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := file.State()
		if err != nil {
			return
		}
		for _, v := range append(before.Viewers(), "another") {
			left, spent := before.Left(v), before.Spent[v]
			if !(left.Amount >= 0 && left.Delta >= 0 && spent.Amount >= 0 && spent.Delta >= 0) ||
				left.Amount > before.Limit.Amount || left.Delta > before.Limit.Delta {
				t.Fatalf("%s: %+v spent and %+v left of %+v", v, spent, left, before.Limit)
			}
			if e := before.Epsilon(spent.Amount); math.IsNaN(e) || e < 0 {
				t.Fatalf("%s: %g is spent, epsilon %g", v, spent.Amount, e)
			}
		}
		if _, err := file.Start(Terms{}, run); err != nil {
			return
		}
		after, err := file.State()
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		for v, c := range after.Spent {
			was, ok := before.Spent[v]
			if !ok {
				was = before.Spent[Outsider]
			}
			if !c.within(after.Limit) || c.Amount < was.Amount || !(c.Amount > was.Amount || was.Amount > 1e9) {
				t.Fatalf("%s: %+v of %+v is spent after %+v", v, c, after.Limit, was)
			}
		}
	})
}
