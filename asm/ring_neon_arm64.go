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

// ToFixed32NEON writes src*scale truncated toward zero, saturating at 2^31-128
// in magnitude, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func ToFixed32NEON(dst *uint32, src *float32, blocks int, scale float32)

// ToFixed32NearestNEON writes src*scale rounded to nearest even, saturating at 2^31-128
// in magnitude, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func ToFixed32NearestNEON(dst *uint32, src *float32, blocks int, scale float32)

// FromFixed32NEON writes src, read as a signed number, times scale, over
// blocks > 0 blocks of 64 bytes.
//
//go:noescape
func FromFixed32NEON(dst *float32, src *uint32, blocks int, scale float32)

// ToFixed64NEON writes src*scale truncated toward zero, saturating at 2^63-1024
// in magnitude, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func ToFixed64NEON(dst *uint64, src *float64, blocks int, scale float64)

// ToFixed64NearestNEON writes src*scale rounded to nearest even, saturating at 2^63-1024
// in magnitude, over blocks > 0 blocks of 64 bytes.
//
//go:noescape
func ToFixed64NearestNEON(dst *uint64, src *float64, blocks int, scale float64)

// FromFixed64NEON writes src, read as a signed number, times scale, over
// blocks > 0 blocks of 64 bytes.
//
//go:noescape
func FromFixed64NEON(dst *float64, src *uint64, blocks int, scale float64)
