package ckks

import (
	"context"
	"math"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
)

// Comparison by rank is the method of CKKS-V, sections 2.3 and 3.1 (after
// Mazzone et al. 2024), kept for comparison: a point takes k^2 slots, a k x k
// matrix of comparisons of every squared distance with every other; the sum of
// a column is the rank of a distance, and an indicator polynomial of rank 1 is
// the one-hot nearest centroid. Matrices of m points are stored row by row side
// by side, without padding to powers of two: entry (i, j) of point p is in slot
// (i m + p) k + j.

// maxRankClusters bounds k for comparison by rank. It is dear: with k = 16 it sends 316 MB where pairs send 25, and
// takes 2 GB of memory, with k = 32 it takes 3.
const maxRankClusters = 32

// rankScale is the scale of columns on their way to a squared distance.
const rankScale = 1 << 31

// rankSignFor is the sign for so many clusters. With 8 in the plane a fourth to four fifths of the records have a
// nearest one by the less sharp sign, with 16 a seventh to a half, which does not pass the check of totals.
func rankSignFor(k int) *composite {
	if k > 6 {
		return sharpRankSign
	}
	return rankSign
}

// rankChain has, above the levels of the comparison, one for the masks that
// select a cluster and two pairs of primes: for squaring and, above it, for
// selecting points, which lose a pair each.
func rankChain(k int) Chain {
	return Chain{LogN: 15, Levels: rankSignFor(k).depth() + treeDepth(k-1) + 1, LogLevel: 29, LogP: []int{30, 30, 30, 30},
		LogTop: []int{24, 24, 24, 24}}
}

// pairScale is the product of the primes of level l and the one below.
func (p *parameters) pairScale(l int) float64 {
	return float64(p.Q()[l]) * float64(p.Q()[l-1])
}

// rescalePair divides a, which it frees, by the primes of its level and the one
// below.
func (e *evaluator) rescalePair(w *scratch, a *cipher) *cipher {
	b := e.rescale(w, a)
	c := e.rescale(w, b)
	e.free(a, b)
	return c
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
		one, err := c.masked(w, c.tops[h][g/(r.k*r.k)], w.values, c.params.pairScale(top))
		if err != nil {
			return err
		}
		x := c.ev.rescalePair(w, one)
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
func (c *computer) masked(w *scratch, a *cipher, slots []float64, scale float64) (*cipher, error) {
	mask := w.encode(slots, a.level(), scale)
	out := w.newCipher(a.level())
	out.scale = a.scale * scale
	c.params.lattice.Factor(mask)
	for i := range out.c {
		c.params.lattice.Multiply(out.c[i], a.c[i], mask)
	}
	w.Room().Free(mask)
	w.ops.Plaintexts++
	return out, nil
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
	centroids [][]float64
	// span bounds every difference of squared distances; the squares are
	// multiplied by gain before they are rescaled.
	span   float64
	gain   float64
	scales signScales
	// mean is the geometric mean of the indicator's denominators.
	mean float64
}

func planRank(p *parameters, cols columns, centroids [][]float64) *rankPlan {
	k := len(centroids)
	r := &rankPlan{centroids: centroids, mean: 1}
	for i := 2; i < k; i++ {
		r.mean *= math.Pow(float64(i), 1/float64(k-1))
	}
	for i := range centroids {
		for j := range i {
			var linear, offset float64
			for h := range cols.d {
				linear += 2 * math.Abs(centroids[i][h]-centroids[j][h])
				offset += float64(centroids[i][h]*centroids[i][h]) - float64(centroids[j][h]*centroids[j][h])
			}
			r.span = max(r.span, (linear+math.Abs(offset))/(1-2*inputSpare))
		}
	}
	if r.span == 0 {
		r.span = 1
	}
	base := aggregateLevel + 1
	r.scales = rankSignFor(k).plan(p, base, treeDepth(k-1), r.mean)
	q := p.pairScale(p.MaxLevel() - 2)
	r.gain = math.RoundToEven(math.Exp2(r.scales.in) * q / (rankScale * rankScale * r.span))
	return r
}

// rankMembers computes the memberships out[cluster][packed ciphertext].
func (c *computer) rankMembers(ctx context.Context, pool *engine.Pool, r *rankPlan) ([][]*cipher, error) {
	k := len(r.centroids)
	out := make([][]*cipher, k)
	for j := range out {
		out[j] = make([]*cipher, c.lay.batches)
	}
	return out, c.each(ctx, pool, c.lay.batches, func(w *scratch, g int) error {
		first, err := c.indicator(w, r, g)
		for j := 0; j < k && err == nil; j++ {
			out[j][g], err = c.selectCluster(w, first, g, j)
		}
		if err == nil {
			c.ev.free(first)
		}
		return err
	})
}

// leastMembership is the least that a record's membership in a cluster may be. By rank it is that of the indicator
// between two ranks: of a record that a comparison leaves undecided.
func (j *Job) leastMembership() float64 {
	if j.Argmin == Rank {
		return leastIndicator(j.K) - signError
	}
	return -signError
}

// leastIndicator is the least value of the indicator's polynomial at ranks from 1 to k, from a scan.
func leastIndicator(k int) (least float64) {
	const steps = 256 // a rank
	for step := range (k-1)*steps + 1 {
		least = min(least, indicator(k, 1+float64(step)/steps))
	}
	return least
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
	lay, k := c.lay.rank, len(r.centroids)
	t, err := c.distances(w, r, g)
	if err != nil {
		return nil, err
	}
	h := c.ev.sign(w, t, rankSignFor(k))
	c.ev.free(t)
	c.params.lattice.AddConstant(h.c[0], 0.5*h.scale)
	sum, err := c.gather(w, h, lay.m*lay.k)
	if err != nil {
		return nil, err
	}
	// The rank of distance j is the sum of its column plus one half; the
	// indicator is the product of (i - rank)/(i - 1) for i = 2 .. k.
	l := sum.level()
	var factors []*cipher
	for _, i := range ranks(k) {
		f := w.newCipher(l)
		for side := range f.c {
			c.params.lattice.Scale(f.c[side], sum.c[side], -1)
		}
		c.params.lattice.AddConstant(f.c[0], (float64(i)-0.5)*sum.scale)
		f.scale = sum.scale * r.mean
		factors = append(factors, f)
	}
	c.ev.free(sum)
	return c.ev.tree(w, factors), nil
}

// distances returns (d_j - d_i)/span in slot (i, p, j), for the squared
// distances d of point p to the centroids: rows and columns are encoded with
// the centroids in the clear, and squared.
func (c *computer) distances(w *scratch, r *rankPlan, g int) (*cipher, error) {
	lay, k, d := c.lay.rank, len(r.centroids), c.cols.d
	l := c.params.MaxLevel() - 2
	lattice := c.params.lattice
	// fill writes f(i, record, j) in the slots of all points.
	fill := func(f func(i, record, j int) float64) {
		clear(w.values)
		lay.points(g, c.lay.n, func(p, record int) {
			for i := range k {
				for j := range k {
					w.values[(i*lay.m+p)*k+j] = f(i, record, j)
				}
			}
		})
	}
	var diffs []*cipher
	for h := range d {
		if !c.cols.encrypted[h] {
			continue
		}
		x := c.packed[h][g]
		for _, byColumn := range []bool{true, false} {
			fill(func(i, _, j int) float64 {
				if byColumn {
					return r.centroids[j][h]
				}
				return r.centroids[i][h]
			})
			m := w.encode(w.values, l, x.scale)
			diff := w.newCipher(l)
			rns.Copy(diff.c[1], x.c[1])
			lattice.Sub(diff.c[0], x.c[0], m)
			w.Room().Free(m)
			times := 1
			if !byColumn {
				times = -1
			}
			if diffs == nil {
				c.ev.product(w, diff, diff, times)
			} else {
				c.ev.addProduct(w, diff, diff, times)
			}
			diffs = append(diffs, diff)
		}
	}
	w.ScaleProduct(r.gain)
	half := c.ev.finish(w, unfinished{l, rankScale * rankScale * r.gain})
	c.ev.free(diffs...)
	t := c.ev.rescale(w, half)
	c.ev.free(half)
	fill(func(i, record, j int) float64 {
		var s float64
		for h := range d {
			if !c.cols.encrypted[h] {
				a, b := c.own[h][record]-r.centroids[j][h], c.own[h][record]-r.centroids[i][h]
				s += float64(a*a) - float64(b*b)
			}
		}
		return s
	})
	m := w.encode(w.values, t.level(), t.scale)
	lattice.Add(t.c[0], t.c[0], m)
	w.Room().Free(m)
	t.scale *= r.span
	return t, nil
}

// selectCluster masks all but cluster j's column of row 0.
func (c *computer) selectCluster(w *scratch, first *cipher, g, j int) (*cipher, error) {
	lay, l := c.lay.rank, aggregateLevel+1
	clear(w.values)
	lay.points(g, c.lay.n, func(p, _ int) { w.values[p*lay.k+j] = 1 })
	m, err := c.masked(w, first, w.values, float64(c.params.Q()[l]))
	if err != nil {
		return nil, err
	}
	defer c.ev.free(m)
	return c.ev.rescale(w, m), nil
}
