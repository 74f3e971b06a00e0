package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/catalog"
)

func fits(t *testing.T, what, out string) {
	t.Helper()
	for _, line := range strings.Split(out, "\n") {
		if n := len([]rune(line)); n > 80 && !strings.HasPrefix(line, "  cohort ") {
			t.Errorf("%s: a line has %d columns: %q", what, n, line)
		}
	}
}

// The help shows what everybody needs; with a method, what it takes and nothing else.
func TestHelpFitsTheQuestion(t *testing.T) {
	for _, command := range []string{"run", "plan", "profile", "audit"} {
		status, out, _ := cohort(t, command, "--help")
		for _, want := range append(everyday(), "fastlloyd", "--method NAME --help", "Examples") {
			if command == "audit" && slices.Contains([]string{"clients", "parties", "out", "labels-out", "report"}, want) ||
				command == "profile" && slices.Contains([]string{"labels-out", "report"}, want) ||
				command == "plan" && slices.Contains([]string{"out", "labels-out", "report"}, want) {
				continue
			}
			if status != exitDone || !strings.Contains(out, want) {
				t.Errorf("%s --help: status %d, lacks %s", command, status, want)
			}
		}
		for _, other := range []string{"--fraction-bits", "--gamma-factor", "--radius"} {
			if strings.Contains(out, other) {
				t.Errorf("%s --help has %s", command, other)
			}
		}
		fits(t, command, out)
	}
	for _, m := range catalog.Methods() {
		status, out, _ := cohort(t, "run", "--help", "--method", m.Name)
		options := out[:strings.Index(out, "Flags of")]
		for _, o := range m.Options() {
			if status != exitDone || !strings.Contains(options, "--"+o.Name+" ") {
				t.Errorf("%s: the help lacks --%s", m.Name, o.Name)
			}
		}
		for _, other := range catalog.Methods() {
			for _, o := range other.Options() {
				if !m.Takes(o.Name) && strings.Contains(out, "--"+o.Name+" ") {
					t.Errorf("%s: the help has --%s", m.Name, o.Name)
				}
			}
		}
		if strings.Contains(out, "--epsilon ") != m.Private {
			t.Errorf("%s is private: %v, its help says otherwise", m.Name, m.Private)
		}
		fits(t, m.Name, out)
	}
}

func TestMethodsSideBySide(t *testing.T) {
	status, out, _ := cohort(t, "methods")
	fits(t, "methods", out)
	_, text, _ := cohort(t, "methods", "--format", "json")
	var all []struct {
		Name    string
		Options []struct{ Name, Default string }
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != len(catalog.Methods()) {
		t.Fatalf("%d methods, error %v", len(all), err)
	}
	for i, m := range catalog.Methods() {
		if status != exitDone || !strings.Contains(out, m.Name) || all[i].Name != m.Name || len(all[i].Options) != len(m.Options()) {
			t.Errorf("%s: status %d, %+v", m.Name, status, all[i])
		}
	}
}

func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if status, _, errOut := cohort(t, "man", dir); status != exitDone {
		t.Fatal(errOut)
	}
	for page, want := range map[string]string{"cohort.1": "cohort-run", "cohort-run.1": "labels-out", "cohort-data-write.1": "separation"} {
		if text := readText(t, filepath.Join(dir, page)); !strings.Contains(strings.ReplaceAll(text, `\-`, "-"), want) {
			t.Errorf("%s lacks %s", page, want)
		}
	}
	if status, _, errOut := cohort(t, "man", writeFile(t, "f", "x")); status != exitFailed || strings.Count(errOut, "\n") != 1 {
		t.Errorf("status %d, %q", status, errOut)
	}
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct{ args, want, not string }{
		{"run --method ", "fastlloyd\t", ""},
		{"run --data ", "builtin:birch2", ""},
		{"run --method ckks --mode ", "multiparty", "tree"},
		{"run --method hybrid --calibration ", "proven", "published"},
		{"profile --method fastlloyd --calibration ", "published", ""},
		{"bench ", "kernels\t", ""},
		{"", "methods\t", ""},
	} {
		_, out, _ := cohort(t, append([]string{"__complete"}, strings.Split(c.args, " ")...)...)
		if !strings.Contains(out, c.want) || c.not != "" && strings.Contains(out, c.not) {
			t.Errorf("%q completes to %q", c.args, out)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if status, out, _ := cohort(t, "completion", shell); status != exitDone || !strings.Contains(out, "cohort") {
			t.Errorf("%s: status %d", shell, status)
		}
	}
}
