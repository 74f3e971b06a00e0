package profile

import (
	"context"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
)

// Limits are what this machine was measured to reach with all workers at once;
// zero where the instruction set has no loop that measures it.
type Limits struct {
	// Differences is the rate of floating-point operations of loops of a
	// subtraction and a fused multiply-add, the arithmetic of distances below 16
	// dimensions; Products that of fused multiply-adds alone, from 16 on.
	Differences float64 `json:"differences_flops"`
	Products    float64 `json:"products_flops"`
	// Bandwidth is the rate, in bytes per second, of reading blocks of 64 MiB, one
	// for each worker.
	Bandwidth float64 `json:"bytes_per_second"`
}

// wideDimensions is the number of dimensions from which the assignment kernel
// uses |c|^2 - 2 x.c, one fused multiply-add a term, instead of differences.
const wideDimensions = 16

// Floating-point operations of a term of a distance.
const differenceFLOPs, productFLOPs = 3, 2

// flopsOf returns the operations of one term in d dimensions and the limit that
// applies.
func (l Limits) flopsOf(d int) (perTerm, limit float64) {
	if d >= wideDimensions {
		return productFLOPs, l.Products
	}
	return differenceFLOPs, l.Differences
}

// MeasureLimits measures the machine for some hundred milliseconds.
func MeasureLimits(ctx context.Context, pool *engine.Pool) (Limits, error) {
	const block = 64 << 20
	each := make([]Limits, pool.Workers())
	err := pool.Run(ctx, len(each), func(_, index int) {
		core := kernels.MeasureLimits()
		each[index] = Limits{Differences: differenceFLOPs * core.SubFMA, Products: productFLOPs * core.FMA,
			Bandwidth: kernels.MeasureRead(block, 1)}
	})
	var sum Limits
	for _, l := range each {
		sum.Differences += l.Differences
		sum.Products += l.Products
		sum.Bandwidth += l.Bandwidth
	}
	return sum, err
}
