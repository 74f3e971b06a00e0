package seeding

import (
	"math"

	"github.com/cohort-engine/cohort/kernels"
)

// Oversampled draws, k-means||, take candidates for many centres at a time, each in
// proportion to its squared distance from those so far, in a few passes over the
// records; the candidates, weighted by the records nearest to them, are then clustered
// (Bahmani, Moseley, Vattani, Kumar and Vassilvitskii, Scalable k-means++, PVLDB 5,
// 2012). The paper draws each record by itself; drawing a fixed number, as here, is its
// section 5.3.

// Passes is the number of draws of [Oversampling] times k candidates: with five of them
// seeds are as good as those of k-means++ (section 5 of the paper).
const (
	Passes       = 5
	Oversampling = 1
)

// mostLabels is the number of centres that the kernels compare at a time.
const mostLabels = math.MaxUint16 - 1

// Extend adds candidates (row by row) to those so far, after Forget.
func (p *Part) Extend(rows []float32) {
	p.room()
	if p.owners == nil {
		p.owners = make([]int32, p.points.N)
	}
	d := p.points.D
	for ; len(rows) > 0; rows = rows[min(len(rows), mostLabels*d):] {
		some := rows[:min(len(rows), mostLabels*d)]
		centres := kernels.NewCentroids(len(some)/d, d)
		centres.PrepareFilter(&p.points)
		centres.Set(some)
		p.inChunks(func(i, lo, hi int, labels []uint16, squares []float32) {
			p.extend(i, lo, hi, centres, labels, squares)
		})
		p.extended += centres.K
	}
}

// extend compares the records of a chunk with new candidates.
func (p *Part) extend(i, lo, hi int, centres *kernels.Centroids, labels []uint16, squares []float32) {
	points := p.points.Slice(lo, hi)
	kernels.Assign(points, centres, labels, nil)
	kernels.Distances(points, centres, labels, squares)
	nearest, owners := p.nearest[lo:hi], p.owners[lo:hi]
	for r, x := range squares {
		if x < nearest[r] {
			nearest[r], owners[r] = x, int32(p.extended+int(labels[r]))
		}
	}
	p.potential[i] = p.total(nearest, lo)
}

// Owned returns, by candidate, the weight of the records that are nearest to it.
func (p *Part) Owned() []float64 {
	owned := make([]float64, p.extended)
	for r, owner := range p.owners {
		owned[owner] += p.weighted(r, 1)
	}
	return owned
}

// Recluster draws k centres from candidates (row by row) with weights, by greedy
// k-means++. There may be fewer candidates than centres, some of which are then alike.
func Recluster(rows []float32, weights []float64, d, k int, uniform func() float64, each each) []float32 {
	var kept []float32
	var heavy []float64
	for i, w := range weights {
		if w > 0 {
			kept, heavy = append(kept, rows[i*d:(i+1)*d]...), append(heavy, w)
		}
	}
	points := kernels.NewPanels(len(heavy), d)
	kernels.Pack(points, kept)
	trials := Trials(k)
	part := NewPart(*points, trials, each)
	part.Weigh(heavy)
	return PlusPlus([]*Part{part}, k, trials, uniform)
}
