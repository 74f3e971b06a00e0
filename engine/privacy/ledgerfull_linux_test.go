package privacy

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

// A disk that takes a part of a line leaves the file as it was, and a new file where there was none.
func TestLedgerFileOnAFullDisk(t *testing.T) {
	const limited = "COHORT_TEST_LEDGER_ROOM"
	if os.Getenv(limited) == "" { // the limit is a process's
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), limited+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	f, other := newFile(t), newFile(t)
	if _, err := f.Start(pureTerms, pureRun(t, 0.25)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	room := uint64(len(before) + 20)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: room, Max: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	_, err = f.Start(Terms{}, pureRun(t, 0.25))
	if !errors.Is(err, syscall.EFBIG) || !strings.HasPrefix(err.Error(), "ledger file "+f.Path+": file too large: free ") {
		t.Errorf("error is %v", err)
	}
	if after, err := os.ReadFile(f.Path); err != nil || string(after) != string(before) {
		t.Errorf("the file is now %q, %v", after, err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 30, Max: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Start(pureTerms, pureRun(t, 0.25)); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a new file: error %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(other.Path)); err != nil || len(left) > 0 {
		t.Errorf("a new file: %v is left, %v", left, err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if run, err := f.Start(Terms{}, pureRun(t, 0.25)); run != 2 || err != nil {
		t.Errorf("with room again: run %d, %v", run, err)
	}
}
