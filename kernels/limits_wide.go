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

func peakWord(n int) int { return peak(asmPeakWord, n, vectorFloats()/2) }

func peakTile(n int) int {
	if current < amx {
		return 0
	}
	config := tileForm(16)
	asmPeakTile(&config[0], n)
	return peakTiles * 16 * 16 * 64
}

// peakTiles is the number of products of tiles in a round of their loop.
const peakTiles = 4

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
