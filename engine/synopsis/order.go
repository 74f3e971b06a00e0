package synopsis

import "slices"

// InTurn cuts axes 0, 1, ..., d-1, 0, 1, ... in turn.
func InTurn(d, cuts int) []int {
	order := make([]int, cuts)
	for t := range order {
		order[t] = t % d
	}
	return order
}

// Widest cuts, each time, the axis whose width, halved by every cut so far, is the greatest,
// and none more than `most` times.
func Widest(widths []float64, cuts, most int) []int {
	left, times := slices.Clone(widths), make([]int, len(widths))
	order := make([]int, cuts)
	for t := range order {
		best := -1
		for h, x := range left {
			if times[h] < most && (best < 0 || x > left[best]) {
				best = h
			}
		}
		order[t] = best
		left[best] /= 2
		times[best]++
	}
	return order
}
