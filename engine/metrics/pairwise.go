package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// ExactPoints is the largest number of points whose distances are all taken;
// above it a random sample stands for them.
const ExactPoints = 20000

// samplePairs bounds the coordinates that a sample's distances read.
const samplePairs = 4e9

// Runner runs parallel regions: fn(worker, index) once for every index below n.
type Runner interface {
	Workers() int
	Run(ctx context.Context, n int, fn func(worker, index int)) error
}

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

// Pairwise computes the silhouette score and the Dunn index: exactly for up to
// ExactPoints assigned points, otherwise on a sample drawn with seed. Both are
// NaN with fewer than two clusters.
func (c *Clustering) Pairwise(ctx context.Context, r Runner, seed uint64) (PairScores, error) {
	rows, starts := c.sample(seed)
	m, d := len(rows)/c.Points.D, c.Points.D
	k := len(starts) - 1
	out := PairScores{Silhouette: math.NaN(), Dunn: math.NaN(), Sample: m}
	if k < 2 {
		return out, nil
	}
	const chunk = 64
	chunks := (m + chunk - 1) / chunk
	type partial struct{ silhouette, apart, wide float64 }
	partials := make([]partial, chunks)
	err := r.Run(ctx, chunks, func(_, index int) {
		p := partial{apart: math.Inf(1)}
		own := 0
		for i := index * chunk; i < min((index+1)*chunk, m); i++ {
			for starts[own+1] <= i {
				own++
			}
			x := rows[i*d : (i+1)*d]
			a, b := 0.0, math.Inf(1)
			for j := range k {
				sum, low, high := 0.0, math.Inf(1), 0.0
				for o := starts[j]; o < starts[j+1]; o++ {
					sq := 0.0
					for h, v := range rows[o*d : (o+1)*d] {
						t := x[h] - v
						sq += float64(t * t)
					}
					dist := math.Sqrt(sq)
					sum += dist
					low, high = min(low, dist), max(high, dist)
				}
				size := float64(starts[j+1] - starts[j])
				if j == own {
					a = sum / max(size-1, 1)
					p.wide = max(p.wide, high)
				} else {
					b = min(b, sum/size)
					p.apart = min(p.apart, low)
				}
			}
			if starts[own+1]-starts[own] > 1 && max(a, b) > 0 {
				p.silhouette += (b - a) / max(a, b)
			}
		}
		partials[index] = p
	})
	if err != nil {
		return PairScores{}, err
	}
	sum, apart, wide := 0.0, math.Inf(1), 0.0
	for _, p := range partials {
		sum += p.silhouette
		apart, wide = min(apart, p.apart), max(wide, p.wide)
	}
	out.Silhouette = sum / float64(m)
	out.Dunn = apart / wide
	return out, nil
}

// sample returns the points to compare, row-major and grouped by cluster, and
// where the groups of the clusters that are not empty begin.
func (c *Clustering) sample(seed uint64) (rows []float64, starts []int) {
	var chosen []int
	for i, l := range c.Labels {
		if int(l) < c.K {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) > ExactPoints {
		m := min(ExactPoints, int(math.Sqrt(samplePairs/float64(c.Points.D))))
		g := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
		for i := range m {
			j := i + int(g.Uint64()%uint64(len(chosen)-i))
			chosen[i], chosen[j] = chosen[j], chosen[i]
		}
		chosen = chosen[:m]
	}
	slices.SortStableFunc(chosen, func(a, b int) int { return int(c.Labels[a]) - int(c.Labels[b]) })
	const lanes = kernels.Lanes
	d := c.Points.D
	rows = make([]float64, 0, len(chosen)*d)
	for n, i := range chosen {
		if n == 0 || c.Labels[i] != c.Labels[chosen[n-1]] {
			starts = append(starts, n)
		}
		at := c.Points.Data[i/lanes*lanes*d+i%lanes:]
		for h := range d {
			rows = append(rows, float64(at[h*lanes]))
		}
	}
	return rows, append(starts, len(chosen))
}
