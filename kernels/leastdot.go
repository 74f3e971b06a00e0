package kernels

import (
	"fmt"
	"math"
)

// LeastDot returns the least of the n sums over c of coef[c]*x[c*stride+i], each
// a fused chain from 0 in the order of c, and the first i < n that has it. Sums
// are numbers. It panics unless n > 0, len(coef) > 0, n <= stride and x holds
// the values.
func LeastDot(x []float64, stride, n int, coef []float64) (least float64, at int) {
	if n <= 0 || len(coef) == 0 || stride < n || len(x) < (len(coef)-1)*stride+n {
		panic(fmt.Sprintf("kernels: LeastDot: %d sums of %d terms from %d values with stride %d, "+
			"want at least one of each, sums <= stride and (terms-1)*stride+sums values",
			n, len(coef), len(x), stride))
	}
	return leastDot(x, stride, n, coef)
}

// leastDotPortable is the reference form of [LeastDot], from index first on.
func leastDotPortable(x []float64, stride, first, n int, coef []float64) (least float64, at int) {
	least = math.Inf(1)
	at = first
	for i := first; i < n; i++ {
		var sum float64
		for c, w := range coef {
			sum = math.FMA(w, x[c*stride+i], sum)
		}
		if sum < least {
			least, at = sum, i
		}
	}
	return least, at
}
