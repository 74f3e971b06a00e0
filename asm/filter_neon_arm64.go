//go:build arm64 && !purego

package asm

// FilterBytes1DOT writes the integer scores of a panel [words][16] at x and tiles > 0
// tiles [words][8] at c, words > 0, of bytes, four to a word, those at x plus 128:
// base plus the products of the signed bytes. scores is [tiles][8][16], least [tiles][16]
// has the least score of each tile, and best [16] falls to the least of all. It needs SDOT.
//
//go:noescape
func FilterBytes1DOT(x *byte, words int, c *byte, base *int32, tiles int, scores, least, best *int32)

// FilterBytes1I8MM is FilterBytes1DOT of words of eight bytes, those at x as they are: base
// makes up for the 128. It needs USMMLA.
//
//go:noescape
func FilterBytes1I8MM(x *byte, words int, c *byte, base *int32, tiles int, scores, least, best *int32)

// FilterExactNEON takes four scores down the chain s = fma(-x, c, s) over d > 0
// dimensions: of the points at x, a panel's stride apart, and the rows at c.
//
//go:noescape
func FilterExactNEON(x, c *[4]*float32, d int, scores *[4]float32)
