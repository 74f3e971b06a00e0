//go:build arm64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

// peakRounds is the number of vectors, or AES blocks, in a round of the limit
// loops.
const peakRounds = 16

func peakFMA(n int) int {
	if current != neon {
		return 0
	}
	asm.PeakFMANEON(n)
	return 4 * peakRounds
}

func peakSubFMA(n int) int {
	if current != neon {
		return 0
	}
	asm.PeakSubFMANEON(n)
	return 4 * peakRounds
}

func peakArgmin(n int) int {
	if current != neon {
		return 0
	}
	asm.PeakArgminNEON(n)
	return 4 * peakRounds
}

func peakAES(n int) int {
	if current != neon {
		return 0
	}
	asm.PeakAESNEON(n)
	return peakRounds
}

// readBlocks reads a multiple of 512 bytes.
func readBlocks(block []byte) {
	if current == neon {
		asm.ReadNEON(&block[0], len(block)/512)
	} else {
		readPortable(block)
	}
}
