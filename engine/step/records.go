package step

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// checkCoordinates is the number of coordinates that are checked at a time.
const checkCoordinates = 1 << 18

// CheckRecords refuses a shape without records, and records with a coordinate that is
// no number of [-1, 1]: what one record can change follows from that. who holds them.
func CheckRecords(ctx context.Context, pool *engine.Pool, part dataset.Part, who string) error {
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
// numbers are in the order of their bits, infinity and NaN last.
func inBox(x []float32) bool {
	const magnitude, one = 1<<31 - 1, 0x3f800000
	var most [4]uint32
	for ; len(x) >= 4; x = x[4:] {
		most[0] = max(most[0], math.Float32bits(x[0])&magnitude)
		most[1] = max(most[1], math.Float32bits(x[1])&magnitude)
		most[2] = max(most[2], math.Float32bits(x[2])&magnitude)
		most[3] = max(most[3], math.Float32bits(x[3])&magnitude)
	}
	for _, v := range x {
		most[0] = max(most[0], math.Float32bits(v)&magnitude)
	}
	return max(most[0], most[1], most[2], most[3]) <= one
}
