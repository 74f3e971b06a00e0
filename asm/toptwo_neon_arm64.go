//go:build arm64 && !purego

package asm

// TopTwoNEON finds the least and the second least of k > 0 values for each point of
// panels > 0 panels of d > 0 dimensions at x: the chain s = weight, t = x-c,
// s = fma(t, t, s), its bits low replaced by the index of the centroid. It writes
// the index of the least, gap = fma(-slack, second, second-least), and
// label*k+second where the gap is at most window, else k*k+label. Weights are not
// negative.
//
//go:noescape
func TopTwoNEON(x *float32, panels int, d int, c *float32, k int, weight *float32, low uint32, slack float32,
	window float32, labels *uint16, cells *uint32, gap *float32)
