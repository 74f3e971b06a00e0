package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cohort-engine/cohort/engine/catalog"
)

func fits(t *testing.T, what, out string) {
	t.Helper()
	for _, line := range strings.Split(out, "\n") {
		if n := len([]rune(line)); n > 80 {
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

// The help of every command, and the lists that commands print, fit the terminal.
func TestHelpOfEveryCommandFits(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.IsAvailableCommand() || c.Name() == "cohort" {
			args := append(strings.Fields(c.CommandPath())[1:], "--help")
			status, out, errOut := cohort(t, args...)
			if status != exitDone || errOut != "" || len(out) < 100 || !strings.Contains(out, "Usage:\n  "+c.CommandPath()) {
				t.Errorf("%v: status %d, %s\n%s", args, status, errOut, out)
			}
			fits(t, c.CommandPath(), out)
		}
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" { // cobra's own
				visit(sub)
			}
		}
	}
	visit(newRoot())
	for _, args := range []string{"audit --list", "bench --list", "data list", "data fetch-help har",
		"account --mechanism gaussian --scale 20 --rounds 100 --delta 1e-5"} {
		_, out, _ := cohort(t, strings.Fields(args)...)
		if len(out) < 60 {
			t.Errorf("%s prints %q", args, out)
		}
		fits(t, args, out)
	}
}

// Lines of an audit that are too long go on further in; others stay as they are.
func TestLinesAreFolded(t *testing.T) {
	var b strings.Builder
	w := &lines{w: &b}
	w.printf("  %s", strings.Repeat("abcdefghi ", 9))
	w.printf("end\nshort  line\n")
	want := "  " + strings.TrimSpace(strings.Repeat("abcdefghi ", 7)) + "\n    abcdefghi abcdefghi end\nshort  line\n"
	if b.String() != want || w.err != nil {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// What is between quotes stays on one line, so that a folded example can be pasted.
func TestExamplesAreFoldedAsShellsTakeThem(t *testing.T) {
	var b strings.Builder
	help{&b, 30}.example(`  cohort audit --case "a long name of a case" --trials 10`)
	if got, want := b.String(), "\nExamples:\n  cohort audit --case \\\n      \"a long name of a case\" \\\n      "+
		"--trials 10\n"; got != want {
		t.Errorf("%q, want %q", got, want)
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
		if status != exitDone || !strings.Contains(out, m.Name) || all[i].Name != m.Name ||
			len(all[i].Options) != len(m.Options()) {
			t.Errorf("%s: status %d, %+v", m.Name, status, all[i])
		}
	}
}

func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if status, _, errOut := cohort(t, "man", dir); status != exitDone {
		t.Fatal(errOut)
	}
	for page, want := range map[string]string{"cohort.1": "cohort-run", "cohort-run.1": "labels-out",
		"cohort-data-write.1": "separation"} {
		if text := readText(t, filepath.Join(dir, page)); !strings.Contains(strings.ReplaceAll(text, `\-`, "-"), want) {
			t.Errorf("%s lacks %s", page, want)
		}
	}
	if status, _, errOut := cohort(t, "man", writeFile(t, "f", "x")); status != exitFailed ||
		strings.Count(errOut, "\n") != 1 {
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
		{"run --out-format ", "parquet", ""},
		{"run --missing ", "mean-of-bounds", ""},
		{"predict --missing ", "drop-row", ""},
		{"study new --method ", "fastlloyd\t", ""},
		{"study new --method fastlloyd --mechanism ", "laplace", ""},
		{"ledger show --neighbours ", "replace-one", ""},
		{"run --epsilon ", ":4\n", ""}, // no file
		{"run --columns ", ":4\n", ""},
		{"join --workers ", ":4\n", ""},
		{"run --labels-out ", ":0\n", ""}, // files
		{"run --data ", ":0\n", ""},
		{"join --state ", ":0\n", ""},
		{"bench ", "kernels\t", ""},
		{"data write ", "\nbox-blobs\t", "builtin:"},
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

// A flag that several methods take says what it is to each of them.
func TestFlagsSayWhatTheyAreToEachMethod(t *testing.T) {
	cmd := newRunCommand()
	for _, m := range catalog.Methods() {
		for _, option := range m.Options() {
			usage := cmd.Flags().Lookup(option.Name).Usage
			_, after, found := strings.Cut(usage, option.About+" (")
			takers, _, _ := strings.Cut(after, ")")
			if isMethodOption(option.Name) && (!found || !slices.Contains(strings.Split(takers, ", "), m.Name)) {
				t.Errorf("--%s: %q does not say that to %s it is %q", option.Name, usage, m.Name, option.About)
			}
		}
	}
}
