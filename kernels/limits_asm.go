package kernels

// vectorFloats is the number of float32 in a vector of the path in use.
func vectorFloats() int {
	switch {
	case current == generic:
		return 0
	case current >= neon:
		return 4
	case current >= avx512:
		return 16
	}
	return 8
}

// peak runs a limit loop and returns the operations of a round, each of peakChains
// vectors of the given number of elements; 0 on the path without loops.
func peak(loop func(n int), n, elements int) int {
	if elements > 0 {
		loop(n)
	}
	return peakChains * elements
}

func peakFMA(n int) int    { return peak(asmPeakFMA, n, vectorFloats()) }
func peakSubFMA(n int) int { return peak(asmPeakSubFMA, n, vectorFloats()) }
func peakArgmin(n int) int { return peak(asmPeakArgmin, n, vectorFloats()) }
func peakAES(n int) int    { return peak(asmPeakAES, n, aesBlocks()) }

// readBlocks reads a multiple of 512 bytes.
func readBlocks(block []byte) {
	if current == generic {
		readPortable(block)
	} else {
		asmRead(&block[0], len(block)/512)
	}
}
