//go:build purego || (!amd64 && !arm64)

package kernels

func peakFMA(int) int    { return 0 }
func peakSubFMA(int) int { return 0 }
func peakArgmin(int) int { return 0 }
func peakDot(int) int    { return 0 }
func peakAES(int) int    { return 0 }

func readBlocks(block []byte) { readPortable(block) }
