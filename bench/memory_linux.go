package bench

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
)

// resetPeakMemory gives unused memory back and starts the peak that peakMemory
// reads anew. It reports whether the kernel lets it.
func resetPeakMemory() bool {
	debug.FreeOSMemory()
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
}

// peakMemory is the largest resident size of the process in bytes, 0 if unknown.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			if kb, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64); err == nil {
				return kb << 10
			}
		}
	}
	return 0
}
