package ckks

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/cohort-engine/cohort/internal/fault"
)

// layout says where the records are. For comparisons in pairs a batch has room for N / blocks
// records, and record r of a batch in slots r blocks to (r + 1) blocks - 1: as many comparisons
// lie side by side in one ciphertext, of which what ends in the record's first slot counts. Numbers
// that are the same for all records, one for each comparison, have period `blocks` over the slots:
// they are a polynomial of as many coefficients (side.go), so one copy of a column serves all
// comparisons.
type layout struct {
	n, slots, batches int
	// blocks is the number of comparisons side by side, a power of two, 1 unless batches is 1.
	blocks int
	// gainBits are the bits of integer gains: the scale of columns is so much below a level's.
	gainBits int
	// rank is set when the nearest centroid is found by rank; batches are then
	// its packed ciphertexts.
	rank *rankLayout
}

// mostBlocks bounds the comparisons side by side: gains round more coarsely the more there are, and more bits of
// them carry more of the encryption's error, of which there is more under a public key.
const (
	mostBlocks       = 16
	mostPublicBlocks = 4
)

// newLayout lays out n records for comparisons of k clusters; public tells whether columns are encrypted under a public
// key. Integer gains have 5 bits when there is one encrypted column, since the normalisation can then be chosen so that
// its gain is an integer, and 6 bits otherwise. More bits would round less and carry more of the encryption's error;
// comparisons side by side round together, and as far as their number's root.
//
// 10,000 records leave 39 % of 16,384 slots empty. A batch of 8,192 records with two comparisons side by side and one
// of 1,808 with eight would fill them: 5 signs in place of 7 with five clusters, 10 in place of 16 with eight. By what
// operations take on one core with AVX2 (a sign 29 ms with five clusters and 36 with eight, a rotation 1.7 and 1.9, a
// product of a tree 1.3 and 1.5) a round would take .86 and .79 of the time: most comparisons are rotated, and trees
// have two parts. It is not done: three keys for rotations and a second ciphertext of a column would make 11.9 MB of
// the 8.6 that ten rounds send with five clusters, and 17.4 of 12.3 with eight, which takes longer than what is gained
// on links of 100 and of 50 Mbit/s; and gains side by side round, where that of one column is an integer now.
func newLayout(n, slots, k, encrypted int, public bool) layout {
	l := layout{n: n, slots: slots, batches: (n + slots - 1) / slots, blocks: 1, gainBits: 6}
	most := mostBlocks
	if public {
		most = mostPublicBlocks
	}
	for 2*l.blocks*n <= slots && l.blocks < min(most, k*(k-1)/2) {
		l.blocks *= 2
	}
	switch {
	case l.blocks == 1 && encrypted == 1:
		l.gainBits = 5
	case !public:
		l.gainBits += bits.Len(uint(l.blocks)) / 2
	}
	return l
}

// freshScale is the scale at which columns are encrypted for comparisons. Integer gains make up for the rest of the
// comparison's scale.
func (l layout) freshScale(p *parameters) float64 {
	return math.Exp2(float64(p.Chain.LogLevel - l.gainBits))
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
		r = append(r, s)
	}
	return r
}

// tops is the number of ciphertexts of a column for comparisons, lows that for
// aggregates.
func (l layout) tops() int {
	if l.rank != nil {
		return l.rank.compact(l.batches)
	}
	return l.batches
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
	lo, hi := l.rows(i)
	for r, x := range column[lo:hi] {
		for u := range l.blocks {
			values[r*l.blocks+u] = x
		}
	}
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
		values[(r-lo)*l.blocks] = valueOrOne(column, r)
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
	// groups are the pairs that lie side by side, in order.
	groups []*group
	// factors[c] lists cluster c's comparisons: pair index and side (0 if c is
	// the pair's first cluster).
	factors [][]factor
	depth   int
	// unit is the number by which an integer coefficient is divided; it sets
	// the scale of the comparison's input.
	unit   float64
	sign   *composite
	scales signScales
}

type factor struct{ pair, side int }

// count is the number of encrypted columns.
func (c columns) count() (n int) {
	for _, e := range c.encrypted {
		if e {
			n++
		}
	}
	return n
}

// allPairs lists every pair for the given input scale.
func allPairs(cols columns, centroids [][]float64, undecided, unit float64) []pair {
	var ps []pair
	for i := range centroids {
		for j := i + 1; j < len(centroids); j++ {
			ps = append(ps, newPair(i, j, centroids[i], centroids[j], cols, undecided, unit))
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

// lastRounds is the number of rounds at the end of a run that compare with pairSign.
const lastRounds = 3

// comparisons decides what round t compares, and with which sign, from the plan's values and released centroids: it
// tells nothing. earlySign compares until the last rounds where the centroids of all comparisons are far apart and it
// keeps no more pairs than pairSign does. But for the gains' rounding, which all rounds have, a record's membership f
// in another cluster than its nearest then costs at most .068 of the squared distance D^2 between the two centroids:
// one is nearer to it than the other by t D^2/t0, t0 >= .309 being the comparison at a centroid, and t f <= .021. What
// that moves goes with the last rounds.
func (s *run) comparisons(t int, centroids [][]float64) (*roundPlan, error) {
	plan := func(sign *composite) (*roundPlan, error) {
		return planRound(s.params, s.cols, s.lay, centroids, !s.job.KeepPairs, sign)
	}
	r, err := plan(pairSign)
	if err != nil || t >= s.Rounds-lastRounds || !r.farApart(centroids) {
		return r, err
	}
	if early, err := plan(earlySign); err == nil && len(early.pairs) == len(r.pairs) && early.farApart(centroids) {
		return early, nil
	}
	return r, nil
}

// farApart tells whether all comparisons are, at their own centroids, a quarter more than what earlySign leaves
// undecided.
func (r *roundPlan) farApart(centroids [][]float64) bool {
	return !slices.ContainsFunc(r.pairs, func(p pair) bool {
		least := 1.25 * (p.width - r.sign.undecided + earlyUndecided)
		return p.at(centroids[p.i]) > -least || p.at(centroids[p.j]) < least
	})
}

// maxDepth is the deepest product tree that a chain allows.
func (p *parameters) maxDepth() int { return p.Chain.Levels - signDepth }

// planRound decides what to compare for the given centroids. The coefficients
// depend on the input's scale, the scale on the depth of the product trees, the
// depth on the pairs that are needed and these on the coefficients: so the
// depth that the full chain's scale gives is tried first, then deeper ones.
func planRound(p *parameters, cols columns, lay layout, centroids [][]float64, prunePairs bool,
	sign *composite) (*roundPlan, error) {
	first, need := attempt(p, cols, lay, centroids, prunePairs, sign, p.maxDepth())
	for depth := need; depth < p.maxDepth(); depth++ {
		if r, d := attempt(p, cols, lay, centroids, prunePairs, sign, depth); d <= depth {
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
		if _, err := planRound(s.params, s.cols, s.lay, to, !s.job.KeepPairs, pairSign); err == nil {
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
func attempt(p *parameters, cols columns, lay layout, centroids [][]float64, prunePairs bool,
	sign *composite, depth int) (*roundPlan, int) {
	s := sign.plan(p, aggregateLevel, depth, 1)
	r := &roundPlan{sign: sign, depth: depth, scales: s, unit: math.Exp2(s.in) / lay.freshScale(p)}
	r.choose(cols, lay, centroids, prunePairs)
	return r, treeDepth(maxDegree(len(centroids), r.pairs))
}

// choose sets the pairs that are compared and puts them side by side.
func (r *roundPlan) choose(cols columns, lay layout, centroids [][]float64, prunePairs bool) {
	all := allPairs(cols, centroids, r.sign.undecided, r.unit)
	kept := slices.Repeat([]bool{true}, len(all))
	if prunePairs {
		kept = prune(all, centroids)
	}
	// What lies side by side rounds together, and so follows from what is kept.
	for again := true; again; {
		r.pairs = r.pairs[:0]
		for n, p := range all {
			if kept[n] {
				p.gain = slices.Clone(p.gain)
				r.pairs = append(r.pairs, p)
			}
		}
		r.group(cols, lay)
		again = restore(all, kept, r.pairs, centroids)
	}
	r.link(len(centroids))
}

// group puts pairs side by side: in as few ciphertexts as the blocks allow, equally full.
func (r *roundPlan) group(cols columns, lay layout) {
	count := (len(r.pairs) + lay.blocks - 1) / lay.blocks
	r.groups = r.groups[:0]
	for g := range count {
		lo, hi := g*len(r.pairs)/count, (g+1)*len(r.pairs)/count
		r.groups = append(r.groups, newGroup(r.pairs[lo:hi], lo, lay.blocks, cols, r.unit))
	}
}

func (r *roundPlan) link(k int) {
	r.factors = make([][]factor, k)
	for n, p := range r.pairs {
		r.factors[p.i] = append(r.factors[p.i], factor{n, 0})
		r.factors[p.j] = append(r.factors[p.j], factor{n, 1})
	}
}
