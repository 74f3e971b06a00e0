package kernels

import "math"

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
