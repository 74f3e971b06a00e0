//go:build arm64 && !purego

package asm

// MinHashNEON lowers dst to the minimum of both little-endian halves of AES-128
// over n > 0 consecutive blocks; schedule holds the eleven round keys.
//
//go:noescape
func MinHashNEON(schedule *[44]uint32, blocks *[16]byte, n int, dst *[2]uint64)
