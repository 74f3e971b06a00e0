// Package line solves the size-constrained assignment of points on a line, where an optimal one gives the clusters
// intervals in the order of their centroids. Package flow takes its prices for plain problems of one dimension.
package line

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// Solver finds the ends of the intervals and the prices that prove them optimal: sum F_j(b_j) over the ends b_j is
// least, with F_j convex and every difference of ends within bounds. That is an L-natural-convex problem, and steepest
// descent by steps of falling powers of two solves it (Murota 2003): a step moves some of the ends, the best ones, by
// the same number of units, and a walk along the line finds which. Sorting aside it takes a few k log n evaluations for
// each power. A Solver keeps its memory; the zero value is ready to use.
type Solver struct {
	x        []int64   // distinct coordinates, ascending
	units    []int64   // units before each, and all
	sums     []int64   // their sums of coordinates
	clusters []int32   // in the order of their centroids
	centre   []int64   // of these
	ends     []int64   // ends[j] units are in the first j clusters
	lo, hi   []int64   // of their differences
	gain     []float64 // of the move of an end
	moves    []bool    // [2j+b]: end j-1 moves in the best way in which end j does (b=1) or stays
}

// Solve sets the prices of clusters at some places, of sizes from lo to hi that some assignment has. It overwrites the
// coordinates x of the points, at least one, which are integers of 32 bits as those of the clusters are. Weights are
// their multiplicities; nil means 1 each.
func (l *Solver) Solve(x []int64, weights []int32, clusters []int64, lo, hi []int, prices []int64) {
	l.sort(x, weights)
	l.begin(clusters, lo, hi)
	k, total := len(l.clusters), l.units[len(l.x)]
	step := int64(1)
	for 2*step <= total/int64(k) {
		step *= 2
	}
	for ; step > 0; step /= 2 {
		for again := k + 100; again > 0; again-- { // sums are rounded, and need not fall for ever
			if up, down := l.descend(step), l.descend(-step); !up && !down {
				break
			}
		}
	}
	l.price(prices)
}

// sort sorts the points, and makes those at a place one.
func (l *Solver) sort(points []int64, weights []int32) {
	for i := range points { // x << 32 + weight
		weight := int64(1)
		if weights != nil {
			weight = int64(weights[i])
		}
		points[i] = points[i]<<32 + weight
	}
	slices.Sort(points)
	l.x, l.units, l.sums = l.x[:0], append(l.units[:0], 0), append(l.sums[:0], 0)
	for _, point := range points {
		x, weight := point>>32, point&math.MaxUint32
		m := len(l.x)
		if m == 0 || l.x[m-1] != x {
			l.x, l.units, l.sums = append(l.x, x), append(l.units, l.units[m]), append(l.sums, l.sums[m])
			m++
		}
		l.units[m] += weight
		l.sums[m] += weight * x
	}
}

// begin sorts the clusters and makes the ends feasible.
func (l *Solver) begin(clusters []int64, lo, hi []int) {
	k, total := len(clusters), l.units[len(l.x)]
	l.clusters = l.clusters[:0]
	for j := range clusters {
		l.clusters = append(l.clusters, int32(j))
	}
	slices.SortFunc(l.clusters, func(a, b int32) int {
		return cmp.Or(cmp.Compare(clusters[a], clusters[b]), cmp.Compare(a, b))
	})
	l.centre, l.lo, l.hi, l.ends = l.centre[:0], l.lo[:0], l.hi[:0], append(l.ends[:0], 0)
	least, room := int64(0), int64(0)
	for _, j := range l.clusters {
		l.centre = append(l.centre, clusters[j])
		l.lo, l.hi = append(l.lo, min(int64(lo[j]), total)), append(l.hi, min(int64(hi[j]), total))
		least, room = least+l.lo[len(l.lo)-1], room+l.hi[len(l.hi)-1]-l.lo[len(l.lo)-1]
	}
	var below, part int64 // share what is above the minima in proportion to the room
	for j := range k {
		below, part = below+l.lo[j], part+l.hi[j]-l.lo[j]
		high, low := bits.Mul64(uint64(total-least), uint64(part))
		share, _ := bits.Div64(high, low, uint64(max(1, room)))
		l.ends = append(l.ends, below+int64(share))
	}
	l.gain, l.moves = slices.Grow(l.gain[:0], k+1)[:k+1], slices.Grow(l.moves[:0], 2*k+2)[:2*k+2]
}

// before returns the sum of the coordinates of the first b units.
func (l *Solver) before(b int64) int64 {
	q := sort.Search(len(l.x)-1, func(q int) bool { return l.units[q+1] >= b })
	return l.sums[q] + (b-l.units[q])*l.x[q]
}

// descend moves the best of the ends by step, and reports whether that pays.
func (l *Solver) descend(step int64) bool {
	k, total := len(l.clusters), l.units[len(l.x)]
	for j := 1; j < k; j++ {
		l.gain[j] = math.Inf(1)
		if to := l.ends[j] + step; to >= 0 && to <= total {
			a, b := l.centre[j-1], l.centre[j]
			l.gain[j] = float64(b-a) * float64(2*(l.before(to)-l.before(l.ends[j]))-step*(a+b))
		}
	}
	stay, move := 0.0, math.Inf(1) // of the ends up to j, where it stays and where it moves
	for j := 1; j <= k; j++ {
		size := l.ends[j] - l.ends[j-1]
		within := func(change int64) bool { return size+change >= l.lo[j-1] && size+change <= l.hi[j-1] }
		least := func(alone, together float64, change int64) (float64, bool) {
			if !within(change) {
				alone = math.Inf(1)
			}
			return min(alone, together), alone < together
		}
		var staying, moving bool
		nextStay, nextMove := 0.0, math.Inf(1)
		nextStay, staying = least(move, stay, -step)
		if j < k {
			nextMove, moving = least(stay, move, step)
			nextMove += l.gain[j]
		}
		l.moves[2*j], l.moves[2*j+1] = staying, !moving
		stay, move = nextStay, nextMove
	}
	if !(stay < 0) {
		return false
	}
	for j, moving := k, 0; j > 0; j-- {
		if moving == 1 {
			l.ends[j] += step
		}
		if l.moves[2*j+moving] {
			moving = 1
		} else {
			moving = 0
		}
	}
	return true
}

// price sets prices at which the units are where distance plus price is least: that of a
// cluster less that of the one before lies between what the last unit of the latter and
// the first of the former ask for, and its sign is what the size asks for.
func (l *Solver) price(prices []int64) {
	const far = math.MaxInt64 / 4
	k, total := len(l.clusters), l.units[len(l.x)]
	type interval struct{ lo, hi int64 }
	apart, signs := make([]interval, k), make([]interval, k)
	for j := range k {
		apart[j], signs[j] = interval{-far, far}, interval{-far, far}
		if size := l.ends[j+1] - l.ends[j]; l.lo[j] < l.hi[j] {
			if size < l.hi[j] {
				signs[j].hi = 0
			}
			if size > l.lo[j] {
				signs[j].lo = 0
			}
		}
		if j == 0 {
			continue
		}
		a, b := l.centre[j-1], l.centre[j]
		prefers := func(unit int64) int64 { // how much nearer it is to b
			q := sort.Search(len(l.x)-1, func(q int) bool { return l.units[q+1] > unit })
			return (b - a) * (2*l.x[q] - a - b)
		}
		if l.ends[j] > 0 {
			apart[j].lo = prefers(l.ends[j] - 1)
		}
		if l.ends[j] < total {
			apart[j].hi = prefers(l.ends[j])
		}
		signs[j].lo = max(signs[j].lo, signs[j-1].lo+apart[j].lo, -far)
		signs[j].hi = min(signs[j].hi, signs[j-1].hi+apart[j].hi, far)
	}
	var next int64
	for j := k - 1; j >= 0; j-- {
		r := signs[j]
		if j < k-1 {
			r.lo, r.hi = max(r.lo, next-apart[j+1].hi), min(r.hi, next-apart[j+1].lo)
		}
		switch {
		case r.lo > -far/2 && r.hi < far/2:
			next = r.lo + (r.hi-r.lo)/2
		default:
			next = max(r.lo, min(r.hi, 0))
		}
		prices[l.clusters[j]] = next
	}
}
