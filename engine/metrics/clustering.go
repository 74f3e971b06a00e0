package metrics

import (
	"math"

	"github.com/cohort-engine/cohort/internal/elementary"
	"github.com/cohort-engine/cohort/kernels"
)

// Clustering is a partition of points among K centroids. A label of K means
// that the point is unassigned; such points are left out.
type Clustering struct {
	Points    *kernels.Panels
	Labels    []uint16  // one per point, 0 to K
	Centroids []float64 // K rows of D, in the units of Points
	K         int
	// FractionBits is the grid of Points: multiples of 2^-FractionBits.
	FractionBits int

	sizes []int
}

// clusterSizes returns the number of points of each cluster.
func (c *Clustering) clusterSizes() []int {
	if c.sizes == nil {
		c.sizes = make([]int, c.K+1)
		for _, l := range c.Labels {
			c.sizes[l]++
		}
	}
	return c.sizes[:c.K]
}

// assigned returns the number of points that have a cluster.
func (c *Clustering) assigned() int {
	n := 0
	for _, s := range c.clusterSizes() {
		n += s
	}
	return n
}

// squared is the squared distance of point i to a centroid.
func (c *Clustering) squared(i int, centroid []float64) float64 {
	const lanes = kernels.Lanes
	d := c.Points.D
	at := c.Points.Data[i/lanes*lanes*d+i%lanes:]
	sum := 0.0
	for h := range d {
		t := float64(at[h*lanes]) - centroid[h]
		sum += float64(t * t)
	}
	return sum
}

// BCSS is the between-cluster sum of squares: each cluster's size times the
// squared distance of its centroid to the mean of all points (Thesis-H,
// equation 2.6).
func (c *Clustering) BCSS() float64 {
	const lanes = kernels.Lanes
	d := c.Points.D
	mean := make([]float64, d)
	for i, l := range c.Labels {
		if int(l) == c.K {
			continue
		}
		at := c.Points.Data[i/lanes*lanes*d+i%lanes:]
		for h := range d {
			mean[h] += float64(at[h*lanes])
		}
	}
	n := float64(c.assigned())
	for h := range mean {
		mean[h] /= n
	}
	sum := 0.0
	for j, size := range c.clusterSizes() {
		if size > 0 {
			sum += float64(float64(size) * elementary.SquaredDistance(c.Centroids[j*d:(j+1)*d], mean))
		}
	}
	return sum
}

// DaviesBouldin is the mean over clusters of the worst (s_i + s_j)/d(i, j),
// where s is the mean distance of a cluster's points to its centroid and d the
// distance of two centroids (Davies and Bouldin 1979). Lower is better. Empty
// clusters are left out; it is NaN with fewer than two clusters, and +Inf if two
// clusters share a centroid.
func (c *Clustering) DaviesBouldin() float64 {
	d := c.Points.D
	spread := make([]float64, c.K)
	for i, l := range c.Labels {
		if int(l) < c.K {
			spread[l] += math.Sqrt(c.squared(i, c.Centroids[int(l)*d:]))
		}
	}
	sizes := c.clusterSizes()
	sum, clusters := 0.0, 0
	for a := range c.K {
		if sizes[a] == 0 {
			continue
		}
		clusters++
		worst := 0.0
		for b := range c.K {
			if b == a || sizes[b] == 0 {
				continue
			}
			dist := elementary.SquaredDistance(c.Centroids[a*d:(a+1)*d], c.Centroids[b*d:])
			if dist == 0 {
				return math.Inf(1)
			}
			worst = max(worst, (spread[a]/float64(sizes[a])+spread[b]/float64(sizes[b]))/math.Sqrt(dist))
		}
		sum += worst
	}
	if clusters < 2 {
		return math.NaN()
	}
	return sum / float64(clusters)
}
