package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/method"
)

// A private run shows nothing that depends on the records and is not paid for, unless it is asked to.
func TestPrivateRunsShowWhatIsPaidFor(t *testing.T) {
	base := []string{"run", "--data", "builtin:blobs", "--n", "600", "--d", "2", "--k", "4"}
	for _, c := range []struct {
		args           string
		quality, times bool
		headline       string
	}{
		{"--epsilon 1", false, false, "epsilon does not cover the bounds and the number of records"},
		{"--epsilon 1 --bounds -100:100", false, false, "epsilon does not cover the number of records"},
		{"--epsilon 1 --quality on", true, false, "epsilon does not cover the quality figures,"},
		{"--epsilon 1 --timings", false, true, "epsilon does not cover the times,"},
		{"--epsilon 1 --quality on --timings", true, true, "epsilon does not cover the quality figures and times,"},
		{"--epsilon 1 --seed 1", true, true, "SIMULATION"},
		{"--epsilon 1 --seed 1 --quality off", false, true, "SIMULATION"},
		{"", true, true, "no privacy"},
	} {
		args := append(append([]string{}, base...), strings.Fields(c.args)...)
		m := object(t, append(args, "--format", "json")...)
		for _, f := range []string{"nicv", "wcss", "empty_clusters", "clamped"} {
			if (m[f] != nil) != c.quality {
				t.Errorf("%s: %s is %v", c.args, f, m[f])
			}
		}
		if (m["timings"] != nil) != c.times {
			t.Errorf("%s: timings are %v", c.args, m["timings"])
		}
		status, out, _ := cohort(t, args...)
		text := strings.Join(strings.Fields(out), " ")
		if status != exitDone || strings.Contains(out, "NICV") != c.quality ||
			strings.Contains(out, "Time by phase") != c.times || !strings.Contains(text, c.headline) {
			t.Errorf("%s: status %d:\n%s", c.args, status, out)
		}
		if c.quality && c.times && strings.Contains(c.args, "--quality") &&
			strings.Count(text, "epsilon does not cover") != 2 {
			t.Errorf("%s: the headline is\n%s", c.args, out)
		}
	}
}

// Sizes of clusters in a private result are those that were released, wherever it goes and whatever is written for the
// holder of the records beside it.
func TestPrivateSizesAreReleased(t *testing.T) {
	args := []string{"run", "--data", "builtin:blobs", "--n", "600", "--d", "2", "--k", "3", "--epsilon", "1",
		"--bounds", "-100:100", "--seed", "4", "--quality", "off", "--format", "json"}
	released := object(t, args...)["sizes"]
	dir := t.TempDir()
	labels, out := filepath.Join(dir, "labels.csv"), filepath.Join(dir, "out")
	beside := object(t, append(args, "--labels-out", labels, "--out", out)...)["sizes"]
	counts := make([]float64, 3)
	for _, row := range readCSV(t, labels)[1:] {
		counts[row[1][0]-'1']++
	}
	for i, x := range released.([]any) {
		if x.(float64) == counts[i] {
			t.Errorf("cluster %d has a size of %v, which is that of its records", i+1, x)
		}
	}
	for _, name := range []string{"result.json", "model.json"} {
		var m map[string]any
		if err := json.Unmarshal([]byte(readText(t, filepath.Join(out, name))), &m); err != nil {
			t.Fatal(err)
		}
		for where, sizes := range map[string]any{"printed": beside, name: m["sizes"]} {
			if !reflect.DeepEqual(sizes, released) {
				t.Errorf("%s beside labels: sizes are %v, of which %v were released", where, sizes, released)
			}
		}
	}
}

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// First centroids are matched with the columns of the data by their names, where both have such.
func TestStartOfNamedColumns(t *testing.T) {
	data := writeFile(t, "a.csv", "u,v\n0,5\n1,5\n9,6\n8,6\n")
	run := func(start string) []string {
		return []string{"run", "--data", data, "--k", "2", "--start", writeFile(t, "s.csv", start), "--format", "json"}
	}
	want := object(t, run("u,v\n0.5,5\n8.5,6\n")...)
	for _, start := range []string{"v,u\n5,0.5\n6,8.5\n", "0.5,5\n8.5,6\n"} {
		m := object(t, run(start)...)
		if m["nicv"] != want["nicv"] || m["iterations"].(float64) > 1 {
			t.Errorf("%q: %v iterations to NICV %v, not %v", start, m["iterations"], m["nicv"], want["nicv"])
		}
	}
	model := filepath.Join(t.TempDir(), "out")
	object(t, append(run("u,v\n0.5,5\n8.5,6\n"), "--out", model)...)
	swapped := writeFile(t, "b.csv", "v,u\n5,0\n5,1\n6,9\n6,8\n")
	m := object(t, "run", "--data", swapped, "--k", "2", "--start", filepath.Join(model, "model.json"), "--format", "json")
	if m["nicv"] != want["nicv"] || m["iterations"].(float64) > 1 {
		t.Errorf("a model: %v iterations to NICV %v, not %v", m["iterations"], m["nicv"], want["nicv"])
	}
	status, _, errOut := cohort(t, run("u,w\n0.5,5\n8.5,6\n")...)
	if status != exitWrong || !strings.Contains(errOut, `--start: has no column "v"`) {
		t.Errorf("centroids of other columns: status %d, %s", status, errOut)
	}
}

// Columns of one name are told apart by their order, and never taken for each other.
func TestPredictWithColumnsOfOneName(t *testing.T) {
	data := writeFile(t, "a.csv", "u,u,v\n0,0,5\n0,9,5\n9,0,5\n9,9,5\n0,1,5\n9,8,5\n")
	out, labels := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "labels.csv")
	object(t, "run", "--data", data, "--k", "4", "--columns", "1,2", "--out", out, "--labels-out", labels, "--format",
		"json")
	predict := []string{"predict", "--model", filepath.Join(out, "model.json"), "--data"}
	for _, file := range []string{data, writeFile(t, "b.csv", "v,u,u\n5,0,0\n5,0,9\n5,9,0\n5,9,9\n5,0,1\n5,9,8\n")} {
		status, text, errOut := cohort(t, append(predict, file)...)
		if want := readText(t, labels); status != exitDone || text != want {
			t.Errorf("%s: status %d, %s, predicted\n%s\nwere labelled\n%s", file, status, errOut, text, want)
		}
	}
	for _, text := range []string{"u,v\n1,2\n", "u,u,u\n1,2,3\n"} {
		status, _, errOut := cohort(t, append(predict, writeFile(t, "c.csv", text))...)
		if status != exitWrong || !strings.Contains(errOut, `of the name "u" and the model 2`) {
			t.Errorf("%q: status %d, %s", text, status, errOut)
		}
	}
	three := writeFile(t, "c.csv", "u,u,u\n9,9,0\n")
	status, text, errOut := cohort(t, append(predict, three, "--columns", "1,3")...)
	if want := readCSV(t, labels)[3][1]; status != exitDone || !strings.HasPrefix(strings.Fields(text)[1], "1,"+want+",") {
		t.Errorf("status %d, %s, %s, not cluster %s", status, errOut, text, want)
	}
}

// Labels, sizes, model and predictions of one run agree, and each party's file has its own rows only.
func TestLabelsModelPredictStart(t *testing.T) {
	dir := t.TempDir()
	a := writeFile(t, "a.csv", "\"x, cm\",y\n0,0\n0,1\n9,9\n")
	b := writeFile(t, "b.csv", "\"x, cm\",y\n9,8\n1,0\n8,9\n1,1\n")
	out, labels := filepath.Join(dir, "out"), filepath.Join(dir, "labels.csv")
	m := object(t, "run", "--data", a+","+b, "--k", "2", "--init", "kmeans++", "--seed", "1", "--out", out,
		"--labels-out", labels, "--format", "json")
	if s := m["sizes"].([]any); s[0].(float64)+s[1].(float64) != 7 || s[0].(float64) < 3 || s[1].(float64) < 3 {
		t.Errorf("sizes %v", s)
	}
	one, two := readCSV(t, filepath.Join(dir, "labels-party1.csv")), readCSV(t, filepath.Join(dir, "labels-party2.csv"))
	if len(one) != 4 || len(two) != 5 || one[0][1] != "cluster" || one[1][0] != "1" || one[1][1] != one[2][1] ||
		one[1][1] == one[3][1] || two[1][1] != one[3][1] {
		t.Errorf("labels %v and %v", one, two)
	}
	if !strings.Contains(readText(t, filepath.Join(out, "ledger.txt")), "labels") {
		t.Error("the ledger does not say that labels are no release")
	}
	// The columns of new files are found by their names.
	swapped := writeFile(t, "b.csv", "z,y,\"x, cm\"\nred,8,9\nred,0,1\nblue,9,8\n,1,1\n")
	status, text, errOut := cohort(t, "predict", "--model", filepath.Join(out, "model.json"), "--data", swapped)
	if status != exitDone || text != readText(t, filepath.Join(dir, "labels-party2.csv")) {
		t.Errorf("status %d, %s, predicted\n%s\nwere labelled\n%v", status, errOut, text, two)
	}
	// So they are from what can be read once, and what is wrong with a cell of theirs is said of that cell.
	predict := []string{"predict", "--model", filepath.Join(out, "model.json"), "--data"}
	pipe, err := os.Open(swapped)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	run := exec.Command(os.Args[0], append(predict, "-")...)
	run.Env, run.Stdin = append(os.Environ(), commandVar+"=1"), io.MultiReader(pipe) // through a pipe, that is
	if text, err := run.Output(); err != nil || string(text) != readText(t, filepath.Join(dir, "labels-party2.csv")) {
		t.Errorf("from a pipe: %v, %s", err, text)
	}
	empty := writeFile(t, "e.csv", "z,y,\"x, cm\"\nred,8,\n")
	if _, _, errOut := cohort(t, append(predict, empty)...); !strings.Contains(errOut, "row 2, column 3") {
		t.Errorf("an empty cell: %s", errOut)
	}
	holes := writeFile(t, "h.csv", "x, cm;y\n9;8\n;\n8;9\n")
	for missing, want := range map[string]int{"drop-row": 2, "mean-of-bounds": 3} {
		status, text, errOut := cohort(t, "predict", "--model", filepath.Join(out, "model.json"), "--data", holes,
			"--missing", missing, "--separator", ";")
		rows := strings.Fields(text)
		if status != exitDone || len(rows) != want+1 || !strings.HasPrefix(rows[want], "3,") {
			t.Errorf("%s: status %d, %s\n%s", missing, status, errOut, text)
		}
	}
	npy := filepath.Join(dir, "l.npy")
	if status, _, errOut := cohort(t, "predict", "--model", filepath.Join(out, "model.json"), "--data", b,
		"--labels-out", npy); status != exitDone {
		t.Fatal(errOut)
	}
	checkNPY(t, npy, two)
	// A run that starts from the model stays there.
	for _, start := range []string{filepath.Join(out, "model.json"), filepath.Join(out, "centroids.csv")} {
		again := object(t, "run", "--data", a+","+b, "--k", "2", "--start", start, "--format", "json")
		if again["iterations"].(float64) > 1 || again["nicv"] != m["nicv"] {
			t.Errorf("%s: %v iterations to NICV %v, want that of the start, %v", start, again["iterations"],
				again["nicv"], m["nicv"])
		}
	}
	for _, args := range []string{
		"run --data " + a + " --k 2 --start " + a, "run --data " + a + " --k 2 --start " + b + "x", "run --data " + a +
			" --k 3 --start " + a + " --init random",
		"run --data " + a + " --k 2 --epsilon 1 --method hybrid --start " + a, "predict --data " + a,
		"predict --model " + a + " --data " + a,
		"predict --model " + filepath.Join(out, "model.json") + " --data " + writeFile(t, "c.csv", "u,v\n1,2\n"),
	} {
		if status, out, errOut := cohort(t, strings.Fields(args)...); status == exitDone || out != "" ||
			strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: status %d, %.80q, %q", args, status, out, errOut)
		}
	}
}

// checkNPY compares an npy file of labels with their CSV.
func checkNPY(t *testing.T, path string, want [][]string) {
	t.Helper()
	text := readText(t, path)
	at := 10 + int(text[8]) + int(text[9])<<8
	const head = "'descr': [('row', '<i8'), ('cluster', '<i4'), ('distance', '<f8')]"
	if at%64 != 0 || !strings.HasPrefix(text, "\x93NUMPY\x01\x00") || !strings.Contains(text[:at], head) ||
		!strings.Contains(text[:at], fmt.Sprintf("'shape': (%d,)", len(want)-1)) {
		t.Fatalf("the header is %q", text[:at])
	}
	var got struct {
		Row      int64
		Cluster  int32
		Distance float64
	}
	r := strings.NewReader(text[at:])
	for _, w := range want[1:] {
		if err := binary.Read(r, binary.LittleEndian, &got); err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("%d,%d,%.6g", got.Row, got.Cluster, got.Distance); line != strings.Join(w, ",") {
			t.Errorf("%s, want %v", line, w)
		}
	}
	if r.Len() != 0 {
		t.Errorf("%d bytes follow", r.Len())
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What cannot be written is refused before anything is paid for.
func TestOutIsProbedBeforeTheCharge(t *testing.T) {
	dir := t.TempDir()
	file, foreign := writeFile(t, "f", "x"), filepath.Join(dir, "mine")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "notes.txt"), []byte("keep"), 0o644); err != nil {
		t.Fatal(err)
	}
	ledger, nowhere := filepath.Join(dir, "ledger"), filepath.Join(dir, "nowhere")
	if err := os.Symlink("none", nowhere); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--out", foreign}, {"--out", filepath.Join(file, "sub")}, {"--out", "-"}, {"--out", nowhere},
		{"--out", "/proc/none/result"},
		{"--labels-out", filepath.Join(dir, "none", "l.csv")}, {"--labels-out", filepath.Join(dir, "l.json")},
	} {
		status, out, errOut := cohort(t,
			append([]string{"run", "--epsilon", "1", "--bounds", "0:1000000", "--ledger", ledger}, args...)...)
		if status == exitDone || out != "" || strings.Count(errOut, "\n") != 1 ||
			!strings.HasPrefix(errOut, "cohort: "+args[0]) {
			t.Errorf("%v: status %d, %.80q, %q", args, status, out, errOut)
		}
		if _, err := os.Stat(ledger); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%v: something was paid for", args)
		}
	}
}

// A folder that is there stays the folder that it is: the working folder, or where a link leads, gets the files of a
// result, and loses those of an earlier one.
func TestOutKeepsTheFolderThatIsThere(t *testing.T) {
	dir := t.TempDir()
	place, link := filepath.Join(dir, "place"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(place, 0o700), os.Symlink("place", link)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(place)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(place)
	for _, out := range []string{".", link, place} {
		for _, earlier := range []string{reportFile, centroidsParquet, unfinished + "run"} {
			if err := os.WriteFile(earlier, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		status, _, errOut := cohort(t, "run", "--epsilon", "1", "--bounds", "0:1000000", "--out", out)
		if status != exitDone {
			t.Errorf("--out %s: status %d, %q", out, status, errOut)
		}
		entries, err := os.ReadDir(place)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if want := append([]string{unfinished + "run"}, resultFiles...); !slices.Equal(names, want) {
			t.Errorf("--out %s: the folder holds %v, want %v", out, names, want)
		}
		after, err := os.Stat(place)
		if info, e := os.Lstat(link); err != nil || e != nil || !os.SameFile(before, after) ||
			after.Mode() != before.Mode() || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("--out %s: the folder or the link is another one: %v, %v", out, err, e)
		}
	}
}

// prepared parses the flags of a run and reads its data.
func prepared(t *testing.T, args ...string) (*options, *method.Method, *input, error) {
	t.Helper()
	o := new(options)
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.bind(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	m, err := o.resolve()
	if err != nil {
		return nil, nil, nil, err
	}
	in, err := load(context.Background(), o, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o, m, in, nil
}

// broken is an output that is closed or full.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A failing --out after the release falls back to standard output, and a failing output to a named file.
func TestPaidResultsAreNotLost(t *testing.T) {
	dir := t.TempDir()
	eng := enginetest.New(t, engine.WithWorkers(2))
	for _, format := range []string{"text", "json"} {
		o, m, in, err := prepared(t, "--epsilon=1", "--bounds=0:1000000", "--format="+format, "--out="+
			filepath.Join(dir, format))
		if err != nil {
			t.Fatal(err)
		}
		res, err := repeat(context.Background(), eng, m, o, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		check := func(where, text string) {
			var m map[string]any
			if err := json.Unmarshal([]byte(text), &m); err != nil || len(m["centroids"].([]any)) != 15 {
				t.Errorf("%s: %s: %v, %.100q", format, where, err, text)
			}
		}
		var out bytes.Buffer
		d, err := prepareDelivery(o, in, &out)
		if err != nil {
			t.Fatal(err)
		}
		d.folder.discard()
		if err := d.deliver(context.Background(), eng, res); err == nil || !strings.Contains(err.Error(), "--out") {
			t.Errorf("%s: the folder is gone: %v", format, err)
		}
		check("standard output", out.String())
		d.out = broken{}
		err = d.deliver(context.Background(), eng, res)
		if err == nil {
			t.Fatal("output is broken and nobody says so")
		}
		words := strings.Fields(err.Error())
		path := words[len(words)-1]
		check(path, readText(t, path))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Of several runs those before a refused one are returned, and the refusal is still an error.
func TestEarlierRunsAreReturned(t *testing.T) {
	for refused, budget := range map[int]string{2: "1.1", 3: "2.2"} {
		args := []string{"run", "--epsilon", "1", "--bounds", "0:1000000",
			"--ledger", filepath.Join(t.TempDir(), "ledger"), "--delta", "0", "--ledger-budget", budget,
			"--runs", "3", "--format", "json"}
		status, out, errOut := cohort(t, args...)
		var m map[string]any
		if err := json.Unmarshal([]byte(out), &m); err != nil || status != exitWrong ||
			!strings.Contains(errOut, fmt.Sprintf("run %d of 3", refused)) ||
			!strings.Contains(errOut, "the runs before") {
			t.Fatalf("status %d, %v, stderr %q", status, err, errOut)
		}
		if len(m["centroids"].([]any)) != 15 || strings.Contains(out, "run 1 of 2") != (refused == 3) {
			t.Errorf("%.300s", out)
		}
	}
}

// afterRuns is a context that is cancelled when a ledger file has so many runs.
type afterRuns struct {
	context.Context
	ledger string
	runs   int
}

func (c afterRuns) Err() error {
	if b, err := os.ReadFile(c.ledger); err == nil && strings.Count(string(b), `"run":`) >= c.runs {
		return context.Canceled
	}
	return nil
}

func (c afterRuns) Done() <-chan struct{} {
	done := make(chan struct{})
	if c.Err() != nil {
		close(done)
	}
	return done
}

// Of several runs of which a later one is interrupted those before are returned, and the same command finishes all of
// them without another charge.
func TestInterruptedLaterRunIsNotLost(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	args := []string{"--data", writeFile(t, "a.csv", csvOf(300, 0)), "--k", "3", "--epsilon", "1", "--delta", "0",
		"--bounds", "0:10", "--ledger", ledger, "--ledger-budget", "3", "--runs", "3", "--format", "json"}
	o := new(options)
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.bind(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	err := runJob(afterRuns{context.Background(), ledger, 2}, o, &out, &errOut)
	var first map[string]any
	if e := json.Unmarshal(out.Bytes(), &first); e != nil {
		t.Fatalf("%v: %.300s, %v", e, out.String(), err)
	}
	pending, _ := filepath.Glob(ledger + ".*.pending")
	if err == nil || len(pending) != 2 {
		t.Fatalf("error %v, state files %v", err, pending)
	}
	for _, want := range []string{"run 2 of 3", "without another charge", "the runs before"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	all := object(t, append([]string{"run"}, args...)...)
	a, _ := json.Marshal(first["centroids"])
	b, _ := json.Marshal(all["centroids"])
	if n := strings.Count(readText(t, ledger), `"run":`); n != 3 || !bytes.Equal(a, b) {
		t.Errorf("%d runs were paid for, of three; the first release is\n%s, then\n%s", n, a, b)
	}
	if left, _ := filepath.Glob(ledger + ".*.pending"); left != nil {
		t.Errorf("%v is left", left)
	}
}

// interrupt runs a command that is interrupted when it has been charged.
func interrupt(t *testing.T, args ...string) error {
	t.Helper()
	eng := enginetest.New(t, engine.WithWorkers(1))
	o, m, in, err := prepared(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	pay, err := newPayment(o, in, m)
	if err != nil {
		t.Fatal(err)
	}
	defer pay.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = repeat(ctx, eng, m, o, in, pay)
	return err
}

// The noise of an interrupted run is not drawn again where the same records are in other hands: means of the clients'
// clusters are not the same, and both results would show how they differ.
func TestInterruptedRunKnowsWhoHoldsTheRecords(t *testing.T) {
	dir := t.TempDir()
	ledger, a, b := filepath.Join(dir, "ledger"), filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv")
	lines := strings.SplitAfter(csvOf(300, 0), "\n")
	deal := func(first int) {
		for path, part := range map[string][]string{a: lines[:first], b: lines[first:]} {
			if err := os.WriteFile(path, []byte(strings.Join(part, "")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	deal(150)
	flags := []string{"--data", a + "," + b, "--method", "fastlloyd", "--k", "3", "--epsilon", "1", "--delta", "1e-6",
		"--bounds", "0:10", "--ledger", ledger, "--ledger-budget", "3:1e-5", "--format", "json"}
	if err := interrupt(t, flags...); err == nil {
		t.Fatal("the run was not interrupted")
	}
	deal(140)
	object(t, append([]string{"run"}, flags...)...)
	if n := strings.Count(readText(t, ledger), `"run":`); n != 2 {
		t.Errorf("%d runs were paid for, of two on records in other hands", n)
	}
}

// A run that is interrupted after the charge is finished by the same command, to the bits that it would have had and
// without another charge; what could make it again is then erased. Nothing else can use it.
func TestInterruptedRunIsFinishedWithoutPayingAgain(t *testing.T) {
	dir := t.TempDir()
	ledger := filepath.Join(dir, "ledger")
	rows := writeFile(t, "a.csv", csvOf(300, 0))
	flags := []string{"--data", rows, "--k", "3", "--epsilon", "1", "--delta", "0", "--bounds", "0:10", "--ledger",
		ledger, "--format", "json"}
	args := append([]string{"run"}, flags...)
	err := interrupt(t, flags...)
	pending, _ := filepath.Glob(ledger + ".*.pending")
	if err == nil || len(pending) != 1 {
		t.Fatalf("error %v, state files %v", err, pending)
	}
	for _, want := range []string{"after epsilon 1 was charged to " + ledger, "without another charge", pending[0]} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	info, err := os.Stat(pending[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the state file has mode %v, %v", info.Mode(), err)
	}
	state := readText(t, pending[0])

	// One record more or less, or another plan, does not get the noise: all of the budget is spent.
	other := writeFile(t, "b.csv", csvOf(300, 1e-3))
	elsewhere := slices.Clone(args)
	elsewhere[slices.Index(args, rows)] = other
	if status, out, errOut := cohort(t, elsewhere...); status != exitWrong || out != "" ||
		!strings.Contains(errOut, "belongs to other records") {
		t.Errorf("other records: status %d, %.80q, %q", status, out, errOut)
	}
	for _, change := range []string{"--branch=high-d", "--fraction-bits=12", "--k=4"} {
		if status, out, errOut := cohort(t, append(args, change)...); status != exitWrong || out != "" ||
			!strings.Contains(errOut, "cannot pay") {
			t.Errorf("%s: status %d, %.80q, %q", change, status, out, errOut)
		}
	}
	left, _ := filepath.Glob(ledger + ".*.pending")
	if len(left) != 1 || readText(t, pending[0]) != state {
		t.Fatalf("what was refused has changed the state files: %v", left)
	}

	// The same command finishes it, on another number of workers as well; a copy shows that it is the same release.
	ledgerText := readText(t, ledger)
	first := object(t, append(args, "--workers", "1")...)
	if left, _ := filepath.Glob(ledger + ".*.pending"); left != nil {
		t.Errorf("%v is left", left)
	}
	if s := strings.Join(strings.Fields(readText(t, ledger)), " "); strings.Count(s, `"run":`) != 1 ||
		strings.Count(s, `"end":`) != 1 {
		t.Errorf("the ledger file is\n%s", s)
	}
	for path, text := range map[string]string{pending[0]: state, ledger: ledgerText} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := object(t, append(args, "--workers", "2")...)
	a, _ := json.Marshal(first["centroids"])
	b, _ := json.Marshal(again["centroids"])
	if !bytes.Equal(a, b) {
		t.Errorf("the release is another one:\n%s\n%s", a, b)
	}
	if l, _ := json.Marshal(first["ledger"]); !bytes.Contains(l, []byte("who has read that file knows the noise")) {
		t.Errorf("the ledger does not say who knows the noise: %s", l)
	}
	if status, _, errOut := cohort(t, args...); status != exitWrong || !strings.Contains(errOut, "is spent") {
		t.Errorf("a further run: status %d, %q", status, errOut)
	}
}

// First centroids that are read from a file are a part of the request, whatever the file's name: other ones do not get
// the noise of an interrupted run.
func TestInterruptedRunKnowsItsStart(t *testing.T) {
	dir := t.TempDir()
	ledger, start := filepath.Join(dir, "ledger"), filepath.Join(dir, "start.csv")
	flags := []string{"--data", writeFile(t, "a.csv", csvOf(300, 0)), "--method", "relative", "--k", "2", "--epsilon",
		"1", "--delta", "1e-6", "--bounds", "0:10", "--start", start, "--ledger", ledger, "--ledger-budget", "2:1e-5",
		"--format", "json"}
	for i, rows := range []string{"1,1,1\n9,9,9\n", "1,1,1\n8,9,9\n"} {
		if err := os.WriteFile(start, []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := interrupt(t, flags...); err == nil {
				t.Fatal("the run was not interrupted")
			}
		}
	}
	object(t, append([]string{"run"}, flags...)...)
	if n := strings.Count(readText(t, ledger), `"run":`); n != 2 {
		t.Errorf("%d runs were paid for, of two from other first centroids", n)
	}
}

// csvOf has n rows of three columns, the last one moved.
func csvOf(n int, moved float64) string {
	var b strings.Builder
	for i := range n {
		x := 0.0
		if i == n-1 {
			x = moved
		}
		fmt.Fprintf(&b, "%d,%g,%d\n", i%10, float64(i%7)+x, i%3)
	}
	return b.String()
}
