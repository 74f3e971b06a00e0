//go:build arm64 && !purego

package asm

// LeastDotNEON writes the least, and the first index that has it, of the sums over
// c < d, d > 0, of coef[c]*x[c*stride+i], each a fused chain from 0 in the order of
// c, for the indices i that are equal to l modulo 8, i < 8*blocks, blocks > 0, to
// least[l] and at[l].
//
//go:noescape
func LeastDotNEON(x *float64, stride int, blocks int, coef *float64, d int, least *float64, at *int64)
