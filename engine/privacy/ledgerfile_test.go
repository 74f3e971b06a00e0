package privacy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLedgerFileSpendsOneBudget(t *testing.T) {
	f := LedgerFile{filepath.Join(t.TempDir(), "ledger")}
	total := Budget{1, 1e-5}
	for i := range 4 {
		run, err := f.Start("data", total, Budget{0.25, 2e-6}, "run")
		if err != nil || run != i+1 {
			t.Fatalf("run %d: number %d, error %v", i+1, run, err)
		}
	}
	_, err := f.Start("data", Budget{}, Budget{0.25, 2e-6}, "run")
	if !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "0.25 is missing") {
		t.Errorf("fifth run: error %v, want a shortfall of 0.25", err)
	}
	if _, err := f.Start("other", Budget{}, Budget{0.01, 0}, "run"); !errors.Is(err, ErrDataset) {
		t.Errorf("other data: error %v", err)
	}
	if _, err := f.Start("data", Budget{2, 1e-5}, Budget{0.01, 0}, "run"); !errors.Is(err, ErrRange) {
		t.Errorf("another total: error %v", err)
	}
	// Known Gaussian releases compose by mu: four of (0.25, 2e-6) leave room.
	mu, err := MuOf(Budget{0.25, 2e-6}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for run := 1; run <= 4; run++ {
		l := &Ledger{Delta: 2e-6}
		if err := l.Add(Entry{What: "x", Viewers: []string{"outsider"}, Cost: Spec{Family: "gaussian", Scale: 1 / mu}}); err != nil {
			t.Fatal(err)
		}
		if err := f.End(run, l); err != nil {
			t.Fatal(err)
		}
	}
	if _, spent, ok, err := f.Left(); err != nil || !ok || spent > 0.55 || spent < 0.4 {
		t.Errorf("spent %v, %v, %v, want about 0.5", spent, ok, err)
	}
	if _, err := f.Start("data", Budget{}, Budget{0.25, 2e-6}, "run"); err != nil {
		t.Errorf("fifth run after settling: %v", err)
	}
}

func TestLedgerFileDetectsDamage(t *testing.T) {
	f := LedgerFile{filepath.Join(t.TempDir(), "ledger")}
	for range 3 {
		if _, err := f.Start("data", Budget{9, 1e-5}, Budget{1, 0}, "run"); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	// any cut inside the last line is torn, and the advice mends it
	last := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	for cut := last + 1; cut < len(whole); cut += 7 {
		if err := os.WriteFile(f.Path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.Start("data", Budget{}, Budget{1, 0}, "run")
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "truncate -s") {
			t.Fatalf("cut at %d: error %v", cut, err)
		}
	}
	// so is a file whose first line was cut short
	for cut := 1; cut < strings.Index(string(whole), "\n"); cut += 5 {
		if err := os.WriteFile(f.Path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Start("data", Budget{1, 0}, Budget{1, 0}, "run"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "truncate -s 0 ") {
			t.Fatalf("first line cut at %d: error %v", cut, err)
		}
	}
	if err := os.WriteFile(f.Path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(f.Path, int64(last)); err != nil {
		t.Fatal(err)
	}
	if run, err := f.Start("data", Budget{}, Budget{1, 0}, "run"); err != nil || run != 3 {
		t.Errorf("after mending: run %d, error %v", run, err)
	}
	// a changed byte, or a line taken out, in the middle
	altered := strings.Replace(string(whole), `"run":1`, `"run":2`, 1)
	lines := strings.SplitAfter(string(whole), "\n")
	for name, text := range map[string]string{"altered": altered, "removed": lines[0] + lines[2] + lines[3], "removed, and the next is the last": lines[0] + lines[2],
		"altered at the end": strings.Replace(string(whole), `"run":3`, `"run":2`, 1), "another text": "x,y\n1,2\n", "another text in one line": "x,y", "other bytes": "\x1f\x8b\x00\n\x01"} {
		if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Start("data", Budget{}, Budget{1, 0}, "run"); !errors.Is(err, ErrCorrupt) || strings.Contains(err.Error(), "truncate") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestLedgerFileLeavesNothingBehindOnRefusal(t *testing.T) {
	f := LedgerFile{filepath.Join(t.TempDir(), "ledger")}
	if _, err := f.Start("data", Budget{0.5, 0}, Budget{1, 0}, "run"); !errors.Is(err, ErrBudget) {
		t.Errorf("error %v, want a refusal", err)
	}
	if _, err := os.Stat(f.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was left behind: %v", err)
	}
}

// Several processes race for a budget of ten runs; exactly ten win.
func TestLedgerFileProcessesCannotOverspend(t *testing.T) {
	if path := os.Getenv("COHORT_TEST_LEDGER"); path != "" {
		won := 0
		for range 6 {
			if _, err := (LedgerFile{path}).Start("data", Budget{1, 0}, Budget{0.1, 0}, "run"); err == nil {
				won++
			} else if !errors.Is(err, ErrBudget) {
				t.Fatal(err)
			}
		}
		os.Stdout.WriteString(strings.Repeat("won\n", won))
		return
	}
	path := filepath.Join(t.TempDir(), "ledger")
	outs := make(chan string)
	for range 4 {
		go func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestLedgerFileProcessesCannotOverspend$")
			cmd.Env = append(os.Environ(), "COHORT_TEST_LEDGER="+path)
			b, err := cmd.Output()
			if err != nil {
				b = append(b, "failed: "+err.Error()...)
			}
			outs <- string(b)
		}()
	}
	won := 0
	for range 4 {
		out := <-outs
		if strings.Contains(out, "failed") {
			t.Error(out)
		}
		won += strings.Count(out, "won")
	}
	if won != 10 {
		t.Errorf("%d runs were paid for, want 10", won)
	}
}
