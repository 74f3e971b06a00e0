package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProfileShowsEveryPhase(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"profile", "--method", "fastlloyd", "--epsilon", "1", "--clients", "2", "--seed", "1", "--runs", "3"}
	status, out, errOut := cohort(t,
		append(args, "--cpuprofile", path("cpu"), "--memprofile", path("mem"), "--trace", path("trace"),
			"--timeline", path("timeline.json"), "--network-model", "lan")...)
	if status != exitDone || errOut != "" {
		t.Fatalf("status %d, stderr %q", status, errOut)
	}
	for _, want := range []string{"flow", "mask", "noise", "postprocess", "outside phases", "p99", "allocs", "worker 1",
		"Network lan", "limits measured"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	for _, f := range []string{"cpu", "mem", "trace", "timeline.json"} {
		if info, err := os.Stat(path(f)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	b, err := os.ReadFile(path("timeline.json"))
	if err != nil || !json.Valid(b) {
		t.Errorf("the timeline is no JSON, error %v", err)
	}
	left, _ := filepath.Glob(path(".cohort-*"))
	if len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	m := object(t, append(args, "--format", "json")...)
	timings := m["timings"].(map[string]any)
	flow := timings["flow"].(map[string]any)
	iterations := m["iterations"].(float64)
	if flow["count"].(float64) != 3*2*iterations {
		t.Errorf("flow was counted %v times in 3 runs of %v iterations and 2 clients", flow["count"], iterations)
	}
	if assign := timings["assign"].(map[string]any); assign["count"] != flow["count"] {
		t.Errorf("%v passes at prices for %v flows", assign["count"], flow["count"])
	}
	p := m["profile"].(map[string]any)
	if p["runs"] != 3.0 || len(p["rounds"].([]any)) != int(iterations) ||
		p["limits"].(map[string]any)["bytes_per_second"].(float64) <= 0 {
		t.Errorf("profile %v", p)
	}
}

// A profile of a private run shows its times, and quality: headline and ledger say that no epsilon covers them.
func TestProfileSaysWhatItShows(t *testing.T) {
	args := []string{"profile", "--method", "relative", "--epsilon", "1", "--bounds", "0:1000000", "--public-n", "5000",
		"--runs", "1"}
	_, out, _ := cohort(t, args...)
	if !strings.Contains(strings.Join(strings.Fields(out), " "), "does not cover the quality figures and times") {
		t.Errorf("the headline does not say what is shown: %.300s", out)
	}
	for _, c := range []struct {
		more []string
		says bool
	}{{nil, true}, {[]string{"--seed", "1"}, false}} {
		dir := filepath.Join(t.TempDir(), "out")
		object(t, append(args, append(c.more, "--format", "json", "--out", dir)...)...)
		b, err := os.ReadFile(filepath.Join(dir, "ledger.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), timesNote) != c.says {
			t.Errorf("%v: the ledger lacks its line on the times, or has one for nothing:\n%s", c.more, b)
		}
	}
}

func TestProfileBadInput(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown network": {"--network-model", "moon"},
		"no such folder":  {"--cpuprofile", filepath.Join(t.TempDir(), "none", "cpu")},
		"unknown method":  {"--method", "loyd"},
	} {
		status, out, errOut := cohort(t, append([]string{"profile"}, args...)...)
		if status != exitWrong || out != "" || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: status %d, out %q, stderr %q", name, status, out, errOut)
		}
	}
}

func TestBenchBadInput(t *testing.T) {
	file, sets := writeFile(t, "f", "x"), t.TempDir()
	for _, c := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"unknown suite", []string{"kernel"}, exitWrong, "kernels"},
		{"unknown table", []string{"fastlloyd-table4"}, exitWrong, "fastlloyd-table3"},
		{"unknown format", []string{"--format", "xml"}, exitWrong, "xml"},
		{"workers", []string{"--workers", "0"}, exitWrong, "--workers"},
		{"output that cannot be written", []string{"kernels", "--quick", "--out", filepath.Join(file, "sub")},
			exitFailed, "--out"},
		{"output among other files", []string{"nothing-printed", "--out", filepath.Dir(file)}, exitFailed,
			"is not a result of cohort bench"},
		{"output over the sets", []string{"nothing-printed", "--out", sets, "--data-dir", sets + "/."}, exitWrong,
			"--data-dir"},
		{"pictures over the sets", []string{"nothing-printed", "--results", sets, "--data-dir", sets}, exitWrong,
			"--data-dir"},
	} {
		status, out, errOut := cohort(t, append([]string{"bench"}, c.args...)...)
		if status != c.status || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: status %d, out %q, stderr %q", c.name, status, out, errOut)
		}
	}
}

func TestBenchListsMissingSets(t *testing.T) {
	status, out, errOut := cohort(t, "bench", "fastlloyd-table3", "--quick", "--data-dir", t.TempDir())
	if status != exitFailed || !strings.Contains(out, "missing data sets") || !strings.Contains(out, "lsun") ||
		!strings.Contains(errOut, "--data-dir") {
		t.Errorf("status %d, stderr %q, out:\n%s", status, errOut, out)
	}
	// Some rows need no files; what is missing is said beside them.
	status, out, errOut = cohort(t, "bench", "thesis-8.7", "--quick", "--format", "csv", "--data-dir", t.TempDir())
	if status != exitDone || !strings.Contains(out, "set=synth") || !strings.Contains(errOut, "lsun") &&
		!strings.Contains(errOut, "s1 from") {
		t.Errorf("status %d, stderr %q, out:\n%s", status, errOut, out)
	}
	status, out, _ = cohort(t, "bench", "--list")
	if status != exitDone || !strings.Contains(out, "fastlloyd-table3") || !strings.Contains(out, "kernels") {
		t.Errorf("status %d, out:\n%s", status, out)
	}
}

// TestSummaryIsOfStoredResults: without a suite's name nothing is measured.
func TestSummaryIsOfStoredResults(t *testing.T) {
	status, out, errOut := cohort(t, "bench", "--summary")
	stored, want, _ := cohort(t, "bench", "--stored", "--summary")
	if status != exitDone || stored != exitDone || out != want || !strings.Contains(out, "thesis-8.2") {
		t.Errorf("status %d and %d, stderr %q, out:\n%s\nbut with --stored:\n%s", status, stored, errOut, out, want)
	}
}

func TestInterruptedBenchSaysHowToGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errOut bytes.Buffer
	status := execute(ctx, []string{"bench", "kernels", "--out", t.TempDir()}, &out, &errOut)
	if status != exitFailed || !strings.Contains(errOut.String(), "interrupted") ||
		!strings.Contains(errOut.String(), "go on") {
		t.Errorf("status %d, stderr %q", status, errOut.String())
	}
}
