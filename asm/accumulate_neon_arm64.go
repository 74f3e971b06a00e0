//go:build arm64 && !purego

package asm

// Scatter1NEON adds each point of panels > 0 panels of 1 dimensions at x to the
// row of table that its label names: the bits of x+bias in the first columns, 1
// in the fourth, modulo 2^32. The table has four replicas of [rows][4]int32, one
// for each lane modulo 4, so that points of one cluster seldom wait for each
// other.
//
//go:noescape
func Scatter1NEON(x *float32, panels int, labels *uint16, table *int32, rows int, bias float32)

// Scatter2NEON adds each point of panels > 0 panels of 2 dimensions at x to the
// row of table that its label names: the bits of x+bias in the first columns, 1
// in the fourth, modulo 2^32. The table has four replicas of [rows][4]int32, one
// for each lane modulo 4, so that points of one cluster seldom wait for each
// other.
//
//go:noescape
func Scatter2NEON(x *float32, panels int, labels *uint16, table *int32, rows int, bias float32)

// Scatter3NEON adds each point of panels > 0 panels of 3 dimensions at x to the
// row of table that its label names: the bits of x+bias in the first columns, 1
// in the fourth, modulo 2^32. The table has four replicas of [rows][4]int32, one
// for each lane modulo 4, so that points of one cluster seldom wait for each
// other.
//
//go:noescape
func Scatter3NEON(x *float32, panels int, labels *uint16, table *int32, rows int, bias float32)

// ScatterNEON adds the bits of x+bias, modulo 2^32, of each point of panels > 0
// panels of d > 0 dimensions at x to the row of table [][width]int32 that its
// label names, and 1 to counts[label]; width is at least d rounded up to 4.
// Columns past d, up to that, receive bits of bias.
//
//go:noescape
func ScatterNEON(x *float32, panels, d int, labels *uint16, table *int32, width int, bias float32, counts *int32)

// FoldRowNEON adds row-bias, modulo 2^32 and read as signed, to sums, for blocks > 0
// blocks of 16.
//
//go:noescape
func FoldRowNEON(row *int32, blocks int, bias int32, sums *int64)
