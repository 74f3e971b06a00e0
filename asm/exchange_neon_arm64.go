//go:build arm64 && !purego

package asm

// ExchangeNEON adds, for each point of blocks > 0 blocks of 8, weight*min(own, near)
// to chain i of base [8] and weight*(max(min(next, own), near)-near) to chain i of
// the row of table [][8] that its label names, where i is the place of the point in
// its block. weights may be nil for ones.
//
//go:noescape
func ExchangeNEON(own *float32, near *float32, next *float32, labels *uint16, weights *float64, blocks int,
	table *float64, base *float64)

// RootsNEON replaces panels > 0 groups of 16 distances by min(sqrt(dist), most).
//
//go:noescape
func RootsNEON(dist *float32, panels int, most float32)

// SquaresNEON replaces panels > 0 groups of 16 distances by min(dist, most).
//
//go:noescape
func SquaresNEON(dist *float32, panels int, most float32)
