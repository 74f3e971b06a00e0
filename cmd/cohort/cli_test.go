package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/catalog"
)

// cohort runs the command line in this process.
func cohort(t *testing.T, args ...string) (status int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	status = execute(context.Background(), args, &o, &e)
	return status, o.String(), e.String()
}

// object runs the command line and decodes the JSON object it prints.
func object(t *testing.T, args ...string) map[string]any {
	t.Helper()
	return printed[map[string]any](t, args...)
}

// printed is what a command prints as JSON.
func printed[T any](t *testing.T, args ...string) (m T) {
	t.Helper()
	status, out, errOut := cohort(t, args...)
	if status != exitDone {
		t.Fatalf("cohort %s: status %d: %s", strings.Join(args, " "), status, errOut)
	}
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatalf("cohort %s: %v in %.200q", strings.Join(args, " "), err, out)
	}
	return m
}

func TestRunWithoutDataWorksOnAFreshMachine(t *testing.T) {
	status, out, errOut := cohort(t, "run")
	if status != exitDone || errOut != "" {
		t.Fatalf("status %d, stderr %q", status, errOut)
	}
	for _, want := range []string{"lloyd on builtin:s1-like", "15 clusters", "Centroids", "NICV", "no privacy"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	for _, line := range strings.Split(out, "\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
}

func TestTextOfAPrivateRunFits80Columns(t *testing.T) {
	for _, m := range []string{"relative", "sulloyd", "fastlloyd"} {
		status, out, errOut := cohort(t, "run", "--method", m, "--epsilon", "1", "--clients", "2", "--seed", "1")
		if status != exitDone {
			t.Fatalf("status %d, stderr %q", status, errOut)
		}
		if !strings.Contains(out, "ledger") || !strings.Contains(out, "SIMULATION") {
			t.Errorf("%s: the ledger or the word SIMULATION is missing:\n%s", m, out)
		}
		for _, line := range strings.Split(out, "\n") {
			if n := len([]rune(line)); n > 80 {
				t.Errorf("%s: a line has %d columns: %q", m, n, line)
			}
		}
	}
}

// Long names of many columns fit as well, and can be told from each other.
func TestTextOfLongNamesFits80Columns(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("the measure,a rather long name 1,a rather long name 2,another,a rather long name 3,b,c\n")
	for i := range 60 {
		x := float64(i%3) * 1e-7
		fmt.Fprintf(&rows, "%g,%g,%g,%g,%g,%g,%g\n", x, -x-1e-9, x+float64(i)*1e-12, -x, -x-3e-8, x, x)
	}
	status, out, errOut := cohort(t, "run", "--data", writeFile(t, "a.csv", rows.String()), "--k", "3", "--epsilon", "1",
		"--bounds", "-1e-6:1e-6")
	fits(t, "long names", out)
	if status != exitDone || !strings.Contains(out, "  the measure  2 a rather…  3 a rather…") {
		t.Errorf("status %d, %s%s", status, out, errOut)
	}
}

func TestTextOfAnEstimateFits80Columns(t *testing.T) {
	status, out, errOut := cohort(t, "run", "--epsilon", "1", "--bounds", "0:1000000")
	if status != exitDone || !strings.Contains(out, "Mean squared distance about") {
		t.Fatalf("status %d, stderr %q, no estimate in\n%s", status, errOut, out)
	}
	for _, line := range strings.Split(out, "\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
}

func TestJSONContract(t *testing.T) {
	m := object(t, "run", "--k", "15", "--method", "fastlloyd", "--clients", "2", "--epsilon", "1", "--seed", "1",
		"--format", "json")
	for _, f := range []string{"method", "n", "d", "k", "parties", "iterations", "calibration", "epsilon",
		"delta", "centroids",
		"nicv", "wcss", "empty_clusters", "ledger", "timings", "comm", "seed", "version"} {
		if _, ok := m[f]; !ok {
			t.Errorf("field %q is missing", f)
		}
	}
	if c := m["centroids"].([]any); len(c) != 15 || len(c[0].([]any)) != 2 {
		t.Errorf("centroids have shape %d x %d", len(c), len(c[0].([]any)))
	}
	if l, ok := m["ledger"].([]any); !ok || len(l) == 0 {
		t.Errorf("ledger is %v, want an array of entries", m["ledger"])
	}
	if m["calibration"] != "proven" || m["epsilon"] != 1.0 || m["parties"] != 2.0 || m["seed"] != 1.0 {
		t.Errorf("calibration %v, epsilon %v, parties %v, seed %v", m["calibration"], m["epsilon"], m["parties"], m["seed"])
	}
	comm := m["comm"].(map[string]any)
	if sent := comm["bytes_sent"].([]any); len(sent) != 2 || sent[0].(float64) <= 0 {
		t.Errorf("bytes_sent is %v", sent)
	}
	for phase, v := range m["timings"].(map[string]any) {
		for _, f := range []string{"count", "total_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"} {
			if _, ok := v.(map[string]any)[f]; !ok {
				t.Errorf("timings.%s.%s is missing", phase, f)
			}
		}
	}
}

// A run without noise has no budget, and one that asks for both is refused.
func TestNonPrivateMethodsTakeNoBudget(t *testing.T) {
	for _, m := range catalog.Methods() {
		if m.Private {
			continue
		}
		r := object(t, "run", "--method", m.Name, "--n", "300", "--format", "json")
		if r["epsilon"] != nil || r["delta"] != nil || r["calibration"] != "none" {
			t.Errorf("%s: epsilon %v, delta %v, calibration %v", m.Name, r["epsilon"], r["delta"], r["calibration"])
		}
	}
	for _, flag := range []string{"epsilon", "delta"} {
		status, out, errOut := cohort(t, "run", "--method", "lloyd", "--"+flag, "0.5")
		if want := "choose a private method, or leave --" + flag + " out"; status != exitWrong || out != "" ||
			!strings.Contains(errOut, want) {
			t.Errorf("status %d, stdout %.80q, stderr %q", status, out, errOut)
		}
	}
}

// withoutTimings is the canonical JSON of a result less its timings.
func withoutTimings(t *testing.T, args ...string) string {
	t.Helper()
	m := object(t, args...)
	delete(m, "timings")
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSameSeedSameBytesOnAnyNumberOfWorkers(t *testing.T) {
	for _, m := range []string{"lloyd", "clloyd", "sulloyd", "csulloyd", "fastlloyd", "relative"} {
		args := []string{"run", "--k", "15", "--method", m, "--clients", "2", "--seed", "7", "--format", "json"}
		if m != "lloyd" && m != "clloyd" {
			args = append(args, "--epsilon", "1")
		}
		args = append(args, "--workers")
		one := withoutTimings(t, append(args, "1")...)
		for _, workers := range []string{"1", "2", "5"} {
			if got := withoutTimings(t, append(args, workers)...); got != one {
				t.Errorf("%s: %s workers give another result than one:\n%s\n%s", m, workers, got, one)
			}
		}
	}
}

func TestRunsAreAveraged(t *testing.T) {
	m := object(t, "run", "--method", "relative", "--epsilon", "1", "--seed", "3", "--runs", "4", "--format", "json")
	runs := m["runs"].([]any)
	if len(runs) != 4 || runs[0] == runs[1] {
		t.Fatalf("runs is %v", runs)
	}
	sum := 0.0
	for _, r := range runs {
		sum += r.(float64)
	}
	if got := m["nicv"].(float64); got < sum/4*(1-1e-12) || got > sum/4*(1+1e-12) {
		t.Errorf("nicv is %v, the mean of the runs %v", got, sum/4)
	}
	if m["nicv_ci95_half"].(float64) <= 0 {
		t.Errorf("nicv_ci95_half is %v", m["nicv_ci95_half"])
	}
	first := object(t, "run", "--method", "relative", "--epsilon", "1", "--seed", "3", "--format", "json")
	if fmt.Sprint(first["centroids"]) != fmt.Sprint(m["centroids"]) || first["nicv"] != runs[0] {
		t.Error("run 1 of several is not the run with the seed itself")
	}
	if !strings.Contains(fmt.Sprint(m["ledger"]), "full epsilon") &&
		!strings.Contains(fmt.Sprint(m["notes"]), "full epsilon") {
		t.Error("nothing says that each run is a full epsilon")
	}
}

func TestQualityOff(t *testing.T) {
	m := object(t, "run", "--method", "relative", "--epsilon", "1", "--quality", "off", "--format", "json")
	if m["nicv"] != nil || m["wcss"] != nil || m["empty_clusters"] != nil || m["clamped"] != nil {
		t.Errorf("nicv %v, wcss %v, empty_clusters %v, clamped %v", m["nicv"], m["wcss"], m["empty_clusters"], m["clamped"])
	}
}

// writeFile writes a file of the test's folder and returns its path.
// What was paid for can be printed, whatever figures are asked for of records that nobody has.
func TestQualityOfNoRecords(t *testing.T) {
	none := writeFile(t, "none.csv", "a,b,c,class\n")
	for _, m := range catalog.Methods() {
		if !m.Private || !m.Takes("public-n") {
			continue
		}
		r := object(t, "run", "--data", none, "--label-column", "class", "--k", "2", "--method", m.Name, "--epsilon", "1",
			"--delta", "1e-5", "--bounds", "0:9", "--public-n", "500", "--quality", "full", "--format", "json")
		if r["nicv"] != 0.0 || r["wcss"] != 0.0 || r["empty_clusters"] != 2.0 {
			t.Errorf("%s: NICV %v, WCSS %v, %v empty clusters", m.Name, r["nicv"], r["wcss"], r["empty_clusters"])
		}
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func truncatedGzip(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i := range 5000 {
		fmt.Fprintf(z, "%d,%d\n", i, i*i)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "cut.csv.gz", b.String()[:b.Len()/2])
}

func TestBadInput(t *testing.T) {
	good := writeFile(t, "good.csv", "1,2\n3,4\n5,6\n7,9\n")
	for _, c := range []struct {
		name   string
		status int
		args   []string
		want   string
	}{
		{"empty file", exitFailed, []string{"--data", writeFile(t, "empty.csv", ""), "--k", "2"}, "empty"},
		{"ragged rows", exitFailed, []string{"--data", writeFile(t, "ragged.csv", "1,2\n3\n"), "--k", "2"}, "row 2"},
		{"text in a number", exitFailed, []string{"--data", writeFile(t, "text.csv", "1,2\n3,x\n"), "--k", "2"}, "row 2"},
		{"NaN", exitFailed, []string{"--data", writeFile(t, "nan.csv", "1,2\n3,NaN\n"), "--k", "2"}, "row 2"},
		{"Inf", exitFailed, []string{"--data", writeFile(t, "inf.csv", "1,2\n-Inf,4\n"), "--k", "2"}, "row 2"},
		{"no such file", exitFailed, []string{"--data", "no/such/file.csv", "--k", "2"}, "no such file"},
		{"truncated gzip", exitFailed, []string{"--data", truncatedGzip(t), "--k", "2"}, "cut.csv.gz"},
		{"constant column, bounds from data", exitFailed,
			[]string{"--data", writeFile(t, "const.csv", "1,2\n1,3\n"), "--k", "2"}, "constant"},
		{"constant column, bounds given", exitDone,
			[]string{"--data", writeFile(t, "const.csv", "1,2\n1,3\n"), "--k", "2", "--bounds", "0:5"}, ""},
		{"more clusters than points", exitWrong, []string{"--data", good, "--k", "5"}, "for 4 records"},
		{"k is zero", exitWrong, []string{"--data", good, "--k", "0"}, "--k"},
		{"k is missing", exitWrong, []string{"--data", good}, "--k"},
		{"epsilon is zero", exitWrong, []string{"--data", good, "--k", "2", "--epsilon", "0"}, "--epsilon"},
		{"epsilon is negative", exitWrong, []string{"--data", good, "--k", "2", "--epsilon", "-1"}, "--epsilon"},
		{"epsilon is NaN", exitWrong, []string{"--data", good, "--k", "2", "--epsilon", "NaN"}, "--epsilon"},
		{"epsilon is missing", exitWrong, []string{"--data", good, "--k", "2", "--method", "fastlloyd"}, "--epsilon"},
		{"delta is one", exitWrong, []string{"--data", good, "--k", "2", "--epsilon", "1", "--delta", "1"}, "--delta"},
		{"delta is negative", exitWrong,
			[]string{"--data", good, "--k", "2", "--epsilon", "1", "--delta", "-0.1"}, "--delta"},
		{"delta is NaN", exitWrong, []string{"--data", good, "--k", "2", "--epsilon", "1", "--delta", "NaN"}, "--delta"},
		{"bounds reversed", exitWrong, []string{"--data", good, "--k", "2", "--bounds", "9:0"}, "9"},
		{"bounds twice", exitWrong, []string{"--data", good, "--k", "2", "--bounds", "0:9", "--bounds-file", good},
			"--bounds-file"},
		{"unknown method", exitWrong, []string{"--data", good, "--k", "2", "--method", "loyd"}, "fastlloyd"},
		{"unknown flag", exitWrong, []string{"--dta", good}, "--dta"},
		{"kmeans++ for a private method", exitWrong, []string{"--data", good, "--k", "2", "--epsilon", "1", "--method",
			"relative", "--init", "kmeans++"}, "kmeans++"},
		{"cosine for a private method", exitWrong, []string{"--data", good, "--k", "2", "--epsilon", "1", "--method",
			"sulloyd", "--metric", "cosine"}, "sulloyd"},
		{"batches for a private method", exitWrong, []string{"--data", good, "--k", "2", "--epsilon", "1", "--batch-size",
			"3"}, "hybrid"},
		{"bounds with cosine", exitWrong, []string{"--data", good, "--k", "2", "--metric", "cosine", "--bounds", "0:9"},
			"--bounds"},
		{"infeasible sizes", exitWrong,
			[]string{"--data", good, "--k", "3", "--method", "clloyd", "--eta-max-alpha", "1", "--eta-min-alpha", "1"}, ""},
		{"generator flag with a file", exitWrong, []string{"--data", good, "--k", "2", "--n", "9"}, "--n"},
		{"workers is zero", exitWrong, []string{"--workers", "0"}, "--workers"},
		{"a stray word", exitWrong, []string{"fast"}, "fast"},
		{"published without released code", exitWrong,
			[]string{"--epsilon", "1", "--method", "relative", "--calibration", "published"}, "published"},
		{"out is a file", exitWrong, []string{"--data", good, "--k", "2", "--out", good}, "file"},
		{"out is below a file", exitWrong, []string{"--data", good, "--k", "2", "--out", good + "/out"}, "below a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := cohort(t, append([]string{"run"}, c.args...)...)
			if status != c.status {
				t.Fatalf("status %d, want %d; stderr %q", status, c.status, errOut)
			}
			if status == exitDone {
				return
			}
			if out != "" {
				t.Errorf("something was printed before the error: %.100q", out)
			}
			if !strings.HasPrefix(errOut, "cohort: ") || strings.Count(errOut, "\n") != 1 || strings.Count(errOut, ": ") < 2 {
				t.Errorf("not one line of the form `cohort: what: why: what to do`: %q", errOut)
			}
			if !strings.Contains(errOut, c.want) {
				t.Errorf("the error %q lacks %q", errOut, c.want)
			}
		})
	}
}

func TestOutIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "result")
	args := []string{"run", "--method", "relative", "--epsilon", "1", "--out", dir}
	for range 2 { // the second run replaces the first result
		if status, _, errOut := cohort(t, args...); status != exitDone {
			t.Fatalf("status %d: %s", status, errOut)
		}
		for _, f := range resultFiles {
			if info, err := os.Stat(filepath.Join(dir, f)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
	mine := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(mine, []byte("keep"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, errOut := cohort(t, args...); status != exitFailed || !strings.Contains(errOut, "mine.txt") {
		t.Errorf("a folder with other files: status %d, stderr %q", status, errOut)
	}
	if b, err := os.ReadFile(mine); err != nil || string(b) != "keep" {
		t.Errorf("the user's file is gone: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".cohort-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary folders are left: %v %v", left, err)
	}
}

func TestInterruptedRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range []string{"run", "profile", "audit --method sulloyd", "data write blobs"} {
		var out, errOut bytes.Buffer
		words := strings.Fields(args)
		command := words[0]
		if command == "data" {
			command = words[1]
		}
		if status := execute(ctx, words, &out, &errOut); status != exitFailed || out.Len() > 0 ||
			errOut.String() != "cohort: "+command+": was interrupted: nothing was written\n" {
			t.Errorf("%s: status %d, out %q, stderr %q", args, status, out.String(), errOut.String())
		}
	}
}

// A coordinator that was interrupted has its state, and says that it can go on.
func TestInterruptedCoordinatorGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, _, errOut := cohort(t, "study", "new", "--names", "A,B", "--method", "relative", "--k", "2",
		"--epsilon", "1", "--delta", "1e-6", "--public-n", "300", "--columns", "x,y", "--bounds", "0:1"); status != exitDone {
		t.Fatal(errOut)
	}
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, stop)
	var out, errOut bytes.Buffer
	status := execute(ctx, []string{"serve", "study.json", "--listen", "127.0.0.1:0", "--page", "none"}, &out, &errOut)
	if status != exitFailed || !strings.HasSuffix(errOut.String(),
		"cohort: serve: was interrupted: the same command goes on\n") {
		t.Errorf("status %d, out %q, stderr %q", status, out.String(), errOut.String())
	}
}

func TestDataListAndWrite(t *testing.T) {
	status, out, _ := cohort(t, "data", "list")
	if status != exitDone {
		t.Fatalf("status %d", status)
	}
	for _, name := range []string{"birch2", "s1-like", "blobs", "timesynth"} {
		if !strings.Contains(out, "builtin:"+name) {
			t.Errorf("data list lacks %s", name)
		}
	}
	path := filepath.Join(t.TempDir(), "blobs.csv")
	labels := filepath.Join(t.TempDir(), "labels.csv")
	write := []string{"data", "write", "blobs", "--n", "300", "--d", "3", "--k", "4", "--seed", "5", "--out", path,
		"--labels", labels}
	if status, _, errOut := cohort(t, write...); status != exitDone {
		t.Fatalf("status %d: %s", status, errOut)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cohort(t, write...)
	if second, _ := os.ReadFile(path); !bytes.Equal(first, second) {
		t.Error("the same seed wrote other bytes")
	}
	m := object(t, "run", "--data", path, "--labels", labels, "--k", "4", "--seed", "1", "--format", "json")
	if m["n"] != 300.0 || m["d"] != 3.0 {
		t.Errorf("read back as %v x %v", m["n"], m["d"])
	}
	for _, f := range []string{"ari", "nmi", "fmi", "v_measure", "accuracy"} {
		if x, ok := m[f].(float64); !ok || x < 0.5 {
			t.Errorf("%s is %v on separate blobs", f, m[f])
		}
	}
	if status, _, _ := cohort(t, "data", "write", "nonsense"); status != exitWrong {
		t.Errorf("an unknown set: status %d", status)
	}
}

func TestFilesAreClients(t *testing.T) {
	a := writeFile(t, "a.csv", "0,0\n0,1\n9,9\n")
	b := writeFile(t, "b.csv", "9,8\n1,0\n8,9\n1,1\n")
	m := object(t, "run", "--data", a+","+b, "--k", "2", "--format", "json")
	if m["parties"] != 2.0 || m["n"] != 7.0 {
		t.Errorf("parties %v, n %v", m["parties"], m["n"])
	}
}

func TestVersion(t *testing.T) {
	if status, out, errOut := cohort(t, "--version"); status != exitDone || out != "cohort "+engine.Version+"\n" {
		t.Errorf("--version: status %d, %q, %q", status, out, errOut)
	}
	m := object(t, "version", "--format", "json")
	for _, f := range []string{"version", "go", "cpu", "isa"} {
		if m[f] == nil || m[f] == "" {
			t.Errorf("%s is missing", f)
		}
	}
}

func TestWrongWordsAreToldWhatWasMeant(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"run my.csv --k 3", `"my.csv" stands alone: a file is given as --data my.csv`},
		{"rnu", `"rnu" is not a command of cohort (did you mean run?): see cohort --help`},
		{"ledger shwo", "did you mean show?"},
		{"run -data my.csv", "in -data (did you mean --data?): see cohort run --help"},
		{"run -k=8", "in -k=8 (did you mean --k?): see cohort run --help"},
		{"plan --labels-out x",
			"unknown flag: --labels-out, which cohort run has and cohort plan does not: see cohort plan --help"},
		{"run --epsilom 1", "unknown flag: --epsilom (did you mean --epsilon?): see cohort run --help"},
		{"run --epsilon ten", `--epsilon: "ten" is not a number: see cohort run --help`},
		{"run --epsilon 1e400", `--epsilon: "1e400" is not within the range of a number`},
		{"run --n 1.5", `--n: "1.5" is not a whole number`},
		{"run --seed -1", `--seed: "-1" is not a whole number of 0 or more`},
		{"run --method hybird", `"hybird" is unknown (did you mean hybrid?): choose one of lloyd`},
		{"audit --method balcan-elder", "did you mean balcan-edler?"},
		{"run --quality basic", "choose one of on, off, full"},
	} {
		status, _, errOut := cohort(t, strings.Fields(c.args)...)
		if status != exitWrong || !strings.Contains(errOut, c.want) {
			t.Errorf("cohort %s: status %d, %q; want %q", c.args, status, errOut, c.want)
		}
	}
}

// cohort serve --tokens DIR writes a file for each party, whose name looks like what --invite takes.
func TestInvitationInAFileIsToldApart(t *testing.T) {
	file := writeFile(t, "party1.token", "cohort2-x")
	for invite, want := range map[string]string{file: "give --invite @" + file + "\n",
		"@" + file: "give the whole token"} {
		status, _, errOut := cohort(t, "join", "--invite", invite, "--data", file)
		if status != exitWrong || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %q; want %q", invite, status, errOut, want)
		}
	}
}

// Names that come from files do not steer the terminal that shows them.
func TestNamesDoNotSteerTheTerminal(t *testing.T) {
	rows := writeFile(t, "rows.csv", "a\x1b[31m,b\u202e\n1,2\n3,4\n5,6\n7,8\n")
	for _, args := range [][]string{
		{"run", "--data", rows, "--k", "2", "--bounds", "0:10", "--epsilon", "1"},
		{"run", "--data", rows, "--k", "2", "--private-bounds", "0.1", "--epsilon", "100"},
		{"plan", "--data", rows, "--k", "2", "--bounds", "0:10", "--epsilon", "1"},
		{"profile", "--data", rows, "--k", "2"},
		{"run", "--data", rows, "--k", "2", "--columns", "c\x1b[2J"},
		{"run", "--data", "no\x1b[2J.csv", "--k", "2"},
		{"run", "--k", "2", "--nosuch\x1b[2J"},
		{"run\x1b[2J"},
	} {
		if _, out, errOut := cohort(t, args...); strings.ContainsAny(out+errOut, "\x1b\u202e") || out+errOut == "" {
			t.Errorf("%q: %q%q", args, out, errOut)
		}
	}
}
