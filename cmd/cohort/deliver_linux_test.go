package main

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that is full is found before anything is paid for.
func TestFullDiskIsFoundBeforeTheCharge(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small disk can be made here: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	ledger := filepath.Join(t.TempDir(), "ledger")
	status, out, errOut := cohort(t, "run", "--epsilon", "1", "--bounds", "0:1000000", "--ledger", ledger, "--out", filepath.Join(dir, "result"))
	if status != exitFailed || out != "" || !strings.Contains(errOut, "--out") || !strings.Contains(errOut, syscall.ENOSPC.Error()) {
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
