package step

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// checkCoordinates is the number of coordinates that are checked at a time.
const checkCoordinates = 1 << 18

// CheckParts refuses the absence of parties, and what they hold where it is nothing or
// of different columns or grids. who is what a party is called.
func CheckParts(parts []dataset.Part, who string) error {
	if len(parts) == 0 {
		return fault.Range(who+"s", 0, "at least 1")
	}
	for i, p := range parts {
		name := fmt.Sprintf("%s %d", who, i+1)
		switch {
		case p.Points == nil || p.Points.N < 1:
			return fault.Request(name, "holds no records", "give each "+who+" at least one record")
		case p.Points.D < 1:
			return fault.Request(name, "has no columns", "give at least one column")
		case p.FractionBits < 1 || p.FractionBits > dataset.MaxFractionBits:
			return fault.Range("fraction bits", p.FractionBits, fmt.Sprintf("1 to %d", dataset.MaxFractionBits))
		case p.Points.D != parts[0].Points.D || p.FractionBits != parts[0].FractionBits:
			return fault.Request(name, fmt.Sprintf("has %d columns on the grid 2^-%d, %s 1 has %d on 2^-%d", p.Points.D, p.FractionBits,
				who, parts[0].Points.D, parts[0].FractionBits), "normalise all "+who+"s' records together")
		}
	}
	return nil
}

// CheckLabels refuses labels, if there are any, that do not reach all rows of the parts.
func CheckLabels(parts []dataset.Part, labels []int32) error {
	if labels == nil {
		return nil
	}
	for i, p := range parts {
		reach := p.Points.N <= len(labels)
		if p.Rows != nil {
			reach = len(p.Rows) >= p.Points.N &&
				!slices.ContainsFunc(p.Rows[:p.Points.N], func(r int) bool { return r < 0 || r >= len(labels) })
		}
		if !reach {
			return fault.Request("labels", fmt.Sprintf("%d do not reach all rows of part %d", len(labels), i+1), "give one label per record")
		}
	}
	return nil
}

// CheckBounds refuses bounds that are not one pair of finite numbers, in order, for
// each of d columns.
func CheckBounds(b dataset.Bounds, d int) error {
	if len(b.Lo) != d || len(b.Hi) != d {
		return fault.Request("bounds", fmt.Sprintf("%d lower and %d upper ones for %d columns", len(b.Lo), len(b.Hi), d), "give one pair per column")
	}
	for h := range d {
		if lo, hi := b.Lo[h], b.Hi[h]; !(lo <= hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
			return fault.Request("bounds", fmt.Sprintf("of column %d are %g and %g", h+1, lo, hi), "give finite numbers, the lower one first")
		}
	}
	return nil
}

// CheckRecords refuses a shape without records, and records with a coordinate that is
// no number of [-1, 1]: what one record can change follows from that. who holds them.
// A role that holds none, such as a server on a machine of its own, has no points.
func CheckRecords(ctx context.Context, pool *engine.Pool, part dataset.Part, who string) error {
	if part.Points == nil {
		return nil
	}
	data, coordinates := part.Points.Data, (part.Points.N+kernels.Lanes-1)/kernels.Lanes*kernels.Lanes*part.Points.D
	if len(data) < coordinates {
		return fault.Request(who, "has fewer coordinates than records and columns", "make its points by kernels.NewPanels; a shape can be planned only")
	}
	data = data[:coordinates]
	if len(data) <= checkCoordinates {
		return outside(inBox(data), who)
	}
	var bad atomic.Bool
	err := pool.Run(ctx, (len(data)+checkCoordinates-1)/checkCoordinates, func(_, index int) {
		if !inBox(data[index*checkCoordinates : min((index+1)*checkCoordinates, len(data))]) {
			bad.Store(true)
		}
	})
	if err != nil {
		return err
	}
	return outside(!bad.Load(), who)
}

// outside is the refusal of records that are not all inside the box.
func outside(inside bool, who string) error {
	if inside {
		return nil
	}
	return fault.Request(who, "has a coordinate that is no number of [-1, 1]", "normalise the records")
}

// inBox tells whether all of x lies in [-1, 1]; NaN does not. Without their signs
// numbers are in the order of their bits, infinity and NaN last, so a word has its
// high bit set by an addition exactly if it is beyond 1, and carries nothing into the
// next: two of them are added at a time.
func inBox(x []float32) bool {
	const magnitude, one = 1<<31 - 1, 0x3f800000
	const both, up = magnitude<<32 | magnitude, (magnitude-one)<<32 | (magnitude - one)
	var beyond [4]uint64
	for len(x) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(x)))%8 != 0 {
		beyond[0] |= uint64(math.Float32bits(x[0])&magnitude) + (magnitude - one)
		x = x[1:]
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
	if len(x)%2 == 1 {
		beyond[1] |= uint64(math.Float32bits(x[len(x)-1])&magnitude) + (magnitude - one)
	}
	for ; len(words) >= 4; words = words[4:] {
		beyond[0] |= words[0]&both + up
		beyond[1] |= words[1]&both + up
		beyond[2] |= words[2]&both + up
		beyond[3] |= words[3]&both + up
	}
	for _, w := range words {
		beyond[0] |= w&both + up
	}
	return (beyond[0]|beyond[1]|beyond[2]|beyond[3])&(1<<63|1<<31) == 0
}
