package privacy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every name Tn that a rule, a comment or a ledger entry anywhere in the module cites has a section in
// THEOREMS.md.
func TestEveryCitedTheoremIsStated(t *testing.T) {
	text, err := os.ReadFile("THEOREMS.md")
	if err != nil {
		t.Fatal(err)
	}
	stated := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (T\d+)\. `).FindAllStringSubmatch(string(text), -1) {
		stated[m[1]] = true
	}
	if len(stated) < 6 {
		t.Fatalf("only %d theorems are stated", len(stated))
	}
	for _, r := range AllRules() {
		if r.Calibration != Proven || r.None != "" {
			continue
		}
		for _, name := range strings.Split(r.Theorem, ", ") {
			if !stated[name] {
				t.Errorf("%s %s: theorem %q is not in THEOREMS.md", r.Method, r.Release, name)
			}
		}
	}
	cited := regexp.MustCompile(`"(T\d+)[",]|THEOREMS\.md,? (T\d+)|\((T\d+)[;)]`)
	found := 0
	err = filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range cited.FindAllStringSubmatch(string(src), -1) {
			found++
			if name := m[1] + m[2] + m[3]; !stated[name] {
				t.Errorf("%s cites %s, which is not in THEOREMS.md", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("only %d citations found: the pattern no longer matches", found)
	}
}
