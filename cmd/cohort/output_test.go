package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/bench/table"
)

// The headline says what was taken from the data, and only that.
func TestHeadlineSaysWhatIsNotCovered(t *testing.T) {
	for args, want := range map[string]string{
		"":                               "the bounds and the number of records, which come from the data",
		"--bounds -10:10":                "cover the number of records, which comes from the data",
		"--public-n 300":                 "cover the bounds, which come from the data",
		"--public-n 300 --bounds -10:10": "",
	} {
		run := append(strings.Fields("run --data builtin:blobs --n 300 --k 2 --method relative --epsilon 1"),
			strings.Fields(args)...)
		status, out, errOut := cohort(t, run...)
		if status != exitDone {
			t.Fatalf("%s: status %d: %s", args, status, errOut)
		}
		head, _, _ := strings.Cut(words(out), "Centroids")
		if want == "" && strings.Contains(head, "does not cover") || !strings.Contains(head, want) {
			t.Errorf("%s: the headline is %q, want %q in it", args, head, want)
		}
	}
}

// The columns of centroids stand below their names where these are wide, and a name is one line.
func TestWideNamesOfColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wide.csv")
	if err := os.WriteFile(path, []byte("年齢,e\u0301te\u0301,重さと身長と年齢\n1,2,3\n4,5,6\n7,8,9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, errOut := cohort(t, "run", "--data", path, "--k", "2", "--epsilon", "1", "--bounds", "0:10")
	_, block, _ := strings.Cut(out, "Centroids, in the data's units\n")
	block, _, _ = strings.Cut(block, "\n\n")
	lines := strings.Split(block, "\n")
	if status != exitDone || len(lines) != 3 || !strings.Contains(lines[0], "  重さと身長…") {
		t.Fatalf("status %d, %q\n%s", status, errOut, out)
	}
	for _, line := range lines {
		if table.Width(line) != table.Width(lines[0]) {
			t.Errorf("the columns are shifted:\n%s", block)
		}
	}
}
