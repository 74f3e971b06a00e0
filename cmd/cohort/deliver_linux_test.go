package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A disk that is full is found before anything is paid for: here one that takes no more than 64 KB of a file.
func TestFullDiskIsFoundBeforeTheCharge(t *testing.T) {
	const limited = "COHORT_TEST_LITTLE_ROOM"
	if os.Getenv(limited) == "" { // the limit is a process's
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), limited+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ledger := filepath.Join(t.TempDir(), "ledger")
	status, out, errOut := cohort(t, "run", "--epsilon", "1", "--bounds", "0:1000000", "--ledger", ledger, "--out",
		filepath.Join(dir, "result"))
	if status != exitFailed || out != "" || !strings.Contains(errOut, "--out") ||
		!strings.Contains(errOut, syscall.EFBIG.Error()) {
		t.Errorf("status %d, %.80q, %q", status, out, errOut)
	}
	var stat unix.Stat_t
	if err := unix.Stat(ledger, &stat); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("something was paid for: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".cohort-*")); left != nil {
		t.Errorf("%v is left", left)
	}
}

// A study file for which there is no room is not there, rather than empty, so that the same command writes it later.
func TestStudyFileIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "study.json")
	command := exec.Command(os.Args[0], "study", "new", file, "--names", "North,South", "--method", "fastlloyd",
		"--k", "2", "--epsilon", "1", "--delta", "1e-6", "--public-n", "300", "--d", "2", "--bounds", "0:1")
	command.Env = append(os.Environ(), commandVar+"=1", littleRoom+"=10")
	said, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(said), syscall.EFBIG.Error()) {
		t.Errorf("%v, %s", err, said)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// littleRoom says how many bytes of a file a process of this test's binary may write.
const littleRoom = "COHORT_TEST_ROOM"

func init() {
	room, err := strconv.ParseUint(os.Getenv(littleRoom), 10, 64)
	if err != nil {
		return
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: room, Max: room}); err != nil {
		panic(err)
	}
}

// A run that a signal ends after the charge says what was charged, and the same command finishes it for nothing.
func TestTerminatedRunIsFinishedWithoutPayingAgain(t *testing.T) {
	dir := t.TempDir()
	ledger, rows := filepath.Join(dir, "ledger"), filepath.Join(dir, "rows.csv")
	if status, _, errOut := cohort(t, "data", "write", "blobs", "--n", "60000", "--d", "4", "--k", "40", "--out",
		rows); status != exitDone {
		t.Fatal(errOut)
	}
	args := []string{"run", "--data", rows, "--k", "40", "--epsilon", "1", "--bounds", "-1:2", "--ledger", ledger,
		"--ledger-budget", "1:1e-3", "--format", "json"}
	run := exec.Command(os.Args[0], args...)
	run.Env = append(os.Environ(), commandVar+"=1")
	var out, errOut strings.Builder
	run.Stdout, run.Stderr = &out, &errOut
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	for charged := false; !charged; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(ledger)
		if charged = err == nil && strings.Contains(string(text), `"run"`); charged {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended before it was charged: %v, %s", err, errOut.String())
		default:
		}
	}
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ended
	pending, _ := filepath.Glob(ledger + ".*.pending")
	if status := run.ProcessState.ExitCode(); status != exitFailed || out.Len() != 0 || len(pending) != 1 ||
		!strings.Contains(errOut.String(), "was charged to "+ledger) || !strings.Contains(errOut.String(), pending[0]) {
		t.Fatalf("status %d, %.80q, %q, state files %v", status, out.String(), errOut.String(), pending)
	}
	again := object(t, args...)
	if text := readText(t, ledger); strings.Count(text, `"run":`) != 1 || len(again["centroids"].([]any)) != 40 {
		t.Errorf("the ledger file is\n%s", text)
	}
	if status, _, errOut := cohort(t, args...); status != exitWrong || !strings.Contains(errOut, "cannot pay") {
		t.Errorf("a further run: status %d, %q", status, errOut)
	}
}

// A result that was paid for is saved where nobody reads the output any longer; one that was not ends in silence, as
// other answers do.
func TestClosedPipe(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		saved  bool
	}{
		{"run --epsilon 1 --bounds 0:1000000", exitFailed, true},
		{"run --epsilon 1 --bounds 0:1000000 --seed 1", exitUnread, false},
		{"run --k 3", exitUnread, false},
		{"methods", exitUnread, false},
		{"run --k 0", exitWrong, false},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		dir := t.TempDir()
		run := exec.Command(os.Args[0], strings.Fields(c.args)...)
		run.Env = append(os.Environ(), commandVar+"=1", "TMPDIR="+dir)
		var errOut strings.Builder
		run.Stdout, run.Stderr = w, &errOut
		err = run.Run()
		w.Close()
		saved, _ := filepath.Glob(filepath.Join(dir, "cohort-result-*.json"))
		if err == nil || run.ProcessState.ExitCode() != c.status || (len(saved) == 1) != c.saved ||
			c.saved != strings.Contains(errOut.String(), dir) || (c.status == exitUnread) != (errOut.Len() == 0) {
			t.Errorf("%s: %v, %q, saved in %v", c.args, err, errOut.String(), saved)
		}
		if c.saved && !strings.Contains(readText(t, saved[0]), `"centroids":[[`) {
			t.Errorf("%s: what was saved is no result", c.args)
		}
	}
}
