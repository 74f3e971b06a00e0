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
	p := newPairs(points, starts, c.FractionBits)
	workers := make([]pairWorker, r.Workers())
	extremes := make([]pairExtremes, len(p.tiles))
	for i := range extremes {
		extremes[i].apart = math.MaxInt64
	}
	for apart := 0; apart <= len(p.tiles)/2; apart++ {
		count := len(p.tiles)
		if apart > 0 && 2*apart == count {
			count /= 2 // the other half would be the same tiles the other way round
		}
		err := r.Run(ctx, count, func(worker, index int) {
			extremes[index].take(workers[worker].compare(p, index, (index+apart)%len(p.tiles)))
		})
		if err != nil {
			return PairScores{}, err
		}
	}
	all := pairExtremes{apart: math.MaxInt64}
	for _, e := range extremes {
		all.take(e)
	}
	out.Silhouette = p.silhouette()
	out.Dunn = math.Sqrt(float64(all.apart)) / math.Sqrt(float64(all.wide))
	return out, nil
}

const (
	// pairTile is how many points are compared with as many others at a time.
	pairTile = 512
	// pairChunk is of how many points the squared distances to a tile are held.
	pairChunk = 64
)

// pairs are points grouped by cluster, once as they are and once as tiles that
// kernels compare others with, and what is known of their distances.
//
// Two tiles are compared once for both. Of the tiles a fixed way apart each is the first of one pair
// and the second of another, so sums for first and for second points are kept apart: all pairs of one
// way run at the same time, and the sums do not depend on which is faster.
type pairs struct {
	points *kernels.Panels
	starts []int // where each cluster begins, and the end
	bits   int
	tiles  []*kernels.Centroids
	own    []int32 // each point's cluster
	long   []int32 // a cluster's place among those that lie in more than one tile, or -1
	longs  int
	sums   [2]distanceSums // of first points, of second points
}

// distanceSums are what is known of the distances from each point to clusters.
type distanceSums struct {
	own  []float64 // sum to the point's own cluster
	near []float64 // smallest mean to another cluster
	long []float64 // [n][longs] sums to the clusters in several tiles, which end when all tiles are compared
}

func newPairs(points *kernels.Panels, starts []int, bits int) *pairs {
	p := &pairs{points: points, starts: starts, bits: bits, own: make([]int32, points.N),
		long: make([]int32, len(starts)-1)}
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
	for c := range p.long {
		lo, hi := starts[c], starts[c+1]
		for i := lo; i < hi; i++ {
			p.own[i] = int32(c)
		}
		p.long[c] = -1
		if lo/pairTile != (hi-1)/pairTile {
			p.long[c] = int32(p.longs)
			p.longs++
		}
	}
	for side := range p.sums {
		s := &p.sums[side]
		s.own, s.near = make([]float64, points.N), make([]float64, points.N)
		s.long = make([]float64, points.N*p.longs)
		for i := range s.near {
			s.near[i] = math.Inf(1)
		}
	}
	return p
}

// add takes the sum of a point's distances to the points of a cluster in one tile.
func (p *pairs) add(side, point int, cluster int32, sum float64) {
	s := &p.sums[side]
	switch place := int(p.long[cluster]); {
	case place >= 0:
		s.long[point*p.longs+place] += sum
	case cluster == p.own[point]:
		s.own[point] += sum
	default:
		s.near[point] = min(s.near[point], p.mean(cluster, sum))
	}
}

func (p *pairs) mean(cluster int32, sum float64) float64 {
	return sum / float64(p.starts[cluster+1]-p.starts[cluster])
}

// silhouette is the mean over all points, once all tiles are compared.
func (p *pairs) silhouette() float64 {
	total, first, second := 0.0, &p.sums[0], &p.sums[1]
	for i, own := range p.own {
		a, b := first.own[i]+second.own[i], min(first.near[i], second.near[i])
		for c, place := range p.long {
			if place < 0 {
				continue
			}
			at := i*p.longs + int(place)
			if sum := first.long[at] + second.long[at]; int32(c) == own {
				a = sum
			} else {
				b = min(b, p.mean(int32(c), sum))
			}
		}
		size := p.starts[own+1] - p.starts[own]
		if size == 1 {
			continue
		}
		if a /= float64(size - 1); max(a, b) > 0 {
			total += (b - a) / max(a, b)
		}
	}
	return total / float64(p.points.N)
}

// pairExtremes are the least squared distance of points of two clusters and the greatest of
// points of one.
type pairExtremes struct{ apart, wide int64 }

func (e *pairExtremes) take(o pairExtremes) {
	e.apart, e.wide = min(e.apart, o.apart), max(e.wide, o.wide)
}

// pairWorker is one worker's memory.
type pairWorker struct {
	costs   []int64   // squared distances of a chunk to a tile
	roots   []float32 // distances of a point to a tile
	columns []float64 // sums of the distances of points of one cluster to each of a tile
}

// compare takes the distances of the points of tile a to those of tile b, for both.
func (w *pairWorker) compare(p *pairs, a, b int) pairExtremes {
	if w.costs == nil {
		w.costs, w.roots = make([]int64, pairChunk*pairTile), make([]float32, pairTile)
		w.columns = make([]float64, pairTile)
	}
	out := pairExtremes{apart: math.MaxInt64}
	end, first := min((a+1)*pairTile, p.points.N), b*pairTile
	count := min(pairTile, p.points.N-first)
	roots, columns := w.roots[:count], w.columns[:count]
	for lo := a * pairTile; lo < end; lo += pairChunk {
		hi := min(lo+pairChunk, end)
		costs := w.costs[:(hi-lo)*count]
		kernels.CostRows(*p.points, lo, hi, p.tiles[b], p.bits, costs)
		for i := lo; i < hi; i++ {
			out.row(p.starts, i, first, costs[(i-lo)*count:(i-lo+1)*count], roots)
			kernels.PointLosses(roots, true, math.MaxFloat32)
			p.addRow(i, first, roots, columns)
			if i+1 < end && p.own[i+1] == p.own[i] {
				continue
			}
			if a != b {
				for j, sum := range columns {
					p.add(1, first+j, p.own[i], sum)
				}
			}
			clear(columns)
		}
	}
	return out
}

// row compares the squared distances of point i to the points from first on with those
// seen before, and puts them into dist.
func (e *pairExtremes) row(starts []int, i, first int, costs []int64, dist []float32) {
	apart, wide := e.apart, e.wide
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
	e.apart, e.wide = apart, wide
}

// addRow adds the distances of point i to the points from first on, and each of them to its column.
func (p *pairs) addRow(i, first int, dist []float32, columns []float64) {
	for at, cluster := 0, clusterAt(p.starts, first); at < len(dist); cluster++ {
		end := min(p.starts[cluster+1]-first, len(dist))
		p.add(0, i, int32(cluster), total(dist[at:end], columns[at:end]))
		at = end
	}
}

// clusterAt is the cluster of a point.
func clusterAt(starts []int, point int) int {
	cluster, _ := slices.BinarySearch(starts, point+1)
	return cluster - 1
}

// total adds numbers up, in four chains that do not wait for each other, and each to its column.
func total(x []float32, columns []float64) float64 {
	var a, b, c, d float64
	columns = columns[:len(x)]
	for ; len(x) >= 4 && len(columns) >= 4; x, columns = x[4:], columns[4:] {
		p, q, r, s := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		a, b, c, d = a+p, b+q, c+r, d+s
		columns[0] += p
		columns[1] += q
		columns[2] += r
		columns[3] += s
	}
	for j, v := range x {
		a += float64(v)
		columns[j] += float64(v)
	}
	return (a + b) + (c + d)
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
