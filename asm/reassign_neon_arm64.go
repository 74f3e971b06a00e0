//go:build arm64 && !purego

package asm

// ChangedLabelsNEON sets bit i of masks[b] if label i of the b-th of blocks > 0
// blocks of 32 labels differs, and clears it otherwise.
//
//go:noescape
func ChangedLabelsNEON(before *uint16, now *uint16, blocks int, masks *uint32)

// DistanceBoundsNEON writes, for each of blocks > 0 blocks of 128 points, the
// smallest second-dist, the largest second and the largest dist, none of them NaN,
// to bounds[0..2].
//
//go:noescape
func DistanceBoundsNEON(dist *float32, second *float32, blocks int, bounds *[4]float32)
