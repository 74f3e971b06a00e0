// Command mutants measures how well the tests know privacy: it puts one bug after the other into the code,
// each in a copy of the sources that it is in, and runs the tests that should notice. A mutant is caught if
// they fail and say which release, guarantee or decision is broken; files of recorded results do not count.
//
//	go run ./scripts/mutants [-only NAMES] [-sample N] [-list]
//
// The score is printed; the exit status is 1 if a mutant escapes, 2 if one cannot be made.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// mutant is a bug.
type mutant struct {
	// name says what is wrong.
	name string
	// in is the folder of the package that gets it, edits are what is replaced there.
	in    string
	edits []edit
	// test and run are the package and the tests that should fail, says what their output must contain.
	test, run, says string
}

// edit replaces a text that occurs once in the sources of a package, tests aside.
type edit struct{ old, new string }

func main() {
	only := flag.String("only", "", "regular expression of the mutants' names to try (default all)")
	sample := flag.Int("sample", 0, "try so many of them, evenly spread (default all)")
	list := flag.Bool("list", false, "list them")
	flag.Parse()
	status, err := run(*only, *sample, *list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	os.Exit(status)
}

func run(only string, sample int, list bool) (status int, err error) {
	chosen, err := choose(only, sample)
	if err != nil {
		return 0, err
	}
	if list {
		for _, m := range chosen {
			fmt.Printf("%s (%s; %s)\n", m.name, m.in, m.run)
			if err := m.applies(); err != nil {
				fmt.Println("  cannot be made:", err)
				status = 2
			}
		}
		return status, nil
	}
	var escaped, broken []string
	for i, m := range chosen {
		start := time.Now()
		verdict, err := m.try()
		fmt.Printf("%2d/%d  %-8s %5.1fs  %s\n", i+1, len(chosen), verdict, time.Since(start).Seconds(), m.name)
		switch {
		case err != nil:
			broken = append(broken, m.name+": "+err.Error())
		case verdict != caught:
			escaped = append(escaped, m.name)
		}
	}
	for _, b := range broken {
		fmt.Println("cannot be made:", b)
	}
	for _, e := range escaped {
		fmt.Println("escaped:", e)
	}
	fmt.Printf("caught %d of %d\n", len(chosen)-len(escaped)-len(broken), len(chosen))
	switch {
	case len(broken) > 0:
		return 2, nil
	case len(escaped) > 0:
		return 1, nil
	}
	return 0, nil
}

func choose(only string, sample int) ([]mutant, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var chosen []mutant
	for _, m := range catalogue() {
		if pattern.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if sample <= 0 || sample >= len(chosen) {
		return chosen, nil
	}
	var spread []mutant
	for i := range sample {
		spread = append(spread, chosen[i*len(chosen)/sample])
	}
	return spread, nil
}

// patience is how long the tests of a mutant may take.
const patience = "15m"

// Verdicts.
const (
	caught = "caught"
	escape = "ESCAPED"
	wrong  = "BROKEN"
)

// try runs the tests on the mutant.
func (m *mutant) try() (verdict string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return wrong, err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return wrong, err
	}
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-timeout="+patience, "-run="+m.run, "./"+m.test)
	// The overlay serves the test that reads sources, too. What fails here must leave no case behind in the tree.
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay),
		"RAPID_NOFAILFILE=1")
	out, err := cmd.CombinedOutput()
	text := string(out)
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(text, "no tests to run"):
		return wrong, fmt.Errorf("%s has no test %s", m.test, m.run)
	case err == nil:
		return escape, nil
	case !errors.As(err, &exit):
		return wrong, err
	case strings.Contains(text, "panic: test timed out"):
		return wrong, fmt.Errorf("%s did not end in %s: try it on a machine with less to do", m.run, patience)
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return wrong, fmt.Errorf("does not build:\n%s", text)
	case !regexp.MustCompile(m.says).MatchString(text):
		return escape, nil
	}
	return caught, nil
}

// applies tells whether the mutant can still be made.
func (m *mutant) applies() error {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	_, err = m.overlay(dir)
	return err
}

// overlay writes the changed sources to a folder, with the map that tells the compiler of them.
func (m *mutant) overlay(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(m.in, "*.go"))
	if err != nil {
		return "", err
	}
	sources := map[string]string{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		sources[f] = string(b)
	}
	changed := map[string]bool{}
	for _, e := range m.edits {
		var where string
		n := 0
		for f, s := range sources {
			if k := strings.Count(s, e.old); k > 0 {
				n, where = n+k, f
			}
		}
		if n != 1 {
			return "", fmt.Errorf("%s has %d times, not once: %q", m.in, n, e.old)
		}
		sources[where], changed[where] = strings.Replace(sources[where], e.old, e.new, 1), true
	}
	replace := map[string]string{}
	for f := range changed {
		abs, err := filepath.Abs(f)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, filepath.Base(f))
		if err := os.WriteFile(to, []byte(sources[f]), 0o600); err != nil {
			return "", err
		}
		replace[abs] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}
