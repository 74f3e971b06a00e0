//go:build !linux

package bench

// resetPeakMemory reports that the peak cannot be started anew here.
func resetPeakMemory() bool { return false }

// peakMemory is the largest resident size of the process, which is read on Linux
// only.
func peakMemory() int64 { return 0 }
