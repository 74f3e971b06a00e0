package bench

import (
	"context"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/kernels"
)

func kernelSuites() []Suite {
	return []Suite{{
		Name: "kernels", Group: groupPerformance, Title: "Kernels on one thread",
		About: "Time of each kernel on generated points, one thread, all data in panels. GFLOP/s counts a subtraction, a " +
			"multiplication and an addition for each point, centroid and dimension. Shares compare the best time with the " +
			"limit that binds it: the arithmetic of the assignment, or reading the points, at rates measured in the same " +
			"run; of lattice arithmetic, on vectors of 2^14 words in the second-level cache, products of 32-bit words, at " +
			"least as many as the algorithm takes, or reading as much as is read and written. Noise is the time of one " +
			"exact discrete sample, filled into an array of 4096, from a stream of a seed and " +
			"from one rooted in the system's randomness.",
		Figures: []Figure{{Table: "assign", Title: "Assignment rate by number of clusters", X: "k", Y: "rate",
			Series: []string{"d"}, LogX: true, LogY: true}},
		Run: runKernels,
	}}
}

// firstRows returns the first k points, as centroids.
func firstRows(p *kernels.Panels, k int) []float32 {
	rows := make([]float32, k*p.D)
	for j := range k {
		p.Point(j*(p.N/k), rows[j*p.D:(j+1)*p.D])
	}
	return rows
}

func runKernels(ctx context.Context, e *Env) {
	runAgainstLimits(ctx, e)
	for _, scale := range []float64{1, 100, 1e4, 0.3, 3, 10, 1e8} {
		for _, distribution := range []string{"laplace", "gaussian"} {
			e.newCase(ctx, "noise", []Label{L("distribution", distribution), L("scale", scale)},
				func(ctx context.Context, c *Case) error { return c.noise(ctx, distribution, scale) })
		}
	}
	for _, shape := range [][3]int{{5000, 2, 15}, {25000, 2, 100}, {100000, 2, 5}, {48842, 6, 3}, {20000, 16, 26},
		{4096, 784, 10}, {10000, 2, 2}, {10000, 8, 8}, {10000, 32, 32}, {10000, 128, 64}, {10000, 2, 200}} {
		n, d, k := shape[0], shape[1], shape[2]
		e.newCase(ctx, "assign", []Label{L("n", n), L("d", d), L("k", k), L("isa", kernels.ISA())},
			func(ctx context.Context, c *Case) error {
				set, err := blobsOf(ctx, n, d, k)
				if err != nil {
					return err
				}
				cent := kernels.NewCentroids(k, d)
				cent.Set(firstRows(set.Norm.Points, k))
				labels, dist := make([]uint16, n), make([]float32, n)
				acc := kernels.NewAccumulator(k, d, set.Norm.FractionBits)
				err = c.compare(ctx, []Timed{
					{Name: "assign", Fn: func() { kernels.Assign(*set.Norm.Points, cent, labels, dist) }},
					{Name: "accumulate", Fn: func() { acc.Reset(); kernels.Accumulate(*set.Norm.Points, labels, acc) }},
					{Name: "assign and accumulate",
						Fn: func() { acc.Reset(); kernels.AssignAccumulate(*set.Norm.Points, cent, labels, acc) }},
				})
				if err != nil {
					return err
				}
				seconds := c.Row.value("assign").shown() / 1e9
				c.number("rate", "GFLOP/s", 3*float64(n)*float64(k)*float64(d)/seconds/1e9)
				c.number("points", "/s", float64(n)/seconds)
				return nil
			})
	}
}

// noise measures an exact discrete sampler.
func (c *Case) noise(ctx context.Context, distribution string, scale float64) error {
	var fill func(*privacy.Stream, []int64)
	switch distribution {
	case "laplace":
		s, err := privacy.NewDiscreteLaplace(scale)
		if err != nil {
			return err
		}
		fill = s.Fill
	default:
		s, err := privacy.NewDiscreteGaussian(scale)
		if err != nil {
			return err
		}
		fill = s.Fill
	}
	dst := make([]int64, 4096)
	seed := uint64(1)
	seeded, system := privacy.NewStreams(&seed).Stream(0, 0, "bench"), privacy.NewStreams(nil).Stream(0, 0, "bench")
	roots := []Timed{{Name: "seeded", Fn: func() { fill(seeded, dst) }},
		{Name: "system", Fn: func() { fill(system, dst) }}}
	if err := c.compare(ctx, roots); err != nil {
		return err
	}
	for _, r := range roots {
		v := c.Row.value(r.Name)
		for _, x := range []*Number{&v.Mean, &v.Half, &v.Median, &v.P99} {
			*x /= Number(len(dst)) // of one sample
		}
	}
	c.number("rate", "/s", 1e9/c.Row.value("system").shown())
	return nil
}
