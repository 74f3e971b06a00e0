package step

import "math"

// Post says what happens to a noisy value outside its domain (Thesis-H §6.1.3).
type Post string

// The post-processing rules.
const (
	// Fold mirrors the value at the bounds until it is inside.
	Fold Post = "fold"
	// Truncate moves the value to the nearest bound.
	Truncate Post = "truncate"
	// Keep leaves the value as it is.
	Keep Post = "none"
)

// Apply returns x brought into [lo, hi]; the empty rule keeps it.
func (p Post) Apply(x, lo, hi float64) float64 {
	switch p {
	case Fold:
		return fold(x, lo, hi)
	case Truncate:
		return min(max(x, lo), hi)
	}
	return x
}

// ApplyAll brings values into [lo, hi] as Apply does, which keeps those inside.
func (p Post) ApplyAll(values []float64, lo, hi float64) {
	for i, x := range values {
		if !(x > lo && x < hi) {
			values[i] = p.Apply(x, lo, hi)
		}
	}
}

// fold reflects x over the bounds of [lo, hi] as often as needed: x < lo goes to
// 2 lo - x and x > hi to 2 hi - x (FastLloyd §5.2.5). The remainder does all
// reflections at once and exactly.
func fold(x, lo, hi float64) float64 {
	if x >= lo && x <= hi {
		return x
	}
	w := hi - lo
	if w <= 0 {
		return lo
	}
	y := math.Mod(x-lo, 2*w)
	if y < 0 {
		y += 2 * w
	}
	if y > w {
		y = 2*w - y
	}
	return min(max(lo+y, lo), hi)
}
