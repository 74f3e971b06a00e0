package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
)

// lloydShapes are the (n, d, k) of the iterations that are compared with the
// limits of the machine, the quick ones first.
var lloydShapes = [][3]int{
	{5000, 2, 15}, {25000, 2, 100}, {100000, 2, 5}, {100000, 5, 5}, {1000000, 2, 15},
	{1000000, 8, 5}, {1000000, 16, 64}, {100000, 100, 64}, {70000, 784, 10},
}

// runAgainstLimits measures what one core can do at best, and then kernels with
// their share of it. The limits are measured again for each row, and the best so
// far counts, because the clock moves.
func runAgainstLimits(ctx context.Context, e *Env) {
	var limits kernels.Limits
	read := map[int]float64{}
	unpin := pin()
	limits = kernels.MeasureLimits()
	for _, size := range []int{32 << 10, 1 << 20, 16 << 20, 128 << 20} {
		read[size] = kernels.MeasureRead(size, 1)
	}
	unpin()
	e.newCase(ctx, "limits", []Label{L("isa", kernels.ISA())}, func(_ context.Context, c *Case) error {
		c.number("fused multiply-add", "GFLOP/s", 2*limits.FMA/1e9)
		c.number("subtract and multiply-add", "GFLOP/s", 3*limits.SubFMA/1e9)
		for _, x := range []struct {
			name string
			rate float64
		}{{"products of 16-bit integers", limits.Dot}, {"products of bytes in tiles", limits.Tile},
			{"products of 32-bit words", limits.Word}} {
			if x.rate > 0 {
				c.number(x.name, "G/s", x.rate/1e9)
			}
		}
		c.number("minimum with index", "G candidates/s", limits.Argmin/1e9)
		c.number("AES-128", "G blocks/s", limits.AES/1e10)
		c.number("read 32 KiB", "GB/s", read[32<<10]/1e9)
		c.number("read 1 MiB", "GB/s", read[1<<20]/1e9)
		c.number("read 16 MiB", "GB/s", read[16<<20]/1e9)
		c.number("read 128 MiB", "GB/s", read[128<<20]/1e9)
		if workers := e.Pool.Workers(); workers > 1 {
			c.number(fmt.Sprintf("read 128 MiB, %d threads", workers), "GB/s", kernels.MeasureRead(128<<20, workers)/1e9)
		}
		return nil
	})
	against := func(table, last string, shapes [][3]int,
		measure func(ctx context.Context, c *Case, limits kernels.Limits, n, d, last int) error) {
		for _, x := range shapes {
			e.newCase(ctx, table, []Label{L("n", x[0]), L("d", x[1]), L(last, x[2]), L("isa", kernels.ISA())},
				func(ctx context.Context, c *Case) error {
					limits = limits.Best(kernels.MeasureLimits())
					return measure(ctx, c, limits, x[0], x[1], x[2])
				})
		}
	}
	against("lloyd", "k", lloydShapes, lloydAgainstLimits)
	runLatticeKernels(ctx, e, limits)
	runSketchKernels(ctx, e, limits)
	against("weighted points", "k", [][3]int{{4096, 2, 15}, {4096, 8, 8}, {20000, 20, 30}}, weightedAgainstLimits)
	against("project", "rows", [][3]int{{1600, 784, 12}, {70000, 784, 5}}, projectAgainstLimits)
}

// lloydAgainstLimits times one iteration on normal points, and its assignment and
// the packing by themselves.
func lloydAgainstLimits(ctx context.Context, c *Case, limits kernels.Limits, n, d, k int) error {
	const fractionBits, grid = 16, 1 << 16
	rng := rand.New(rand.NewPCG(1, uint64(n+d+k)))
	rows := make([]float32, n*d)
	for i := range rows {
		rows[i] = float32(int32(min(max(rng.NormFloat64()/4, -1), 1)*grid)) / grid
	}
	points, centroids := kernels.NewPanels(n, d), kernels.NewCentroids(k, d)
	kernels.Pack(points, rows)
	centroids.Set(rows[:k*d])
	labels, acc := make([]uint16, n), kernels.NewAccumulator(k, d, fractionBits)
	timed := []Timed{
		{Name: "assign", Fn: func() { kernels.Assign(*points, centroids, labels, nil) }},
		{Name: "assign and accumulate", Fn: func() { kernels.AssignAccumulate(*points, centroids, nil, acc) }},
	}
	err := c.compare(ctx, timed)
	if err != nil {
		return err
	}
	// By itself, because it leaves the points outside the caches.
	if err := c.time(ctx, "pack", func() { kernels.Pack(points, rows) }); err != nil {
		return err
	}
	c.number("pack, of a copy", "%", 100*copySeconds(points.Data, rows)/(c.Row.value("pack").shown()/1e9))
	limit, binds := binding(limits.AssignSeconds(n, d, k), 4*n*d, 1)
	if limit == 0 {
		return nil
	}
	c.number("assign, of "+binds, "%", 100*limit/timed[0].Least)
	c.number("both, of "+binds, "%", 100*limit/timed[1].Least)
	return onAllWorkers(ctx, c, *points, centroids, fractionBits, limits.AssignSeconds(n, d, k))
}

// weightedAgainstLimits times the iteration and the exchanges of a local search on
// weighted normal points. The share is that of the arithmetic of the assignment.
func weightedAgainstLimits(ctx context.Context, c *Case, limits kernels.Limits, n, d, k int) error {
	rng := rand.New(rand.NewPCG(1, uint64(n+d+k)))
	rows, weights := make([]float32, n*d), make([]float64, n)
	for i := range rows {
		rows[i] = float32(int32(min(max(rng.NormFloat64()/4, -1), 1)*(1<<16))) / (1 << 16)
	}
	for i := range weights {
		weights[i] = rng.ExpFloat64()
	}
	panels, centroids := kernels.NewPanels(n, d), kernels.NewCentroids(k, d)
	kernels.Pack(panels, rows)
	centroids.Set(rows[:k*d])
	points := kernels.NewWeightedPoints(*panels, weights)
	acc, exchanges := kernels.NewWeightedAccumulator(k, d), kernels.NewExchanges(k)
	labels, near, next := make([]uint16, n), make([]float32, n), make([]float32, n)
	own, one := make([]float32, n), make([]uint16, n)
	candidate := kernels.NewCentroids(1, d)
	candidate.Set(rows[k*d : (k+1)*d])
	kernels.AssignAccumulateWeighted(points, centroids, labels, near, next, acc)
	kernels.Assign(*panels, candidate, one, own)
	timed := []Timed{
		{Name: "assign and accumulate", Fn: func() {
			kernels.AssignAccumulateWeighted(points, centroids, labels, near, nil, acc)
		}},
		{Name: "exchanges with one candidate", Fn: func() { kernels.Exchange(own, near, next, labels, weights, exchanges) }},
	}
	err := c.compare(ctx, timed)
	if err != nil {
		return err
	}
	if limit := limits.AssignSeconds(n, d, k); limit > 0 {
		c.number("both, of arithmetic", "%", 100*limit/timed[0].Least)
	}
	return nil
}

// onAllWorkers times one iteration on one and on all workers, in turn, and gives
// the ratio of the best times; and the share of the limit that binds all workers:
// the arithmetic of one divided by their number, or reading the points, all of
// them at once.
func onAllWorkers(ctx context.Context, c *Case, points kernels.Panels, centroids *kernels.Centroids, fractionBits int,
	arithmetic float64) error {
	pool := c.Env.Pool
	if pool.Workers() == 1 {
		return nil
	}
	accs := make([]*kernels.Accumulator, pool.Workers())
	for w := range accs {
		accs[w] = kernels.NewAccumulator(centroids.K, centroids.D, fractionBits)
	}
	// Equal items of a shard at most, as many for each worker.
	items := len(engine.Shards(points.N, points.D))
	items = (items + pool.Workers() - 1) / pool.Workers() * pool.Workers()
	step := (points.N/items + kernels.Lanes) / kernels.Lanes * kernels.Lanes
	items = (points.N + step - 1) / step
	one, all := math.Inf(1), math.Inf(1)
	for start := time.Now(); time.Since(start) < quickDuration; {
		from := time.Now()
		for i := range items {
			kernels.AssignAccumulate(points.Slice(i*step, min((i+1)*step, points.N)), centroids, nil, accs[0])
		}
		one = min(one, time.Since(from).Seconds())
		from = time.Now()
		err := pool.Run(ctx, items, func(worker, i int) {
			kernels.AssignAccumulate(points.Slice(i*step, min((i+1)*step, points.N)), centroids, nil, accs[worker])
		})
		if err != nil {
			return err
		}
		all = min(all, time.Since(from).Seconds())
	}
	c.number("all workers", "x", one/all)
	limit, binds := binding(arithmetic/float64(pool.Workers()), 4*points.N*points.D, pool.Workers())
	c.number("all workers, of "+binds, "%", 100*limit/all)
	return nil
}

// copySeconds is the best time of a copy of rows to panels, which reads and writes
// as much as packing.
func copySeconds(panels, rows []float32) float64 {
	best := math.Inf(1)
	for spent, from := time.Duration(0), time.Now(); spent < 40*time.Millisecond; spent = time.Since(from) {
		start := time.Now()
		copy(panels, rows)
		best = min(best, time.Since(start).Seconds())
	}
	return best
}

// projectAgainstLimits times the projection of n points of d coordinates to q,
// with its share of the larger of two limits: the multiply-adds, and reading the
// points.
func projectAgainstLimits(ctx context.Context, c *Case, limits kernels.Limits, n, d, q int) error {
	rows := make([]float32, n*d)
	for i := range rows {
		rows[i] = float32(i%255-127) / 128
	}
	p, m, dst := kernels.NewPanels(n, d), kernels.NewMatrix(q, d, rows[:q*d]), kernels.NewPanels(n, q)
	kernels.Pack(p, rows)
	timed := []Timed{{Name: "project", Fn: func() { kernels.Project(*p, m, *dst) }}}
	if err := c.compare(ctx, timed); err != nil {
		return err
	}
	best := timed[0].Least
	c.number("rate", "GFLOP/s", 2*float64(n)*float64(d)*float64(q)/best/1e9)
	limits = limits.Best(kernels.MeasureLimits())
	if limit, binds := binding(limits.ProjectSeconds(n, d, q), 4*n*d, 1); limit > 0 {
		c.number("project, of "+binds, "%", 100*limit/best)
	}
	return nil
}

// binding is the larger of the time of arithmetic and of reading so many bytes by some workers, and which it is:
// 0 where arithmetic was not measured on this instruction set.
func binding(arithmetic float64, bytes, workers int) (float64, string) {
	if memory := float64(bytes) / kernels.MeasureRead(bytes, workers); arithmetic > 0 && memory > arithmetic {
		return memory, "bandwidth"
	}
	return arithmetic, "arithmetic"
}

// slowerPaths adds how many times longer work takes on the lesser instruction sets,
// each at its best of three, than the given seconds; goals are by path.
func (c *Case) slowerPaths(seconds float64, goals map[string]float64, work func() time.Duration) error {
	for _, path := range kernels.Supported() {
		if path == kernels.ISA() {
			continue
		}
		least := math.Inf(1)
		err := kernels.OnPath(path, func() {
			for range 3 {
				least = min(least, work().Seconds())
			}
		})
		if err != nil {
			return err
		}
		c.number("on "+path+", times as long", "x", least/seconds, atMost(goals[path])...)
	}
	return nil
}
