package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A share of epsilon finds the bounds: the ledger has what it costs, and all together stays within epsilon.
func TestPrivateBounds(t *testing.T) {
	for _, mechanism := range []string{"--delta=0", "--delta=1e-5"} {
		m := object(
			t,
			"run",
			"--data",
			"builtin:blobs",
			"--n",
			"4000",
			"--d",
			"2",
			"--k",
			"3",
			"--epsilon",
			"2",
			mechanism,
			"--private-bounds",
			"0.25",
			"--format",
			"json",
		)
		found, total := false, 0.0
		for _, line := range m["ledger"].([]any) {
			e := line.(map[string]any)
			what, _ := e["what"].(string)
			switch e["kind"] {
			case "release":
				if strings.HasPrefix(what, "magnitudes") {
					found = math.Abs(e["epsilon"].(float64)-0.5) < 1e-3 &&
						strings.Contains(e["theorem"].(string), "T12")
				}
			case "total":
				total = e["epsilon"].(float64)
			case "note":
				if strings.Contains(what, "bounds are the data") {
					t.Errorf("%s: the ledger has %q", mechanism, what)
				}
			}
		}
		if !found || m["epsilon"].(float64) != 2 {
			t.Errorf("%s: the ledger lacks the magnitudes at epsilon .5, of %v", mechanism, m["epsilon"])
		}
		if !(total <= 2*(1+1e-9)) || total < 1 {
			t.Errorf("%s: the total is %v, the budget 2", mechanism, total)
		}
	}
	status, out, errOut := cohort(t, "run", "--epsilon", "2", "--private-bounds", "0.25")
	if text := strings.Join(strings.Fields(out), " "); status != exitDone ||
		!strings.Contains(text, "epsilon does not cover the number of records") ||
		!strings.Contains(text, "bounds found for 0.25 of epsilon: x1 0 to") ||
		!strings.Contains(text, "the noise may hide as many as 112 records of about one value") ||
		strings.Contains(text, "may leave out groups") {
		t.Errorf("status %d, %s\n%s", status, errOut, out)
	}
	for args, want := range map[string]string{
		"--epsilon 1 --private-bounds 1": "between 0 and 1", "--private-bounds 0.1": "not private",
		"--epsilon 1 --private-bounds 0.1 --bounds 0:1":                             "given together",
		"--epsilon 1 --private-bounds 0.1 --method fastlloyd --calibration claimed": "calibration",
	} {
		if status, out, errOut := cohort(t, append([]string{"run"}, strings.Fields(args)...)...); status != exitWrong ||
			out != "" ||
			!strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %.80q, %q", args, status, out, errOut)
		}
	}
}

// A ledger file pays for the bounds and for the run on them, each in its own line, and only if it can pay
// for both. A run that is interrupted once the bounds are paid for is finished on the same bounds, whatever
// else is asked of it.
func TestPrivateBoundsOnALedgerFile(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	rows := writeFile(t, "a.csv", csvOf(4000, 0))
	flags := []string{"--data", rows, "--k", "3", "--epsilon", "1", "--delta", "0", "--private-bounds", "0.25",
		"--ledger", ledger, "--format", "json"}
	refused := append([]string{"run", "--ledger-budget", "0.9"}, flags...)
	if status, out, errOut := cohort(t, refused...); status != exitWrong || out != "" ||
		!strings.Contains(errOut, "is missing") {
		t.Errorf("too small a budget: status %d, %.80q, %q", status, out, errOut)
	}
	foreign := writeFile(t, "notes", "keep")
	if status, _, errOut := cohort(t, append([]string{"run", "--out", foreign}, flags...)...); status == exitDone ||
		!strings.Contains(errOut, "--out") {
		t.Errorf("a bad folder: status %d, %q", status, errOut)
	}
	if _, err := os.Stat(ledger); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something was paid for: %v", err)
	}
	if err := interrupt(t, flags...); err == nil {
		t.Fatal("the run was not interrupted")
	}
	if pending, _ := filepath.Glob(ledger + ".*.pending"); len(pending) != 2 {
		t.Fatalf("state files %v", pending)
	}
	before := readText(t, ledger)
	first := object(t, append([]string{"run"}, flags...)...)
	if text := readText(t, ledger); strings.Count(text, `"run":`) != 2 || strings.Count(text, `"end":`) != 2 ||
		!strings.HasPrefix(text, before) ||
		strings.Contains(text, `"ended":`) {
		t.Errorf("the ledger file is\n%s", text)
	}
	if pending, _ := filepath.Glob(ledger + ".*.pending"); pending != nil {
		t.Errorf("%v is left", pending)
	}
	total := 0.0
	for _, line := range first["ledger"].([]any) {
		if e := line.(map[string]any); e["kind"] == "total" {
			total = e["epsilon"].(float64)
		}
	}
	if total < 0.9 || total > 1+1e-9 || first["epsilon"].(float64) != 1 {
		t.Errorf("epsilon %v, the total is %v", first["epsilon"], total)
	}
	if status, out, errOut := cohort(t, append([]string{"run"}, flags...)...); status != exitWrong || out != "" ||
		!strings.Contains(errOut, "is spent") {
		t.Errorf("a second run: status %d, %.80q, %q", status, out, errOut)
	}
}

// Where the run on the bounds is refused they stay paid for and wait: another run on them pays for itself alone.
func TestPrivateBoundsWaitForTheirRun(t *testing.T) {
	dir := t.TempDir()
	ledger := filepath.Join(dir, "ledger")
	rows := writeFile(t, "a.csv", csvOf(4000, 0))
	args := []string{"run", "--data", rows, "--k", "3", "--epsilon", "1", "--delta", "0", "--private-bounds", "0.25",
		"--ledger", ledger}
	status, out, errOut := cohort(t, append(args, "--start", filepath.Join(dir, "none.csv"), "--method", "sulloyd")...)
	if status != exitFailed || out != "" || !strings.Contains(errOut, "after epsilon 0.25 was charged") ||
		!strings.Contains(errOut, "none.csv") {
		t.Fatalf("status %d, %.80q, %q", status, out, errOut)
	}
	if status, _, errOut := cohort(t, args...); status != exitDone {
		t.Errorf("status %d, %q", status, errOut)
	}
	if text := readText(t, ledger); strings.Count(text, `"run":`) != 2 {
		t.Errorf("the ledger file is\n%s", text)
	}
}

// Parties with columns of one file, or with files of their own, each pay for the bounds of their columns.
func TestPrivateBoundsOfColumns(t *testing.T) {
	var a, b strings.Builder
	a.WriteString("id,x,y\n")
	b.WriteString("id,z\n")
	for i := range 2000 {
		fmt.Fprintf(&a, "%d,%d,%d\n", i, i%50+100, -i%7)
		fmt.Fprintf(&b, "%d,%d\n", 1999-i, i%900)
	}
	files := writeFile(t, "a.csv", a.String()) + "," + writeFile(t, "b.csv", b.String())
	ledger := filepath.Join(t.TempDir(), "ledger")
	for _, args := range [][]string{
		{"--data", files, "--id", "id", "--ledger", ledger},
		{"--data", strings.Split(files, ",")[0], "--columns", "2,3", "--split", "1;2"},
	} {
		m := object(t, append([]string{"run", "--k", "2", "--epsilon", "4", "--delta", "1e-4", "--method", "sketch",
			"--private-bounds", "0.5", "--format", "json"}, args...)...)
		found := 0
		for _, line := range m["ledger"].([]any) {
			if what, _ := line.(map[string]any)["what"].(string); strings.Contains(what, ": magnitudes of its columns") {
				found++
			}
		}
		if notes := fmt.Sprint(m["notes"]); found != 2 || !strings.Contains(notes, "x 90.51 to 181") {
			t.Errorf("%v: %d releases of magnitudes, %s", args, found, notes)
		}
	}
}

// Clients with a file each pay for bounds, and sizes of clusters at each, from a ledger file; not those of one table.
func TestPrivateBoundsOfFilesWithSizes(t *testing.T) {
	rows, dir := writeFile(t, "a.csv", csvOf(1000, 0)), t.TempDir()
	for ledger, c := range map[string]struct {
		data string
		want int
	}{"one": {rows + "," + rows, exitDone}, "two": {rows + " --clients 2", exitWrong},
		"three": {rows + "," + rows + " --private-n 0.1", exitDone}} {
		status, _, errOut := cohort(t, strings.Fields("run --k 2 --method fastlloyd --epsilon 1 --delta 1e-6 "+
			"--private-bounds 0.2 --ledger "+filepath.Join(dir, ledger)+" --data "+c.data)...)
		if status != c.want || status == exitWrong && !strings.Contains(errOut, "give a file of each client") {
			t.Errorf("%s: status %d, %s", c.data, status, errOut)
		}
	}
}

// Bounds that noise hides are a guess, which the headline says; what was paid for is not lost.
func TestPrivateBoundsThatAreGuessed(t *testing.T) {
	rows := writeFile(t, "a.csv", csvOf(20, 0))
	ledger := filepath.Join(t.TempDir(), "ledger")
	args := []string{"run", "--data", rows, "--k", "2", "--epsilon", "1", "--delta", "1e-6", "--private-bounds", "0.1",
		"--public-n", "20"}
	status, out, errOut := cohort(t, append(args, "--ledger", ledger)...)
	if status != exitDone || !strings.Contains(strings.Join(strings.Fields(out), " "), "are a guess, as no magnitude") {
		t.Errorf("status %d, %s, %q", status, out, errOut)
	}
	if m := object(t, append(args, "--format", "json")...); !strings.Contains(fmt.Sprint(m["doubts"]), "are a guess") {
		t.Errorf("doubts are %v", m["doubts"])
	}
}

// Where a whole cluster may lie beyond the bounds, the headline says so.
func TestPrivateBoundsThatMayLeaveOutACluster(t *testing.T) {
	args := []string{"run", "--data", "builtin:blobs", "--n", "900", "--epsilon", "1", "--private-bounds", "0.5", "--k"}
	for k, said := range map[string]bool{"2": false, "8": true} {
		doubts := fmt.Sprint(object(t, append(args, k, "--format", "json")...)["doubts"])
		if strings.Contains(doubts, "may leave out groups of up to 112 records, and a cluster has about 112 of 900") != said {
			t.Errorf("k = %s: %s", k, doubts)
		}
	}
}

// What comes from standard input is read once and kept until its bounds are found.
func TestPrivateBoundsOfStandardInput(t *testing.T) {
	f, err := os.Open(writeFile(t, "a.csv", "x;y\n"+strings.Repeat("1,5;-30\n;-31\n1,7;-29\n", 800)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdin := os.Stdin
	os.Stdin = f
	defer func() { os.Stdin = stdin }()
	m := object(t, "run", "--data", "-", "--decimal-comma", "--missing", "drop-row", "--k", "2", "--epsilon", "4",
		"--private-bounds", "0.5", "--format", "json")
	if notes := fmt.Sprint(m["notes"]); m["n"].(float64) != 1600 ||
		!strings.Contains(notes, "x 1.414 to 2, y -32 to -22.6") {
		t.Errorf("%v records, %s", m["n"], notes)
	}
}

// What a plan says of bounds that a run finds is what the run does: prices, noise, and messages in both.
func TestPlanOfPrivateBounds(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(rows, []byte(strings.Repeat("1,2\n2,3\n8,9\n9,8\n", 250)), 0o600); err != nil {
		t.Fatal(err)
	}
	blobs := "--data builtin:blobs --n 4000 --d 4 --method "
	for _, args := range []string{
		"--method fastlloyd --data " + rows + "," + rows, blobs + "sulloyd --noise server --clients 2", blobs + "hybrid",
		blobs + "sketch", blobs + "ldp-agg --parties 4", blobs + "sulloyd --private-n 0.1 --delta 1e-6",
	} {
		all := strings.Fields("--k 3 --epsilon 2 --private-bounds 0.25 --seed 5 " + args)
		p, r := outlineOf(t, all...), resultOf(t, all...)
		planned, did := p.Ledger.Entries(), r.Ledger.Entries()
		for i := 0; i == 0 || strings.Contains(did[i].What, "magnitudes"); i++ {
			if !strings.Contains(planned[i].What, "magnitudes") || !reflect.DeepEqual(planned[i], did[i]) ||
				!reflect.DeepEqual(p.Releases[i].Epsilon, did[i].Epsilon) ||
				!reflect.DeepEqual(p.Releases[i].Delta, did[i].Delta) {
				t.Errorf("%s: planned\n%+v\nas\n%+v, done\n%+v", args, planned[i], p.Releases[i], did[i])
			}
		}
		if *p.Epsilon != 2 || strings.Contains(fmt.Sprint(planned), "bounds are the data") {
			t.Errorf("%s: the plan has epsilon %v and\n%v", args, *p.Epsilon, planned)
		}
		if c := p.Bytes; !p.BytesAtMost && !reflect.DeepEqual(*c, r.Comm) || c.BytesSent[0] < r.Comm.BytesSent[0] {
			t.Errorf("%s: the run has %+v, planned %+v", args, r.Comm, *p.Bytes)
		}
	}
	status, out, errOut := cohort(t, "plan", "--public-n", "5000", "--d", "3", "--k", "3", "--epsilon", "1",
		"--private-bounds", "0.1")
	if said := words(out); status != exitDone || !strings.Contains(said, "for its bounds: deviation 42.43 records") ||
		!strings.Contains(said, "% of the width of the box") {
		t.Errorf("status %d, %s\n%s", status, errOut, out)
	}
}
