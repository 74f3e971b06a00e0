//go:build arm64 && !purego

package asm

// Project1NEON writes the products of the points of panels > 0 panels of d > 0
// dimensions at x with the 1 rows of tile, stored as [d][1]: for each panel 1
// vectors of 16 at out, which then moves on by stride bytes. A product is the
// chain s = 0, s = fma(x, c, s).
//
//go:noescape
func Project1NEON(x *float32, panels int, d int, tile, out *float32, stride int)

// Project2NEON writes the products of the points of panels > 0 panels of d > 0
// dimensions at x with the 2 rows of tile, stored as [d][2]: for each panel 2
// vectors of 16 at out, which then moves on by stride bytes. A product is the
// chain s = 0, s = fma(x, c, s).
//
//go:noescape
func Project2NEON(x *float32, panels int, d int, tile, out *float32, stride int)

// Project3NEON writes the products of the points of panels > 0 panels of d > 0
// dimensions at x with the 3 rows of tile, stored as [d][3]: for each panel 3
// vectors of 16 at out, which then moves on by stride bytes. A product is the
// chain s = 0, s = fma(x, c, s).
//
//go:noescape
func Project3NEON(x *float32, panels int, d int, tile, out *float32, stride int)

// Project4NEON writes the products of the points of panels > 0 panels of d > 0
// dimensions at x with the 4 rows of tile, stored as [d][4]: for each panel 4
// vectors of 16 at out, which then moves on by stride bytes. A product is the
// chain s = 0, s = fma(x, c, s).
//
//go:noescape
func Project4NEON(x *float32, panels int, d int, tile, out *float32, stride int)
