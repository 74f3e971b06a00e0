package kernels

import (
	"fmt"
	"math"
)

// Ranges are the least and the greatest value of each of D columns so far.
type Ranges[T float32 | float64] struct {
	D      int
	lo, hi []T // [period], the columns over and over
}

// rangeLanes is the number of values to which the period of ranges is rounded up.
const rangeLanes = 16

// NewRanges makes ranges of d > 0 columns that hold nothing: +Inf to -Inf.
func NewRanges[T float32 | float64](d int) *Ranges[T] {
	if d <= 0 {
		panic(fmt.Sprintf("kernels: NewRanges: d=%d, want d > 0", d))
	}
	period := d
	for period%rangeLanes != 0 {
		period += d
	}
	r := &Ranges[T]{D: d, lo: aligned[T](period), hi: aligned[T](period)}
	for i := range period {
		r.lo[i], r.hi[i] = T(math.Inf(1)), T(math.Inf(-1))
	}
	return r
}

// Column returns the range of column j. A zero has no sign.
func (r *Ranges[T]) Column(j int) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for ; j < len(r.lo); j += r.D {
		lo, hi = min(lo, float64(r.lo[j])), max(hi, float64(r.hi[j]))
	}
	return lo + 0, hi + 0
}

// Extend extends the ranges to hold row-major records of D values, and reports whether
// all are finite. If not, the ranges mean nothing any more.
func Extend[T float32 | float64](r *Ranges[T], rows []T) bool {
	if len(rows)%r.D != 0 {
		panic(fmt.Sprintf("kernels: Extend: len(rows)=%d, want a multiple of d=%d", len(rows), r.D))
	}
	return extend(r, rows)
}

// extendPortable is the reference form of [Extend].
func extendPortable[T float32 | float64](r *Ranges[T], rows []T) bool {
	finite, lo, hi := true, r.lo[:r.D], r.hi[:r.D]
	for ; len(rows) > 0; rows = rows[r.D:] {
		for j, v := range rows[:r.D] {
			finite = finite && v-v == 0
			lo[j], hi[j] = min(lo[j], v), max(hi[j], v)
		}
	}
	return finite
}
