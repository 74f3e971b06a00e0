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

func leastDot(x []float64, stride, n int, coef []float64) (float64, int) {
	if current == generic {
		return leastDotPortable(x, stride, 0, n, coef)
	}
	least, at := math.Inf(1), 0
	step := max(1, callBudget/8/len(coef)) * 8
	for lo := 0; lo < n; lo += step {
		if v, i := leastDotPart(x[lo:], stride, min(step, n-lo), coef); v < least {
			least, at = v, lo+i
		}
	}
	return least, at
}

// leastDotLanes is leastDot by way of the least of eight lanes, each with the
// first place that has it.
func leastDotLanes(x []float64, stride, n int, coef []float64) (float64, int) {
	var values [8]float64
	var places [8]int64
	blocks := n / len(values)
	if blocks == 0 {
		return leastDotPortable(x, stride, 0, n, coef)
	}
	asmLeastDot(&x[0], stride, blocks, &coef[0], len(coef), &values[0], &places[0])
	least, at := leastDotPortable(x, stride, len(values)*blocks, n, coef)
	for l, v := range values {
		if p := int(places[l]); v < least || v == least && p < at {
			least, at = v, p
		}
	}
	return least, at
}
