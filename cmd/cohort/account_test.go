package main

import (
	"encoding/json"
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
			need := accountJSON(t, "--mechanism", mech, "--epsilon", "0.7", "--delta", "1e-6", "--rounds", "5", "--accountant", acc)
			got := *need[0].Epsilon
			if got > 0.7 || got < 0.7*(1-1e-4) {
				t.Errorf("%s by %s: scale %v gives epsilon %v, want 0.7", mech, acc, *need[0].Scale, got)
			}
		}
	}
	if n := accountJSON(t, "--mechanism", "fm", "--epsilon", "0.5", "--delta", "5e-5", "--rounds", "4096", "--accountant", "pld")[0].Phantoms; *n < 186 || *n > 190 {
		t.Errorf("%d phantoms, want 190", *n)
	}
	if p := accountJSON(t, "--mechanism", "randomized-response", "--epsilon", "1", "--buckets", "2", "--accountant", "pure")[0].P; *p < 0.5378 || *p > 0.5379 {
		t.Errorf("probability %v, want 2/(1+e)", *p)
	}
}

func TestAccountComposesReleases(t *testing.T) {
	apart := accountJSON(t, "--release", "gaussian:30:7", "--release", "gaussian:40:2", "--delta", "1e-6", "--accountant", "gdp")
	// mu^2 = 7/900 + 2/1600
	same := accountJSON(t, "--mechanism", "gaussian", "--scale", "10.525", "--delta", "1e-6", "--accountant", "gdp")
	if d := *apart[0].Epsilon - *same[0].Epsilon; d < -1e-4 || d > 1e-4 {
		t.Errorf("epsilon %v apart, %v as one", *apart[0].Epsilon, *same[0].Epsilon)
	}
}

func TestAccountRefusesBadInput(t *testing.T) {
	for _, args := range []string{
		"", "--mechanism nosuch --scale 1", "--mechanism gaussian", "--mechanism gaussian --scale 0 --delta .1", "--mechanism gaussian --scale NaN --delta .1",
		"--mechanism gaussian --scale 1", "--mechanism gaussian --scale 1 --delta 1", "--mechanism gaussian --scale 1 --delta -1",
		"--mechanism gaussian --epsilon 1", "--mechanism gaussian --epsilon -1 --delta .1", "--mechanism gaussian --epsilon 1 --scale 2 --delta .1",
		"--mechanism laplace --scale 1 --rounds 0", "--mechanism laplace --scale 1 --p .5", "--mechanism randomized-response", "--mechanism randomized-response --p 1.5",
		"--mechanism randomized-response --p .5 --buckets 1", "--mechanism fm --phantoms 0 --delta .1", "--mechanism fm --phantoms 9", "--release gaussian", "--release gaussian:x:1",
		"--release fm:1:1", "--release gaussian:1:0", "--release gaussian:1:1", "--mechanism laplace --scale 1 --accountant nosuch", "--mechanism laplace --scale 1 --format xml",
		"--epsilon 1 --release laplace:1:1", "--mechanism laplace --epsilon 1 --accountant rdp", "--mechanism gaussian --epsilon 0.1 --delta 1e-6 --release laplace:1:1",
	} {
		status, out, errOut := cohort(t, append([]string{"account"}, strings.Fields(args)...)...)
		if status != exitWrong || out != "" || !strings.HasPrefix(errOut, "cohort: ") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("account %s: status %d, out %q, stderr %q", args, status, out, errOut)
		}
	}
}

// A ledger file holds one budget for several runs on one data set.
func TestRunsSpendALedgerFile(t *testing.T) {
	ledger := t.TempDir() + "/ledger"
	run := func(extra ...string) (int, string) {
		args := append([]string{"run", "--data", "builtin:blobs", "--n", "400", "--method", "sulloyd", "--delta", "0", "--ledger", ledger}, extra...)
		status, _, errOut := cohort(t, args...)
		return status, errOut
	}
	for i := range 2 {
		if status, errOut := run("--epsilon", "0.5", "--ledger-budget", "1"); status != exitDone {
			t.Fatalf("run %d: status %d: %s", i+1, status, errOut)
		}
		if i > 0 {
			break
		}
		if status, errOut := run("--epsilon", "0.1", "--data-seed", "9"); status != exitWrong || !strings.Contains(errOut, "another data set") {
			t.Errorf("other data: status %d: %s", status, errOut)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--epsilon 0.5", "is spent"},
		{"--epsilon 0.5 --calibration claimed", "proven"},
		{"--epsilon 0.5 --ledger-budget x", "EPSILON:DELTA"},
	} {
		if status, errOut := run(strings.Fields(c.args)...); status != exitWrong || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: status %d: %s", c.args, status, errOut)
		}
	}
}
