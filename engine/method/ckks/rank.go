package ckks

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// Comparison by rank is the method of CKKS-V, sections 2.3 and 3.1 (after
// Mazzone et al. 2024), kept for comparison: a point takes k^2 slots, a k x k
// matrix of comparisons of every squared distance with every other; the sum of
// a column is the rank of a distance, and an indicator polynomial of rank 1 is
// the one-hot nearest centroid. Matrices of m points are stored row by row side
// by side, without padding to powers of two: entry (i, j) of point p is in slot
// (i m + p) k + j.
//
// A difference of two squared distances is linear in the point, and each is
// divided by what it is at most in the box. With one divisor for all of them,
// whatever sign is within reach leaves most records undecided whose nearest
// centroids are near each other: two of the same group of records, whose
// distances differ by a hundredth of those across the box. So a comparison is
// undecided within a strip about the plane between its centroids that is a
// part of the box (a hundredth with the sharp sign), however near they are.

// maxRankClusters bounds k for comparison by rank. It is dear: ten rounds of 1,000 records with k = 16 send 249 MB
// where pairs send 34, and take 1.2 GB of memory, with k = 32 they take 3.5, and of 10,000 records 20.
const maxRankClusters = 32

// rankScale is the scale of columns on their way to a comparison, and spreadGain the factor of what they have once they
// are spread: up to k^2 roundings add up then.
const (
	rankScale  = 1 << 31
	spreadGain = 4
)

// rankSpare is by how much encryption, spreading and the rounding before the sign move a comparison with one key
// holder: ten deviations, which no measurement exceeds. It grows as the root of the number of holders.
const rankSpare = 1.0 / 900

// rankSignFor is the sign for so many clusters. With more of them more records are near a plane between two centroids,
// and such records have little of any membership.
func rankSignFor(k int) *composite {
	if k > 6 {
		return sharpRankSign
	}
	return rankSign
}

// rankChain has, above the levels of the comparison, one for the masks that select a cluster and two of their own: for
// the gains of comparisons and, above it, for the masks that select points.
func rankChain(k int) Chain {
	return Chain{LogN: 15, Levels: rankSignFor(k).depth() + treeDepth(k-1) + 1, LogLevel: 28, LogP: []int{30, 30, 30, 30},
		LogTop: []int{28, 28}}
}

// rankLayout places points in packed ciphertexts, m in each. Columns travel
// compactly: k^2 packed ciphertexts' worth of points in one, point p of packed
// ciphertext a k + c in slot (a m + p) k + c, so that a mask and one rotation
// extract a packed ciphertext's first column.
type rankLayout struct{ k, m int }

func newRankLayout(n, slots, k int) layout {
	r := &rankLayout{k: k, m: slots / (k * k)}
	return layout{n: n, slots: slots, batches: (n + r.m - 1) / r.m, blocks: 1, rank: r}
}

// compact is the number of compact ciphertexts for the given packed ones.
func (r *rankLayout) compact(packed int) int { return (packed + r.k*r.k - 1) / (r.k * r.k) }

// shifts are the powers of two of columns and of rows, both ways.
func (r *rankLayout) shifts() []int {
	var s []int
	for _, unit := range []int{1, r.m * r.k} {
		for b := 1; b < r.k; b *= 2 {
			s = append(s, unit*b, -unit*b)
		}
	}
	return s
}

// points calls f for every point of packed ciphertext g.
func (r *rankLayout) points(g, n int, f func(p, record int)) {
	for p := 0; p < r.m && g*r.m+p < n; p++ {
		f(p, g*r.m+p)
	}
}

func (r *rankLayout) fillTop(i, n int, column, values []float64) {
	for q := range r.k * r.k {
		a, c := q/r.k, q%r.k
		r.points(i*r.k*r.k+q, n, func(p, record int) { values[(a*r.m+p)*r.k+c] = column[record] })
	}
}

func (r *rankLayout) fillLow(g, n int, column, values []float64) {
	r.points(g, n, func(p, record int) {
		for j := range r.k {
			values[p*r.k+j] = valueOrOne(column, record)
		}
	})
}

// spread extracts and replicates every encrypted column once: packed[h][g] has
// the value of point p in all k^2 slots of its matrix.
func (c *computer) spread(ctx context.Context, pool *engine.Pool) error {
	r, top := c.lay.rank, c.params.MaxLevel()
	c.packed = make([][]*cipher, c.cols.d)
	var hs []int
	for h, enc := range c.cols.encrypted {
		if enc {
			hs = append(hs, h)
			c.packed[h] = make([]*cipher, c.lay.batches)
		}
	}
	return c.each(ctx, pool, len(hs)*c.lay.batches, func(w *scratch, index int) error {
		h, g := hs[index/c.lay.batches], index%c.lay.batches
		a, col := g%(r.k*r.k)/r.k, g%r.k
		clear(w.values)
		r.points(g, c.lay.n, func(p, _ int) { w.values[(a*r.m+p)*r.k+col] = 1 })
		one := c.masked(w, c.tops[h][g/(r.k*r.k)], w.values, spreadGain*float64(c.params.Q()[top]))
		x, err := c.ev.rescale(w, one), error(nil)
		c.ev.free(one)
		for b := 1; b < r.k; b *= 2 {
			if col&b != 0 && err == nil {
				x, err = c.move(w, x, b)
			}
			if a&b != 0 && err == nil {
				x, err = c.move(w, x, b*r.m*r.k)
			}
		}
		if err == nil {
			x, err = c.gather(w, x, -1)
		}
		if err == nil {
			x, err = c.gather(w, x, -r.m*r.k)
		}
		c.packed[h][g] = x
		return err
	})
}

// masked multiplies a by the given slots, which it spoils, at a scale.
func (c *computer) masked(w *scratch, a *cipher, slots []float64, scale float64) *cipher {
	out := w.newZero(a.level())
	out.scale = a.scale * scale
	c.addMasked(w, out, a, slots)
	return out
}

// addMasked adds a times the given slots, which it spoils, to out.
func (c *computer) addMasked(w *scratch, out, a *cipher, slots []float64) {
	mask := w.encode(slots, a.level(), out.scale/a.scale)
	c.params.lattice.Factor(mask)
	for i := range out.c {
		c.params.lattice.MultiplyAdd(out.c[i], a.c[i], mask)
	}
	w.Room().Free(mask)
	w.ops.Plaintexts++
}

// move rotates x, which it frees.
func (c *computer) move(w *scratch, x *cipher, by int) (*cipher, error) {
	moved, err := c.ev.rotate(w, x, by)
	if err == nil {
		c.ev.free(x)
	}
	return moved, err
}

// gather adds k copies of x, which it takes over, each rotated by step slots more than the one
// before: it replicates (to the right) or sums (to the left). Doubling up to
// the largest power of two and adding the parts on the way needs no padding
// (CKKS-V, Algorithm 8).
func (c *computer) gather(w *scratch, x *cipher, step int) (*cipher, error) {
	k := c.lay.rank.k
	var out *cipher
	for b := 1; ; b *= 2 {
		if k&b != 0 {
			if out == nil {
				out = x
			} else {
				// out, shifted behind the b copies in x.
				moved, err := c.move(w, out, step*b)
				if err != nil {
					return nil, err
				}
				c.add(moved, x)
				out = moved
			}
		}
		if 2*b > k {
			if x != out {
				c.ev.free(x)
			}
			return out, nil
		}
		moved, err := c.ev.rotate(w, x, step*b)
		if err != nil {
			return nil, err
		}
		c.add(moved, x)
		if x != out {
			c.ev.free(x)
		}
		x = moved
	}
}

// add adds b to a.
func (c *computer) add(a, b *cipher) {
	for i := range a.c {
		c.params.lattice.Add(a.c[i], a.c[i], b.c[i])
	}
}

// rankPlan is everything public about a round by rank.
type rankPlan struct {
	// pairs[i][j] is positive where centroid i is nearer than j.
	pairs  [][]pair
	scales signScales
	sign   *composite
	// mean is the geometric mean of the indicator's denominators.
	mean float64
}

func planRank(p *parameters, cols columns, centroids [][]float64) *rankPlan {
	k := len(centroids)
	r := &rankPlan{pairs: make([][]pair, k), sign: rankSignFor(k), mean: 1}
	for i := 2; i < k; i++ {
		r.mean *= math.Pow(float64(i), 1/float64(k-1))
	}
	for i, near := range centroids {
		r.pairs[i] = make([]pair, k)
		for j, far := range centroids {
			q := newPair(j, i, far, near, cols, r.sign.undecided, math.Inf(1))
			if q.size() == 0 {
				// Of equal centroids the first one is the nearest, to all records, and each one comes before itself.
				q.offset = math.Copysign(0.5, float64(j-i))
			}
			r.pairs[i][j] = q
		}
	}
	r.mean *= r.drawn()
	r.scales = r.sign.plan(p, aggregateLevel+1, treeDepth(k-1), r.mean)
	return r
}

// drawn is the factor by which the sign draws ranks together: where it is decided it is off by half its error on the
// average. So of k comparisons rank i makes i drawn + k (1 - drawn)/2.
func (r *rankPlan) drawn() float64 { return 1 - r.sign.error }

// rankMembers computes the memberships out[cluster][packed ciphertext].
func (c *computer) rankMembers(ctx context.Context, pool *engine.Pool, r *rankPlan) ([][]*cipher, error) {
	k := len(r.pairs)
	out := make([][]*cipher, k)
	for j := range out {
		out[j] = make([]*cipher, c.lay.batches)
	}
	return out, c.each(ctx, pool, c.lay.batches, func(w *scratch, g int) error {
		first, err := c.indicator(w, r, g)
		if err != nil {
			return err
		}
		for j := range k {
			out[j][g] = c.selectCluster(w, first, g, j)
		}
		c.ev.free(first)
		return nil
	})
}

// memberships are the least that a record's membership in a cluster and the sum of a record's memberships may be, in a
// sum over all records, and how much more than 1 that sum may be, beside the sign's errors.
type memberships struct{ one, sum, more float64 }

// mostLost is the part of all memberships that a sound round by pairs may lose, where several bisectors meet.
const mostLost = 0.5

// memberships are known before a run. By rank a membership is at least the indicator between two ranks: of a
// record that a comparison leaves undecided. Such a record's memberships may sum to anything from k times that on: the
// indicator is 1 of the nearest alone; of two that no comparison decides between it is .38 each, with k = 3, and .1,
// with 32; and of three, whose ranks are 2, it is 0. So there is no part of the records that a sound round keeps,
// whatever they are: all of them may be the same one.
//
// The sum may be above 1, too. Memberships of ranks below 2 sum to at most 1: m ranks sum to at least m (m + 1)/2, so
// that there are two at most, which sum to 3 or more, and the indicator falls and is convex there. Each of the others
// adds what the indicator is at most from 2 on: with k = 4 records that are undecided between the two farthest
// centroids alone have 1.12.
func (j *Job) memberships() memberships {
	if j.argmin() != Rank {
		return memberships{-signError, mostLost, 0}
	}
	least, most := indicatorRange(j.K)
	return memberships{least - signError, float64(j.K) * (least - signError), float64(j.K-1) * most}
}

// overlap bounds what memberships do to the sensitivity of a release, roundings and encryption's errors aside: the
// 2-norm of a record's, by rank with the signs' errors in each. Those of two records may have a negative product by
// rank, which adds at most as much again to the square where one replaces the other.
func (j *Job) overlap() float64 {
	if j.argmin() != Rank {
		return overlap(j.K)
	}
	norm := rankNorm(j.K) + math.Sqrt(float64(j.K))*signError
	if j.neighbours() == privacy.ReplaceOne {
		norm *= math.Sqrt2
	}
	return norm
}

// rankNorm bounds the 2-norm of a record's memberships by rank, beside errors, as memberships bounds their sum.
func rankNorm(k int) float64 {
	least, most := indicatorRange(k)
	most = max(most, -least)
	return math.Sqrt(1 + float64(float64(k-1)*most*most))
}

// indicatorRange is the least value of the indicator's polynomial at ranks from 1 to k and the most from 2 on, from a
// scan.
func indicatorRange(k int) (least, most float64) {
	const steps = 256 // a rank
	for step := range (k-1)*steps + 1 {
		y := indicator(k, 1+float64(step)/steps)
		least = min(least, y)
		if step >= steps {
			most = max(most, y)
		}
	}
	return least, most
}

// indicator is 1 at rank 1 and 0 at ranks 2 .. k.
func indicator(k int, rank float64) float64 {
	y := 1.0
	for i := 2; i <= k; i++ {
		y *= (float64(i) - rank) / float64(i-1)
	}
	return y
}

// ranks are the indicator's roots 2 .. k, in an order in which every subtree of a product tree has roots from all over:
// in their own order the products of some grow as k!/(k/2)!^2 does at ranks far away, and with them their errors.
func ranks(k int) []int {
	all := make([]int, 0, k-1)
	for i := 2; i <= k; i++ {
		all = append(all, i)
	}
	return apart(all)
}

// apart puts every second number first, in both halves again.
func apart(numbers []int) []int {
	if len(numbers) < 3 {
		return numbers
	}
	var halves [2][]int
	for i, n := range numbers {
		halves[i%2] = append(halves[i%2], n)
	}
	return append(apart(halves[0]), apart(halves[1])...)
}

// indicator returns, in row 0 of every matrix, 1 at the nearest centroid.
func (c *computer) indicator(w *scratch, r *rankPlan, g int) (*cipher, error) {
	lay, k := c.lay.rank, len(r.pairs)
	t := c.distances(w, r, g)
	h := c.ev.sign(w, t, r.sign)
	c.ev.free(t)
	c.params.lattice.AddConstant(h.c[0], 0.5*h.scale)
	sum, err := c.gather(w, h, lay.m*lay.k)
	if err != nil {
		return nil, err
	}
	// The rank of distance j is the sum of its column; the indicator is the product of (i - rank)/(i - 1) for
	// i = 2 .. k.
	l := sum.level()
	var factors []*cipher
	for _, i := range ranks(k) {
		f := w.newCipher(l)
		for side := range f.c {
			c.params.lattice.Scale(f.c[side], sum.c[side], -1)
		}
		root := float64(float64(i)*r.drawn()) + float64(k)*(1-r.drawn())/2
		c.params.lattice.AddConstant(f.c[0], root*sum.scale)
		f.scale = sum.scale * r.mean
		factors = append(factors, f)
	}
	c.ev.free(sum)
	return c.ev.tree(w, factors), nil
}

// distances returns, in slot (i, p, j), by how much point p is nearer to centroid i than to j: the comparison's part of
// encrypted columns times its gains, and that of the own ones in the clear.
func (c *computer) distances(w *scratch, r *rankPlan, g int) *cipher {
	lay, k := c.lay.rank, len(r.pairs)
	// fill writes f of each comparison in the slots of all points.
	fill := func(f func(q *pair, record int) float64) {
		clear(w.values)
		lay.points(g, c.lay.n, func(p, record int) {
			for i := range k {
				for j := range k {
					w.values[(i*lay.m+p)*k+j] = f(&r.pairs[i][j], record)
				}
			}
		})
	}
	l := c.params.MaxLevel() - 1
	sum := w.newZero(l)
	sum.scale = math.Exp2(r.scales.in) * float64(c.params.Q()[l])
	for h, enc := range c.cols.encrypted {
		if enc {
			fill(func(q *pair, _ int) float64 { return q.gain[h] })
			c.addMasked(w, sum, c.packed[h][g], w.values)
		}
	}
	t := c.ev.rescale(w, sum)
	c.ev.free(sum)
	fill(func(q *pair, record int) float64 {
		s := q.offset
		for h, x := range c.own {
			if !c.cols.encrypted[h] {
				s += float64(q.gain[h] * x[record])
			}
		}
		return s
	})
	m := w.encode(w.values, t.level(), t.scale)
	c.params.lattice.Add(t.c[0], t.c[0], m)
	w.Room().Free(m)
	return t
}

// selectCluster masks all but cluster j's column of row 0.
func (c *computer) selectCluster(w *scratch, first *cipher, g, j int) *cipher {
	lay, l := c.lay.rank, aggregateLevel+1
	clear(w.values)
	lay.points(g, c.lay.n, func(p, _ int) { w.values[p*lay.k+j] = 1 })
	m := c.masked(w, first, w.values, float64(c.params.Q()[l]))
	defer c.ev.free(m)
	return c.ev.rescale(w, m)
}
