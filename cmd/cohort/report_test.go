package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
