//go:build arm64 && !purego

package asm

// PeakFMANEON runs n > 0 rounds of 16 fused multiply-adds of float32 vectors.
//
//go:noescape
func PeakFMANEON(n int)

// PeakSubFMANEON runs n > 0 rounds of 16 subtractions with a dependent fused multiply-add, of
// float32 vectors.
//
//go:noescape
func PeakSubFMANEON(n int)

// PeakArgminNEON runs n > 0 rounds of 16 steps of a minimum with its index, over float32
// vectors.
//
//go:noescape
func PeakArgminNEON(n int)

// PeakAESNEON runs n > 0 rounds of 16 AES rounds of one block each.
//
//go:noescape
func PeakAESNEON(n int)

// ReadNEON reads blocks > 0 blocks of 512 bytes.
//
//go:noescape
func ReadNEON(p *byte, blocks int)
