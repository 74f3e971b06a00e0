//go:build arm64 && !purego

package kernels

// peakChains is the number of operations on vectors in a round of the limit
// loops.
const peakChains = 16

func peakDot(int) int { return 0 }

func peakWord(int) int { return 0 }

func peakTile(int) int { return 0 }

// aesBlocks is the number of AES blocks in a vector.
func aesBlocks() int { return vectorFloats() / 4 }
