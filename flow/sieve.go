package flow

import (
	"math"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// sieves finds the points that have two columns within a window, most of them by
// single-precision distances alone. A price is a squared distance too: with one
// more coordinate, 0 for points and sqrt(price) for a centroid, the assignment
// kernel compares distance plus price. Its error is bounded, so a point whose gap
// exceeds the window by more than the error needs no exact cost.
type sieves struct {
	centroids *kernels.Centroids
	rows      []float32
	labels    []uint16
	gaps      []float32 // certain lower bounds of the gaps, in the units of the points
	sorted    []float32
	leave     float32 // certain lower bound of the price of staying unassigned
	relative  float32 // error in terms of a computed distance
	absolute  float32
	unit      float64 // a squared grid unit
}

// prepareSieve sets the centroids of the sieve from s.centroids and s.prices.
func (s *Solver) prepareSieve(p *Problem, n int) {
	v := &s.sieves
	k, d := p.k(), p.Points.D
	if v.centroids == nil || v.centroids.K != k || v.centroids.D != d+1 {
		v.centroids = kernels.NewCentroids(k, d+1)
		v.rows = make([]float32, k*(d+1))
	}
	v.unit = math.Ldexp(1, -2*p.FractionBits)
	lowest := slices.Min(s.prices[:k])
	var largest float64
	for j := range k {
		row := v.rows[j*(d+1) : (j+1)*(d+1)]
		copy(row, p.Centroids[j*d:j*d+d])
		row[d] = float32(math.Sqrt(float64(s.prices[j]-lowest) * v.unit))
		var norm float64
		for _, x := range row {
			norm += float64(x) * float64(x)
		}
		largest = max(largest, norm)
	}
	v.centroids.Set(v.rows)
	// The subtracted form rounds each of its d+1 fused terms and the price, twice
	// for its root, relative to the result; the product form, relative to the
	// norms. Both bounds have a factor of two to spare.
	v.relative = float32(math.Ldexp(float64(d+8), -23))
	v.absolute = 0
	if d+1 >= 16 {
		v.absolute = float32(math.Ldexp(float64(d+8), -21) * (largest + float64(d)))
	}
	v.leave = float32(math.Inf(1))
	if p.mayLeave() {
		v.leave = float32(float64(p.Price()+s.prices[k]-lowest) * v.unit * (1 - 1e-6))
	}
	v.labels = slices.Grow(v.labels[:0], n)[:n]
	v.gaps = slices.Grow(v.gaps[:0], n)[:n]
}

// sieve bounds the gaps of the points [lo, hi).
func (s *Solver) sieve(p *Problem, points kernels.Panels, lo, hi int, w *scratch) {
	v := &s.sieves
	d := points.D
	block := max(kernels.Lanes, 4096/(d+1)&^(kernels.Lanes-1))
	if w.sieve.D != d+1 || w.sieve.N < block {
		w.sieve = *kernels.NewPanels(block, d+1)
		w.second = make([]float32, block)
	}
	from, to := d*kernels.Lanes, (d+1)*kernels.Lanes
	for first := lo; first < hi; first += block {
		last := min(hi, first+block)
		for b := range (last - first + kernels.Lanes - 1) / kernels.Lanes {
			at := (first/kernels.Lanes + b) * from
			copy(w.sieve.Data[b*to:b*to+from], points.Data[at:at+from])
		}
		gaps, second := v.gaps[first:last], w.second[:last-first]
		kernels.Assign2(w.sieve.Slice(0, last-first), v.centroids, v.labels[first:last], gaps, second)
		for i, best := range gaps {
			next := min(second[i], v.leave, math.MaxFloat32/4)
			gaps[i] = next - best - next*v.relative - v.absolute
		}
	}
}

// sievedWindow chooses a window that leaves the right share of the points free;
// some gaps are looked at.
func (s *Solver) sievedWindow(p *Problem, n int) int64 {
	v := &s.sieves
	const looked = 512
	step := max(1, n/looked)
	v.sorted = v.sorted[:0]
	for i := 0; i < n; i += step {
		v.sorted = append(v.sorted, v.gaps[i])
	}
	slices.Sort(v.sorted)
	gap := float64(v.sorted[int(s.share(n, p.k())*float64(len(v.sorted)))])
	return int64(min(max(1, gap/v.unit), maxPrice))
}

// gather is the second half of a pass over the points [lo, hi): exact costs for
// the points that the sieve leaves.
func (s *Solver) gather(p *Problem, points kernels.Panels, lo, hi int, labels []uint16, window int64, sh *shard, w *scratch) {
	v := &s.sieves
	k := p.k()
	row := w.grow(k)
	leave := int64(absent)
	if p.mayLeave() {
		leave = p.Price() + s.prices[k]
	}
	limit := float32(float64(window)*v.unit) * (1 + 1e-6)
	size := sh.size
	for i := lo; i < hi; i++ {
		label := v.labels[i]
		if v.gaps[i] <= limit {
			kernels.CostRows(points, i, i+1, s.centroids, p.FractionBits, row)
			c := s.choose(row, int32(i), int32(labels[i]), leave, absent, window, sh)
			if c < 0 {
				continue
			}
			label = uint16(c)
		} else {
			size[label]++
		}
		labels[i] = label
	}
}
