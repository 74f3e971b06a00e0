//go:build arm64 && !purego

package asm

// AddWeighted4NEON adds the rows [8][4] of blocks > 0 blocks of 8 points to table
// [][8][4]: row i of a block to the chain i of the row that its label names.
//
//go:noescape
func AddWeighted4NEON(rows *float64, blocks int, labels *uint16, table *float64)

// AddWeighted8NEON adds the rows [8][8] of blocks > 0 blocks of 8 points to table
// [][8][8]: row i of a block to the chain i of the row that its label names.
//
//go:noescape
func AddWeighted8NEON(rows *float64, blocks int, labels *uint16, table *float64)

// AddWeightedNEON adds the rows [8][width] of blocks > 0 blocks of 8 points to a
// table: row i of a block at label*stride + i*chain bytes. width > 0 is a multiple
// of 8.
//
//go:noescape
func AddWeightedNEON(rows *float64, blocks int, width int, labels *uint16, table *float64, stride int, chain int)

// FoldWeightedNEON replaces the first chain of each of clusters > 0 rows of table
// [][8][width] by ((0+1)+(2+3))+((4+5)+(6+7)) and the others by zero. width > 0 is
// a multiple of 4.
//
//go:noescape
func FoldWeightedNEON(table *float64, clusters int, width int)

// WeightedCostsNEON adds weights*dist, rounded, of blocks > 0 blocks of 8 points to
// the eight chains at costs: point i of a block to chain i.
//
//go:noescape
func WeightedCostsNEON(weights *float64, dist *float32, blocks int, costs *float64)
