package ckks

import (
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
)

// layout says where the records are. For comparisons in pairs record r of n is
// in slot r mod N of batch r / N; for few records a ciphertext carries several
// comparisons side by side, in blocks of n slots, of which block 0 counts.
type layout struct {
	n, slots, batches int
	// blocks is the number of comparisons side by side, 1 unless batches is 1.
	blocks int
	// rank is set when the nearest centroid is found by rank; batches are then
	// its packed ciphertexts.
	rank *rankLayout
}

// newLayout lays out n records of a run that begins with the given number of
// comparisons out of all possible ones. Where they fit, two ciphertexts hold a
// round's comparisons, with room for two more that later rounds may need: fewer
// ciphertexts would leave one worker idle, more blocks cost more copies of the
// columns.
func newLayout(n, slots, pairs, all int) layout {
	l := layout{n: n, slots: slots, batches: (n + slots - 1) / slots, blocks: 1}
	if l.batches == 1 {
		l.blocks = max(1, min(slots/n, (pairs+1)/2+1, (all+1)/2))
	}
	return l
}

// rows returns the range of records in a batch.
func (l layout) rows(batch int) (lo, hi int) {
	return batch * l.slots, min((batch+1)*l.slots, l.n)
}

// shifts are the rotations, in slots to the left, for which there are keys.
func (l layout) shifts() []int {
	if l.rank != nil {
		return l.rank.shifts()
	}
	var r []int
	for s := 1; s < l.blocks; s *= 2 {
		r = append(r, s*l.n)
	}
	return r
}

// tops is the number of ciphertexts of a column for comparisons, lows that for
// aggregates.
func (l layout) tops() int {
	if l.rank != nil {
		return l.rank.compact(l.batches)
	}
	return l.batches * l.blocks
}

func (l layout) lows() int { return l.batches }

// fillTop writes the column's values in ciphertext i for comparisons, zero
// elsewhere.
func (l layout) fillTop(i int, column, values []float64) {
	clear(values)
	if l.rank != nil {
		l.rank.fillTop(i, l.n, column, values)
		return
	}
	lo, hi := l.rows(i / l.blocks)
	copy(values[i%l.blocks*l.n:], column[lo:hi])
}

// fillLow writes the column's values, or 1 for a nil column, in ciphertext i
// for aggregates, zero elsewhere.
func (l layout) fillLow(i int, column, values []float64) {
	clear(values)
	if l.rank != nil {
		l.rank.fillLow(i, l.n, column, values)
		return
	}
	lo, hi := l.rows(i)
	for r := lo; r < hi; r++ {
		values[r-lo] = valueOrOne(column, r)
	}
}

func valueOrOne(column []float64, r int) float64 {
	if column == nil {
		return 1
	}
	return column[r]
}

// columns says who holds which column of the data and which of them are
// encrypted.
type columns struct {
	d         int
	encrypted []bool
	// spare is by how much the encryption of columns moves a comparison's input, at most.
	spare float64
}

// roundPlan is everything public about one round: which pairs are compared,
// with which coefficients, and at which levels.
type roundPlan struct {
	pairs []pair
	// factors[c] lists cluster c's comparisons: pair index and side (0 if c is
	// the pair's first cluster).
	factors [][]factor
	depth   int
	// unit is the number by which an integer coefficient is divided; it sets
	// the scale of the comparison's input.
	unit   float64
	scales signScales
}

type factor struct{ pair, side int }

// freshScale is the scale at which columns are encrypted for comparisons. The
// integer coefficients make up for the rest of the comparison's scale: 5 bits
// when there is one encrypted column, since the normalisation can then be
// chosen so that its coefficient is an integer, and 6 bits otherwise. More bits
// would round less and carry more of the encryption's error.
func freshScale(p *parameters, cols columns) float64 {
	n := 0
	for _, e := range cols.encrypted {
		if e {
			n++
		}
	}
	bits := 6
	if n == 1 {
		bits = 5
	}
	return math.Exp2(float64(p.Chain.LogLevel - bits))
}

// allPairs lists every pair for the given input scale.
func allPairs(cols columns, centroids [][]float64, unit float64) []pair {
	var ps []pair
	for i := range centroids {
		for j := i + 1; j < len(centroids); j++ {
			ps = append(ps, newPair(i, j, centroids[i], centroids[j], cols, unit))
		}
	}
	return ps
}

func maxDegree(k int, pairs []pair) int {
	deg := make([]int, k)
	var m int
	for _, p := range pairs {
		deg[p.i]++
		deg[p.j]++
		m = max(m, deg[p.i], deg[p.j])
	}
	return m
}

// maxDepth is the deepest product tree that a chain allows.
func (p *parameters) maxDepth() int { return p.Chain.Levels - signDepth }

// planRound decides what to compare for the given centroids. The coefficients
// depend on the input's scale, the scale on the depth of the product trees, the
// depth on the pairs that are needed and these on the coefficients: so the
// depth that the full chain's scale gives is tried first, then deeper ones.
func planRound(p *parameters, cols columns, centroids [][]float64, prunePairs bool) (*roundPlan, error) {
	first, need := attempt(p, cols, centroids, prunePairs, p.maxDepth())
	for depth := need; depth < p.maxDepth(); depth++ {
		if r, d := attempt(p, cols, centroids, prunePairs, depth); d <= depth {
			return r, nil
		}
	}
	if need > p.maxDepth() {
		return nil, errTooDeep(maxDegree(len(centroids), first.pairs), p)
	}
	return first, nil
}

func errTooDeep(degree int, p *parameters) error {
	return fault.Failed("ckks round",
		fmt.Sprintf("a cluster is compared with %d others, the chain of primes allows %d", degree, 1<<p.maxDepth()),
		"keep all pairs (--keep-pairs), which takes a longer chain, or use fewer clusters", nil)
}

// reachable returns the centroids from which the next round begins: those that follow from the
// totals, where the chain has room for their comparisons, and else as far as it has on the way to
// them from the round's own, by halves. Both are public, so it tells nothing.
func (s *run) reachable(current, next [][]float64) (to [][]float64, held bool) {
	if s.job.argmin() == Rank || treeDepth(s.job.K-1) <= s.params.maxDepth() {
		return next, false
	}
	for step := 1.0; step > 1e-6; step /= 2 {
		to := make([][]float64, len(next))
		for i := range next {
			to[i] = make([]float64, len(next[i]))
			for h, x := range next[i] {
				to[i][h] = x
				if step < 1 {
					to[i][h] = current[i][h] + float64(step*(x-current[i][h]))
				}
			}
		}
		if _, err := planRound(s.params, s.cols, to, !s.job.KeepPairs); err == nil {
			return to, step < 1
		}
	}
	return current, true
}

// settle makes the centroids of a round, before and after the last one.
func (q *peer) settle(round int, current, next [][]float64) [][]float64 {
	if round == q.job.rounds() {
		return next
	}
	to, held := q.reachable(current, next)
	if held {
		q.Note("round %d: some cluster would be compared with more others than the chain of primes allows: the centroids "+
			"went part of their way", round)
	}
	return to
}

// attempt plans a round for a given depth of the product trees and returns the
// depth that its pairs need.
func attempt(p *parameters, cols columns, centroids [][]float64, prunePairs bool, depth int) (*roundPlan, int) {
	s := planScales(p, aggregateLevel, depth, 1)
	r := &roundPlan{depth: depth, scales: s, unit: math.Exp2(s.in) / freshScale(p, cols)}
	r.pairs = allPairs(cols, centroids, r.unit)
	if prunePairs {
		r.pairs = prune(r.pairs, centroids)
	}
	r.link(len(centroids))
	return r, treeDepth(maxDegree(len(centroids), r.pairs))
}

func (r *roundPlan) link(k int) {
	r.factors = make([][]factor, k)
	for n, p := range r.pairs {
		r.factors[p.i] = append(r.factors[p.i], factor{n, 0})
		r.factors[p.j] = append(r.factors[p.j], factor{n, 1})
	}
}
