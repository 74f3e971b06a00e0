package filelock

import (
	"os"

	"golang.org/x/sys/windows"
)

// Wait waits until this process alone holds the file.
func Wait(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// Try holds the file, or fails if another process does.
func Try(f *os.File) error {
	return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
}

// Held reports whether another process holds the file. It is as it was afterwards.
func Held(f *os.File) bool {
	if lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY) != nil {
		return true
	}
	_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
	return false
}

func lock(f *os.File, how uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
}
