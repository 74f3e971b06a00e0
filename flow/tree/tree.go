// Package tree puts points in the order of a k-d tree, in which points that follow each other are close together, and
// bounds runs of them by boxes: what holds for a box holds for its points, so that most need no look.
package tree

import (
	"context"
	"math"
	"slices"

	"github.com/cohort-engine/cohort/internal/parallel"
)

// Halves orders rows by halving runs of them. It keeps its memory; the zero value is ready to use.
type Halves struct {
	rows  []float32
	d     int
	ids   []int32
	runs  []run
	parts []run
	work  func(worker, index int)

	// The rows in their next order, and what that goes by.
	spare        []float32
	keys, others []int64
	moved        []int32
}

// run is the rows [first, last).
type run struct{ first, last int }

// sized returns a slice of length n, with the memory of x if that is enough, and anything in it.
func sized[T any](x []T, n int) []T { return slices.Grow(x[:0], n)[:n] }

// Order orders rows of d coordinates between -2 and 2: runs are cut in two, across their longest side, at a multiple of
// the rows of a leaf, all of the same size side by side. Row q is row ids[q] of those that were given; ids are good
// until the next call. It returns the error of ctx if that ends.
func (o *Halves) Order(ctx context.Context, workers parallel.Runner, rows []float32, d, leaf int) (ids []int32,
	err error) {
	n := len(rows) / d
	o.rows, o.d, o.spare, o.keys, o.others = rows, d, sized(o.spare, n*d), sized(o.keys, n), sized(o.others, n)
	o.ids, o.moved = sized(o.ids, n), sized(o.moved, n)
	for i := range o.ids {
		o.ids[i] = int32(i)
	}
	if o.work == nil {
		o.work = o.cut
	}
	o.runs = append(o.runs[:0], run{0, n})
	for len(o.runs) > 0 {
		o.parts = o.parts[:0]
		for _, r := range o.runs {
			if leaves := (r.last - r.first + leaf - 1) / leaf; leaves > 1 {
				o.parts = append(o.parts, run{r.first, r.first + leaves/2*leaf}, run{r.first + leaves/2*leaf, r.last})
			}
		}
		if err := workers.Run(ctx, len(o.parts)/2, o.work); err != nil {
			return nil, err
		}
		o.runs, o.parts = o.parts, o.runs
	}
	return o.ids, nil
}

// cut moves the least rows of two parts, by the coordinate that spreads most, to the first of them.
func (o *Halves) cut(_, index int) {
	d, first, middle, last := o.d, o.parts[2*index].first, o.parts[2*index].last, o.parts[2*index+1].last
	axis, widest, rows := 0, float32(-1), o.rows[first*d:last*d]
	for c := range d {
		lo, hi := rows[c], rows[c]
		for at := c; at < len(rows); at += d {
			x := rows[at]
			if x < lo {
				lo = x
			}
			if x > hi {
				hi = x
			}
		}
		if hi-lo > widest {
			axis, widest = c, hi-lo
		}
	}
	keys, ids, spare := o.keys[first:last], o.ids[first:last], o.spare[first*d:last*d]
	for i := range keys {
		keys[i] = Rank(rows[i*d+axis], i)
	}
	moved := o.moved[first:last]
	most := Nth(keys, o.others[first:last], middle-first-1) // of the first part
	places := [2]int{middle - first, 0}
	for i, key := range keys {
		part := &places[uint64(key-most-1)>>63]
		moved[*part] = ids[i]
		copy(spare[*part*d:(*part+1)*d], rows[i*d:(i+1)*d])
		*part++
	}
	copy(rows, spare)
	copy(ids, moved)
}

// Rank returns a number that orders as x does, other than -0, and i after it.
func Rank(x float32, i int) int64 {
	bits := int32(math.Float32bits(x + 0))
	return int64(bits^bits>>31&math.MaxInt32)<<32 | int64(i)
}

// Nth returns the number that sorting would put at place n, of different ones: by its bytes, from the first on. It
// overwrites spare, which is as long as x, and may be x.
func Nth(x, spare []int64, n int) int64 {
	sign := uint8(128) // is in the first one
	for shift := 56; len(x) > 1; shift -= 8 {
		var counts [256]int
		for _, y := range x {
			counts[uint8(y>>shift)^sign]++
		}
		own := uint8(0)
		for ; n >= counts[own]; own++ {
			n -= counts[own]
		}
		left := 0
		for _, y := range x {
			spare[left] = y
			if uint8(y>>shift)^sign == own { // no branch, as it is written
				left++
			}
		}
		sign = 0
		x = spare[:left]
	}
	return x[0]
}
