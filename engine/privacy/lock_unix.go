//go:build unix

package privacy

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock waits until this process alone holds the file; closing it releases the lock.
func lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
