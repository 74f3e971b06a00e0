package profile

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
)

// Limits are what this machine was measured to reach with all workers.
type Limits struct {
	// FLOPS is the highest rate of floating-point operations that the assignment
	// kernel reaches on points and centroids that stay in the L1 cache.
	FLOPS float64 `json:"flops"`
	// Bandwidth is the rate, in bytes per second, of reading blocks of 64 MiB, one
	// for each worker.
	Bandwidth float64 `json:"bytes_per_second"`
}

// MeasureLimits measures the machine for some hundred milliseconds.
func MeasureLimits(ctx context.Context, pool *engine.Pool) (Limits, error) {
	workers := pool.Workers()
	const n, d, k, rounds = 256, 16, 64, 200
	points := kernels.NewPanels(n, d)
	for i := range points.Data {
		points.Data[i] = float32(i%127) / 128
	}
	rows := make([]float32, k*d)
	for i := range rows {
		rows[i] = float32(i%61) / 64
	}
	cents := make([]*kernels.Centroids, workers)
	labels := make([][]uint16, workers)
	for w := range workers {
		cents[w] = kernels.NewCentroids(k, d)
		cents[w].Set(rows)
		labels[w] = make([]uint16, n)
	}
	var out Limits
	best := func(work func(worker, index int)) (time.Duration, error) {
		least := time.Duration(math.MaxInt64)
		for range 5 {
			start := time.Now()
			if err := pool.Run(ctx, workers, work); err != nil {
				return 0, err
			}
			least = min(least, time.Since(start))
		}
		return least, nil
	}
	took, err := best(func(worker, _ int) {
		for range rounds {
			kernels.Assign(*points, cents[worker], labels[worker], nil)
		}
	})
	if err != nil {
		return out, err
	}
	out.FLOPS = float64(workers) * rounds * n * d * k * flopsPerTerm / took.Seconds()

	const words = 1 << 23 // 64 MiB for each worker
	blocks := make([][]uint64, workers)
	for w := range blocks {
		blocks[w] = make([]uint64, words)
		for i := range blocks[w] {
			blocks[w][i] = uint64(i)
		}
	}
	var mu sync.Mutex
	total := uint64(0)
	took, err = best(func(_, index int) {
		var a, b, c, d uint64
		x := blocks[index]
		for i := 0; i+4 <= len(x); i += 4 {
			a += x[i]
			b += x[i+1]
			c += x[i+2]
			d += x[i+3]
		}
		mu.Lock()
		total += a + b + c + d
		mu.Unlock()
	})
	if err != nil {
		return out, err
	}
	out.Bandwidth = float64(workers) * words * 8 / took.Seconds()
	return out, nil
}

// flopsPerTerm counts a subtraction, a multiplication and an addition for each
// point, centroid and dimension.
const flopsPerTerm = 3
