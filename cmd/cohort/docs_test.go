package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
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
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			commands := 0
			for _, line := range strings.Split(string(text), "\n") {
				command, ok := strings.CutPrefix(line, "    cohort ")
				if !ok {
					continue
				}
				commands++
				args := strings.Fields(command)
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
			if commands < least {
				t.Errorf("%d commands were found", commands)
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

// The commands of the guide to studies run as they are written, but for the addresses, which are this machine's, and
// the parties' files, which stand in one folder here: the coordinator writes the study and serves it, two hospitals
// take part, compare fingerprints and say yes.
func TestCommandsOfStudiesRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "STUDIES.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	named := make(map[string]string)
	commands := regexp.MustCompile(`(?m)^ {4}cohort ((\w+)(?:[^\\\n]|\\\n)*)$`)
	for _, m := range commands.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "--nats") {
			continue // there is no cluster here
		}
		named[m[2]] = strings.ReplaceAll(m[1], "\\\n", " ")
	}
	if len(named) != 3 || named["study"] == "" || named["serve"] == "" || named["join"] == "" {
		t.Fatalf("the commands are %q", named)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	served := strings.NewReplacer("0.0.0.0:4222", address, "coordinator.example.org:4222", address).Replace(named["serve"])
	if status, out, errOut := cohort(t, shellWords(named["study"])...); status != exitDone {
		t.Fatalf("%s: status %d, %s%s", named["study"], status, out, errOut)
	}
	reader, writer := io.Pipe()
	failures := make(chan error, 3)
	start := func(command, in string, out io.Writer) {
		root := newRoot()
		root.SetArgs(shellWords(command))
		root.SetIn(strings.NewReader(in))
		root.SetOut(out)
		root.SetErr(io.Discard)
		go func() {
			err := root.ExecuteContext(t.Context())
			if err != nil {
				err = fmt.Errorf("%s: %w", command, err)
			}
			failures <- err
		}()
	}
	start(served, "", writer)
	lines := bufio.NewScanner(reader)
	var results [2]strings.Builder
	for party := range results {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "invitation of ") || !lines.Scan() {
			t.Fatalf("the coordinator says %q", lines.Text())
		}
		folder := fmt.Sprint("hospital", party+1)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		var rows strings.Builder
		fmt.Fprintln(&rows, "age,weight,pressure")
		for i := range 200 {
			fmt.Fprintf(&rows, "%d,%d,%d\n", 20+12*(i%5)+i%3, 50+20*(i%5)+party, 90+20*(i%5))
		}
		if err := os.WriteFile(folder+"/patients.csv", []byte(rows.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		start(strings.NewReplacer("TOKEN", strings.TrimSpace(lines.Text()), "patients.csv", folder+"/patients.csv",
			"--state state", "--state "+folder+"/state", "patients.ledger", folder+"/patients.ledger").Replace(named["join"]),
			"yes\n", &results[party])
	}
	go io.Copy(io.Discard, reader)
	for range 3 {
		if err := <-failures; err != nil {
			t.Fatal(err)
		}
	}
	if results[0].Len() == 0 || results[0].String() != results[1].String() {
		t.Errorf("the hospitals have other results:\n%s\n%s", results[0].String(), results[1].String())
	}
	verify := regexp.MustCompile("`cohort (study verify[^`]*)`").FindStringSubmatch(string(text))
	if verify == nil {
		t.Fatal("the guide does not verify")
	}
	command := strings.Replace(verify[1], " state", " hospital1/state", 1)
	if status, out, errOut := cohort(t, strings.Fields(command)...); status != exitDone {
		t.Errorf("%s: status %d, %s%s", command, status, out, errOut)
	}
}

// shellWords are the words of a command line, whose quotes are double.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "\"") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
