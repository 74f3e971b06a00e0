// Package instance makes the size-constrained assignment problems that flow is
// measured on: halves of public data sets and Gaussian blobs, columns scaled to
// [-1, 1], sizes from ceil(n/(1.25 k)) to floor(1.25 n/k), centroids random in
// the box or three Lloyd steps later. Draws follow the C++ standard library, so
// that a C++ program with the same seeds has the same instances.
package instance

import (
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mathext/prng"

	"github.com/cohort-engine/cohort/flow"
	"github.com/cohort-engine/cohort/kernels"
)

// fractionBits is the grid of all instances.
const fractionBits = 16

// Seeds of the half that is kept, of the centroids and of the blobs.
const (
	halfSeed     = 11
	centroidSeed = 99
	blobSeed     = 7
)

// Set is a data set with columns scaled to [-1, 1], row-major.
type Set struct {
	Name    string
	N, D, K int
	Rows    []float64
}

// Half keeps a random half of the n rows of a data set and scales its columns.
func Half(name string, rows []float64, n, d, k int) *Set {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	g := newTwister(halfSeed)
	g.shuffle(order)
	s := &Set{Name: name, N: n / 2, D: d, K: k}
	for _, i := range order[:s.N] {
		s.Rows = append(s.Rows, rows[i*d:(i+1)*d]...)
	}
	s.scale()
	return s
}

// Blobs draws n points from five Gaussians of deviation 0.12 in the plane.
func Blobs(name string, n int) *Set { return Mixture(name, n, 2, 5) }

// Mixture draws n points in d dimensions from k Gaussians of deviation 0.12
// around centres uniform in the box.
func Mixture(name string, n, d, k int) *Set {
	g := newTwister(blobSeed)
	centres := make([]float64, k*d)
	for i := range centres {
		centres[i] = g.uniform()
	}
	s := &Set{Name: name, N: n, D: d, K: k, Rows: make([]float64, 0, n*d)}
	for range n {
		c := int(g.Uint64() % uint64(k))
		for j := range d {
			s.Rows = append(s.Rows, centres[c*d+j]+float64(g.normal()*0.12))
		}
	}
	s.scale()
	return s
}

func (s *Set) scale() {
	for j := range s.D {
		lo, hi := math.Inf(1), math.Inf(-1)
		for i := range s.N {
			lo, hi = min(lo, s.Rows[i*s.D+j]), max(hi, s.Rows[i*s.D+j])
		}
		for i := range s.N {
			x := &s.Rows[i*s.D+j]
			if hi > lo {
				*x = 2*(*x-lo)/(hi-lo) - 1
			} else {
				*x = 0
			}
		}
	}
}

// Centroids draws K centroids uniform in the box and moves them by the given
// number of Lloyd steps.
func (s *Set) Centroids(steps int) []float64 {
	g := newTwister(centroidSeed)
	c := make([]float64, s.K*s.D)
	for i := range c {
		c[i] = g.uniform()
	}
	sums, counts := make([]float64, len(c)), make([]int, s.K)
	for range steps {
		clear(sums)
		clear(counts)
		for i := range s.N {
			x := s.Rows[i*s.D : (i+1)*s.D]
			best, label := math.Inf(1), 0
			for a := range s.K {
				var t float64
				for j, v := range x {
					e := v - c[a*s.D+j]
					t += float64(e * e)
				}
				if t < best {
					best, label = t, a
				}
			}
			counts[label]++
			for j, v := range x {
				sums[label*s.D+j] += v
			}
		}
		for a, count := range counts {
			for j := range s.D {
				if count > 0 {
					c[a*s.D+j] = sums[a*s.D+j] / float64(count)
				}
			}
		}
	}
	return c
}

// Means returns the means of the clusters of an assignment of the set.
func (s *Set) Means(res *flow.Result) []float64 {
	c, counts := make([]float64, s.K*s.D), make([]float64, s.K)
	for i, label := range res.Labels {
		counts[label]++
		for j := range s.D {
			c[int(label)*s.D+j] += s.Rows[i*s.D+j]
		}
	}
	for a, count := range counts {
		for j := range s.D {
			if count > 0 {
				c[a*s.D+j] /= count
			}
		}
	}
	return c
}

// Problem is the assignment of the set to K centroids, given in row-major order,
// with sizes within a factor 1.25 of the mean.
func (s *Set) Problem(centroids []float64) *flow.Problem {
	mean := float64(s.N) / float64(s.K)
	return s.Bounded(centroids, int(math.Ceil(mean/1.25-1e-9)), int(math.Floor(1.25*mean+1e-9)))
}

// Bounded is the assignment of the set with sizes from lo to hi.
func (s *Set) Bounded(centroids []float64, lo, hi int) *flow.Problem {
	points := kernels.NewPanels(s.N, s.D)
	kernels.Pack(points, truncate(s.Rows))
	return &flow.Problem{
		Points: *points, Centroids: truncate(centroids), FractionBits: fractionBits,
		Lo: slices.Repeat([]int{lo}, s.K), Hi: slices.Repeat([]int{hi}, s.K),
	}
}

// truncate moves values onto the grid, toward zero.
func truncate(x []float64) []float32 {
	g := make([]float32, len(x))
	for i, v := range x {
		g[i] = float32(math.Ldexp(math.Trunc(math.Ldexp(min(1, max(-1, v)), fractionBits)), -fractionBits))
	}
	return g
}

// twister draws like std::mt19937_64 under std::uniform_real_distribution,
// std::normal_distribution and std::shuffle of libstdc++.
type twister struct {
	*prng.MT19937_64
	saved float64
	held  bool
}

func newTwister(seed uint64) *twister {
	t := &twister{MT19937_64: prng.NewMT19937_64()}
	t.Seed(seed)
	return t
}

// canonical is uniform in [0, 1).
func (t *twister) canonical() float64 {
	u := math.Ldexp(float64(t.Uint64()), -64)
	if u >= 1 {
		u = math.Nextafter(1, 0)
	}
	return u
}

// uniform is uniform in [-1, 1).
func (t *twister) uniform() float64 { return float64(t.canonical()*2) - 1 }

// normal is standard normal, by Marsaglia's polar method.
func (t *twister) normal() float64 {
	if t.held {
		t.held = false
		return t.saved
	}
	for {
		x, y := t.uniform(), t.uniform()
		r := float64(x*x) + float64(y*y)
		if r > 1 || r == 0 {
			continue
		}
		m := math.Sqrt(-2 * math.Log(r) / r)
		t.saved, t.held = x*m, true
		return y * m
	}
}

// below is uniform in [0, n).
func (t *twister) below(n uint64) uint64 {
	hi, lo := bits.Mul64(t.Uint64(), n)
	if lo < n {
		for threshold := -n % n; lo < threshold; {
			hi, lo = bits.Mul64(t.Uint64(), n)
		}
	}
	return hi
}

// shuffle permutes s, two places for each draw.
func (t *twister) shuffle(s []int) {
	i := 1
	if len(s)%2 == 0 && len(s) > 1 {
		j := t.below(2)
		s[i], s[j] = s[j], s[i]
		i++
	}
	for ; i < len(s); i += 2 {
		b := uint64(i) + 2
		x := t.below((b - 1) * b)
		p, q := x/b, x%b
		s[i], s[p] = s[p], s[i]
		s[i+1], s[q] = s[q], s[i+1]
	}
}
