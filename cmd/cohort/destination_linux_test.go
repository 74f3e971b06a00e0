package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// private is the command line of a private run on a small file, which it returns, too.
func private(t *testing.T, more ...string) (rows string, args []string) {
	t.Helper()
	rows = writeFile(t, "rows.csv", csvOf(50, 0))
	return rows, append([]string{"run", "--data", rows, "--k", "2", "--epsilon", "1", "--bounds", "0:100"}, more...)
}

// What a result is written to is never taken away: a pipe and a device are written as they stand, a link leads to its
// file, and folders and the files that are read are refused before anything is released.
func TestDestinationsAreNotTakenAway(t *testing.T) {
	dir := t.TempDir()
	pipe, link, real := filepath.Join(dir, "pipe"), filepath.Join(dir, "link.html"), filepath.Join(dir, "real.html")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	piped := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(pipe)
		piped <- string(text)
	}()
	rows, args := private(t, "--labels-out", pipe)
	if status, _, errOut := cohort(t, args...); status != exitDone {
		t.Fatal(errOut)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Fatalf("the pipe is %v, %v", info, err)
	}
	if text := <-piped; strings.Count(text, "\n") != 51 {
		t.Errorf("the pipe got %.100q", text)
	}
	if err := os.WriteFile(real, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	_, args = private(t, "--report", link)
	if status, _, errOut := cohort(t, args...); status != exitDone || !strings.HasPrefix(readText(t, real), "<!DOCTYPE") {
		t.Errorf("%q, or the link's file has no page", errOut)
	}
	device := filepath.Join(dir, "full")
	if err := os.Symlink("/dev/full", device); err != nil {
		t.Fatal(err)
	}
	_, args = private(t, "--report", device)
	if status, out, errOut := cohort(t, args...); status != exitFailed || !strings.Contains(out, "Centroids") ||
		!strings.Contains(errOut, "free some space") {
		t.Errorf("full device: status %d, %.80q, %q", status, out, errOut)
	}
	before := readText(t, rows)
	for _, flag := range []string{"--labels-out", "--report"} {
		for path, why := range map[string]string{dir: "is a folder", rows: "is read", "-": "names no file"} {
			status, out, errOut := cohort(t, "run", "--data", rows, "--k", "2", "--epsilon", "1", "--bounds", "0:100",
				flag, path)
			if status != exitWrong || out != "" || !strings.Contains(errOut, why) {
				t.Errorf("%s %s: status %d, %.80q, %q", flag, path, status, out, errOut)
			}
		}
	}
	if after := readText(t, rows); after != before {
		t.Errorf("the data are now %.100q", after)
	}
}

// Commands that write files beside a run keep what they have read, and what they wrote a moment ago.
func TestFilesThatAreReadStay(t *testing.T) {
	dir := t.TempDir()
	rows, args := private(t, "--out", dir)
	if status, _, errOut := cohort(t, args...); status != exitDone {
		t.Fatal(errOut)
	}
	result, set, both := filepath.Join(dir, "result.json"), filepath.Join(dir, "iris.csv"), filepath.Join(dir, "both")
	if err := os.Rename(rows, set); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(both, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kept := []string{result, filepath.Join(dir, "model.json"), set}
	var before []string
	for _, path := range kept {
		before = append(before, readText(t, path))
	}
	for _, args := range [][]string{
		{"report", result, "--out", result}, {"report", result, "--out", kept[1]},
		{"data", "import", "iris", set, "--k", "3", "--rows", "10", "--out", dir},
		{"data", "write", "blobs", "--n", "9", "--out", both, "--labels", both},
	} {
		status, out, errOut := cohort(t, args...)
		if status != exitWrong || out != "" || !strings.Contains(errOut, "is read or written besides") {
			t.Errorf("%v: status %d, %.80q, %q", args, status, out, errOut)
		}
	}
	for i, path := range kept {
		if readText(t, path) != before[i] {
			t.Errorf("%s is another file now", path)
		}
	}
	if text := readText(t, both); strings.Count(text, "\n") != 9 {
		t.Errorf("the records are %.80q", text)
	}
}

// A run whose result goes nowhere is not paid for: its standard output is closed, which a program finds as the null
// device.
func TestResultsThatGoNowhereAreNotPaidFor(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	_, args := private(t, "--delta", "1e-6", "--ledger", ledger, "--ledger-budget", "3:1e-5")
	for _, to := range []string{">&-", ">/dev/null"} {
		run := exec.Command("sh", append([]string{"-c", `exec "$0" "$@" ` + to, os.Args[0]}, args...)...)
		run.Env = append(os.Environ(), commandVar+"=1")
		out, err := run.CombinedOutput()
		if run.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), "is closed or thrown away") {
			t.Errorf("%s: %v, %s", to, err, out)
		}
	}
	if _, err := os.Stat(ledger); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something was paid for: %v", err)
	}
}

// Who throws the result of a run away that costs nothing has it done, also with the null device open for reading and
// writing, as programs give it that start others: a closed output cannot be told from it.
func TestResultsMayBeThrownAway(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	run := exec.Command(os.Args[0], "run", "--k", "2", "--data", "builtin:blobs", "--n", "40")
	run.Env, run.Stdout = append(os.Environ(), commandVar+"=1"), null
	if err := run.Run(); err != nil {
		t.Error(err)
	}
}

// An answer that cannot be written is no success, whichever command it is of.
func TestAnswersThatCannotBeWrittenFail(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range []string{"--help", "run --help", "bench --help", "data list", "methods", "version",
		"bench --list"} {
		var errOut strings.Builder
		status := execute(t.Context(), strings.Fields(args), full, &errOut)
		if status != exitFailed || !strings.HasPrefix(errOut.String(), "cohort: output: it cannot be written") ||
			strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%s: status %d, %q", args, status, errOut.String())
		}
	}
}

// A signal ends a run that waits for a pipe, and a second one whatever does not listen.
func TestSignalsEndWhoWaits(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	never, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for args, most := range map[string]int{"run --k 2 --data " + pipe: 1, "run --k 2 --data -": 1,
		"predict --data x --model " + pipe: 2} {
		for wait := 300 * time.Millisecond; ; wait *= 3 {
			text, state := signalled(t, args, never, wait, most)
			if state == nil {
				t.Errorf("%s goes on after %d signals", args, most)
				break
			}
			if most > 1 || state.ExitCode() == exitFailed && strings.Contains(text, "was interrupted") {
				break
			}
			// On a busy machine the signal may come before the program listens to it, and ends it.
			if state.ExitCode() >= 0 || wait > 5*time.Second {
				t.Errorf("%s: %v, %q", args, state, text)
				break
			}
		}
	}
}

// signalled runs a command that waits for its input, sends it signals after a while, and returns what it says and how
// it ends, nil if it does not.
func signalled(t *testing.T, args string, stdin *os.File, wait time.Duration, signals int) (string, *os.ProcessState) {
	run := exec.Command(os.Args[0], strings.Fields(args)...)
	run.Env = append(os.Environ(), commandVar+"=1")
	run.Stdin = stdin
	errOut, err := run.StderrPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(errOut)
		run.Wait()
		ended <- string(text)
	}()
	time.Sleep(wait)
	for range signals {
		run.Process.Signal(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond)
	}
	select {
	case text := <-ended:
		return text, run.ProcessState
	case <-time.After(10 * time.Second):
		run.Process.Kill()
		return "", nil
	}
}

// A recording that did not find room is no success: recorders themselves tell nobody.
func TestRecordingsNeedRoom(t *testing.T) {
	for _, flag := range []string{"--cpuprofile", "--trace", "--memprofile", "--timeline"} {
		status, out, errOut := cohort(t, "profile", "--runs", "1", "--iterations", "1", flag, "/dev/full")
		if status != exitFailed || out != "" || !strings.Contains(errOut, flag) ||
			!strings.Contains(errOut, "free some space") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: status %d, %.80q, %q", flag, status, out, errOut)
		}
	}
}
