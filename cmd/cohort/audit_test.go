package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/audit"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// The verdict is a word of its own: VIOLATED with status 1, or consistent with status 0. 1500 trials
// separate epsilon 1 from above 3 but with probability 1e-9.
func TestAuditVerdicts(t *testing.T) {
	for _, c := range []struct {
		calibration, want, not string
		status                 int
	}{{"claimed", "VIOLATED", "consistent", exitFailed}, {"proven", "consistent", "VIOLATED", exitDone}} {
		args := []string{"audit", "--method", "fastlloyd", "--calibration", c.calibration, "--trials", "1500", "--seed", "1",
			"--case", "doubled mean"}
		status, out, errOut := cohort(t, args...)
		if status != c.status || !strings.Contains(out, "Verdict: "+c.want) || strings.Contains(out, c.not) || errOut != "" {
			t.Errorf("%s: status %d, stderr %q:\n%s", c.calibration, status, errOut, out)
		}
		_, out, _ = cohort(t, append(args, "--case", "every cluster", "--case", "chain of 5 clusters", "--format", "json")...)
		var r audit.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil || string(r.Verdict) != c.want || len(r.Cases) != 3 {
			t.Errorf("%s: json %v: %s", c.calibration, err, out)
		}
	}
}

// Whatever a run accepts can be audited, and nothing else: a new private method, or a new calibration of
// one, fails here until the library of worst cases has it.
func TestEveryPrivateMethodIsAudited(t *testing.T) {
	data := filepath.Join(t.TempDir(), "d.csv")
	var rows strings.Builder
	for i := range 60 {
		fmt.Fprintf(&rows, "%d,%d,%d\n", i%2*50+i%7, i%2*40+i%5, i%2*60+i%3)
	}
	if err := os.WriteFile(data, []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	audits := audit.Audits()
	for _, m := range catalog.Methods() {
		if !m.Private {
			continue
		}
		for _, c := range []privacy.Calibration{privacy.Proven, privacy.Claimed, privacy.Published} {
			args := []string{"run", "--method", m.Name, "--calibration", string(c), "--data", data, "--k", "2", "--bounds",
				"0:100", "--epsilon", "1", "--delta", "1e-5", "--seed", "1"}
			switch {
			case m.Name == string(lloyd.Relative) && c == privacy.Published:
				args = append(args, "--radius-schedule", "later-code") // the only one of the released code
			case m.Name == "ckks":
				args = append(args, "--iterations", "1")
			}
			status, _, errOut := cohort(t, args...)
			i := slices.Index(audits, audit.Audit{Method: m.Name, Calibration: c})
			switch {
			case status == exitDone && i < 0:
				t.Errorf("%s runs under %s and has no audit", m.Name, c)
			case status != exitDone && i >= 0:
				t.Errorf("%s has an audit under %s and does not run: %s", m.Name, c, errOut)
			}
			if i >= 0 {
				audits = slices.Delete(audits, i, i+1)
			}
		}
	}
	for _, a := range audits {
		t.Errorf("%v has an audit and is no private method", a)
	}
}

// Every case of the library can be asked for by the name that --list gives it.
func TestAuditOfOneCase(t *testing.T) {
	status, list, _ := cohort(t, "audit", "--list")
	for _, want := range []string{"fastlloyd, claimed", "  doubled mean: ", "  every cluster: ", "  equal heights: ",
		"  three parties: ", "  small cluster: ", "  linear equations: ", "  linear equations, encrypted: "} {
		if status != exitDone || !strings.Contains(list, want) {
			t.Errorf("status %d, no %q in the list:\n%s", status, want, list)
		}
	}
	status, out, _ := cohort(t, "audit", "--method", "fastlloyd", "--calibration", "claimed", "--case", "every cluster",
		"--trials", "1500", "--seed", "1")
	if status != exitFailed || !strings.Contains(out, "every cluster") || strings.Contains(out, "doubled mean") ||
		!strings.Contains(out, "1500 runs on each side") {
		t.Errorf("status %d:\n%s", status, out)
	}
	status, _, errOut := cohort(t, "audit", "--method", "fastlloyd", "--case", "nosuch")
	if status != exitWrong || !strings.Contains(errOut, "doubled mean; every cluster") {
		t.Errorf("status %d: %s", status, errOut)
	}
}

// A pair of the user's own: two files that differ in one record.
func TestAuditOfAGivenPair(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	small := write("a.csv", strings.Repeat("0.1,0.2\n", 30))
	large := write("b.csv", strings.Repeat("0.1,0.2\n", 30)+"1,1\n")
	other := write("c.csv", strings.Repeat("0.1,0.2\n", 29)+"1,1\n")
	args := func(a, b string, more ...string) []string {
		return append([]string{"audit", "--method", "sulloyd", "--k", "2", "--bounds", "0:1", "--data", a, "--pair", b,
			"--trials", "500", "--seed", "1"}, more...)
	}
	for _, c := range []struct {
		args []string
		want int
	}{
		{args(small, large), exitDone}, {args(large, small), exitDone},
		{args(small, other, "--neighbours", "replace-one"), exitDone},
		{args(small, small), exitWrong}, {args(small, other), exitWrong},
		{args(small, large, "--neighbours", "replace-one"), exitWrong},
		{args(small, large, "--calibration", "none"), exitWrong}, {args(small, large, "--trials", "5"), exitWrong},
	} {
		if status, out, errOut := cohort(t, c.args...); status != c.want {
			t.Errorf("%v: status %d, want %d: %s%s", c.args, status, c.want, out, errOut)
		}
	}
}

func TestAuditRefusesBadRequests(t *testing.T) {
	for _, args := range []string{
		"", "--method nosuch", "--method lloyd", "--method fastlloyd --calibration x",
		"--method balcan --calibration claimed", "--method hybrid --calibration published",
		"--method sketch --neighbours replace-one", "--method fastlloyd --epsilon NaN", "--method fastlloyd --delta 2",
		"--method fastlloyd --trials 1",
		"--method fastlloyd --confidence 2", "--method fastlloyd --pair x.csv", "--method fastlloyd --mechanism x",
		"--method fastlloyd --workers 0", "--method fastlloyd --white-box --canaries", "--list --timing",
	} {
		status, out, errOut := cohort(t, append([]string{"audit"}, strings.Fields(args)...)...)
		if status != exitWrong || out != "" || !strings.HasPrefix(errOut, "cohort: ") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("audit %s: status %d, out %q, stderr %q", args, status, out, errOut)
		}
	}
}

// Bounds by canaries stand beside the claim, and what has no proven calibration is refused.
func TestAuditByCanaries(t *testing.T) {
	status, out, errOut := cohort(t, "audit", "--canaries", "--method", "eugkm", "--seed", "3")
	if status != exitDone || !strings.Contains(out, "a grid of canaries") || !strings.Contains(out, "claimed") {
		t.Errorf("status %d: %s%s", status, out, errOut)
	}
	for _, args := range [][]string{{"--method", "balcan-edler"}, {"--method", "nothing"}, {"--runs", "-1"},
		{"--confidence", "1"}, {"--method", "sulloyd", "--calibration", "claimed"}} {
		status, out, errOut := cohort(t, append([]string{"audit", "--canaries"}, args...)...)
		if status != exitWrong || out != "" {
			t.Errorf("%v: status %d, %q%q", args, status, out, errOut)
		}
	}
}

// The library has every private method of the catalog under every calibration that it has, and where several hold
// rows or columns each role looks.
func TestAuditListCoversTheCatalog(t *testing.T) {
	status, out, errOut := cohort(t, "audit", "--list")
	if status != exitDone {
		t.Fatalf("status %d, %s", status, errOut)
	}
	sections := map[string]string{}
	var at string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, " ") {
			at = strings.TrimSpace(line)
		}
		sections[at] += " " + strings.TrimSpace(line)
	}
	for _, m := range catalog.Methods() {
		if !m.Private {
			if _, ok := sections[m.Name+", proven"]; ok {
				t.Errorf("%s promises nothing, and is audited", m.Name)
			}
			continue
		}
		if len(privacy.Calibrations(m.Name)) == 0 {
			t.Errorf("%s has no calibration", m.Name)
		}
		for _, c := range privacy.Calibrations(m.Name) {
			cases, ok := sections[fmt.Sprintf("%s, %s", m.Name, c)]
			if !ok {
				t.Errorf("%s has no audit of its %s calibration", m.Name, c)
			}
			var roles []string
			switch {
			case m.Holds == method.Rows:
				roles = []string{"seen by a client", "seen by the server", "seen by an outsider", "three clients"}
			case m.Name == "ckks":
				roles = []string{"the key holder looks", "Alice solves", "one holds the key, seen by party 1",
					"one holds the key, seen by party 2", "one holds the key, seen by party 3"}
				if c == privacy.Proven {
					roles = append(roles, "two key holders, seen by party 1", "two key holders, seen by party 2")
				}
			case m.Name == "ind-lap" || m.Name == "ldp-agg":
				roles = []string{"two parties, seen by the server", "three parties, seen by the server",
					"three parties, seen by a party"}
			case m.Holds == method.Columns:
				roles = []string{"three parties:", "three parties, seen by a party"}
				if m.Name == "sketch" && c == privacy.Proven {
					roles = append(roles, "returned to holders of the keys", "returned to three holders")
				}
			}
			for _, role := range roles {
				if !strings.Contains(cases, role) {
					t.Errorf("%s, %s: no case is %s", m.Name, c, role)
				}
			}
		}
	}
}
