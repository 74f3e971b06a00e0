//go:build arm64 && !purego

package asm

// CostPanelNEON writes to dst [lanes][k] the squared distances, times scale, of
// lanes > 0 points from lane first on of a panel part [dims][16] at x to k > 0
// centroids at c, [dims][stride], and adds to what dst holds when sum is not
// zero. wide is scratch for 16*dims values. Each product and each sum is an
// integer of at most 2^51 after scaling. Rows of c are readable up to k rounded up to
// 8.
//
//go:noescape
func CostPanelNEON(x *float32, dims int, wide *float64, first, lanes int, c *float64, stride, k int,
	scale float64, sum int64, dst *int64)
