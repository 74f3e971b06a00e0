package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cohort-engine/cohort/internal/parallel"
	"github.com/cohort-engine/cohort/kernels"
)

// ExactPoints is the largest number of points whose distances are all taken;
// above it a random sample stands for them.
const ExactPoints = 50000

// samplePairs bounds the coordinates that a sample's distances read.
const samplePairs = 4e9

// PairScores are the measures that compare all pairs of points.
type PairScores struct {
	// Silhouette is the mean over points of (b-a)/max(a, b), where a is the mean
	// distance to the other points of the same cluster and b the smallest mean
	// distance to the points of another (Rousseeuw 1987; Thesis-H, equation
	// 2.7). A point alone in its cluster scores 0.
	Silhouette float64
	// Dunn is the smallest distance of two points of different clusters divided
	// by the largest distance of two points of one (Dunn 1974). On a sample it
	// is an estimate.
	Dunn float64
	// Sample is the number of points that were compared.
	Sample int
}

// Pairwise computes the silhouette score and the Dunn index: of all assigned points if
// there are at most most of them, otherwise of a sample of so many drawn with seed.
// Both are NaN with fewer than two clusters. The points lie on the grid of
// FractionBits, so squared distances are exact; the silhouette takes their roots in
// float32, which moves it by less than 2^-22.
func (c *Clustering) Pairwise(ctx context.Context, r parallel.Runner, seed uint64, most int) (PairScores, error) {
	points, starts := c.sample(seed, most)
	out := PairScores{Silhouette: math.NaN(), Dunn: math.NaN(), Sample: points.N}
	if len(starts) < 3 {
		return out, nil
	}
	pairs := newPairs(points, starts, c.FractionBits)
	const chunk = 64
	partials := make([]pairSums, (points.N+chunk-1)/chunk)
	workers := make([]pairWorker, r.Workers())
	err := r.Run(ctx, len(partials), func(worker, index int) {
		w := &workers[worker]
		if w.costs == nil {
			w.costs, w.roots = make([]int64, chunk*pairTile), make([]float32, pairTile)
		}
		partials[index] = w.chunk(pairs, index*chunk, min((index+1)*chunk, points.N))
	})
	if err != nil {
		return PairScores{}, err
	}
	sum, apart, wide := 0.0, int64(math.MaxInt64), int64(0)
	for _, p := range partials {
		sum += p.silhouette
		apart, wide = min(apart, p.apart), max(wide, p.wide)
	}
	out.Silhouette = sum / float64(points.N)
	out.Dunn = math.Sqrt(float64(apart)) / math.Sqrt(float64(wide))
	return out, nil
}

// pairTile is how many points are compared with others at a time.
const pairTile = 512

// pairs are points grouped by cluster, once as they are and once as tiles that
// kernels compare others with.
type pairs struct {
	points *kernels.Panels
	starts []int // where each cluster begins, and the end
	bits   int
	tiles  []*kernels.Centroids
}

func newPairs(points *kernels.Panels, starts []int, bits int) *pairs {
	p := &pairs{points: points, starts: starts, bits: bits}
	for lo := 0; lo < points.N; lo += pairTile {
		hi := min(lo+pairTile, points.N)
		rows := make([]float32, 0, (hi-lo)*points.D)
		for i := lo; i < hi; i++ {
			rows = append(rows, points.Point(i, nil)...)
		}
		tile := kernels.NewCentroids(hi-lo, points.D)
		tile.Set(rows)
		p.tiles = append(p.tiles, tile)
	}
	return p
}

// pairSums are what a chunk of points adds: the sum of their silhouettes, the least
// squared distance to a point of another cluster and the greatest to one of their own.
type pairSums struct {
	silhouette  float64
	apart, wide int64
}

// pairWorker is one worker's memory.
type pairWorker struct {
	costs []int64   // squared distances of a chunk to a tile
	roots []float32 // distances of a point to a tile
}

// chunk compares the points [lo, hi) with all.
func (w *pairWorker) chunk(p *pairs, lo, hi int) pairSums {
	out := pairSums{apart: math.MaxInt64}
	clusters := len(p.starts) - 1
	sums := make([]float64, (hi-lo)*clusters)
	for t, tile := range p.tiles {
		first, count := t*pairTile, min(pairTile, p.points.N-t*pairTile)
		costs, roots := w.costs[:(hi-lo)*count], w.roots[:count]
		kernels.CostRows(*p.points, lo, hi, tile, p.bits, costs)
		for i := lo; i < hi; i++ {
			out.extremes(p.starts, i, first, costs[(i-lo)*count:(i-lo+1)*count], roots)
			kernels.Contributions(roots, true, math.MaxFloat32)
			addDistances(p.starts, first, roots, sums[(i-lo)*clusters:])
		}
	}
	own := 0
	for i := lo; i < hi; i++ {
		for p.starts[own+1] <= i {
			own++
		}
		out.silhouette += silhouette(sums[(i-lo)*clusters:(i-lo+1)*clusters], p.starts, own)
	}
	return out
}

// extremes compares the squared distances of point i to the points from first on with those
// seen before, and puts them into dist.
func (s *pairSums) extremes(starts []int, i, first int, costs []int64, dist []float32) {
	apart, wide := s.apart, s.wide
	for at, cluster := 0, clusterAt(starts, first); at < len(costs); cluster++ {
		end := min(starts[cluster+1]-first, len(costs))
		part, to := costs[at:end], dist[at:end]
		if starts[cluster] <= i && i < starts[cluster+1] {
			for j, cost := range part {
				to[j], wide = float32(cost), max(wide, cost)
			}
		} else {
			for j, cost := range part {
				to[j], apart = float32(cost), min(apart, cost)
			}
		}
		at = end
	}
	s.apart, s.wide = apart, wide
}

// addDistances adds distances to the points from first on to the sums of their clusters.
func addDistances(starts []int, first int, dist []float32, sums []float64) {
	for at, cluster := 0, clusterAt(starts, first); at < len(dist); cluster++ {
		end := min(starts[cluster+1]-first, len(dist))
		sums[cluster] += total(dist[at:end])
		at = end
	}
}

// clusterAt is the cluster of a point.
func clusterAt(starts []int, point int) int {
	cluster, _ := slices.BinarySearch(starts, point+1)
	return cluster - 1
}

// total adds numbers up in four chains, which do not wait for each other.
func total(x []float32) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a+float64(x[0]), b+float64(x[1]), c+float64(x[2]), d+float64(x[3])
	}
	for _, v := range x {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

// silhouette is that of a point of cluster own from its sums of distances to clusters.
func silhouette(sums []float64, starts []int, own int) float64 {
	size := starts[own+1] - starts[own]
	if size == 1 {
		return 0
	}
	a, b := sums[own]/float64(size-1), math.Inf(1)
	for j, sum := range sums {
		if j != own {
			b = min(b, sum/float64(starts[j+1]-starts[j]))
		}
	}
	if max(a, b) == 0 {
		return 0
	}
	return (b - a) / max(a, b)
}

// sample returns the points to compare, grouped by cluster, and where the groups of
// the clusters that are not empty begin.
func (c *Clustering) sample(seed uint64, most int) (points *kernels.Panels, starts []int) {
	var chosen []int
	for i, l := range c.Labels {
		if int(l) < c.K {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) > most {
		m := min(most, int(math.Sqrt(samplePairs/float64(c.Points.D))))
		g := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
		for i := range m {
			j := i + int(g.Uint64()%uint64(len(chosen)-i))
			chosen[i], chosen[j] = chosen[j], chosen[i]
		}
		chosen = chosen[:m]
	}
	slices.SortStableFunc(chosen, func(a, b int) int { return int(c.Labels[a]) - int(c.Labels[b]) })
	rows := make([]float32, 0, len(chosen)*c.Points.D)
	for n, i := range chosen {
		if n == 0 || c.Labels[i] != c.Labels[chosen[n-1]] {
			starts = append(starts, n)
		}
		rows = append(rows, c.Points.Point(i, nil)...)
	}
	points = kernels.NewPanels(len(chosen), c.Points.D)
	kernels.Pack(points, rows)
	return points, append(starts, len(chosen))
}
