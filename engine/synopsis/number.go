package synopsis

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// Clustering is what a search for K clusters came to: the loss, and the silhouette.
type Clustering struct {
	K int
	// Loss is the sum of weight * squared distance of the best clustering found.
	Loss float64
	// Silhouette is the mean of (b - a)/max(a, b) over weight, a being a point's mean distance to
	// the other points of its cluster and b that to the nearest other cluster (Rousseeuw 1987); 0
	// for one cluster, and for a point alone in its own.
	Silhouette float64
}

// silhouettePoints is the number of points that a silhouette is computed on.
const silhouettePoints = 1000

// Numbers searches clusterings of lo to hi clusters and says how good each is. It reads
// weighted points alone, as [Search] does, and its result follows from src and the options.
func Numbers(ctx context.Context, r Runner, w *Weighted, lo, hi int, o SearchOptions,
	src Source) ([]Clustering, error) {
	out := make([]Clustering, 0, hi-lo+1)
	sample := newSample(w, silhouettePoints)
	var labels [][]uint16
	for k := lo; k <= hi; k++ {
		found, err := Search(ctx, r, w, k, o, src)
		if err != nil {
			return nil, err
		}
		out = append(out, Clustering{K: k, Loss: found.Loss})
		labels = append(labels, sample.labels(found.Labels))
	}
	sample.silhouettes(labels, out)
	return out, ctx.Err()
}

// sample is points of equal weight: one of each piece of the weight, in order.
type sample struct {
	d      int
	points []float64
	index  []int // of the weighted points
}

func newSample(w *Weighted, most int) *sample {
	s := &sample{d: w.D}
	total := 0.0
	for _, x := range w.Weights {
		total += max(x, 0)
	}
	piece := total / float64(most)
	below := -piece / 2
	for i, x := range w.Weights {
		for below += max(x, 0); below > 0 && piece > 0; below -= piece {
			s.index = append(s.index, i)
			s.points = append(s.points, w.Points[i*w.D:(i+1)*w.D]...)
		}
	}
	return s
}

// labels are those of the sample's points.
func (s *sample) labels(all []uint16) []uint16 {
	own := make([]uint16, len(s.index))
	for at, i := range s.index {
		own[at] = all[i]
	}
	return own
}

// silhouettes fills in the silhouette of each clustering, given the labels of the sample
// in each. A distance is computed once for all of them.
func (s *sample) silhouettes(labels [][]uint16, out []Clustering) {
	n := len(s.index)
	sizes, begin := make([][]float64, len(out)), make([]int, len(out)+1)
	for c := range out {
		sizes[c] = make([]float64, out[c].K)
		for _, j := range labels[c] {
			sizes[c][j]++
		}
		begin[c+1] = begin[c] + out[c].K
	}
	sums, dist := make([]float64, begin[len(out)]), make([]float64, n)
	for i := range n {
		clear(sums)
		for q := range n {
			dist[q] = math.Sqrt(elementary.SquaredDistance(s.points[i*s.d:(i+1)*s.d], s.points[q*s.d:(q+1)*s.d]))
		}
		same := 0.0 // of the sample is this very point
		for _, q := range s.index {
			if q == s.index[i] {
				same++
			}
		}
		for c := range out {
			own := sums[begin[c]:begin[c+1]]
			for q, j := range labels[c] {
				own[j] += dist[q]
			}
			out[c].Silhouette += silhouette(own, sizes[c], int(labels[c][i]), same) / float64(n)
		}
	}
}

// silhouette is that of a point of a cluster, by the sums of its distances to all clusters; so
// many of its own are itself.
func silhouette(sums, sizes []float64, own int, same float64) float64 {
	if sizes[own] <= same {
		return 0
	}
	a, b := sums[own]/(sizes[own]-same), math.Inf(1)
	for j, sum := range sums {
		if j != own && sizes[j] > 0 {
			b = min(b, sum/sizes[j])
		}
	}
	if math.IsInf(b, 1) || max(a, b) == 0 {
		return 0
	}
	return (b - a) / max(a, b)
}

// BySilhouette is the number of clusters of the greatest silhouette.
func BySilhouette(curve []Clustering) int {
	best := curve[0]
	for _, c := range curve {
		if c.Silhouette > best.Silhouette {
			best = c
		}
	}
	return best.K
}

// ByElbow is the number of clusters at which the logarithm of the loss lies farthest below
// the line from the first to the last of the curve, over the logarithm of the number: the
// loss of records that are spread evenly falls by that line.
func ByElbow(curve []Clustering) int {
	first, last := curve[0], curve[len(curve)-1]
	least := last.Loss * 1e-9 // of no loss at all
	height := func(c Clustering) float64 { return elementary.Log(max(c.Loss, least, math.SmallestNonzeroFloat64)) }
	span := elementary.Log(float64(last.K) / float64(first.K))
	best, depth := first.K, 0.0
	for _, c := range curve {
		if span == 0 {
			break
		}
		at := elementary.Log(float64(c.K)/float64(first.K)) / span
		line := height(first) + float64(at*(height(last)-height(first)))
		if below := line - height(c); below > depth {
			best, depth = c.K, below
		}
	}
	return best
}
