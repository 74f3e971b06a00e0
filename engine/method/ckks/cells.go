package ckks

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/cohort-engine/cohort/internal/elementary"
)

// pair is the comparison of clusters i < j: a function t(x) = a.x + b, positive
// where j is nearer, with |t| <= 1 on the box [-1, 1]^d.
type pair struct {
	i, j int
	// gain is the linear coefficient of each column, with encrypted columns' rounded once the pair has its group.
	gain   []float64
	offset float64
	// middle is the point between the centroids, where t is 0.
	middle []float64
	// width is the |t| beyond which the comparison counts as decided: the polynomial's and the error of the
	// encrypted input.
	width float64
}

// inputSpare is what comparisons keep from the ends of the polynomial's domain in spite of the encryption's error, and
// the least that is allowed for that error.
const inputSpare = 1.0 / 512

// domain is what is left of the polynomial's domain for comparisons of exact columns.
func (c columns) domain() float64 { return 1 - inputSpare - max(c.spare, inputSpare) }

// leastSize is the size below which centroids count as equal: the gains that it is brought to 1 with are numbers.
const leastSize = 1e-300

// newPair normalises the squared-distance difference
//
//	|x - c_i|^2 - |x - c_j|^2 = 2 (x - m).(c_j - c_i), m = (c_i + c_j)/2
//
// by its maximum on the box. cols tells which columns are ciphertexts, whose coefficients become integers over
// unit, and what room their errors take.
func newPair(i, j int, ci, cj []float64, cols columns, undecided, unit float64) pair {
	d := len(ci)
	p := pair{i: i, j: j, gain: make([]float64, d), middle: make([]float64, d),
		width: undecided + max(cols.spare, inputSpare)}
	for h := range ci {
		p.gain[h] = 2 * (cj[h] - ci[h])
		p.middle[h] = (ci[h] + cj[h]) / 2
	}
	p.setOffset()
	size := p.size()
	if size < leastSize {
		// Equal centroids: t is 0 everywhere and both sides win one half.
		clear(p.gain)
		p.offset = 0
		return p
	}
	// Room for the rounding of the integer coefficients.
	m := (cols.domain() - 0.5*float64(cols.count())/unit) / size
	for h := range p.gain {
		p.gain[h] *= m
	}
	p.setOffset()
	return p
}

// setOffset makes t vanish between the centroids.
func (p *pair) setOffset() {
	p.offset = 0
	for h, a := range p.gain {
		p.offset -= float64(a * p.middle[h])
	}
}

// size is the largest |t| on the box.
func (p *pair) size() float64 {
	s := math.Abs(p.offset)
	for _, a := range p.gain {
		s += math.Abs(a)
	}
	return s
}

// at is t(x).
func (p *pair) at(x []float64) float64 {
	t := p.offset
	for h, a := range p.gain {
		t += float64(a * x[h])
	}
	return t
}

// half is the half-space a.x <= b.
type half struct {
	a []float64
	b float64
}

// side is the half-space in which cluster c is not clearly beaten by the other
// cluster of p.
func (p pair) side(c int) half {
	if c == p.i {
		return half{a: p.gain, b: p.width - p.offset}
	}
	a := make([]float64, len(p.gain))
	for h := range a {
		a[h] = -p.gain[h]
	}
	return half{a: a, b: p.width + p.offset}
}

// prune keeps the pairs whose comparison is needed. Cluster i's soft cell is
// where no kept comparison clearly beats it; a pair may go if the soft cells of
// its two clusters, and of every pair dropped before, then do not meet in the
// box. So at every point the clusters that are not clearly beaten are compared
// with each other, which bounds the sum of memberships (see Overlap). Pairs are
// tried from the most distant centroids on. All of it is public.
func prune(pairs []pair, centroids [][]float64) (kept []bool) {
	k := len(centroids)
	kept = make([]bool, len(pairs))
	order := make([]int, len(pairs))
	distance := make([]float64, len(pairs))
	for n, p := range pairs {
		kept[n], order[n] = true, n
		distance[n] = elementary.SquaredDistance(centroids[p.i], centroids[p.j])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distance[b], distance[a]) })
	sides := make([][2]half, len(pairs))
	for n, p := range pairs {
		sides[n] = [2]half{p.side(p.i), p.side(p.j)}
	}
	cell := func(c int) []half {
		hs := make([]half, 0, k)
		for n, p := range pairs {
			if kept[n] && p.i == c {
				hs = append(hs, sides[n][0])
			} else if kept[n] && p.j == c {
				hs = append(hs, sides[n][1])
			}
		}
		return hs
	}
	cells := make([][]half, k)
	for c := range cells {
		cells[c] = cell(c)
	}
	for _, n := range order {
		p := pairs[n]
		kept[n] = false
		cells[p.i], cells[p.j] = cell(p.i), cell(p.j)
		ok := true
		for m, q := range pairs {
			touched := q.i == p.i || q.j == p.j || q.i == p.j || q.j == p.i
			if !kept[m] && touched && meet(cells[q.i], cells[q.j], len(p.gain), centroids[q.i], centroids[q.j]) {
				ok = false
				break
			}
		}
		if !ok {
			kept[n] = true
			cells[p.i], cells[p.j] = cell(p.i), cell(p.j)
		}
	}
	return kept
}

// restore keeps, too, every pair whose clusters' soft cells meet when those kept are rounded to the given ones, and
// tells whether there is any.
func restore(pairs []pair, kept []bool, rounded []pair, centroids [][]float64) (more bool) {
	cells := make([][]half, len(centroids))
	for _, p := range rounded {
		cells[p.i], cells[p.j] = append(cells[p.i], p.side(p.i)), append(cells[p.j], p.side(p.j))
	}
	for n, p := range pairs {
		if !kept[n] && meet(cells[p.i], cells[p.j], len(p.gain), centroids[p.i], centroids[p.j]) {
			kept[n], more = true, true
		}
	}
	return more
}

// meet reports whether the half-spaces of two cells have a common point in [-1, 1]^d. When
// in doubt it says yes, which keeps a comparison. u and v are two points
// between which a common point is likely.
func meet(one, other []half, d int, u, v []float64) bool {
	if d == 2 {
		return meetPlane(one, other)
	}
	hs := slices.Concat(one, other)
	x := make([]float64, d)
	for step := 1; step < 8; step++ {
		f := float64(step) / 8
		for h := range x {
			x[h] = u[h] + float64(f*(v[h]-u[h]))
		}
		if contains(hs, x) {
			return true
		}
	}
	return meetSpace(hs, d)
}

func contains(hs []half, x []float64) bool {
	for _, h := range hs {
		var s float64
		for i := range x {
			if math.Abs(x[i]) > 1 {
				return false
			}
			s += float64(h.a[i] * x[i])
		}
		if s > h.b {
			return false
		}
	}
	return true
}

// meetPlane clips the square by each half-plane of some cells.
func meetPlane(cells ...[]half) bool {
	var room [2][32][2]float64
	poly, next := append(room[0][:0], [][2]float64{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}...), room[1][:0]
	for _, hs := range cells {
		for _, h := range hs {
			above := func(p [2]float64) float64 { return float64(h.a[0]*p[0]) + float64(h.a[1]*p[1]) - h.b }
			next = next[:0]
			p, fp := poly[0], above(poly[0])
			first := fp
			for i := range poly {
				q, fq := poly[0], first
				if i+1 < len(poly) {
					q = poly[i+1]
					fq = above(q)
				}
				if fp <= 0 {
					next = append(next, p)
				}
				if (fp < 0 && fq > 0) || (fp > 0 && fq < 0) {
					s := fp / (fp - fq)
					next = append(next, [2]float64{p[0] + float64(s*(q[0]-p[0])), p[1] + float64(s*(q[1]-p[1]))})
				}
				p, fp = q, fq
			}
			if len(next) == 0 {
				return false
			}
			poly, next = next, poly
		}
	}
	return true
}

// feasibilityMargin is how far a linear programme must miss before its
// half-spaces count as disjoint; it covers the solver's rounding.
const feasibilityMargin = 1e-6

// meetSpace solves: minimise s subject to a.x <= b + s for every half-space and
// -1 <= x <= 1, as a standard-form programme in y = x + 1 in [0, 2] and
// s' = lift - s, where lift makes the all-slack basis feasible. The half-spaces
// are disjoint iff the optimum is positive.
func meetSpace(hs []half, d int) bool {
	m := len(hs)
	// Columns: y, s', slacks of the rows, slacks of y <= 2.
	cols := d + 1 + m + d
	a := mat.NewDense(m+d, cols, nil)
	rhs := make([]float64, m+d)
	var lift float64
	for r, h := range hs {
		t := h.b
		for i := range h.a {
			a.Set(r, i, h.a[i])
			t += h.a[i]
		}
		rhs[r] = t
		lift = max(lift, -t)
	}
	lift++
	basis := make([]int, 0, m+d)
	for r := range hs {
		// In terms of s' = lift - s >= 0 the point y = 0, s' = 0 is feasible.
		a.Set(r, d, 1)
		a.Set(r, d+1+r, 1)
		rhs[r] += lift
		basis = append(basis, d+1+r)
	}
	for i := range d {
		a.Set(m+i, i, 1)
		a.Set(m+i, d+1+m+i, 1)
		rhs[m+i] = 2
		basis = append(basis, d+1+m+i)
	}
	// Minimising s maximises s'; the rows bound it because x is bounded.
	cost := make([]float64, cols)
	cost[d] = -1
	best, _, err := lp.Simplex(cost, a, rhs, 1e-10, basis)
	if err != nil {
		return true
	}
	return lift+best <= feasibilityMargin
}

// overlap bounds what soft memberships do to the sensitivity of a release. At
// every point at most one set of mutually compared clusters is not clearly
// beaten; their memberships sum to at most 1 because they are the chances of
// exclusive events, and each of the others is at most signError. So the squared
// 2-norm of a record's membership vector is at most 1 + k signError^2.
func overlap(k int) float64 { return math.Sqrt(1 + float64(k)*signError*signError) }
