package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
