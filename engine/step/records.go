package step

import (
	"context"
	"sync/atomic"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/fault"
	"github.com/cohort-engine/cohort/kernels"
)

// checkCoordinates is the number of coordinates that are checked at a time.
const checkCoordinates = 1 << 20

// CheckRecords refuses records with a coordinate that is no number of [-1, 1]: what
// one record can change follows from that. who holds them.
func CheckRecords(ctx context.Context, pool *engine.Pool, part dataset.Part, who string) error {
	data := part.Points.Data[:(part.Points.N+kernels.Lanes-1)/kernels.Lanes*kernels.Lanes*part.Points.D]
	var bad atomic.Bool
	err := pool.Run(ctx, (len(data)+checkCoordinates-1)/checkCoordinates, func(_, index int) {
		if !inBox(data[index*checkCoordinates : min((index+1)*checkCoordinates, len(data))]) {
			bad.Store(true)
		}
	})
	if err == nil && bad.Load() {
		err = fault.Request(who, "has a coordinate that is no number of [-1, 1]", "normalise the records")
	}
	return err
}

// inBox tells whether all of x lies in [-1, 1]; NaN does not.
func inBox(x []float32) bool {
	for _, v := range x {
		if !(v >= -1 && v <= 1) {
			return false
		}
	}
	return true
}
