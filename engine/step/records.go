package step

import (
	"context"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// checkCoordinates is the number of coordinates that are checked at a time.
const checkCoordinates = 1 << 18

// CheckRecords refuses a shape without records, and records with a coordinate that is
// no number of [-1, 1]: what one record can change follows from that. who holds them.
// A role that holds none, such as a server on a machine of its own, has no points.
func CheckRecords(ctx context.Context, pool *engine.Pool, part dataset.Part, who string) error {
	if part.Points == nil {
		return nil
	}
	data, coordinates := part.Points.Data, (part.Points.N+kernels.Lanes-1)/kernels.Lanes*kernels.Lanes*part.Points.D
	if len(data) < coordinates {
		return fault.Request(who, "has fewer coordinates than records and columns",
			"make its points by kernels.NewPanels; a shape can be planned only")
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
