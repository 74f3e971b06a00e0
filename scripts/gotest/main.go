// Gotest runs `go test` with the arguments given and prints what it prints; at the end
// it lists the tests that were skipped, with their reasons, which `go test` alone shows
// only among the output of all tests. It ends with the status of `go test`.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// An event is a line of `go test -json` (see `go doc test2json`).
type event struct {
	Action, Package, Test, Output string
}

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "cohort: tests: %v\n", err)
		os.Exit(1)
	}
	os.Exit(status)
}

// garbage is how much there may be in percent of what is in use, for the tests and the compiler: tests make much
// and hold little, so that collecting it took an eighth of their time.
const garbage = "400"

func run(args []string) (status int, err error) {
	goTool := os.Getenv("GO")
	if goTool == "" {
		goTool = "go"
	}
	// Vetting each package took a tenth of all; `make lint` vets them all, with every check.
	cmd := exec.Command(goTool, append([]string{"test", "-json", "-vet=off"}, args...)...)
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(os.Environ(), "GOGC="+garbage)
	}
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	skipped := report(bufio.NewScanner(stdout))
	for i, s := range skipped {
		if i == 0 {
			fmt.Println("\nskipped tests:")
		}
		fmt.Println("    " + s)
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// report prints what failed and a line a package, and returns a line for each test that
// was skipped.
func report(lines *bufio.Scanner) (skipped []string) {
	lines.Buffer(nil, 1<<26)
	output := map[string][]string{} // by test, until its end is known
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		test := e.Package + " " + e.Test
		switch {
		case e.Action == "output" && e.Test != "":
			output[test] = append(output[test], e.Output)
		case e.Action == "output" && e.Output != "PASS\n":
			fmt.Print(e.Output)
		case e.Action == "build-output":
			fmt.Print(e.Output)
		case e.Action == "fail":
			fmt.Print(strings.Join(output[test], ""))
			delete(output, test)
		case e.Action == "skip" && e.Test != "":
			skipped = append(skipped, test+": "+reason(output[test]))
			delete(output, test)
		case e.Action == "pass":
			delete(output, test)
		}
	}
	// A test that has not ended, as in a panic or after the time limit.
	for _, o := range output {
		fmt.Print(strings.Join(o, ""))
	}
	return skipped
}

// reason is what a test said of its skip: the output without the frame of `go test -v`.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") {
			continue
		}
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			_, line, _ = strings.Cut(text, ": ") // after file and line number
		}
		said = append(said, line)
	}
	return strings.Join(said, " ")
}
