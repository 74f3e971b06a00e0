package dataset

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"github.com/cohort-engine/cohort/internal/fault"
)

// asFloat32 views memory as numbers.
func asFloat32(memory []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/4)
}

// asBytes is the opposite of asFloat32.
func asBytes(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// checkFit refuses, before anything is read, a set whose panels will not fit in
// limit bytes, or in what the system has available if limit is 0.
func checkFit(s *Schema, limit int64) error {
	what := "of memory are available"
	if limit > 0 {
		what = "are allowed by --max-memory"
	} else if limit = availableMemory(); limit == 0 {
		return nil // nobody knows
	}
	records, about := float64(s.N), ""
	if s.N < 0 {
		if s.Size == 0 || s.RowBytes == 0 {
			return nil
		}
		records, about = float64(s.Size)/float64(s.RowBytes), "about "
	}
	need := 4 * records * float64(s.D)
	if need <= float64(limit) {
		return nil
	}
	why := fmt.Sprintf("%s%.3g records of %s take %s and %s %s", about, records, fault.Count(s.D, "column"), size(need),
		size(float64(limit)), what)
	return fault.Failed(s.Name, why, "take fewer columns with --columns, or keep them in a file with --cache DIR", nil)
}

// checkDisk refuses a set that will not fit in what is left of the disk of a folder,
// in which it has some bytes already.
func checkDisk(dir string, s *Schema, has int64) error {
	records := float64(s.N)
	if s.N < 0 && s.RowBytes > 0 {
		records = float64(s.Size) / float64(s.RowBytes)
	}
	need, free := 4*records*float64(s.D)-float64(has), freeDisk(dir)
	if free < 0 || need <= free {
		return nil
	}
	why := fmt.Sprintf("%s are missing for the records and %s are free", size(need), size(free))
	return fault.Failed("cache "+dir, why, "choose another folder, or take fewer columns with --columns", nil)
}

// size writes a number of bytes for a person.
func size(b float64) string {
	for _, u := range []struct {
		unit string
		size float64
	}{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if b >= u.size {
			return fmt.Sprintf("%.1f %s", b/u.size, u.unit)
		}
	}
	return fmt.Sprintf("%.0f bytes", b)
}

// availableMemory is the memory that a process can take without pushing others out:
// what Linux says is available, within the limit of the control group. It is 0
// where that is not known.
func availableMemory() int64 {
	available := fieldOf("/proc/meminfo", "MemAvailable:") << 10
	if limit := fieldOf("/sys/fs/cgroup/memory.max", ""); limit > 0 {
		left := max(limit-fieldOf("/sys/fs/cgroup/memory.current", ""), 1)
		if available == 0 || left < available {
			available = left
		}
	}
	return available
}

// fieldOf returns the number after a name in a file of the system, or 0.
func fieldOf(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(text, []byte(name))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return n
}
