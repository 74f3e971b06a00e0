//go:build arm64 && !purego

package asm

// WithinNEON sets bit l of masks[p*k+a] if point l of panel p is within
// limit[p*16+l] of centroid a, and clears it otherwise, for panels > 0 panels of
// d > 0 dimensions at x and k > 0 centroids at c, by the chain t = x-c,
// s = fma(t, t, s).
//
//go:noescape
func WithinNEON(x *float32, panels, d int, c *float32, k int, limit *float32, masks *uint16)
