//go:build arm64 && !purego

package asm

// PackNEON transposes 16*panels > 0 rows of d > 0 columns into panels of
// [d][16].
//
//go:noescape
func PackNEON(dst, rows *float32, panels, d int)
