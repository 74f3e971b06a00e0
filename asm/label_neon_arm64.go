//go:build arm64 && !purego

package asm

// MaxLabelNEON returns the largest of blocks > 0 blocks of 32 labels.
//
//go:noescape
func MaxLabelNEON(labels *uint16, blocks int) uint16

// CutLabelsNEON sets labels to none where dist > r2, for panels > 0 groups of 16.
//
//go:noescape
func CutLabelsNEON(labels *uint16, dist *float32, panels int, r2 float32, none int)

// LabelDistancesNEON writes the squared distance, by the chain t = x-c,
// s = fma(t, t, s), of each point of panels > 0 panels of d > 0 dimensions at x to
// the row of c [k][d] that its label names, and +Inf where the label is k or more.
//
//go:noescape
func LabelDistancesNEON(x *float32, panels, d int, c *float32, k int, labels *uint16, dist *float32)

// CutOffsetsNEON writes panels of the offsets (x-c)*factor, truncated toward zero and
// times unit, of the points of panels > 0 panels of d > 0 dimensions from the row of
// c [k][d] that their labels name; where a label is k or more, it writes any numbers.
//
//go:noescape
func CutOffsetsNEON(x *float32, panels, d int, c *float32, k int, labels *uint16, factor *float32, unit float32,
	out *float32)
