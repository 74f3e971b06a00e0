package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/bench/chart"
	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// env returns an environment for a suite that a test drives.
func env(t *testing.T, dir string, quick bool) *Env {
	t.Helper()
	m := &Machine{Version: "test", Workers: 1}
	st, err := openStore(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.close() })
	sets, err := OpenSets(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Env{Quick: quick, suite: &Suite{Name: "test"}, sets: sets, machine: m, store: st,
		deadline: time.Now().Add(time.Minute), progress: func(string) {}}
}

// Two benchmarks in one folder would overwrite each other's rows.
func TestFolderIsInUse(t *testing.T) {
	dir, m := t.TempDir(), &Machine{Version: "test"}
	st, err := openStore(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(dir, m); err == nil || !strings.Contains(err.Error(), "in use by another benchmark") {
		t.Errorf("a second benchmark: %v", err)
	}
	if err := st.close(); err != nil {
		t.Fatal(err)
	}
	if st, err = openStore(dir, m); err != nil {
		t.Fatal(err)
	}
	if err := st.close(); err != nil {
		t.Fatal(err)
	}
}

func TestInterruptedRunGoesOnWhereItStopped(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	ran := 0
	measure := func(e *Env, labels ...string) {
		t.Helper()
		for _, l := range labels {
			e.newCase(ctx, "t", []Label{L("x", l)}, func(_ context.Context, c *Case) error {
				ran++
				c.samples("v", unitPlain, []float64{1, 2, 3})
				c.number("nan", unitPlain, math.NaN())
				return nil
			})
			if e.failed != nil {
				t.Fatal(e.failed)
			}
		}
		if err := e.store.close(); err != nil {
			t.Fatal(err)
		}
	}
	measure(env(t, dir, false), "1", "2")
	// The process died in the middle of a line.
	path := filepath.Join(dir, ResultsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, `{"suite":"test","ta`...), 0o600); err != nil {
		t.Fatal(err)
	}
	e := env(t, dir, false)
	measure(e, "1", "2", "3")
	if ran != 3 || len(e.rows) != 3 || e.rows[0].value("v").Mean != 2 ||
		!math.IsNaN(float64(e.rows[0].value("nan").Mean)) {
		t.Errorf("%d cases ran, rows %+v", ran, e.rows)
	}
	// A quick row is not a full row.
	if measure(env(t, dir, true), "1"); ran != 4 {
		t.Errorf("a full row stands for a quick one")
	}
	if e = env(t, dir, false); e.store.resumed != 4 || e.store.close() != nil {
		t.Errorf("%d rows are in the file, want 4", e.store.resumed)
	}
}

// TestResultsOfAnotherBuildAreKeptAside: those of another version, and those of a build of this version that was made
// of other code, neither of which says its revision.
func TestResultsOfAnotherBuildAreKeptAside(t *testing.T) {
	dir := t.TempDir()
	other, err := json.Marshal(headerOf(&Machine{Version: "test", Workers: 1}, "of other code"))
	if err != nil {
		t.Fatal(err)
	}
	for i, first := range []string{`{"cohort_bench_format":1,"version":"other"}`, string(other)} {
		old := first + "\n" + `{"suite":"s"}` + "\n"
		if err := os.WriteFile(filepath.Join(dir, ResultsFile), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		e := env(t, dir, false)
		b, err := os.ReadFile(e.store.aside)
		if err != nil || string(b) != old || e.store.resumed != 0 {
			t.Errorf("time %d: kept aside %q as %q, error %v", i, b, e.store.aside, err)
		}
		if err := e.store.close(); err != nil {
			t.Fatal(err)
		}
	}
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(filepath.Join(blocked, "sub"), &Machine{}); err == nil || fault.IsRequest(err) {
		t.Errorf("a folder that cannot be made: error is %v", err)
	}
}

func TestCaseTellsFailuresApart(t *testing.T) {
	e := env(t, "", true)
	ctx := context.Background()
	one := func(name string, fn func(context.Context, *Case) error) error {
		e.failed = nil
		e.newCase(ctx, name, nil, fn)
		return e.failed
	}
	if err := one("missing", func(ctx context.Context, c *Case) error {
		_, err := c.Env.set(ctx, "mars")
		return err
	}); err != nil || !slices.Equal(e.missing, []string{"mars"}) {
		t.Errorf("missing set: %v, %v", e.missing, err)
	}
	if err := one("broken", func(context.Context, *Case) error { return errors.New("no luck") }); err != nil ||
		len(e.rows) != 1 || e.rows[0].Failed != "no luck" {
		t.Errorf("failed case: rows %+v, error %v", e.rows, err)
	}
	if err := one("late", func(context.Context, *Case) error { return context.DeadlineExceeded }); err != nil ||
		e.left != 1 {
		t.Errorf("late case: left %d, error %v", e.left, err)
	}
	if err := one("empty", func(context.Context, *Case) error { return nil }); err == nil {
		t.Error("a case that measures nothing passes")
	}
	e.deadline = time.Now().Add(-time.Second)
	if err := one("no time", func(context.Context, *Case) error { t.Error("it ran"); return nil }); err != nil ||
		e.left != 2 {
		t.Errorf("no time left: left %d, error %v", e.left, err)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	e.failed = nil
	e.newCase(stopped, "x", nil, nil)
	if e.failed != context.Canceled {
		t.Errorf("cancelled: error is %v", e.failed)
	}
	e.newCase(ctx, "after a failure", nil, func(context.Context, *Case) error { t.Error("it ran"); return nil })
	report := &Report{Sections: []Section{{Suite: e.suite, Rows: e.rows}}}
	if err := report.Failed(); err == nil || fault.IsRequest(err) {
		t.Errorf("a report with a failed row: %v", err)
	}
}

func TestSuitesAreWellFormed(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range Suites() {
		if !slices.Contains(groups, s.Group) {
			t.Errorf("suite %s is in no group", s.Name)
		}
		if s.Name == "" || s.Title == "" || s.About == "" || s.Group == "" || s.Run == nil || seen[s.Name] {
			t.Errorf("suite %q is incomplete or there twice", s.Name)
		}
		if s.Group != groupPerformance && s.Source == "" {
			t.Errorf("suite %s does not name its source", s.Name)
		}
		seen[s.Name] = true
	}
}

// Without data sets a suite of real data has no rows, which is an error that says
// what is missing; one of built-in data has.
func TestNoDataSetsNoRows(t *testing.T) {
	r, err := Run(context.Background(),
		Options{Suites: []string{"thesis-8.4", "fastlloyd-table3"}, Quick: true, DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Failed(); err == nil || fault.IsRequest(err) ||
		!strings.Contains(err.Error(), "lacks timesynth_k2_d2_n10000") {
		t.Errorf("error is %v", err)
	}
	if text := r.MissingText(); !strings.Contains(text, "lsun from the code") ||
		!strings.Contains(text, "cohort data import") {
		t.Errorf("the text is %q", text)
	}
	r.Sections = append(r.Sections, Section{Suite: &Suite{}, Rows: []Row{{}}})
	if err := r.Failed(); err != nil {
		t.Errorf("with a row: %v", err)
	}
}

func TestSelect(t *testing.T) {
	got, err := selectSuites(nil)
	if err != nil || len(got) == 0 || got[0].Name != "kernels" {
		t.Errorf("no name gives %v, %v", got, err)
	}
	all, err := selectSuites([]string{"all"})
	if err != nil || len(all) != len(Suites()) {
		t.Errorf("all gives %d of %d, %v", len(all), len(Suites()), err)
	}
	for name, want := range map[string]string{"kernel": "kernels", "kernles": "kernels", "ernel": "kernels",
		"fig7": "fastlloyd-fig7", "thesis-8.8": "thesis-fig8.8", "fastlloyd-tabel3": "fastlloyd-table3"} {
		if _, err := selectSuites([]string{name}); !fault.IsRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if _, err := selectSuites([]string{"zzz"}); !fault.IsRequest(err) || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("nothing is like zzz: error is %v", err)
	}
	if got, err := selectSuites([]string{"FastLloyd-Fig7"}); err != nil || len(got) != 1 ||
		got[0].Name != "fastlloyd-fig7" {
		t.Errorf("capital letters: %v, %v", got, err)
	}
}

func TestCompareMeasuresRatios(t *testing.T) {
	e := env(t, "", true)
	c := &Case{Env: e, Row: &Row{}}
	work := func(n int) func() {
		return func() {
			x := 1.0
			for range n {
				x = math.Sqrt(x + 1)
			}
			if x == 0 {
				t.Error("impossible")
			}
		}
	}
	if err := c.compare(context.Background(),
		[]Timed{{Name: "one", Fn: work(20000)}, {Name: "two", Fn: work(80000)}}); err != nil {
		t.Fatal(err)
	}
	one, two := c.Row.value("one"), c.Row.value("two")
	if one.N < 3 || one.N != two.N || one.Median <= 0 || one.P99 < one.Median || two.Median <= one.Median {
		t.Errorf("one %+v, two %+v", one, two)
	}
}

func TestSummarise(t *testing.T) {
	v := summarise("v", unitPlain, []float64{4, 1, 3, 2})
	// Student's t quantile with 3 degrees of freedom is 3.18245, sd is sqrt(5/3).
	if v.Mean != 2.5 || v.Median != 2.5 || v.P99 != 4 || v.N != 4 ||
		math.Abs(float64(v.Half)-3.182446305*math.Sqrt(5.0/3)/2) > 1e-6 {
		t.Errorf("got %+v", v)
	}
}

// Rows pool to what their samples give together.
func TestPooled(t *testing.T) {
	groups := [][]float64{{1, 2, 4}, {7}, {}, {3, 3.5}}
	var rows []Row
	for _, g := range groups {
		rows = append(rows, Row{Values: []Value{summarise("v", unitPlain, g)}})
	}
	want := summarise("v", unitPlain, slices.Concat(groups...))
	got := pooled("v", rows)
	if got.N != want.N || math.Abs(float64(got.Mean-want.Mean)) > 1e-12 || math.Abs(float64(got.Half-want.Half)) > 1e-9 {
		t.Errorf("pooled %+v, want %+v", got, want)
	}
}

func TestHeatMapHasACellForEachRow(t *testing.T) {
	var rows []Row
	for i, k := range []int{20, 2} {
		for j, d := range []int{10, 4, 6} {
			rows = append(rows, Row{Labels: []Label{L("k", k), L("d", d)},
				Values: []Value{summarise("v", unitPlain, []float64{float64(i), float64(j)})}})
		}
	}
	f := Figure{Title: "T", X: "d", Y: "v", Series: []string{"k"}, Heat: true}
	plots := f.plots(rows)
	if len(plots) != 1 {
		t.Fatalf("%d drawings", len(plots))
	}
	svg := plots[0].SVG()
	if strings.Count(svg, "<rect") != 6 || strings.Index(svg, ">k 2<") > strings.Index(svg, ">k 20<") ||
		len(plots[0].Legend()) != 0 {
		t.Errorf("drawing is %s", svg)
	}
}

func TestLevelsRunAcrossTheDrawing(t *testing.T) {
	row := func(table, epsilon, name string, y float64) Row {
		return Row{Table: table, Labels: []Label{L("set", "s1"), L("protocol", name), L("epsilon", epsilon)},
			Values: []Value{summarise("v", unitPlain, []float64{y})}}
	}
	f := Figure{X: "epsilon", Y: "v", Series: []string{"protocol"}, Panel: "set", Level: withoutNoise}
	plots := f.plots([]Row{row("", "0.1", "a", 3), row("", "2", "a", 1), row(withoutNoise, "0", "lloyd", 0.5)})
	if len(plots) != 1 || len(plots[0].Curves) != 2 {
		t.Fatalf("drawings %+v", plots)
	}
	c := plots[0].Curves[1]
	if c.Name != "lloyd" || c.Colour != 1 || len(c.Points) != 2 ||
		c.Points[0] != (chart.Point{X: 0.1, Y: 0.5, Runs: 1}) || c.Points[1] != (chart.Point{X: 2, Y: 0.5, Runs: 1}) {
		t.Errorf("the level is %+v", c)
	}
}

// sample is a report with every kind of cell.
func sample() *Report {
	s := &Suite{Name: "demo", Title: "A <demo>", About: "Shows & tells.", Group: "g", Source: "a paper",
		Figures: []Figure{{Table: "t", Title: "Curve", X: "n", Y: "time", Series: []string{"method"}, LogX: true, LogY: true},
			{Table: "t", Title: "Bars", X: "method", Y: "loss", Bars: true}}}
	var rows []Row
	for _, m := range []string{"fast", "slow"} {
		for i, n := range []string{"10", "100", "1000"} {
			rows = append(rows, Row{Suite: "demo", Table: "t", Labels: []Label{{"method", m}, {"n", n}}, Values: []Value{
				{Name: "time", Unit: unitNanoseconds, Median: Number(1000 * (i + 1)), P99: 5000, Mean: 1500, N: 9, Timed: true,
					References: []Reference{{Name: "Paper", Kind: kindPublished, Value: Number(50000 * (i + 1)), Half: 10,
						Source: "Table 3"}}},
				{Name: "loss", Mean: Number(i), Half: 0.5, N: 4},
			}})
		}
	}
	rows = append(rows, Row{Suite: "demo", Table: "t", Labels: []Label{{"method", "bad"}, {"n", "1"}}, Failed: "broke"})
	return &Report{Machine: &Machine{Version: "v", CPU: "cpu"}, DataDir: "d",
		Sections: []Section{{Suite: s, Rows: rows, Missing: []string{"mars"}, Left: 2}}}
}

func TestReportForms(t *testing.T) {
	r := sample()
	var text, page, lines, table bytes.Buffer
	for _, err := range []error{r.WriteText(&text, 0), r.WriteHTML(&page), r.WriteJSON(&lines), r.WriteCSV(&table)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"1 µs (p99 5 µs)", "50 µs ± 10 ns (50x)", "2 ± 0.5", "FAILED: broke", "mars",
		"2 instances are left out by --quick", "Paper, published"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	h := page.String()
	for _, want := range []string{"A &lt;demo&gt;", "Shows &amp; tells.", "<svg", "prefers-color-scheme: dark",
		"data:text/csv;base64,", `name="viewport"`, "stroke-dasharray", "50x the speed", "medians of 9 repetitions",
		"means of 4 runs, whiskers are 95% intervals",
		`title="mean 1.5 µs ± 0 ns (95%) over 9, median 1 µs, 99th percentile 5 µs"`} {
		if !strings.Contains(h, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"http://", "https://", "<script", "@import", "src="} {
		if strings.Contains(h, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if strings.Count(h, "<svg") != 2 {
		t.Errorf("%d drawings, want 2", strings.Count(h, "<svg"))
	}
	var row Row
	if err := json.Unmarshal([]byte(strings.SplitN(lines.String(), "\n", 2)[0]), &row); err != nil ||
		row.key() != r.Sections[0].Rows[0].key() {
		t.Errorf("JSON reads back as %+v, %v", row, err)
	}
	if got := strings.Count(table.String(), "\n"); got != 1+12 {
		t.Errorf("the CSV has %d lines", got)
	}
}

func TestMissingSetsSayWhereTheyComeFrom(t *testing.T) {
	got := howToGet([]string{"s1", "synth_sep21_k2_d2", "mnist", "unheard"})
	for _, want := range []string{"s1 from SIPU", "synth_sep21_k2_d2 from R package",
		"mnist from MNIST, the four IDX files", "cohort data fetch-help"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	for _, s := range Suites() {
		for _, set := range s.Needs {
			if _, err := FindOrigin(set); err != nil {
				t.Errorf("suite %s needs %s: %v", s.Name, set, err)
			}
		}
	}
}

func TestNumberFormats(t *testing.T) {
	for _, c := range []struct {
		x    float64
		unit string
		want string
	}{{1234, unitNanoseconds, "1.23 µs"}, {0.5, unitNanoseconds, "0.5 ns"}, {128, unitBytes, "128 B"},
		{2.557e8, unitBytes, "256 MB"}, {0.0123, unitPlain, "0.0123"}, {math.NaN(), unitPlain, "–"},
		{72.26, "GFLOP/s", "72.3 GFLOP/s"}, {4.2e6, "/s", "4.2 M/s"}} {
		if got := chart.Quantity(c.x, c.unit); got != c.want {
			t.Errorf("%v %q prints as %q, want %q", c.x, c.unit, got, c.want)
		}
	}
}

func TestReportCarriesTheLedgersOfItsProtocols(t *testing.T) {
	cost := privacy.Entry{What: "sums", Viewers: []string{"outsider"}, Mechanism: "laplace",
		Cost: privacy.Spec{Family: "laplace", Scale: 1}, Theorem: "T2"}
	epsilon := 1.0
	res := &engine.Result{Epsilon: &epsilon, Ledger: new(privacy.Ledger)}
	if err := res.Ledger.Add(cost); err != nil {
		t.Fatal(err)
	}
	rows := []Row{{Labels: []Label{L("set", "s1"), L("protocol", "one")}},
		{Labels: []Label{L("set", "s2"), L("protocol", "one")}}, {Labels: []Label{L("protocol", "plain")}}}
	for i := range rows[:2] {
		if err := rows[i].keepLedger(res); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows[2].keepLedger(&engine.Result{}); err != nil || rows[2].Ledger != "" {
		t.Errorf("a run without a budget keeps the ledger %q, error %v", rows[2].Ledger, err)
	}
	var page strings.Builder
	r := &Report{Machine: new(Machine), Sections: []Section{{Suite: &Suite{Name: "x", Title: "X"}, Rows: rows}}}
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(page.String(), "sums: epsilon 1 [T2]"); got != 1 {
		t.Errorf("the ledger of the protocol stands %d times on the page", got)
	}
	if !strings.Contains(page.String(), "<summary>set s1, protocol one</summary>") {
		t.Error("the ledger has no title")
	}
}

func TestRowsInOrder(t *testing.T) {
	row := func(table, a, b string) Row { return Row{Table: table, Labels: []Label{L("set", a), L("epsilon", b)}} }
	got := inOrder([]Row{row("t", "s1", "1"), row("t", "birch", "0.1"), row("u", "s1", "2"), row("t", "s1", "0.1"),
		row("t", "s1", "all"), row("t", "birch", "1"), row("t", "s1", "10")})
	var names []string
	for _, r := range got {
		names = append(names, r.Table+" "+r.Labels[0].Value+" "+r.Labels[1].Value)
	}
	want := []string{"t s1 0.1", "t s1 1", "t s1 10", "t s1 all", "t birch 0.1", "t birch 1", "u s1 2"}
	if !slices.Equal(names, want) {
		t.Errorf("order is %v, want %v", names, want)
	}
}
