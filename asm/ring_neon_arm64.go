//go:build arm64 && !purego

package asm

// AddUint64NEON adds a to dst, modulo 2^64, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func AddUint64NEON(dst, a *uint64, blocks int)
