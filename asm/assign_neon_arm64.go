//go:build arm64 && !purego

package asm

// AssignSubNEON writes the label of the nearest of k > 0 centroids at c to each
// point of panels > 0 panels of d > 0 dimensions at x, by the chain t = x-c,
// s = fma(t, t, s), the squared distance where dist is not nil, and the second
// smallest distance where second is not nil.
//
//go:noescape
func AssignSubNEON(x *float32, panels, d int, c *float32, k int, labels *uint16, dist, second *float32)

// AssignDot1NEON writes the label of the smallest score |c|^2/2 - x.c of each
// point of panels > 0 panels of d > 0 dimensions at x, and the score and the
// second smallest score where score and second are not nil. The score is the
// chain s = half, s = fma(-x, c, s). tiles holds wide > 0 tiles [d][1] of
// centroids and then narrow tiles [d][0]; half holds |c|^2/2 of each centroid.
//
//go:noescape
func AssignDot1NEON(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16,
	score, second *float32)

// AssignDot2NEON writes the label of the smallest score |c|^2/2 - x.c of each
// point of panels > 0 panels of d > 0 dimensions at x, and the score and the
// second smallest score where score and second are not nil. The score is the
// chain s = half, s = fma(-x, c, s). tiles holds wide > 0 tiles [d][2] of
// centroids and then narrow tiles [d][1]; half holds |c|^2/2 of each centroid.
//
//go:noescape
func AssignDot2NEON(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16,
	score, second *float32)

// AssignDot3NEON writes the label of the smallest score |c|^2/2 - x.c of each
// point of panels > 0 panels of d > 0 dimensions at x, and the score and the
// second smallest score where score and second are not nil. The score is the
// chain s = half, s = fma(-x, c, s). tiles holds wide > 0 tiles [d][3] of
// centroids and then narrow tiles [d][2]; half holds |c|^2/2 of each centroid.
//
//go:noescape
func AssignDot3NEON(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16,
	score, second *float32)

// AssignDot4NEON writes the label of the smallest score |c|^2/2 - x.c of each
// point of panels > 0 panels of d > 0 dimensions at x, and the score and the
// second smallest score where score and second are not nil. The score is the
// chain s = half, s = fma(-x, c, s). tiles holds wide > 0 tiles [d][4] of
// centroids and then narrow tiles [d][3]; half holds |c|^2/2 of each centroid.
//
//go:noescape
func AssignDot4NEON(x *float32, panels int, d int, tiles, half *float32, wide, narrow int, labels *uint16,
	score, second *float32)

// FinishDotNEON replaces the scores of panels > 0 panels of d > 0 dimensions at x
// by squared distances max(0, |x|^2 + 2 score), in dist and, when not nil,
// second. |x|^2 is the chain s = fma(x, x, s).
//
//go:noescape
func FinishDotNEON(x *float32, panels int, d int, dist, second *float32)

// AssignAddNEON writes the label of the nearest of k > 0 centroids at c to each
// point of panels > 0 panels of d > 0 dimensions at x, by the chain t = x-c,
// s = fma(t, t, s), and adds the points of cluster a to lanes [k][1+d][4]: how many
// they are as integers, and the coordinates. A point with s > r2 is not added and
// has the label k. The sums of the lanes must stay exact. labels may be nil.
//
//go:noescape
func AssignAddNEON(x *float32, panels int, d int, c *float32, k int, r2 float32, labels *uint16, lanes *float32)

// FoldLanesNEON adds the counts of lanes [k][1+d][4] to counts [k] and the sums,
// times scale, to sums [k][d], and clears the lanes. Times scale, each is an
// integer below 2^25 in magnitude.
//
//go:noescape
func FoldLanesNEON(lanes *float32, k int, d int, scale float32, sums *int64, counts *int64)
