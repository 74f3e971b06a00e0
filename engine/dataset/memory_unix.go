//go:build unix

package dataset

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cohort-engine/cohort/engine/fault"
)

// mapMemory returns zeroed memory, on a page boundary, that unmapMemory gives back
// to the system at once.
func mapMemory(bytes int) ([]byte, error) {
	memory, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fault.Failed("memory", fmt.Sprintf("%d bytes: %v", bytes, err), "close other programs, or use fewer records or columns", err)
	}
	return memory, nil
}

func unmapMemory(memory []byte) { _ = unix.Munmap(memory) }
