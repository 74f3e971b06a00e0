package bench

import (
	"os"
	"path/filepath"
	"testing"
)

// The page of results among the documents, and the README's pictures, are those that the stored results give. With
// -update they are written anew, as by cohort bench --stored pictures --results docs.
func TestResultsPageIsThatOfTheStoredResults(t *testing.T) {
	r, err := Stored([]string{"pictures"})
	if err != nil {
		t.Fatal(err)
	}
	docs, dir := filepath.Join("..", "docs"), t.TempDir()
	if *update {
		dir = docs
	}
	names, err := r.WriteResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 {
		t.Errorf("files %v", names)
	}
	for _, name := range names {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil || string(got) != string(want) {
			t.Errorf("docs/%s is not what the stored results give (%v): go test ./bench -run ResultsPage -update", name, err)
		}
	}
	if _, err := r.WriteResults(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there takes the page")
	}
}
