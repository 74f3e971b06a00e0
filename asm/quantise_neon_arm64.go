//go:build arm64 && !purego

package asm

// QuantiseNEON maps the values of periods > 0 periods of vectors > 0 groups of 8: v
// to ((v-lo)-(hi-v))/width, or -1 below lo and 1 above hi, times scale, truncated
// toward zero, over scale. It returns the number of values below and above. scale is
// a power of two of at most 2^22; lo, hi and width hold a period.
//
//go:noescape
func QuantiseNEON(dst *float32, src *float64, periods int, lo *float64, hi *float64, width *float64,
	vectors int, scale float64) int

// QuantiseNarrowNEON is QuantiseNEON for float32.
//
//go:noescape
func QuantiseNarrowNEON(dst *float32, src *float32, periods int, lo *float64, hi *float64, width *float64,
	vectors int, scale float64) int
