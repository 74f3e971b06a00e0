package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cohort-engine/cohort/kernels"
)

// timeEvents times a step of the expectation maximisation over a grid of a vertical
// protocol, for events with one set of tails, and the exposure of a cell over 4096 keys.
// On the path "generic" both run as plain Go.
func timeEvents(ctx context.Context, c *Case, heads, tails, events int) error {
	const repeated, keys = 256, 4096
	rng := rand.New(rand.NewPCG(1, uint64(heads*tails*events)))
	length := kernels.RowCells(heads)
	weights, shares := make([]float64, tails*length), make([]float64, tails*length)
	rows, sets := make([]int32, tails), make([]uint64, events)
	counts, backgrounds := make([]float64, events), make([]float64, events)
	for i := range weights {
		weights[i] = rng.ExpFloat64()
	}
	for i := range rows {
		rows[i] = int32(i * length)
	}
	for i := range sets {
		sets[i] = (rng.Uint64()&rng.Uint64() | 1) & (1<<heads - 1)
		counts[i], backgrounds[i] = 1, rng.Float64()
	}
	x, y := make([]float64, keys), make([]float64, keys)
	for i := range x {
		x[i], y[i] = rng.ExpFloat64(), rng.ExpFloat64()
	}
	sum := 0.0
	share := func() time.Duration {
		start := time.Now()
		for range repeated {
			kernels.ShareCounts(weights, shares, length, rows, sets, counts, backgrounds)
		}
		return time.Since(start)
	}
	timed := []Timed{
		{Name: "256 sets of tails", Fn: func() { share() }},
		{Name: "exposure", Fn: func() { sum += kernels.SumMaxima(x, y) }},
	}
	if err := c.compare(ctx, timed); err != nil {
		return err
	}
	best := timed[0].Least
	c.number("an event", "ns", best/float64(repeated*events)*1e9)
	return c.slowerPaths(best, slowerGoals, share)
}
