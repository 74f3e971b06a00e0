//go:build amd64 && !purego

package kernels

import "github.com/cohort-engine/cohort/asm"

// peakChains is the number of operations on vectors in a round of the limit
// loops.
const peakChains = 12

func peakFMA(n int) int {
	switch current {
	case avx512:
		asm.PeakFMAAVX512(n)
		return peakChains * 16
	case avx2:
		asm.PeakFMAAVX2(n)
		return peakChains * 8
	}
	return 0
}

func peakSubFMA(n int) int {
	switch current {
	case avx512:
		asm.PeakSubFMAAVX512(n)
		return peakChains * 16
	case avx2:
		asm.PeakSubFMAAVX2(n)
		return peakChains * 8
	}
	return 0
}

func peakArgmin(n int) int {
	switch current {
	case avx512:
		asm.PeakArgminAVX512(n)
		return peakChains * 16
	case avx2:
		asm.PeakArgminAVX2(n)
		return peakChains * 8
	}
	return 0
}

func peakAES(n int) int {
	switch current {
	case avx512:
		asm.PeakAESAVX512(n)
		return peakChains * 4
	case avx2:
		asm.PeakAESAVX2(n)
		return peakChains
	}
	return 0
}

// readBlocks reads a multiple of 512 bytes.
func readBlocks(block []byte) {
	switch current {
	case avx512:
		asm.ReadAVX512(&block[0], len(block)/512)
	case avx2:
		asm.ReadAVX2(&block[0], len(block)/512)
	default:
		readPortable(block)
	}
}
