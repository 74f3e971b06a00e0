package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// accountJSON runs account and decodes its array.
func accountJSON(t *testing.T, args ...string) []accounted {
	t.Helper()
	status, out, errOut := cohort(t, append([]string{"account", "--format", "json"}, args...)...)
	if status != exitDone {
		t.Fatalf("account %v: status %d: %s", args, status, errOut)
	}
	var list []accounted
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("account %v: %v in %q", args, err, out)
	}
	return list
}

func TestAccountPrintsEpsilonTightestFirst(t *testing.T) {
	list := accountJSON(t, "--mechanism", "gaussian", "--scale", "100", "--rounds", "10000", "--delta", "1e-5")
	if len(list) != len(accountantNames) {
		t.Fatalf("%d accountants, want %d", len(list), len(accountantNames))
	}
	last := 0.0
	for _, a := range list {
		if a.Epsilon == nil {
			continue
		}
		if *a.Epsilon < last {
			t.Errorf("%s is tighter than the one before", a.Accountant)
		}
		last = *a.Epsilon
		// mu = 1: epsilon 4.3772 at delta 1e-5
		if *a.Lower > 4.3772 || *a.Upper < 4.3771 {
			t.Errorf("%s: %v to %v does not enclose 4.3772", a.Accountant, *a.Lower, *a.Upper)
		}
	}
}

func TestAccountInvertsItself(t *testing.T) {
	for _, mech := range []string{"gaussian", "laplace", "discrete-gaussian", "discrete-laplace"} {
		for _, acc := range []string{"zcdp", "rdp", "pld"} {
			need := accountJSON(t, "--mechanism", mech, "--epsilon", "0.7", "--delta", "1e-6", "--rounds", "5",
				"--accountant", acc)
			got := *need[0].Epsilon
			if got > 0.7 || got < 0.7*(1-1e-4) {
				t.Errorf("%s by %s: scale %v gives epsilon %v, want 0.7", mech, acc, *need[0].Scale, got)
			}
		}
	}
	if n := accountJSON(t, "--mechanism", "fm", "--epsilon", "0.5", "--delta", "5e-5", "--rounds", "4096",
		"--accountant", "pld")[0].Phantoms; *n < 186 || *n > 190 {
		t.Errorf("%g phantoms, want 190", *n)
	}
	if p := accountJSON(t, "--mechanism", "randomized-response", "--epsilon", "1", "--buckets", "2", "--accountant",
		"pure")[0].P; *p < 0.5378 || *p > 0.5379 {
		t.Errorf("probability %v, want 2/(1+e)", *p)
	}
}

func TestAccountComposesReleases(t *testing.T) {
	apart := accountJSON(t, "--release", "gaussian:30:7", "--release", "gaussian:40:2", "--delta", "1e-6",
		"--accountant", "gdp")
	// mu^2 = 7/900 + 2/1600
	same := accountJSON(t, "--mechanism", "gaussian", "--scale", "10.525", "--delta", "1e-6", "--accountant", "gdp")
	if d := *apart[0].Epsilon - *same[0].Epsilon; d < -1e-4 || d > 1e-4 {
		t.Errorf("epsilon %v apart, %v as one", *apart[0].Epsilon, *same[0].Epsilon)
	}
}

// Noise of next to no scale bounds nothing, and says so.
func TestAccountOfNoNoise(t *testing.T) {
	for _, mechanism := range []string{"gaussian", "discrete-gaussian", "laplace", "discrete-laplace"} {
		status, out, errOut := cohort(t, "account", "--mechanism", mechanism, "--scale", "1e-300", "--delta", "1e-9")
		if status != exitDone || !strings.Contains(out, "no bound") {
			t.Errorf("%s: status %d, %s\n%s", mechanism, status, errOut, out)
		}
	}
}

func TestAccountRefusesBadInput(t *testing.T) {
	for _, args := range []string{
		"", "--mechanism nosuch --scale 1", "--mechanism gaussian", "--mechanism gaussian --scale 0 --delta .1",
		"--mechanism gaussian --scale NaN --delta .1", "--mechanism gaussian --scale 1e300 --delta .1",
		"--mechanism gaussian --scale 1", "--mechanism gaussian --scale 1 --delta 1",
		"--mechanism gaussian --scale 1 --delta -1",
		"--mechanism gaussian --epsilon 1", "--mechanism gaussian --epsilon -1 --delta .1",
		"--mechanism gaussian --epsilon 1 --scale 2 --delta .1",
		"--mechanism laplace --scale 1 --rounds 0", "--mechanism laplace --scale 1 --p .5",
		"--mechanism randomized-response", "--mechanism randomized-response --p 1.5",
		"--mechanism randomized-response --p .5 --buckets 1", "--mechanism fm --phantoms 0 --delta .1",
		"--mechanism fm --phantoms 9", "--release gaussian", "--release gaussian:x:1",
		"--release fm:1:1", "--release gaussian:1:0", "--release gaussian:1:1",
		"--mechanism laplace --scale 1 --accountant nosuch", "--mechanism laplace --scale 1 --format xml",
		"--epsilon 1 --release laplace:1:1", "--mechanism laplace --epsilon 1 --accountant rdp",
		"--mechanism gaussian --epsilon 0.1 --delta 1e-6 --release laplace:1:1",
	} {
		status, out, errOut := cohort(t, append([]string{"account"}, strings.Fields(args)...)...)
		if status != exitWrong || out != "" || !strings.HasPrefix(errOut, "cohort: ") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("account %s: status %d, out %q, stderr %q", args, status, out, errOut)
		}
	}
}

// A ledger file holds one budget for several runs on one data set.
func TestRunsSpendALedgerFile(t *testing.T) {
	dir := t.TempDir()
	ledger, key := dir+"/ledger", dir+"/key"
	if err := os.WriteFile(key, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(extra ...string) (int, string, string) {
		args := append([]string{"run", "--data", "builtin:blobs", "--n", "400", "--method", "sulloyd", "--delta", "0",
			"--bounds", "-10:10", "--ledger", ledger, "--ledger-key", key}, extra...)
		return cohort(t, args...)
	}
	if status, out, errOut := run("--epsilon", "0.5", "--ledger-budget", "1"); status != exitDone ||
		!strings.Contains(words(out), "another table of the same people") || !strings.Contains(words(out), "anchor is 3:") {
		t.Fatalf("first run: status %d: %s%s", status, errOut, out)
	}
	anchorOf(t, ledger, key)
	whole, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--epsilon 0.1 --data-seed 9", "another data set"},
		{"--epsilon 0.1 --seed 1", "simulation"},
		{"--epsilon 0.1 --neighbours replace-one", "adding or removing"},
		{"--epsilon 0.1 --clients 2 --noise server", "--noise split"},
		{"--epsilon 0.1 --ledger-composition gdp", "composition"},
		{"--epsilon 0.1 --ledger-composition best", "--ledger-composition"},
		{"--epsilon 0.1 --ledger-key /nowhere", "--ledger-key"},
		{"--epsilon 0.6", "0.1 is missing"},
	} {
		if status, _, errOut := run(strings.Fields(c.args)...); status == exitDone || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: status %d: %s", c.args, status, errOut)
		}
	}
	if status, _, errOut := cohort(t, "run", "--data", "builtin:blobs", "--n", "400", "--method", "sulloyd", "--epsilon",
		"1", "--delta", "0", "--ledger", dir+"/other"); status != exitWrong || !strings.Contains(errOut, "bounds") {
		t.Errorf("bounds from the data: status %d: %s", status, errOut)
	}
	for range 20 { // the first of several flags that say nothing without a file is named, every time
		if status, _, errOut := cohort(t, "run", "--epsilon", "1", "--method", "sulloyd", "--ledger-anchor", "1:2",
			"--ledger-key", key, "--ledger-budget", "1"); status != exitWrong || !strings.Contains(errOut,
			"--ledger-budget: is given without --ledger") {
			t.Fatalf("no ledger file: status %d: %s", status, errOut)
		}
	}
	if again, err := os.ReadFile(ledger); err != nil || string(again) != string(whole) {
		t.Errorf("refused runs changed the file: %v", err)
	}
	// other columns of the same table, in another order, with shares of noise by two clients
	if status, _, errOut := run("--epsilon", "0.5", "--columns", "2,1", "--clients", "2", "--noise",
		"split"); status != exitDone {
		t.Errorf("permuted columns: status %d: %s", status, errOut)
	}
	if status, _, errOut := run("--epsilon", "0.5"); status != exitWrong || !strings.Contains(errOut, "0.5 is missing") {
		t.Errorf("third run: status %d: %s", status, errOut)
	}
	// what was kept elsewhere shows that lines were cut off
	anchor := anchorOf(t, ledger, key)
	if err := os.WriteFile(ledger, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errOut := run("--epsilon", "0.1", "--ledger-anchor", anchor); status != exitFailed &&
		status != exitWrong || !strings.Contains(errOut, "cut off") {
		t.Errorf("a file that was cut: status %d: %s", status, errOut)
	}
}

// anchorOf shows a ledger file in both formats and returns its anchor.
func anchorOf(t *testing.T, ledger, key string) string {
	t.Helper()
	status, out, errOut := cohort(t, "ledger", "show", ledger, "--ledger-key", key, "--epsilon", "0.2")
	if status != exitDone || !strings.Contains(out, "outsider") || !strings.Contains(out, "planned run") {
		t.Fatalf("ledger show: status %d: %s%s", status, out, errOut)
	}
	for _, want := range []string{"\n  outsider     spent ", "\n               left  "} {
		if !strings.Contains(out, want) {
			t.Errorf("what a viewer has spent and left is not below each other:\n%s", out)
		}
	}
	status, out, errOut = cohort(t, "ledger", "show", ledger, "--key", key, "--format", "json")
	var state struct {
		Anchor  string
		Viewers []struct {
			Viewer      string
			Spent, Left struct{ Amount float64 }
		}
	}
	if err := json.Unmarshal([]byte(out), &state); status != exitDone || err != nil {
		t.Fatalf("ledger show: status %d: %s%s: %v", status, out, errOut, err)
	}
	for _, v := range state.Viewers {
		if v.Spent.Amount+v.Left.Amount != 1 {
			t.Errorf("%s: %+v of 1", v.Viewer, v)
		}
	}
	if status, _, errOut := cohort(t, "ledger", "show", ledger); status == exitDone || !strings.Contains(errOut, "key") {
		t.Errorf("without the key: status %d: %s", status, errOut)
	}
	return state.Anchor
}

// words undoes the folding of lines.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
