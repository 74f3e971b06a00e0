//go:build unix

package dataset

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cohort-engine/cohort/internal/fault"
)

// mapMemory returns zeroed memory, on a page boundary, that unmapMemory gives back
// to the system at once.
func mapMemory(bytes int) ([]byte, error) {
	memory, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fault.Failed("memory", fmt.Sprintf("%d bytes: %v", bytes, err),
			"close other programs, or use fewer records or columns", err)
	}
	return memory, nil
}

func unmapMemory(memory []byte) { _ = unix.Munmap(memory) }

// mapsFiles says whether mapFile maps, or reads.
const mapsFiles = true

// mapFile maps the first bytes of a file for reading, mostly from its beginning to
// its end.
func mapFile(f *os.File, bytes int64) ([]byte, error) {
	memory, err := unix.Mmap(int(f.Fd()), 0, int(bytes), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fault.Failed(f.Name(), err.Error(), "free address space, or use fewer records", err)
	}
	_ = unix.Madvise(memory, unix.MADV_SEQUENTIAL) // a hint: read ahead
	return memory, nil
}

// freeDisk is what is left of the disk of a folder, or negative if that is not known.
func freeDisk(dir string) float64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return -1
	}
	return float64(s.Bavail) * float64(s.Bsize)
}

// statusTime is when anything about a file was last changed, in nanoseconds, which no program can set.
func statusTime(path string) int64 {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0
	}
	return s.Ctim.Nano()
}
