package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/kernels"
)

func kmeansSuites() []Suite {
	return []Suite{{
		Name: "kmeans", Group: groupPerformance, Title: "Plain k-means: loss and time beside scikit-learn",
		About: "A whole run of lloyd without options, with the starts that it chooses, beside one start of scikit-learn's " +
			"KMeans(n_init=1) on the same points (float32, each column scaled to [-1, 1]) with as many threads, in turn, for " +
			"20 seeds; ours begins when the threads of theirs, which spin for some milliseconds after a fit, rest. " +
			"Inertia is the mean squared distance to the nearest centroid, computed in float64 for both; ratios " +
			"are of medians, and at most 1 is the goal of each. Times are the wall's, from points in memory to centroids; " +
			"beside them are those of the CPU, all threads together, which other work on the machine disturbs less. " +
			"scikit-learn runs where a Python has it (make peers installs it on Debian); else ours stands alone. All sets of " +
			"the data folder, then blobs: normal around uniform centres, of uneven sizes.",
		Run: runKMeans,
	}}
}

// blobSpread is the standard deviation of blobs in a column times the d-th root of k,
// so that neighbours touch.
const blobSpread = 0.4

// blobShapes are the generated sets of the suite.
var blobShapes = []struct{ n, d, k int }{
	{20000, 2, 5}, {20000, 2, 50}, {20000, 2, 200}, {20000, 10, 5}, {20000, 10, 50}, {20000, 10, 200}, {20000, 50,
		5}, {20000, 50, 50}, {20000, 50, 200},
	{100000, 2, 50}, {100000, 8, 20}, {100000, 20, 100}, {100000, 50, 200}, {1000000, 8, 20},
}

// telling are the sets that a quick run begins with.
var telling = []string{"s1", "birch2_25k", "iris", "adult", "mixgauss", "letter"}

func runKMeans(ctx context.Context, e *Env) {
	names := slices.Clone(telling)
	for _, name := range e.sets.allNames() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		e.on(ctx, name, "", []Label{L("set", name)}, func(ctx context.Context, c *Case, s *Set) error {
			return c.kMeans(ctx, s.Norm.Points, s.K)
		})
	}
	for _, s := range blobShapes {
		e.newCase(ctx, "", []Label{L("set", fmt.Sprintf("blobs, %d x %d, k = %d", s.n, s.d, s.k))},
			func(ctx context.Context, c *Case) error {
				return c.kMeans(ctx, unevenBlobs(s.n, s.d, s.k), s.k)
			})
	}
}

// unevenBlobs draws normal blobs around uniform centres; the sizes of the largest and
// the smallest differ by a factor of up to four.
func unevenBlobs(n, d, k int) *kernels.Panels {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(d*1000+k)))
	centres, share := make([]float64, k*d), make([]float64, k)
	for i := range centres {
		centres[i] = 1.6*rng.Float64() - 0.8
	}
	spread, total := blobSpread*math.Pow(float64(k), -1/float64(d)), 0.0
	for j := range share {
		share[j] = 0.5 + 1.5*rng.Float64()
		total += share[j]
	}
	points, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		j, x := 0, rng.Float64()*total
		for j < k-1 && x > share[j] {
			x -= share[j]
			j++
		}
		for h := range row {
			x := min(max(centres[j*d+h]+spread*rng.NormFloat64(), -1), 1)
			row[h] = dataset.Truncate(x, dataset.DefaultFractionBits)
		}
		points.Set(i, row)
	}
	return points
}

// kMeans measures a set.
func (c *Case) kMeans(ctx context.Context, points *kernels.Panels, k int) error {
	rows := make([]float32, 0, points.N*points.D)
	for i := range points.N {
		rows = append(rows, points.Point(i, nil)...)
	}
	other, err := startPeers(ctx, rows, nil, points.N, points.D, k, c.Env.Pool.Workers())
	if err != nil {
		return err
	}
	defer other.close()
	var own, peer starts
	for seed := range c.Env.reps(20, 5) {
		f, err := plainKMeans(ctx, c.Env.Engine, points, k, uint64(seed))
		if err != nil {
			return err
		}
		if err := own.add(ctx, c, points, f, k); err != nil {
			return err
		}
		if other == nil {
			continue
		}
		f, ok, err := other.fit(seed, k, points.D)
		if err != nil {
			return cmp.Or(ctx.Err(), err) // a run that ends takes the peer along
		}
		if ok {
			if err := peer.add(ctx, c, points, f, k); err != nil {
				return err
			}
		}
	}
	goal := aimedAt("goal", 1)
	c.samples("inertia", unitPlain, own.losses)
	if peer.losses != nil {
		c.samples("sklearn's inertia", unitPlain, peer.losses)
		c.number("of sklearn's inertia", "x", c.medianRatio("inertia", "sklearn's inertia"), goal...)
	}
	for _, times := range []struct {
		name      string
		own, peer []float64
		refs      []Reference
	}{{"time", own.walls, peer.walls, goal}, {"CPU time", own.cpus, peer.cpus, nil}} {
		c.durations(times.name, times.own)
		if times.peer != nil {
			c.durations("sklearn's "+times.name, times.peer)
			c.number("of sklearn's "+times.name, "x", c.medianRatio(times.name, "sklearn's "+times.name), times.refs...)
		}
	}
	c.Row.Note = "medians are compared"
	return nil
}

// starts are runs from several seeds: what they left and how long they took.
type starts struct{ losses, walls, cpus []float64 }

func (s *starts) add(ctx context.Context, c *Case, points *kernels.Panels, f fitted, k int) error {
	loss, err := c.inertia(ctx, points, f.centroids, k)
	s.losses, s.walls, s.cpus = append(s.losses, loss), append(s.walls, f.wall), append(s.cpus, f.cpu)
	return err
}

// medianRatio is the ratio of the medians of two values of the row.
func (c *Case) medianRatio(a, b string) float64 {
	return float64(c.Row.value(a).Median) / float64(c.Row.value(b).Median)
}

// plainKMeans runs lloyd as it is without options.
func plainKMeans(ctx context.Context, eng *engine.Engine, points *kernels.Panels, k int, seed uint64) (fitted, error) {
	part := dataset.Part{Points: points, FractionBits: dataset.DefaultFractionBits}
	start, cpu := time.Now(), processTime()
	res, err := eng.Run(ctx, &lloyd.Job{Method: lloyd.Lloyd, Problem: protocol.Problem{K: k,
		Clients: []dataset.Part{part}, Seed: &seed, NoQuality: true}})
	if err != nil {
		return fitted{}, err
	}
	wall, used := time.Since(start), processTime()-cpu
	return fitted{float64(wall), float64(used), slices.Concat(res.Centroids...)}, nil
}

// inertia is the mean squared distance of points to their nearest centroids.
func (c *Case) inertia(ctx context.Context, points *kernels.Panels, centroids []float64, k int) (float64, error) {
	squared := make([]float64, points.N)
	err := engine.Nearest(ctx, c.Env.Pool, points, dataset.DefaultFractionBits, centroids, k, make([]int32, points.N),
		squared)
	return stat.Mean(squared, nil), err
}
