package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestFilesOfEveryKind takes a set from a generator through Parquet and text that
// is written in other ways; the result is the same.
func TestFilesOfEveryKind(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a.csv", "a.parquet"} {
		if status, _, errOut := cohort(t, "data", "write", "blobs", "--n", "300", "--d", "3", "--k", "3", "--out",
			path(name)); status != exitDone {
			t.Fatal(errOut)
		}
	}
	csv, err := os.ReadFile(path("a.csv"))
	if err != nil {
		t.Fatal(err)
	}
	var german strings.Builder
	german.WriteString("# made elsewhere\nkey;x;y;z;class\n")
	for i, line := range strings.Split(strings.TrimSpace(string(csv)), "\n") {
		if i == 7 {
			fmt.Fprintf(&german, "k;;1,5;2;none\n") // left out
		}
		fmt.Fprintf(&german, "%d;%s;c%d\n", 5*i, strings.NewReplacer(",", ";", ".", ",").Replace(line), i*3/300)
	}
	if err := os.WriteFile(path("german.csv"), []byte(german.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) map[string]any {
		t.Helper()
		return object(t, append([]string{"run", "--k", "3", "--seed", "1", "--format", "json", "--quality",
			"on"}, args...)...)
	}
	want := run("--data", path("a.csv"))
	labels := path("labels.csv")
	for _, args := range [][]string{
		{"--data", path("a.parquet"), "--out", path("result"), "--out-format", "parquet"},
		{"--data", path("german.csv"), "--decimal-comma", "--missing", "drop-row", "--columns", "2:z", "--label-column",
			"class", "--labels-out", labels},
		{"--data", path("german.csv"), "--decimal-comma", "--missing", "drop-row", "--columns", "-key,-5"},
	} {
		if got := run(args...); got["nicv"] != want["nicv"] || got["n"] != want["n"] || got["d"] != 3.0 {
			t.Errorf("%v: NICV %v of %v x %v, want %v", args, got["nicv"], got["n"], got["d"], want["nicv"])
		}
	}
	if b, err := os.ReadFile(labels); err != nil || !strings.Contains(string(b), "\n7,") ||
		strings.Contains(string(b), "\n8,") || !strings.Contains(string(b), "\n301,") {
		t.Errorf("labels do not count the row that was left out: %v\n%s", err, b)
	}
	if info, err := os.Stat(path("result/centroids.parquet")); err != nil || info.Size() == 0 {
		t.Error(err)
	}
	out := run("--data", path("a.csv"), "--method", "vertical-plain", "--split", "1,3;2")
	if out["parties"] != 2.0 {
		t.Errorf("parties: %v", out["parties"])
	}
}

func TestRefusedFileFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("a,b\n1,2\n3,\n5,6\n7,8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"row 3, column 2: the cell is empty":     {},
		"missing: \"forget\" is unknown":         {"--missing", "forget"},
		"there is no column 3 among 2":           {"--missing", "drop-row", "--columns", "3"},
		"--label-column: is given together with": {"--label-column", "a", "--labels", "x.csv"},
		"--missing: drop-row lets one record change how many": {"--missing", "drop-row", "--method", "fastlloyd",
			"--epsilon", "1", "--neighbours", "replace-one"},
		"--max-memory: is":                     {"--max-memory", "much"},
		"10 bytes are allowed by --max-memory": {"--max-memory", "10"},
		"--split: ":                            {"--split", "1;2"},
	} {
		if status, _, errOut := cohort(t, append([]string{"run", "--data", path, "--k", "2"},
			args...)...); status == exitDone || !strings.Contains(errOut, want) {
			t.Errorf("%v: %s, want %q", args, errOut, want)
		}
	}
	if status, out, errOut := cohort(t, "run", "--data", path, "--k", "2", "--missing",
		"mean-of-bounds"); status != exitDone || !strings.Contains(out, "1 missing value replaced") {
		t.Errorf("%s%s", out, errOut)
	}
}

// Weights are read from a file with one number in each row; a private method's sizes are weights.
func TestWeightsFromAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	var rows, weights strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&rows, "%d,%d\n", 10+80*(i%2), i%20)
		fmt.Fprintln(&weights, 1+2*(i%2))
	}
	for name, text := range map[string]string{"x.csv": rows.String(), "w.csv": weights.String(), "short.csv": "1\n2\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := "run --data x.csv --k 2 --format json --weights w.csv"
	status, out, errOut := cohort(t, strings.Fields(run+" --epsilon 20 --bounds 0:100 --weight-cap 4")...)
	var res struct {
		Sizes  []float64
		Weight float64
	}
	if err := json.Unmarshal([]byte(out), &res); status != exitDone || err != nil {
		t.Fatalf("status %d, %v, %s", status, err, errOut)
	}
	if math.Abs(res.Weight-6000) > 100 || math.Abs(max(res.Sizes[0], res.Sizes[1])-4500) > 150 {
		t.Errorf("weight %v, sizes %v", res.Weight, res.Sizes)
	}
	if status, _, errOut := cohort(t, strings.Fields(run)...); status != exitDone {
		t.Errorf("lloyd: status %d, %s", status, errOut)
	}
	for _, wrong := range []string{"--method fastlloyd --epsilon 1 --bounds 0:100",
		"--method pca", "--quality on", "--weight-cap 3",
		"--weights short.csv", "--weights x.csv"} {
		if status, _, errOut := cohort(t, append(strings.Fields(run), strings.Fields(wrong)...)...); status == exitDone ||
			strings.Contains(wrong, "method") && !strings.Contains(errOut, "does not take them, as ") {
			t.Errorf("%s: status %d, %s", wrong, status, errOut)
		}
	}
}

// What weights come to, and whether anybody has one, decides no exit status of a private run: one more record could
// change it. Without a budget no sum of weights is 0.
func TestNoWeightIsAsGoodAsOne(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"none.csv": "a,b\n", "w-none.csv": "w\n", "two.csv": "a,b\n1,2\n90,80\n",
		"w-two.csv": "w\n0\n1\n", "w-zero.csv": "w\n0\n0\n", "w-endless.csv": "w\n1e308\n1e308\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := "run --k 2 --data "
	private := " --bounds 0:100 --epsilon 1 --delta 1e-5"
	for _, with := range []string{"two.csv --weights w-two.csv", "two.csv --weights w-zero.csv",
		"two.csv --weights w-endless.csv", "none.csv --weights w-none.csv"} {
		for _, number := range []string{" --public-n 50", " --private-n 0.1", " --public-n 50 --method relative"} {
			if status, _, errOut := cohort(t, strings.Fields(run+with+private+number)...); status != exitDone {
				t.Errorf("%s%s: status %d, %s", with, number, status, errOut)
			}
		}
	}
	for _, sum := range []string{"zero", "endless"} {
		status, _, errOut := cohort(t, strings.Fields(run+"two.csv --weights w-"+sum+".csv")...)
		if status != exitWrong || !strings.HasPrefix(errOut, "cohort: --weights: have the sum ") {
			t.Errorf("without a budget, the sum is %s: status %d, %s", sum, status, errOut)
		}
	}
}

// Files of several clients may be listed, or given in several flags.
func TestFilesInSeveralFlags(t *testing.T) {
	a, b := writeFile(t, "a.csv", "x,y\n0,0\n0,1\n9,9\n"), writeFile(t, "b.csv", "x,y\n9,8\n1,0\n")
	listed := resultOf(t, "--k", "2", "--seed", "1", "--data", a+","+b)
	given := resultOf(t, "--k", "2", "--seed", "1", "--data", a, "--data", b)
	if listed.N != 5 || given.N != 5 || len(given.Comm.BytesSent) != 2 ||
		!reflect.DeepEqual(given.Centroids, listed.Centroids) {
		t.Errorf("%+v and %+v", listed, given)
	}
}

// What is read whole has an end: a device of zeros is refused and, where there is none, a file of a terabyte.
func TestEndlessFiles(t *testing.T) {
	zeros := "/dev/zero"
	if _, err := os.Stat(zeros); err != nil {
		zeros = writeFile(t, "zeros", "")
		if err := os.Truncate(zeros, 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	m := machine(t.TempDir())
	m.run(t.Context(), t, "study", "new", "--names", "North,South", "--method", "sulloyd", "--k", "3", "--epsilon", "1",
		"--public-n", "3000", "--columns", "a,b", "--bounds", "0:1,0:1")
	file := filepath.Join(string(m), "study.json")
	for _, args := range [][]string{{"report", zeros}, {"serve", zeros}, {"study", "verify", zeros},
		{"join", "--invite", "@" + zeros, "--data", "mine.csv"},
		{"serve", file, "--nats", "tls://127.0.0.1:1", "--nats-ca", zeros, "--state", t.TempDir()},
		{"serve", file, "--certificate", zeros, "--certificate-key", zeros, "--state", t.TempDir()}} {
		status, out, errOut := cohort(t, args...)
		if status != exitFailed || out != "" || !strings.Contains(errOut, "too large") {
			t.Errorf("%v: status %d, %s%s", args, status, out, errOut)
		}
	}
}

// Names of columns that are numbers, such as years, are taken as a record, and a warning says so, until it is told.
func TestNamesThatAreNumbers(t *testing.T) {
	rows := writeFile(t, "years.csv", "2019,2020\n1,5\n2,5\n9,8\n")
	for header, want := range map[string]string{"auto": "counts upwards", "yes": "", "no": ""} {
		status, _, errOut := cohort(t, "run", "--data", rows, "--k", "2", "--header", header)
		if status != exitDone || !strings.Contains(errOut, want) || (want == "") != (errOut == "") {
			t.Errorf("--header %s: status %d, %q", header, status, errOut)
		}
	}
}
