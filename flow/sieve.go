package flow

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cohort-engine/cohort/kernels"
)

// sieve finds the points that have two columns within a window, most of them by
// single-precision distances alone. A price is a squared distance too: with one
// more coordinate, 0 for points and sqrt(price) for a centroid, the assignment
// kernel compares distance plus price. Its error is bounded, so a point whose gap
// exceeds the window by more than the error needs no exact cost.
type sieve struct {
	centroids *kernels.Centroids
	rows      []float32
	leave     float32 // certain lower bound of the price of staying unassigned
	relative  float32 // error of a gap in terms of the second distance
	absolute  float32
	scale     float64 // squared grid units per unit
	gaps      []float32
}

// prepareSieve sets the centroids of the sieve from s.centroids and s.prices.
func (s *Solver) prepareSieve(p *Problem, prices []int64) {
	v := &s.sieve
	k, d := p.k(), p.Points.D
	if v.centroids == nil || v.centroids.K != k || v.centroids.D != d+1 {
		v.centroids = kernels.NewCentroids(k, d+1)
		v.rows = make([]float32, k*(d+1))
	}
	v.scale = math.Ldexp(1, 2*p.FractionBits)
	lowest := slices.Min(prices[:k])
	var largest float64
	for j := range k {
		row := v.rows[j*(d+1) : (j+1)*(d+1)]
		copy(row, p.Centroids[j*d:j*d+d])
		row[d] = float32(math.Sqrt(float64(prices[j]-lowest) * s.unit))
		var norm float64
		for _, x := range row {
			norm += float64(float64(x) * float64(x))
		}
		largest = max(largest, norm)
	}
	v.centroids.Set(v.rows)
	// In the subtracted form a distance has d+1 fused terms, each rounded once
	// relative to the sum, and a price rounded in its root and its difference:
	// d+4 roundings of 2^-24 for each of two distances. In the product form the
	// terms are rounded relative to the norms, at most 3(d+2) times in all.
	v.relative = float32(math.Ldexp(float64(d+5), -23))
	v.absolute = 0
	if d+1 >= kernels.WithinDims {
		v.absolute = float32(math.Ldexp(float64(d+8), -21) * (largest + float64(d)))
	}
	v.leave = math.MaxFloat32 / 4
	if p.mayLeave() {
		v.leave = float32(float64(p.Price()+s.prices[k]-lowest) * s.unit * (1 - 1e-6))
	}
}

// room readies the scratch for blocks of points with one more coordinate and
// returns the points in a block.
func (w *scratch) room(d, k int) int {
	block := max(kernels.Lanes, 8192/max(d+1, k/2)&^(kernels.Lanes-1))
	if w.sieve.D != d+1 || w.sieve.N != block {
		w.sieve = *kernels.NewPanels(block, d+1)
		w.dist, w.second = make([]float32, block), make([]float32, block)
	}
	w.masks = slices.Grow(w.masks[:0], block/kernels.Lanes*k)[:block/kernels.Lanes*k]
	w.columns = slices.Grow(w.columns[:0], kernels.Lanes*k)[:kernels.Lanes*k]
	return block
}

// assign runs the sieve on count points from first on, a multiple of 16, into the
// labels and w.dist and w.second; then it turns w.second into gaps that are certain.
func (v *sieve) assign(points kernels.Panels, first, count int, labels []uint16, w *scratch) {
	d := points.D
	from, to := d*kernels.Lanes, (d+1)*kernels.Lanes
	for b := range (count + kernels.Lanes - 1) / kernels.Lanes {
		at := (first/kernels.Lanes + b) * from
		copy(w.sieve.Data[b*to:b*to+from], points.Data[at:at+from])
	}
	dist, second := w.dist[:count], w.second[:count]
	kernels.Assign2(w.sieve.Slice(0, count), v.centroids, labels[:count], dist, second)
	for i, best := range dist {
		next := min(second[i], v.leave)
		second[i] = next - best - float32(next*v.relative) - v.absolute
	}
}

// window chooses a window that leaves the given share of the points free; it looks
// at some panels.
func (s *Solver) sievedWindow(points kernels.Panels, k int) int64 {
	v, w := &s.sieve, &s.scratch[0]
	const looked = 10
	w.room(points.D, k)
	var labels [kernels.Lanes]uint16
	panels := (points.N + kernels.Lanes - 1) / kernels.Lanes
	step := max(1, panels/looked)
	v.gaps = v.gaps[:0]
	for b := 0; b < panels; b += step {
		count := min(kernels.Lanes, points.N-b*kernels.Lanes)
		v.assign(points, b*kernels.Lanes, count, labels[:], w)
		v.gaps = append(v.gaps, w.second[:count]...)
	}
	slices.Sort(v.gaps)
	gap := float64(v.gaps[int(s.share(points.N, k)*float64(len(v.gaps)))])
	return int64(min(max(1, gap*v.scale), maxPrice))
}

// sift is the pass over the points [lo, hi) by the sieve: exact costs only for the
// points and, below 16 dimensions, the centroids that it leaves.
func (s *Solver) sift(p *Problem, points kernels.Panels, lo, hi int, labels []uint16, window int64, sh *shard, w *scratch) {
	v := &s.sieve
	k, d := p.k(), points.D
	leave := int64(absent)
	if p.mayLeave() {
		leave = p.Price() + s.prices[k]
	}
	limit := float32(float64(window)*s.unit) * (1 + 1e-6)
	farther := float32(s.tune().wide) * limit
	marked := d+1 < kernels.WithinDims
	size := sh.size
	block := w.room(d, k)
	if cap(w.fresh) < block {
		w.fresh = make([]uint16, block)
	}
	row := w.grow(k)
	for first := lo; first < hi; first += block {
		count := min(block, hi-first)
		fresh := w.fresh[:count]
		v.assign(points, first, count, fresh, w)
		free := false
		for i, gap := range w.second[:count] {
			if gap > limit {
				labels[first+i] = fresh[i]
				size[fresh[i]]++
				s.gap[first+i] = gap
				w.dist[i] = -1
				continue
			}
			free = true
			if marked {
				w.dist[i] = (w.dist[i] + farther) * (1 + 2*v.relative)
				continue
			}
			kernels.CostRows(points, first+i, first+i+1, s.centroids, p.FractionBits, row)
			labels[first+i] = s.choose(row, int32(first+i), leave, absent, window, sh)
		}
		if !free || !marked {
			continue
		}
		panels := (count + kernels.Lanes - 1) / kernels.Lanes
		for i := count; i < panels*kernels.Lanes; i++ {
			w.dist[i] = -1
		}
		kernels.Within(w.sieve.Slice(0, panels*kernels.Lanes), v.centroids, w.dist[:panels*kernels.Lanes], w.masks[:panels*k])
		for b := range panels {
			s.unmask(p, points, first+b*kernels.Lanes, w.masks[b*k:b*k+k], labels, leave, window, sh, w)
		}
	}
}

// unmask handles the marked points of the panel that starts at point first.
func (s *Solver) unmask(p *Problem, points kernels.Panels, first int, masks []uint16, labels []uint16, leave, window int64, sh *shard, w *scratch) {
	k, d := len(masks), points.D
	var counts [kernels.Lanes]int
	var any uint16
	for j, m := range masks {
		any |= m
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m)
			w.columns[l*k+counts[l]] = uint16(j)
			counts[l]++
		}
	}
	wide := min(window, maxPrice/s.tune().wide) * s.tune().wide
	certain := float32(float64(wide) * s.unit * (1 - 1e-6))
	for ; any != 0; any &= any - 1 {
		l := bits.TrailingZeros16(any)
		i := first + l
		columns := w.columns[l*k : l*k+counts[l]]
		if len(columns) == 1 && leave == absent {
			labels[i], s.gap[i] = columns[0], certain
			sh.size[columns[0]]++
			continue
		}
		labels[i] = s.keep(p, points.Data[first*d+l:], columns, int32(i), leave, window, wide, sh, w)
	}
}

// keep is [Solver.choose] for a point with coordinates x, 16 apart, and all columns
// within wide, of which it keeps the arcs if a second one is within the window.
func (s *Solver) keep(p *Problem, x []float32, columns []uint16, i int32, leave, window, wide int64, sh *shard, w *scratch) uint16 {
	outside := int32(p.k())
	best, second, label := leave, int64(absent), outside
	d := p.Points.D
	costs := w.rows[:len(columns)]
	for q, j := range columns {
		var sum float64
		c := p.Centroids[int(j)*d : int(j)*d+d]
		for at, v := range c {
			t := float64(x[at*kernels.Lanes] - v)
			sum += t * t // exact, fused or not: fewer than 53 bits
		}
		cost := int64(sum * s.sieve.scale)
		costs[q] = cost
		if v := cost + s.prices[j]; v < second {
			if v < best {
				best, second, label = v, best, int32(j)
			} else {
				second = v
			}
		}
	}
	sh.size[label]++
	if second-best > window {
		s.gap[i] = float32(float64(min(second-best, wide)) * s.unit * (1 - 1e-6))
		return uint16(label)
	}
	s.gap[i] = isFree
	limit := best + wide
	sh.beyond = append(sh.beyond, limit)
	for q, cost := range costs {
		if j := int32(columns[q]); cost+s.prices[j] <= limit {
			c := arc{cost, j, 0}
			if j == label {
				c.count = 1
			}
			sh.arcs = append(sh.arcs, c)
		}
	}
	if leave <= limit {
		c := arc{leave - s.prices[outside], outside, 0}
		if label == outside {
			c.count = 1
		}
		sh.arcs = append(sh.arcs, c)
	}
	sh.free = append(sh.free, i)
	sh.ends = append(sh.ends, int32(len(sh.arcs)))
	return uint16(label)
}
