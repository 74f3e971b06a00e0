package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/bench/page"
)

// A run writes its page, and cohort report makes it of the folder of the run. A private page holds no records.
func TestReportOfARun(t *testing.T) {
	dir := t.TempDir()
	out, page := filepath.Join(dir, "out"), filepath.Join(dir, "page.html")
	args := []string{
		"run",
		"--data",
		"builtin:blobs",
		"--n",
		"600",
		"--d",
		"2",
		"--k",
		"3",
		"--epsilon",
		"2",
		"--bounds",
		"-200:200",
	}
	status, text, errText := cohort(t, append(args, "--out", out, "--report", page)...)
	if status != exitDone || !strings.Contains(text, "the report is "+page) {
		t.Fatalf("status %d, output %s%s", status, text, errText)
	}
	if status, text, errText = cohort(t, "report", filepath.Join(out, "result.json")); status != exitDone ||
		!strings.Contains(text, "report.html") {
		t.Fatalf("status %d, output %s%s", status, text, errText)
	}
	if err := os.Remove(filepath.Join(out, "report.html")); err != nil {
		t.Fatal(err)
	}
	if status, text, errText = cohort(t, "report", out); status != exitDone { // the folder says which result is meant
		t.Fatalf("status %d, output %s%s", status, text, errText)
	}
	for _, path := range []string{page, filepath.Join(out, "report.html")} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"epsilon 2", "private synopsis that the run has paid for", "tree level 1", "200"} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
		if strings.Contains(string(b), `class="cloud`) {
			t.Errorf("%s of a private run shows records", path)
		}
	}
	if status, _, errText = cohort(t, append(args, "--out", out)...); status != exitDone {
		t.Errorf("a folder with a report is refused: %s", errText)
	}
	if status, _, errText = cohort(t, append(args, "--quality", "on", "--report", page)...); status != exitDone {
		t.Fatal(errText)
	}
	if b, _ := os.ReadFile(page); !strings.Contains(string(b), `class="cloud`) {
		t.Error("the page of a run with --quality on lacks the records")
	}
}

func TestReportRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	for _, content := range []string{"", "[]", "{}", `{"d":2,"centroids":[[1]],"ledger":[]}`,
		`{"d":1,"centroids":[[1]],"sizes":[1,2],"ledger":[]}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, _, errText := cohort(t, "report", path); status != exitFailed ||
			!strings.Contains(errText, "result.json of a run") {
			t.Errorf("%q: status %d, %s", content, status, errText)
		}
	}
	if status, _, _ := cohort(t, "report"); status != exitWrong {
		t.Errorf("no file: status %d", status)
	}
}

// Whatever a result.json says, a page is made of it or it is refused.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"d":2,"k":2,"epsilon":1,"delta":1e-6,"centroids":[[1,2],[3,4]],"sizes":[5,6],"nicv_estimate":0.1,` +
		`"synopsis":[{"lo":[0,0],"hi":[1,1],"weight":3}],"k_curve":[{"k":2,"nicv":1,"silhouette":0.5},{"k":3}],` +
		`"convergence":[{"moved":1,"loss":2,"start":1},{"loss":1,"start":2}],"ledger":[{"kind":"release","what":"sums",` +
		`"viewers":["outsider"],"noise":{"shares":3,"needed":2,"known":{"clients":1}},"mechanism":"discrete-gaussian",` +
		`"cost":{"family":"gaussian","scale":2,"rounds":3,"group":"a"},"epsilon":1,"delta":1e-6,"calibration":"proven"},` +
		`{"kind":"note","what":"x"}],"timings":{"assign":{"count":1,"total_ns":5}},` +
		`"comm":{"rounds":1,"bytes_sent":[1,2],"bytes_received":[3,4]}}`))
	f.Add([]byte(`{"d":1,"centroids":[[1e308],[-1e308]],"ledger":[{"cost":{"family":"fm","gamma":1,"phantoms":9,` +
		`"parties":2,"cells":2}},{"cost":{"family":"drawn-gaussian","scale":1,"p":0.5,"trials":4}}]}`))
	f.Add([]byte(`{"d":3,"centroids":[[1,1,1]],"epsilon":1,"ledger":[]}`))
	f.Add([]byte(`{"d":2,"centroids":[[1,1]],"synopsis":[{}],"ledger":[]}`))
	f.Add([]byte(`{"d":2,"centroids":[[1,1]],"comm":{"bytes_sent":[1]},"ledger":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, why := readResult(b)
		if why != "" {
			return
		}
		run := &page.Run{Result: r, Headline: []string{privacyLine(r)}}
		if err := run.WriteHTML(io.Discard); err != nil && !strings.Contains(err.Error(), "unsupported value") {
			t.Error(err)
		}
	})
}
