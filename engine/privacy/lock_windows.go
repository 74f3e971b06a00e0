package privacy

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits until this process alone holds the file; closing it releases the lock.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped))
}
