package dataset

import (
	"context"
	"fmt"
	"math"

	"github.com/cohort-engine/cohort/internal/fault"
)

// quantile is the 97.5% quantile of the normal distribution: the separation index leaves
// 2.5% of each cluster outside on either side.
const quantile = 1.959963984540054

// shapedCluster is an elliptical Gaussian cluster.
type shapedCluster struct {
	centre []float64
	axes   []float64 // rows are orthogonal, as long as the standard deviations along them
	cov    []float64 // d x d
}

// makeSynth follows genRandomClust of the R package clusterGeneration (Qiu and
// Joe, Journal of Classification 23, 2006): centres on the vertices of a row of
// simplices, covariances with variances uniform in [1, 10] along random axes; the
// simplices are as large as the closest pair of clusters needs to have the
// separation index J, and then each cluster swells until its own nearest
// neighbour has it too. The whole is rotated, the columns are shuffled, and the
// records are dealt with probabilities uniform in 1 +- spread before they are
// normalised.
func makeSynth(ctx context.Context, g Generator) (drawer, error) {
	if g.Separation >= 1 {
		return nil, fault.Range("separation", g.Separation, "below 1, it is an index")
	}
	if g.Spread >= 1 {
		return nil, fault.Range("spread", g.Spread, "below 1, it is a share of the mean size")
	}
	const most = 1 << 22
	d, k := g.D, g.K
	if d < 2 {
		return nil, fault.Range("d", d, "at least 2")
	}
	if k > most/d/d || k*k > most/d {
		return nil, fault.Request(builtinPrefix+"synth",
			fmt.Sprintf("%d clusters in %d dimensions are too many to separate", k, d), "lower k or d, or use timesynth")
	}
	r := newSource(g.Seed, "synth")
	clusters := make([]shapedCluster, k)
	vertices := simplices(k, d)
	for c := range clusters {
		clusters[c] = shapedCluster{centre: vertices[c], axes: packageAxes(r, d)}
		for a := range d {
			sd := math.Sqrt(1 + float64(9*r.uniform()))
			for h := range d {
				clusters[c].axes[a*d+h] *= sd
			}
		}
		clusters[c].cov = gram(clusters[c].axes, d)
	}
	if err := separate(ctx, clusters, g.Separation); err != nil {
		return nil, err
	}
	turn := packageAxes(r, d)
	order := make([]int, d)
	for h := range order {
		order[h] = h
	}
	shuffle(r, order)
	rotate := func(rows []float64) {
		for ; len(rows) > 0; rows = rows[d:] {
			turned := make([]float64, d)
			for h := range turned {
				turned[h] = dot(rows[:d], turn[order[h]*d:(order[h]+1)*d])
			}
			copy(rows, turned)
		}
	}
	share := make([]float64, k) // of the records in clusters up to this one
	sum := 0.0
	for c := range clusters {
		rotate(clusters[c].centre)
		rotate(clusters[c].axes)
		sum += 1 + float64(g.Spread*float64(2*r.uniform()-1))
		share[c] = sum
	}
	return func(_ int, row []float64) int32 {
		c, u := 0, float64(r.uniform()*sum)
		for c < k-1 && u >= share[c] {
			c++
		}
		copy(row, clusters[c].centre)
		for a := range d {
			z := r.normal()
			for h := range row {
				row[h] += float64(z * clusters[c].axes[a*d+h])
			}
		}
		return int32(c)
	}, nil
}

// packageAxes returns d orthonormal rows as the package draws them: the reflection
// that takes the first axis to x/|x|, x uniform in the unit cube, which it gets from
// the QR factors of x. Far from uniform over rotations, it leaves most axes near
// those of the coordinates, and with it the ranges of the columns wide.
func packageAxes(r *source, d int) []float64 {
	v := make([]float64, d)
	for h := range v {
		v[h] = r.uniform()
	}
	v[0] += math.Sqrt(dot(v, v))
	length := dot(v, v)
	q := make([]float64, d*d)
	for i := range d {
		for j := range d {
			q[i*d+j] = 2 * v[i] / length * v[j]
		}
		q[i*d+i]--
	}
	return q
}

// simplices returns k points at distances of at least 2: the vertices of a
// regular simplex in d dimensions whose first edge lies along the first axis, and
// copies of all but its first vertex shifted along that axis by 2, 4, ....
func simplices(k, d int) [][]float64 {
	out := make([][]float64, 0, k)
	for v := range min(k, d+1) {
		p := make([]float64, d)
		switch {
		case v == 0:
			p[0] = -1
		case v == 1:
			p[0] = 1
		default:
			// Above the centre of those before it.
			rest := 4.0
			for h := range v - 1 {
				for _, o := range out {
					p[h] += o[h]
				}
				p[h] /= float64(v)
				away := out[0][h] - p[h]
				rest -= float64(away * away)
			}
			p[v-1] = math.Sqrt(rest)
		}
		out = append(out, p)
	}
	for v := len(out); v < k; v++ {
		p := append([]float64(nil), out[1+(v-d-1)%d]...)
		p[0] += float64(2 * (1 + (v-d-1)/d))
		out = append(out, p)
	}
	return out
}

// gram is A'A for the rows A: the covariance of A'z.
func gram(rows []float64, d int) []float64 {
	s := make([]float64, d*d)
	for ; len(rows) > 0; rows = rows[d:] {
		for i, x := range rows[:d] {
			for j, y := range rows[:d] {
				s[i*d+j] += float64(x * y)
			}
		}
	}
	return s
}

// separate scales centres and clusters so that the separation index of each
// cluster and its nearest neighbour is J = (gap - q)/(gap + q), where gap is the
// distance of the projected centres in sums of standard deviations along the best
// direction, and q the quantile: the gap has to be q (1+J)/(1-J).
func separate(ctx context.Context, clusters []shapedCluster, index float64) error {
	want := quantile * (1 + index) / (1 - index)
	k := len(clusters)
	gaps := make([]float64, k*k)
	set := func(i, j int) {
		gaps[i*k+j] = clusters[i].gap(&clusters[j])
		gaps[j*k+i] = gaps[i*k+j]
	}
	closest := math.Inf(1)
	for i := range k {
		if err := ctx.Err(); err != nil {
			return err
		}
		for j := range i {
			set(i, j)
			closest = min(closest, gaps[i*k+j])
		}
	}
	for i := range clusters {
		for h := range clusters[i].centre {
			clusters[i].centre[h] *= want / closest
		}
	}
	for i := range gaps {
		gaps[i] *= want / closest
	}
	nearest := func(i int) float64 {
		m := math.Inf(1)
		for j := range k {
			if j != i {
				m = min(m, gaps[i*k+j])
			}
		}
		return m
	}
	// The loneliest cluster swells first; one that has swollen has a neighbour at
	// the right distance, which only a neighbour's swelling can bring closer.
	swollen := make([]bool, k)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		lone, gap := -1, want*(1+1e-9)
		for i := range k {
			if g := nearest(i); !swollen[i] && g > gap {
				lone, gap = i, g
			}
		}
		if lone < 0 || k < 2 {
			return nil
		}
		swollen[lone] = true
		swell(&clusters[lone], want, func() float64 {
			for j := range k {
				if j != lone {
					set(lone, j)
				}
			}
			return nearest(lone)
		})
	}
}

// swell enlarges a cluster until its nearest neighbour, whose gap nearest measures anew, is as near as wanted.
func swell(c *shapedCluster, want float64, nearest func() float64) {
	axes, cov := append([]float64(nil), c.axes...), append([]float64(nil), c.cov...)
	try := func(factor float64) float64 {
		for i, x := range axes {
			c.axes[i] = factor * x
		}
		for i, x := range cov {
			c.cov[i] = factor * factor * x
		}
		return nearest()
	}
	lo, hi := 1.0, 2.0
	for try(hi) > want {
		lo, hi = hi, 2*hi
	}
	for range 40 {
		if mid := (lo + hi) / 2; try(mid) > want {
			lo = mid
		} else {
			hi = mid
		}
	}
	try(lo) // of the two the one that stays apart
}

// gap is the largest a'(m1-m2) / (sd1(a) + sd2(a)) over directions a, found by
// a = (S1/sd1 + S2/sd2)^-1 (m1-m2), which is where the gradient vanishes.
func (c *shapedCluster) gap(o *shapedCluster) float64 {
	d := len(c.centre)
	delta := make([]float64, d)
	for h := range delta {
		delta[h] = c.centre[h] - o.centre[h]
	}
	a := append([]float64(nil), delta...)
	best := 0.0
	mixed := make([]float64, d*d)
	for range 60 {
		s1, s2 := math.Sqrt(quadratic(c.cov, a)), math.Sqrt(quadratic(o.cov, a))
		g := dot(a, delta) / (s1 + s2)
		if g <= best*(1+1e-12) {
			return max(g, best)
		}
		best = g
		for i := range mixed {
			mixed[i] = float64(c.cov[i]/s1) + float64(o.cov[i]/s2)
		}
		copy(a, delta)
		solve(mixed, a)
	}
	return best
}

// quadratic is a'Sa.
func quadratic(s, a []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x * dot(s[i*len(a):(i+1)*len(a)], a))
	}
	return sum
}

// solve replaces b by S^-1 b for a positive definite S, which it overwrites with
// its Cholesky factor. It is written out, as gonum's adds in an order that depends on
// the architecture, and generated sets have the same bits on all.
func solve(s, b []float64) {
	d := len(b)
	for j := range d {
		for i := j; i < d; i++ {
			x := s[i*d+j] - dot(s[i*d:i*d+j], s[j*d:j*d+j])
			if i == j {
				s[j*d+j] = math.Sqrt(x)
			} else {
				s[i*d+j] = x / s[j*d+j]
			}
		}
	}
	for i := range d {
		b[i] = (b[i] - dot(s[i*d:i*d+i], b[:i])) / s[i*d+i]
	}
	for i := d - 1; i >= 0; i-- {
		for j := i + 1; j < d; j++ {
			b[i] -= float64(s[j*d+i] * b[j])
		}
		b[i] /= s[i*d+i]
	}
}
