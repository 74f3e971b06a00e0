package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cohort-engine/cohort"
)

func embedSuites() []Suite {
	return []Suite{
		{
			Name: "embed", Group: groupPerformance, Title: "As a library: fits of arrays in memory",
			About: "Package cohort on row-major float32 points: checked, put on the grid with one scale for all columns, 20 " +
				"rounds of plain k-means from a given start, labels and inertia. Prepared leaves out the first two. Private is " +
				"a fit at epsilon 1 with public bounds. Times are the wall's, and of all threads together; memory is the peak " +
				"beside the caller's points, of the points' size. python/bench.py has the same fits beside scikit-learn's, in " +
				"turn in one process.",
			Run: runEmbed,
		},
		{
			Name: "reading", Group: groupPerformance, Title: "Reading: text and Parquet onto the grid",
			About: "Files of 8 columns with public bounds, read, parsed, checked and packed by one worker and by all; rates " +
				"are of the file's bytes. The bare loop is what a program does that only decodes: strconv.ParseFloat on each " +
				"cell of text, Parquet's column pages into float64. Memory is the peak beside the panels, whose size is 32 " +
				"bytes a record.",
			Run: runReading,
		},
	}
}

// embedShapes are the problems of suite embed.
var embedShapes = []struct{ n, d, k int }{{100000, 10, 20}, {1000000, 16, 64}, {70000, 784, 10}}

// looseBlobs draws points around k centres, row-major.
func looseBlobs(n, d, k int) (points []float32, start [][]float64) {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	centres := make([]float64, k*d)
	for i := range centres {
		centres[i] = 2*rng.Float64() - 1
	}
	points = make([]float32, n*d)
	for i := range n {
		c := rng.IntN(k) * d
		for h := range d {
			points[i*d+h] = float32(centres[c+h] + 0.3*rng.NormFloat64())
		}
	}
	for j := range k {
		row := make([]float64, d)
		for h := range row {
			row[h] = float64(points[j*d+h])
		}
		start = append(start, row)
	}
	return points, start
}

func runEmbed(ctx context.Context, e *Env) {
	for _, s := range embedShapes {
		labels := []Label{L("n", s.n), L("d", s.d), L("k", s.k)}
		e.newCase(ctx, "", labels, func(ctx context.Context, c *Case) error { return c.embed(ctx, s.n, s.d, s.k) })
	}
}

// embed measures fits of n points.
func (c *Case) embed(ctx context.Context, n, d, k int) error {
	eng := c.Env.Engine
	points, start := looseBlobs(n, d, k)
	data := cohort.Rows(points, n, d)
	plain := cohort.Options{K: k, OneScale: true, Start: start, Engine: eng,
		Settings: map[string]string{"iterations": "20", "rest": "1e-300"}}
	private := cohort.Options{K: k, Epsilon: 1, Bounds: cohort.Range(-3, 3), Engine: eng}
	records, err := cohort.Prepare(ctx, data, cohort.PrepareOptions{OneScale: true, Workers: eng.Workers()})
	if err != nil {
		return err
	}
	defer records.Close()
	fits := []struct {
		name string
		fit  func() (*cohort.Model, error)
		refs []Reference
	}{
		{"fit", func() (*cohort.Model, error) { return cohort.Fit(ctx, data, plain) }, nil},
		{"prepared", func() (*cohort.Model, error) { return records.Fit(ctx, plain) }, nil},
		{"private", func() (*cohort.Model, error) { return cohort.Fit(ctx, data, private) }, nil},
	}
	if n == embedShapes[0].n {
		fits[2].refs = aimedAt("goal", 60e6)
	}
	times, cpu := make([][]float64, len(fits)), make([][]float64, len(fits))
	for run := range c.Env.reps(7, 2) + 1 {
		for i, f := range fits {
			begin, used := time.Now(), processTime()
			if _, err := f.fit(); err != nil {
				return err
			}
			if run > 0 { // the first is for caches
				times[i], cpu[i] = append(times[i], float64(time.Since(begin))), append(cpu[i], float64(processTime()-used))
			}
		}
	}
	for i, f := range fits {
		c.durations(f.name, times[i], f.refs...)
		c.durations(f.name+", CPU", cpu[i])
	}
	records.Close()
	return c.peak("memory of points", float64(4*n*d), 0, aimedAt("goal", 1.3), func() error {
		_, err := fits[0].fit()
		return err
	})
}

// keptMemory is longer than the memory of closed records is kept for the next ones.
const keptMemory = 1500 * time.Millisecond

// peak adds the most memory that fn takes, less what it ends with, in multiples of size.
func (c *Case) peak(name string, size, less float64, goal []Reference, fn func() error) error {
	time.Sleep(keptMemory) // so that fn has to ask for its own
	if !resetPeakMemory() {
		return fn()
	}
	before := peakMemory()
	if err := fn(); err != nil {
		return err
	}
	c.number(name, "x", (float64(peakMemory()-before)-less)/size, goal...)
	return nil
}
