package dataset

import (
	"context"
	"math"
	"testing"
)

// Vertices of neighbouring simplices have distance 2, no two are closer.
func TestSimplices(t *testing.T) {
	for _, c := range []struct{ k, d int }{{2, 2}, {3, 2}, {20, 2}, {4, 16}, {20, 3}, {17, 16}, {20, 18}} {
		v := simplices(c.k, c.d)
		if len(v) != c.k {
			t.Fatalf("%d points, want %d", len(v), c.k)
		}
		for i := range v {
			nearest := math.Inf(1)
			for j := range v {
				if i != j {
					sum := 0.0
					for h := range v[i] {
						sum += (v[i][h] - v[j][h]) * (v[i][h] - v[j][h])
					}
					nearest = min(nearest, math.Sqrt(sum))
				}
			}
			if math.Abs(nearest-2) > 1e-9 {
				t.Errorf("k %d d %d: point %d has its nearest at %v, want 2", c.k, c.d, i, nearest)
			}
		}
	}
}

// The gap of two clusters is the largest over a fine fan of directions, and 6 for
// N(0,1) and N(6,1), whose index is 0.2097 (Qiu and Joe 2006).
func TestGapIsTheLargestOverDirections(t *testing.T) {
	r := newSource(5, "test")
	for range 50 {
		var pair [2]shapedCluster
		for i := range pair {
			axes := randomAxes(r, 2)
			for h := range axes {
				axes[h] *= 1 + 3*float64(h/2)*r.uniform()
			}
			pair[i] = shapedCluster{centre: []float64{10 * r.uniform(), 10 * r.uniform()}, axes: axes, cov: gram(axes, 2)}
		}
		best := 0.0
		for step := range 100000 {
			a := []float64{math.Cos(math.Pi * float64(step) / 1e5), math.Sin(math.Pi * float64(step) / 1e5)}
			along := a[0]*(pair[0].centre[0]-pair[1].centre[0]) + a[1]*(pair[0].centre[1]-pair[1].centre[1])
			best = max(best, math.Abs(along)/(math.Sqrt(quadratic(pair[0].cov, a))+math.Sqrt(quadratic(pair[1].cov, a))))
		}
		if got := pair[0].gap(&pair[1]); math.Abs(got-best) > 1e-6*best {
			t.Errorf("gap %v, largest over directions %v", got, best)
		}
	}
	unit := shapedCluster{centre: []float64{0, 0}, cov: []float64{1, 0, 0, 1}}
	far := shapedCluster{centre: []float64{0, 6}, cov: []float64{1, 0, 0, 1}}
	g := unit.gap(&far)
	if j := (g - quantile) / (g + quantile); math.Abs(g-3) > 1e-12 || math.Abs(j-0.2096862) > 1e-6 {
		t.Errorf("gap %v, index %v", g, j)
	}
}

// Each cluster's nearest neighbour has the index that was asked for.
func TestClustersAreSeparatedAsAsked(t *testing.T) {
	for _, c := range []struct {
		k, d  int
		index float64
	}{{2, 2, 0.21}, {10, 2, 0.7}, {20, 6, 0.21}, {8, 16, 0.5}} {
		r := newSource(3, "test")
		clusters := make([]shapedCluster, c.k)
		for i, v := range simplices(c.k, c.d) {
			axes := randomAxes(r, c.d)
			for h := range axes {
				axes[h] *= math.Sqrt(1 + 9*float64(h/c.d)/float64(c.d))
			}
			clusters[i] = shapedCluster{centre: v, axes: axes, cov: gram(axes, c.d)}
		}
		if err := separate(context.Background(), clusters, c.index); err != nil {
			t.Fatal(err)
		}
		loose := 0
		for i := range clusters {
			nearest := 1.0
			for j := range clusters {
				if i != j {
					g := clusters[i].gap(&clusters[j])
					nearest = min(nearest, (g-quantile)/(g+quantile))
				}
			}
			if nearest < c.index-1e-6 {
				t.Errorf("k %d d %d: cluster %d has a neighbour at index %v, want %v", c.k, c.d, i, nearest, c.index)
			}
			if nearest > c.index+1e-6 {
				loose++
			}
		}
		if loose > 0 {
			t.Errorf("k %d d %d: %d clusters have no neighbour at index %v", c.k, c.d, loose, c.index)
		}
	}
}

// The axes of the package are orthonormal and the first leads into the cube.
func TestPackageAxes(t *testing.T) {
	r := newSource(9, "test")
	for _, d := range []int{2, 3, 20} {
		q := packageAxes(r, d)
		for i := range d {
			if q[i] <= 0 {
				t.Errorf("d %d: the first axis is %v", d, q[:d])
			}
			for j := range d {
				want := 0.0
				if i == j {
					want = 1
				}
				if got := dot(q[i*d:(i+1)*d], q[j*d:(j+1)*d]); math.Abs(got-want) > 1e-12 {
					t.Errorf("d %d: axes %d and %d have product %v", d, i, j, got)
				}
			}
		}
	}
}

// Cluster sizes stay within the spread, but for the chance of the deal.
func TestSpreadOfSizes(t *testing.T) {
	const n, k = 100000, 10
	table, err := Generate(context.Background(), "synth", Generator{N: n, K: k, Spread: 0.5, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	var sizes [k]float64
	for _, l := range table.Labels {
		sizes[l]++
	}
	lo, hi := sizes[0], sizes[0]
	for _, s := range sizes {
		lo, hi = min(lo, s), max(hi, s)
	}
	// Proportions in [0.5, 1.5] differ by a factor of 3 at most; the chance that ten
	// of them stay within 10% of each other is below 1e-6.
	if hi/lo > 3.2 || hi/lo < 1.1 {
		t.Errorf("sizes %v", sizes)
	}
}
