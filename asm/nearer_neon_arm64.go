//go:build arm64 && !purego

package asm

// NearestSumNEON adds the smaller of nearest and the squared distance to c of each point
// of panels > 0 panels of d > 0 dimensions at x to the sum of its lane, by the chain
// t = x-c, s = fma(t, t, s).
//
//go:noescape
func NearestSumNEON(x *float32, panels, d int, c, nearest *float32, sums *[16]float64)

// NearerNEON lowers nearest to the squared distance of each point of panels > 0 panels
// of d > 0 dimensions at x to c, by the chain t = x-c, s = fma(t, t, s).
//
//go:noescape
func NearerNEON(x *float32, panels, d int, c, nearest *float32)
