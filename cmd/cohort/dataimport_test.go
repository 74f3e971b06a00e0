package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/bench"
)

// TestDataImport converts two files with labels, on principal axes, and reads the
// folder as the suites do.
func TestDataImport(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "data")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	x := []string{write("a.txt", "1 2 3\n4 5 7\n"), write("b.txt", "7 8 9\n0 1 5\n")}
	labels := write("a.y", "1\n2\n") + "," + write("b.y", "2\n1\n")
	code, text, _ := cohort(t, "data", "import", "har", x[0], x[1], "--labels", labels, "--pca", "2", "--k", "2",
		"--out", out)
	if code != 0 || !strings.Contains(text, "4 records, 2 columns, k = 2") ||
		!strings.Contains(text, "The papers' set is 10299 x 10, k = 6: this is another one.") {
		t.Fatalf("exit %d: %s", code, text)
	}
	if code, text, _ = cohort(t, "data", "import", "s1", x[0], "--k", "2", "--rows", "2", "--out", out); code != 0 ||
		!strings.Contains(text, "is another one") {
		t.Fatalf("exit %d: %s", code, text)
	}
	sets, err := bench.OpenSets(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"har", "s1"} {
		if !sets.Has(name) {
			t.Errorf("the folder lacks %s", name)
		}
	}
	table, err := sets.Table(t.Context(), "har")
	if err != nil || table.N != 4 || table.D != 2 || len(table.Labels) != 4 || table.Labels[2] != 2 {
		t.Errorf("read back as %+v, error %v", table, err)
	}
	var manifest struct{ Sets []map[string]any }
	listed, _ := os.ReadFile(filepath.Join(out, "manifest.json"))
	if err := json.Unmarshal(listed, &manifest); err != nil || len(manifest.Sets) != 2 {
		t.Errorf("manifest %s, error %v", listed, err)
	}
	for _, bad := range [][]string{
		{"data", "import", "nowhere", x[0], "--k", "2", "--out", out}, {"data", "import", "s1", x[0], "--out", out},
		{"data", "import", "s1", x[0], "--k", "2"},
		{"data", "import", "s1", x[0], "--k", "2", "--pca", "9", "--out", out}, {"data", "import", "s1"},
		{"data", "fetch-help", "nowhere"}, {"data", "fetch-help"},
	} {
		if code, _, message := cohort(t, bad...); code != 2 || !strings.HasPrefix(message, "cohort: ") {
			t.Errorf("%v: exit %d, %q", bad, code, message)
		}
	}
}

func TestDataFetchHelp(t *testing.T) {
	for _, c := range []struct{ name, want string }{{"har", "--pca 10"}, {"loan", "kaggle.com"}, {"s1", "6e4f729d8b28"},
		{"synth_sep21_k2_d2", "builtin:synth"}, {"taxi", "cohort data import nyctaxi"},
		{"Birch2", "cohort data import birch2_25k"},
		{"SynthOV", "builtin:synth"}, {"synth", "builtin:synth"}, {"HAR", "--pca 10"}} {
		if code, text, _ := cohort(t, "data", "fetch-help", c.name); code != 0 || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit %d, %s", c.name, code, text)
		}
	}
}
