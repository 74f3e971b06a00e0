//go:build arm64 && !purego

package asm

// AddUint64NEON adds a to dst, modulo 2^64, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func AddUint64NEON(dst, a *uint64, blocks int)

// SubUint64NEON subtracts a from dst, modulo 2^64, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func SubUint64NEON(dst, a *uint64, blocks int)

// AddUint32NEON adds a to dst, modulo 2^32, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func AddUint32NEON(dst, a *uint32, blocks int)

// SubUint32NEON subtracts a from dst, modulo 2^32, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func SubUint32NEON(dst, a *uint32, blocks int)
