//go:build arm64 && !purego

package asm

// NTTForwardFoldNEON takes the first layer of the conjugate-invariant ring of degree
// n >= 128 at j = 16 .. n/4-1, n/2-j, n/2+j and n-j.
//
//go:noescape
func NTTForwardFoldNEON(dst, src, words *uint32, n int)

// NTTForwardFoldLazyNEON takes the first layer of the conjugate-invariant ring of degree
// n >= 128 at j = 16 .. n/4-1, n/2-j, n/2+j and n-j.
//
//go:noescape
func NTTForwardFoldLazyNEON(dst, src, words *uint32, n int)

// NTTInverseFoldNEON takes the last layer of the conjugate-invariant ring of degree
// n >= 128 at j = 16 .. n/4-1, n/2-j, n/2+j and n-j.
//
//go:noescape
func NTTInverseFoldNEON(a, words *uint32, n int, scale, turned uint32)

// NTTInverseFoldLazyNEON takes the last layer of the conjugate-invariant ring of degree
// n >= 128 at j = 16 .. n/4-1, n/2-j, n/2+j and n-j.
//
//go:noescape
func NTTInverseFoldLazyNEON(a, words *uint32, n int, scale, turned uint32)

// NTTForwardLayerNEON takes a layer of blocks of 2t words, t a multiple of 16.
//
//go:noescape
func NTTForwardLayerNEON(a, w, words *uint32, blocks, t int)

// NTTForwardLayerLazyNEON takes a layer of blocks of 2t words, t a multiple of 16.
//
//go:noescape
func NTTForwardLayerLazyNEON(a, w, words *uint32, blocks, t int)

// NTTInverseLayerNEON takes an inverse layer of blocks of 2t words, t a multiple of 16.
//
//go:noescape
func NTTInverseLayerNEON(a, w, words *uint32, blocks, t int)

// NTTForwardLayersNEON takes two layers of blocks of 4t words, t a multiple of 16.
//
//go:noescape
func NTTForwardLayersNEON(a, w, w2, words *uint32, blocks, t int)

// NTTForwardLayersLazyNEON takes two layers of blocks of 4t words, t a multiple of 16.
//
//go:noescape
func NTTForwardLayersLazyNEON(a, w, w2, words *uint32, blocks, t int)

// NTTInverseLayersNEON takes two inverse layers of blocks of 4t words, t a multiple of 16.
//
//go:noescape
func NTTInverseLayersNEON(a, w, w2, words *uint32, blocks, t int)

// NTTForwardTailNEON takes the layers inside blocks of 32 words.
//
//go:noescape
func NTTForwardTailNEON(a, tail, words *uint32, blocks int)

// NTTForwardTailFullNEON takes the layers inside blocks of 32 words.
//
//go:noescape
func NTTForwardTailFullNEON(a, tail, words *uint32, blocks int)

// NTTForwardTailLazyNEON takes the layers inside blocks of 32 words.
//
//go:noescape
func NTTForwardTailLazyNEON(a, tail, words *uint32, blocks int)

// NTTForwardTailFullLazyNEON takes the layers inside blocks of 32 words.
//
//go:noescape
func NTTForwardTailFullLazyNEON(a, tail, words *uint32, blocks int)

// NTTInverseTailNEON takes the inverse layers inside blocks of 32 words.
//
//go:noescape
func NTTInverseTailNEON(dst, src, untail, words *uint32, blocks int)

// NTTScaleNEON writes a c / R over blocks of 16 words.
//
//go:noescape
func NTTScaleNEON(dst, a, words *uint32, blocks int, c uint32)

// NTTScaleLazyNEON writes a c / R over blocks of 16 words.
//
//go:noescape
func NTTScaleLazyNEON(dst, a, words *uint32, blocks int, c uint32)

// NTTScaleAddNEON adds a c / R over blocks of 16 words.
//
//go:noescape
func NTTScaleAddNEON(dst, a, words *uint32, blocks int, c uint32)

// NTTAddScalarNEON writes a + c over blocks of 16 words.
//
//go:noescape
func NTTAddScalarNEON(dst, a, words *uint32, blocks int, c uint32)

// NTTAddNEON writes a + b over blocks of 16 words.
//
//go:noescape
func NTTAddNEON(dst, a, b, words *uint32, blocks int)

// NTTSubNEON writes a - b over blocks of 16 words.
//
//go:noescape
func NTTSubNEON(dst, a, b, words *uint32, blocks int)

// NTTMultiplyNEON writes a b / R over blocks of 16 words.
//
//go:noescape
func NTTMultiplyNEON(dst, a, b, words *uint32, blocks int)

// NTTMultiplyAddNEON adds a b / R over blocks of 16 words.
//
//go:noescape
func NTTMultiplyAddNEON(dst, a, b, words *uint32, blocks int)

// NTTSubScaleNEON writes (a - b) c / R over blocks of 16 words.
//
//go:noescape
func NTTSubScaleNEON(dst, a, b, words *uint32, blocks int, c uint32)

// NTTSubScaleLazyNEON writes (a - b) c / R over blocks of 16 words.
//
//go:noescape
func NTTSubScaleLazyNEON(dst, a, b, words *uint32, blocks int, c uint32)

// NTTProductNEON writes times (a0 b0, a0 b1 + a1 b0, a1 b1)/R over blocks
// of 16 words.
//
//go:noescape
func NTTProductNEON(c0, c1, c2, a0, a1, b0, b1, words *uint32, blocks int, times uint32)

// NTTProductAddNEON adds times (a0 b0, a0 b1 + a1 b0, a1 b1)/R over blocks
// of 16 words.
//
//go:noescape
func NTTProductAddNEON(c0, c1, c2, a0, a1, b0, b1, words *uint32, blocks int, times uint32)

// NTTConvertNEON writes the sum of d src c / R over blocks of 16 words.
//
//go:noescape
func NTTConvertNEON(dst *uint32, src **uint32, d int, c, words *uint32, blocks int)

// NTTWholeNEON writes the rounded sum of d src fractions / 2^bits over blocks of 16
// words.
//
//go:noescape
func NTTWholeNEON(dst *uint32, src **uint32, d int, fractions *uint32, blocks, bits int)

// NTTInnerNEON writes the sums of d x times the key's factors, divided by R, over
// blocks of 16 words; the key advances by stride bytes a block.
//
//go:noescape
func NTTInnerNEON(k0, k1 *uint32, x **uint32, d int, key *uint32, stride int, words *uint32, blocks int)

// NTTInnerLiftNEON writes the sums of d x times the key's factors and of lift c0 and
// lift c1, divided by R, over blocks of 16 words; the key advances by stride bytes
// a block.
//
//go:noescape
func NTTInnerLiftNEON(k0, k1 *uint32, x **uint32, d int, key *uint32, stride int, words *uint32, blocks int,
	c0, c1 *uint32, lift uint32)

// NTTUniformNEON writes the masked words below q of blocks of 16 groups of 8 bytes, a word being the last 4 of
// these, the highest first, and returns how many. It may write over 16 words for each block.
//
//go:noescape
func NTTUniformNEON(dst *uint32, random *byte, words *uint32, blocks int) int
