package horizontal

import (
	"math"
	"sort"

	"github.com/cohort-engine/cohort/kernels"
)

// kMeansPlusPlus draws k centres from the records of all clients: the first
// uniformly, each further one with probability proportional to the squared
// distance to the nearest centre so far (Thesis-H §4.2.1). It shows records, so
// it serves runs without noise only.
func kMeansPlusPlus(clients []*client, k, d, n int, r source) []float64 {
	centres := make([]float64, k*d)
	rows := make([]float32, 0, d)
	nearest := make([]float32, n)
	dist := make([]float32, n)
	labels := make([]uint16, n)
	total := make([]float64, n) // running sums of nearest
	one := kernels.NewCentroids(1, d)
	for i := range nearest {
		nearest[i] = float32(math.Inf(1))
	}
	pick := int(float64(n) * unit(r))
	for j := range k {
		rows = record(clients, pick, rows)
		for h, x := range rows {
			centres[j*d+h] = float64(x)
		}
		one.Set(rows)
		at, sum := 0, 0.0
		for _, c := range clients {
			part := labels[at : at+c.points.N]
			clear(part)
			kernels.Distances(c.points, one, part, dist[at:at+c.points.N])
			at += c.points.N
		}
		for i, x := range dist {
			nearest[i] = min(nearest[i], x)
			sum += float64(nearest[i])
			total[i] = sum
		}
		if sum == 0 {
			pick = int(float64(n) * unit(r)) // fewer distinct records than clusters
			continue
		}
		x := float64(unit(r) * sum)
		pick = min(sort.Search(n, func(i int) bool { return total[i] > x }), n-1)
	}
	return centres
}

// record returns record i, counted over all clients in order.
func record(clients []*client, i int, dst []float32) []float32 {
	for _, c := range clients {
		if i < c.points.N {
			return c.points.Point(i, dst)
		}
		i -= c.points.N
	}
	panic("horizontal: record out of range")
}
