package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/bench"
)

// Every command of the guides runs as it is written, one after the other in an empty folder. Those of
// cohort bench can take hours: they are not run, but their suites are looked up.
func TestCommandsOfTheGuidesRun(t *testing.T) {
	var suites []string
	for _, s := range bench.Suites() {
		suites = append(suites, s.Name)
	}
	for name, least := range map[string]int{"TUTORIAL.md": 8, "CHOOSE.md": 4, "LEDGER.md": 5, "REPRODUCE.md": 4,
		"MEASURE.md": 1} {
		commands := guide(t, name)
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, args := range commands {
				command := strings.Join(args, " ")
				if args[0] == "bench" && !slices.Contains(args, "--list") {
					for _, suite := range args[1:] {
						if strings.HasPrefix(suite, "--") {
							break
						}
						if !slices.Contains(suites, suite) {
							t.Errorf("%s: there is no suite %s", command, suite)
						}
					}
					continue
				}
				if status, out, errOut := cohort(t, args...); status != exitDone || out == "" &&
					!slices.Contains(args, "--out") && !slices.Contains(args, "--labels-out") {
					t.Errorf("%s: status %d, %q\n%s", command, status, errOut, out)
				}
			}
			if len(commands) < least {
				t.Errorf("%d commands were found", len(commands))
			}
		})
	}
}

// The commands that print tables and figures of the papers run, those of cohort bench excepted.
func TestCommandsOfPlacesRun(t *testing.T) {
	places, err := bench.Places()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, p := range places {
		if p.Command == "" || p.Suites() != nil || seen[p.Command] {
			continue
		}
		seen[p.Command] = true
		if status, out, errOut := cohort(t, strings.Fields(p.Command)...); status != exitDone || out == "" {
			t.Errorf("%s %s: %s: status %d, %q\n%s", p.Source, p.Name, p.Command, status, errOut, out)
		}
	}
	if len(seen) < 4 {
		t.Errorf("%d commands were found", len(seen))
	}
}

// docs/ARCHITECTURE.md names every package outside scripts, examples and the generator, and only files that there are.
func TestArchitectureIsThatOfTheTree(t *testing.T) {
	text := readText(t, "../../docs/ARCHITECTURE.md")
	packages, files := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if name := d.Name(); d.IsDir() && name != ".." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) ||
			err != nil {
			return cmp.Or(err, filepath.SkipDir)
		}
		if strings.HasSuffix(path, ".go") {
			path = strings.TrimPrefix(path, "../../")
			files["/"+path] = true
			packages[filepath.Dir(path)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range packages {
		top, _, _ := strings.Cut(name, "/")
		apart := slices.Contains([]string{".", "scripts", "examples", "python"}, top)
		if !apart && !strings.Contains(text, filepath.Base(name)) {
			t.Errorf("the package %s is not named", name)
		}
	}
	named := regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllStringSubmatch(text, -1)
	for _, m := range named {
		found := false
		for path := range files {
			found = found || strings.HasSuffix(path, "/"+m[1])
		}
		if !found {
			t.Errorf("there is no file %s", m[1])
		}
	}
	if len(named) < 80 || len(packages) < 50 {
		t.Errorf("%d files of %d packages were found", len(named), len(packages))
	}
}
