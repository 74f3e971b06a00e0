//go:build arm64 && !purego

package asm

// DrawNEON encrypts n blocks under the AES-128 keys of schedule, n a positive multiple of 8.
// Of the halves x and y of a block, x adds scale ln((2 floor(x/2^12) + 1)/2^53) to its
// time and y gives its mark floor(y registers/2^64), registers < 2^32.
//
//go:noescape
func DrawNEON(schedule *[44]uint32, blocks *[2]uint64, n, registers int, scale float64, times *float64, marks *uint32)
