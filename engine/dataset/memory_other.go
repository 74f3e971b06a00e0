//go:build !unix

package dataset

import (
	"io"
	"os"
	"unsafe"
)

// mapMemory returns zeroed memory on a page boundary.
func mapMemory(bytes int) ([]byte, error) {
	const page = 4096
	memory := make([]byte, bytes+page)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) & (page - 1))
	return memory[skip : skip+bytes], nil
}

func unmapMemory([]byte) {}

// mapsFiles says whether mapFile maps, or reads.
const mapsFiles = false

// mapFile reads the first bytes of a file into memory.
func mapFile(f *os.File, bytes int64) ([]byte, error) {
	memory, err := mapMemory(int(bytes))
	if err == nil {
		_, err = io.ReadFull(io.NewSectionReader(f, 0, bytes), memory)
	}
	return memory, err
}

// freeDisk is not known here.
func freeDisk(string) float64 { return -1 }

// statusTime is not known here.
func statusTime(string) int64 { return 0 }
