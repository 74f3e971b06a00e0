//go:build !arm64 || purego

package kernels

// peakChains is the number of operations on vectors in a round of the limit
// loops.
const peakChains = 12

func peakDot(n int) int {
	if current == avx512 {
		return 0
	}
	return peak(asmPeakDot, n, 2*vectorFloats())
}

// aesBlocks is the number of AES blocks in a vector: those of AVX2 hold one.
func aesBlocks() int {
	switch {
	case current >= avx512:
		return 4
	case current == avx2:
		return 1
	}
	return 0
}
