package staged

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/kernels"
)

// offsetsOf is the direct form of offsets.add: float64 distances, every offset
// cut to its radius.
func offsetsOf(p *kernels.Panels, centroids []float32,
	radius []float64) (sums []float64, counts []int64, clear []bool) {
	d, k := p.D, len(radius)
	sums, counts, clear = make([]float64, k*d), make([]int64, k), make([]bool, p.N)
	for i := range p.N {
		x := p.Point(i, nil)
		best, next, at := math.Inf(1), math.Inf(1), 0
		for j := range k {
			s := 0.0
			for h := range d {
				t := float64(x[h]) - float64(centroids[j*d+h])
				s += t * t
			}
			if s < best {
				best, next, at = s, best, j
			} else {
				next = min(next, s)
			}
		}
		clear[i] = next-best > 1e-4
		factor := min(1, radius[at]/math.Sqrt(best))
		for h := range d {
			sums[at*d+h] += factor * (float64(x[h]) - float64(centroids[at*d+h]))
		}
		counts[at]++
	}
	return sums, counts, clear
}

func newSums(k, d int) offsetSums { return offsetSums{make([]int64, k*d), make([]int64, k)} }

// TestOffsets compares sums and counts of cut offsets with the direct form.
func TestOffsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pool := engine.NewPool(2)
	defer pool.Close()
	for _, d := range []int{1, 2, 3, 17, 100} {
		n, k := 2000, 5
		p := datasettest.GridPanels(rng, n, d)
		centroids := make([]float32, k*d)
		for i := range centroids {
			centroids[i] = OnGrid(rng.Float64()*2-1, datasettest.Bits)
		}
		radius := make([]float64, k)
		for j := range radius {
			radius[j] = rng.Float64() * math.Sqrt(float64(d))
		}
		radius[0] = math.Inf(1)
		want, counts, sure := offsetsOf(p, centroids, radius)
		unsure := int64(0)
		for _, ok := range sure {
			if !ok {
				unsure++
			}
		}
		o, got := NewOffsets(pool, k, d, datasettest.Bits), newSums(k, d)
		if err := o.add(context.Background(), p, nil, centroids, radius, got); err != nil {
			t.Fatal(err)
		}
		for j := range k {
			if diff := got.counts[j] - counts[j]; diff > unsure || -diff > unsure {
				t.Errorf("d=%d: cluster %d counts %d, directly %d", d, j, got.counts[j], counts[j])
			}
			for h := range d {
				// Truncation loses less than a grid unit a record.
				if got, want := float64(got.sums[j*d+h])/(1<<datasettest.Bits),
					want[j*d+h]; math.Abs(got-want) > float64(n)/(1<<datasettest.Bits)+2*float64(unsure)+1e-3 {
					t.Errorf("d=%d: sum of cluster %d along %d is %v, directly %v", d, j, h, got, want)
				}
			}
		}
	}
}

// TestOffsetSensitivity adds one record, often an extreme one, and measures the
// change before noise: one cluster, at most the radius in L2, count 1.
func TestOffsetSensitivity(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pool := engine.NewPool(1)
	defer pool.Close()
	for trial := range 300 {
		d, k, n := []int{1, 2, 5, 20, 60}[trial%5], 3, 40
		p := datasettest.GridPanels(rng, n+1, d)
		centroids := make([]float32, k*d)
		for i := range centroids {
			centroids[i] = OnGrid(rng.Float64()*2-1, datasettest.Bits)
		}
		radius := []float64{0.01 + rng.Float64(), 0.01 + rng.Float64(), 3 * rng.Float64()}
		before, after := newSums(k, d), newSums(k, d)
		o := NewOffsets(pool, k, d, datasettest.Bits)
		without := p.Slice(0, n)
		if err := o.add(context.Background(), &without, nil, centroids, radius, before); err != nil {
			t.Fatal(err)
		}
		if err := o.add(context.Background(), p, nil, centroids, radius, after); err != nil {
			t.Fatal(err)
		}
		changed := 0
		for j := range k {
			norm := int64(0)
			for h := range d {
				c := after.sums[j*d+h] - before.sums[j*d+h]
				norm += c * c
			}
			diff := after.counts[j] - before.counts[j]
			if norm == 0 && diff == 0 {
				continue
			}
			changed++
			if length := math.Sqrt(float64(norm)) / (1 << datasettest.Bits); length > radius[j] {
				t.Errorf("d=%d: one record moves the sum of cluster %d by %v, radius %v", d, j, length, radius[j])
			}
			if diff != 1 {
				t.Errorf("d=%d: one record changes the count of cluster %d by %d", d, j, diff)
			}
		}
		if changed != 1 {
			t.Errorf("one record changes %d clusters", changed)
		}
	}
}
