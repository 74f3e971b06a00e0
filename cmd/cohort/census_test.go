package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
)

// A share of epsilon finds the number of records: the ledger has what it costs, all together stays within
// epsilon, every parameter follows the number that came out, and the headline says of no number that it is uncovered.
func TestPrivateN(t *testing.T) {
	base := "--data builtin:blobs --n 4000 --d 4 --k 3 --epsilon 2 --bounds=-60:60 --private-n 0.1 --seed 5"
	followed := 0
	for _, args := range []string{
		"--method hybrid", "--method hybrid --clients 3", "--method fastlloyd --clients 2",
		"--method sulloyd --delta 0",
		"--method balcan", "--method lsf", "--method eugkm", "--method sketch", "--method ind-lap",
	} {
		all := strings.Fields(base + " " + args)
		r := resultOf(t, all...)
		e := r.Ledger.Entries()[0]
		if !strings.HasPrefix(e.What, "number of records") || !strings.Contains(e.Theorem, "T14") ||
			math.Abs(*e.Epsilon-0.2) > 1e-2 || *r.Epsilon != 2 {
			t.Errorf("%s: the ledger begins with %q at epsilon %v, and lacks the number of records", args, e.What,
				*e.Epsilon)
		}
		viewer := "outsider"
		if strings.Contains(args, "sketch") || strings.Contains(args, "ind-lap") {
			viewer = "server"
		}
		if total := *r.Ledger.TotalFor(viewer).Epsilon; !(total <= 2*(1+1e-9)) || total < 1 {
			t.Errorf("%s: the total is %v, the budget 2", args, total)
		}
		if r.N != 4000 {
			followed++
		}
		if r.N < 3900 || r.N > 4100 {
			t.Errorf("%s: parameters follow %d records, of 4000", args, r.N)
		}
		if strings.Contains(fmt.Sprint(r.Ledger.Entries()), "number of records are public") {
			t.Errorf("%s: a number that was paid for is said to be public", args)
		}
		if p := outlineOf(t, all...); p.Releases[0].Theorem != e.Theorem || *p.Epsilon != 2 ||
			math.Abs(*p.Ledger.Entries()[0].Epsilon-*e.Epsilon) > 1e-3 ||
			*p.Releases[0].Delta != *p.Ledger.Entries()[0].Delta {
			t.Errorf("%s: the plan begins with %+v", args, p.Releases[0])
		} else if p.Bytes.Rounds != r.Comm.Rounds && (!p.BytesAtMost || p.Bytes.Rounds < r.Comm.Rounds) ||
			p.Bytes.BytesSent[0] < r.Comm.BytesSent[0] || !p.BytesAtMost && p.Bytes.BytesSent[0] != r.Comm.BytesSent[0] {
			t.Errorf("%s: the run has %+v, planned %+v", args, r.Comm, *p.Bytes)
		} else if s := fmt.Sprint(p.Ledger.Entries()); strings.Contains(s, "number of records comes") ||
			strings.Contains(s, "treated as public") || strings.Contains(s, "records is taken") {
			t.Errorf("%s: the plan says of a number that is paid for that it is uncovered:\n%s", args, s)
		}
		if _, out, _ := cohort(t, append([]string{"run"}, all...)...); strings.Contains(out,
			"does not cover the number") {
			t.Errorf("%s: a number that was paid for is said to be uncovered", args)
		}
	}
	if followed < 5 {
		t.Errorf("parameters follow the noisy number in %d runs of 9", followed)
	}
	for args, want := range map[string]string{
		"--epsilon 1 --private-n 1": "between 0 and 1", "--private-n 0.1": "not private",
		"--epsilon 1 --private-n 0.1 --public-n 400":                           "given together",
		"--epsilon 1 --private-n 0.1 --method hybrid --neighbours replace-one": "hides nothing",
		"--epsilon 1 --private-n 0.1 --method ckks":                            "know the number",
		"--epsilon 1 --private-n 0.5 --private-bounds 0.5":                     "below 1",
		"--epsilon 1 --private-n 0.1 --ledger file":                            "give --delta",
		"--epsilon 1 --private-n 0.1 --method fastlloyd --calibration claimed": "calibration",
	} {
		status, out, errOut := cohort(t, append([]string{"run"}, strings.Fields(args)...)...)
		if status != exitWrong || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %.80q, %q", args, status, out, errOut)
		}
	}
}

// A ledger file pays for the number of records and for the run that follows it, each in its own line, and only if it
// can pay for both. An interrupted run is finished with the same number, without another charge. Nothing in the
// file's terms follows the number of records.
func TestPrivateNOnALedgerFile(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	rows := writeFile(t, "a.csv", csvOf(3000, 0))
	flags := []string{"--data", rows, "--k", "3", "--epsilon", "1", "--delta", "1e-6", "--bounds", "0:10", "--private-n",
		"0.1", "--ledger", ledger, "--format", "json"}
	if status, out, errOut := cohort(t, append([]string{"run", "--ledger-budget", "0.95:1e-6"}, flags...)...); status !=
		exitWrong || out != "" || !strings.Contains(errOut, "is missing") {
		t.Errorf("too small a budget: status %d, %.80q, %q", status, out, errOut)
	}
	if _, err := os.Stat(ledger); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something was paid for: %v", err)
	}
	if err := interrupt(t, flags...); err == nil {
		t.Fatal("the run was not interrupted")
	}
	before := readText(t, ledger)
	first := object(t, append([]string{"run"}, flags...)...)
	text := readText(t, ledger)
	if strings.Count(text, `"run":`) != 2 || strings.Count(text, `"end":`) != 2 || !strings.HasPrefix(text, before) ||
		strings.Contains(text, `"ended":`) || !strings.Contains(text, `"delta":0.000001`) &&
		!strings.Contains(text, `"delta":1e-06`) {
		t.Errorf("the ledger file is\n%s", text)
	}
	// The noise may be 0: [TestPrivateN] sees that parameters follow the noisy number.
	if n := first["n"].(float64); math.Abs(n-3000) > 300 {
		t.Errorf("the run follows %v records", n)
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
		!strings.Contains(errOut, "is spent") && !strings.Contains(errOut, "is missing") {
		t.Errorf("a second run: status %d, %.80q, %q", status, out, errOut)
	}
	if pending, _ := filepath.Glob(ledger + ".*.pending"); pending != nil {
		t.Errorf("%v is left", pending)
	}
}

// stopped is a plan that says that it was run.
type stopped struct{ engine.Plan }

var errStopped = errors.New("the plan was run")

func (stopped) Run(context.Context, *engine.Runtime) (*engine.Result, error) { return nil, errStopped }

// The plan that was made when a noisy number was found is what runs.
func TestPlanOfTheNumberRuns(t *testing.T) {
	eng := enginetest.New(t)
	flags := strings.Fields("--data builtin:blobs --n 400 --d 2 --k 3 --epsilon 1 --bounds=-60:60")
	o, m, in, err := prepared(t, append(flags, "--private-n", "0.1")...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := in.count(t.Context(), eng, o, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := found.ready.Plan()
	if err != nil || plan.Info().N != found.counted {
		t.Errorf("the plan follows %d records, and %d were found; %v", plan.Info().N, found.counted, err)
	}
	if o, m, in, err = prepared(t, flags...); err != nil {
		t.Fatal(err)
	}
	in.ready = engine.Planned(stopped{plan})
	if _, err := once(t.Context(), eng, m, o, in, nil); !errors.Is(err, errStopped) {
		t.Errorf("another plan was run: %v", err)
	}
}

// A run that has paid for the number of records is not refused for what came out: there is a plan for each number
// from k on, or for one of its halves, and where there is none for k records it is refused before.
func TestEveryCountHasAPlan(t *testing.T) {
	for _, args := range []string{
		"hybrid", "sulloyd", "relative", "balcan", "lsf", "eugkm", "sketch", "ind-lap", "fastlloyd", "csulloyd",
		"fastlloyd --mechanism laplace", "fastlloyd --clients 3 --proportions 10,1,1 --client-shares 10,1,1",
		"csulloyd --clients 5 --exclusivity 2", "fastlloyd --radius-schedule sqrt --eta-min-alpha 1 --eta-max-alpha 1",
		"fastlloyd --delta 1e-20",
	} {
		o, m, in, err := prepared(t, strings.Fields("--data builtin:blobs --n 40 --d 2 --k 7 --epsilon 1 --bounds=-60:60 "+
			"--private-n 0.1 --method "+args)...)
		if err != nil {
			t.Fatal(err)
		}
		for n := in.k; n < 1<<31; n += max(1, (n-3*in.k)*40) {
			if err := in.follow(o, m, n); err != nil || in.counted > n ||
				in.counted < n && n < 1<<20 && !strings.Contains(args, "--delta") {
				t.Errorf("%s: for %d records a run follows %d: %v", args, n, in.counted, err)
			}
			before, half := *in, n // what was tried before the half that has a plan
			for half/2 > in.counted {
				half /= 2
			}
			if before.counted = half; in.counted < n {
				if _, err := before.plan(o, m); err == nil {
					t.Errorf("%s: for %d records a run follows %d, and there is a plan for %d", args, n, in.counted, half)
				}
			}
		}
	}
	refused := "--data builtin:blobs --n 400 --d 2 --k 7 --epsilon 1 --bounds=-60:60 --private-n 0.1 --method fastlloyd " +
		"--delta 1e-24 --format json"
	status, out, errOut := cohort(t, append([]string{"run"}, strings.Fields(refused)...)...)
	if status != exitWrong || out != "" || !strings.Contains(errOut, "is 1e-24, and ties") {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

// Bounds and a number of records are paid for from a file that has enough for both and for the run that follows,
// whatever the data's own number is.
func TestPrivateBoundsAndN(t *testing.T) {
	many, few := writeFile(t, "many.csv", csvOf(4000, 0)), writeFile(t, "few.csv", csvOf(5, 0))
	for _, c := range []struct {
		rows, budget, told string
		status             int
	}{
		{many, "0.97:1e-6", "is missing", exitWrong}, {many, "1:1e-6", "", exitDone},
		{few, "1:1e-6", "", exitDone}, // on bounds that are a guess, as noise on so few could be all
	} {
		ledger := filepath.Join(t.TempDir(), "l")
		status, _, errOut := cohort(t, "run", "--data", c.rows, "--epsilon", "1", "--delta", "1e-6", "--k", "7", "--method",
			"sulloyd", "--private-bounds", "0.25", "--private-n", "0.05", "--ledger", ledger, "--ledger-budget", c.budget)
		if status != c.status || !strings.Contains(errOut, c.told) {
			t.Errorf("%s on %s: status %d, %q", c.rows, c.budget, status, errOut)
		}
		if _, err := os.Stat(ledger); (err == nil) != (status != exitWrong) {
			t.Errorf("%s on %s: status %d, the ledger file: %v", c.rows, c.budget, status, err)
		}
	}
}

// Nothing that is shown under a number of records that is stated, or paid for, tells the data's own: neither a
// refusal nor a note on what was joined. There may be no records at all.
func TestOwnNumberStaysHidden(t *testing.T) {
	few := writeFile(t, "few.csv", csvOf(5, 0))
	flags := []string{"run", "--data", few, "--epsilon", "1", "--delta", "1e-6", "--bounds", "0:10", "--format", "json"}
	for _, number := range []string{"--public-n=300", "--private-n=0.9"} {
		for _, method := range []string{"hybrid", "fastlloyd", "sulloyd", "balcan", "lsf", "eugkm"} {
			m := object(t, append(flags, "--k", "7", number, "--method", method)...)
			if n := m["n"].(float64); len(m["centroids"].([]any)) != 7 || n < 7 || number == "--public-n=300" && n != 300 {
				t.Errorf("%s %s: n is %v, %v", method, number, n, m["centroids"])
			}
		}
		for _, rows := range []string{writeFile(t, "none.csv", "x,y\n"), writeFile(t, "dropped.csv", "x,y\n1,\n,\n")} {
			for _, method := range []string{"hybrid", "fastlloyd", "csulloyd", "relative", "sulloyd", "balcan", "lsf", "eugkm",
				"sketch", "sketch-basic", "ind-lap"} {
				object(t, "run", "--data", rows, "--missing", "drop-row", "--epsilon", "1", "--delta", "1e-6", "--bounds", "0:10",
					"--k", "7", "--format", "json", number, "--method", method)
			}
			if status, _, errOut := cohort(t, "run", "--data", rows, "--missing", "drop-row", "--k", "2"); status == exitDone {
				t.Errorf("%s without a public number: %q", rows, errOut)
			}
		}
		for _, clients := range [][]string{{"--clients", "8"}, {"--clients", "3", "--proportions", "100,1,1"}} {
			m := object(t, append(slices.Concat(flags, clients), "--k", "2", number, "--method", "sulloyd")...)
			if fmt.Sprint(m["parties"]) != clients[1] {
				t.Errorf("%s, clients without records: %v", number, m)
			}
		}
	}
	// The budget of a new ledger file follows the public number as well.
	for _, how := range [][]string{nil, {"--private-bounds", "0.1"}} {
		told := map[string]bool{}
		for _, n := range []int{2000, 2001} {
			args := []string{"run", "--data", writeFile(t, fmt.Sprint(n, ".csv"), csvOf(n, 0)), "--k", "2", "--epsilon", "4",
				"--public-n", "3000", "--method", "relative", "--ledger", filepath.Join(t.TempDir(), "l"), "--format", "json"}
			if how == nil {
				args = append(args, "--bounds", "0:10")
			}
			for _, note := range object(t, append(args, how...)...)["notes"].([]any) {
				if s := note.(string); strings.Contains(s, "of the ledger file") {
					told[s[:strings.Index(s, "; the file's anchor")]] = true
				}
			}
		}
		if len(told) != 1 {
			t.Errorf("%v: the notes on the ledger file tell the number of records: %v", how, told)
		}
	}
	var a, b strings.Builder
	a.WriteString("id,x\n")
	b.WriteString("id,y\n")
	for i := range 500 {
		fmt.Fprintf(&a, "%d,%d\n", i, i%7)
		fmt.Fprintf(&b, "%d,%d\n", i+i/480*1000, i%5) // twenty have no match
	}
	files := writeFile(t, "a.csv", a.String()) + "," + writeFile(t, "b.csv", b.String())
	join := []string{"run", "--data", files, "--id", "id", "--join", "inner", "--k", "2", "--epsilon", "4", "--bounds",
		"0:9", "--method", "sketch", "--format", "json"}
	for _, c := range []struct {
		more  []string
		shows bool
	}{{nil, false}, {[]string{"--quality", "on"}, true}, {[]string{"--seed", "1"}, true}} {
		notes := fmt.Sprint(object(t, append(join, c.more...)...)["notes"])
		if !strings.Contains(notes, "joined by id") || strings.Contains(notes, "[20 20]") != c.shows {
			t.Errorf("%v: the notes are %s", c.more, notes)
		}
	}
}
