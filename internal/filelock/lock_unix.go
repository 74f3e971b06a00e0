//go:build unix

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Wait waits until this process alone holds the file.
func Wait(f *os.File) error { return flock(f, unix.LOCK_EX) }

// Try holds the file, or fails if another process does.
func Try(f *os.File) error { return flock(f, unix.LOCK_EX|unix.LOCK_NB) }

// Held reports whether another process holds the file. It is as it was afterwards.
func Held(f *os.File) bool {
	if flock(f, unix.LOCK_SH|unix.LOCK_NB) != nil {
		return true
	}
	_ = flock(f, unix.LOCK_UN)
	return false
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
