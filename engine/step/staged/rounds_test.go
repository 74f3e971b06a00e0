package staged_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// TestReleasedSensitivities adds one extreme record to every release of this
// package and measures the change before noise against the sensitivity that the
// scale is made for. The noise is that of the same seed on both sides, so it
// cancels.
func TestReleasedSensitivities(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	const n, k = 400, 3
	for trial := range 12 {
		d := 2 + trial%5
		p := datasettest.GridPanels(rng, n+1, d)
		extreme := make([]float32, d)
		for h := range extreme {
			extreme[h] = float32(2*rng.IntN(2) - 1)
		}
		p.Set(n, extreme)
		without := p.Slice(0, n)
		l := staged.Share{Gaussian: true, Total: 1}
		radius := []float64{0.4, 0.9, 2}
		scales := make([]staged.Scales, k)
		centroids := make([]float32, k*d)
		for i := range centroids {
			centroids[i] = staged.OnGrid(2*rng.Float64()-1, datasettest.Bits)
		}
		var means, levels, sums, counts [2][]float64
		for i, records := range []*kernels.Panels{&without, p} {
			f := stagedtest.Plan(t, &without, k) // n is public and the same
			mean, level, round := f.AddMean(l), f.AddCounts("level", "tree counts per level", l, 8),
				f.AddRound("round 1", l, 3)
			for j := range scales {
				scales[j] = f.RelativeScales(l, radius[j], n/k)
			}
			if level.Scale != 1 {
				t.Errorf("scale %v of noise for sensitivity 1 and mu 1", level.Scale)
			}
			stagedtest.OnParty(t, f, records, func(ctx context.Context, p *staged.Party) error {
				var err error
				if means[i], err = p.PrivateMean(ctx, mean); err != nil {
					return err
				}
				paths, err := synopsis.MidpointPaths(ctx, p.Pool(), p.Records, p.FractionBits, min(d, 3), 1)
				if err != nil {
					return err
				}
				w := synopsis.NewWalker(paths)
				levels[i], err = p.ReleaseCounts(ctx, level, 1<<min(d, 3),
					func(words []int64) error { return w.Count(ctx, p.Pool(), words) })
				if err != nil {
					return err
				}
				sums[i], counts[i], err = p.RelativeRound(ctx, staged.NewOffsets(p.Pool(), k, d, p.FractionBits),
					round, centroids,
					radius, scales)
				return err
			})
		}
		// The sum of all records: at most sqrt d.
		if change := n * distance(means[0], means[1]); change > math.Sqrt(float64(d))*(1+1e-6) {
			t.Errorf("d=%d: the sum changes by %v, more than the root of d", d, change)
		}
		// The counts of a tree's level: one cell by 1.
		if change := distance(levels[0], levels[1]); math.Abs(change-1) > 1e-9 {
			t.Errorf("d=%d: the counts change by %v, want 1", d, change)
		}
		// Sums of offsets cut to a radius and counts.
		cost := 0.0
		for j := range k {
			cost += math.Pow(distance(sums[0][j*d:(j+1)*d], sums[1][j*d:(j+1)*d])/scales[j].Sums, 2)
			cost += math.Pow((counts[1][j]-counts[0][j])/scales[j].Counts, 2)
		}
		if cost > l.Total*(1+1e-6) {
			t.Errorf("d=%d: a round costs mu² = %v, more than %v", d, cost, l.Total)
		}
	}
}

// TestEqualRound: without noise to speak of and with a radius that cuts nothing,
// a round of refinement is a step of Lloyd's algorithm.
func TestEqualRound(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	const n, k, d = 3000, 5, 7
	p := datasettest.GridPanels(rng, n, d)
	f := stagedtest.Plan(t, p, k)
	rounds := f.AddEqualRounds(staged.Share{Gaussian: true, Total: 1e6}, 1, k, false)
	centroids := make([]float32, k*d)
	for i := range centroids {
		centroids[i] = staged.OnGrid(rng.Float64()-0.5, datasettest.Bits)
	}
	sums, counts := stagedtest.ClustersOf(p, p, centroids)
	var released []float64
	stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) (err error) {
		released, err = p.EqualRounds(ctx, rounds, centroids, 2*math.Sqrt(d))
		return err
	})
	for j := range k {
		if math.Abs(released[j]-counts[j]) > 2 {
			t.Errorf("cluster %d has %v records, directly %v", j, released[j], counts[j])
		}
		for h := range d {
			if want := sums[j*d+h] / counts[j]; math.Abs(float64(centroids[j*d+h])-want) > 2e-3 {
				t.Errorf("coordinate %d of centroid %d is %v, directly %v", h, j, centroids[j*d+h], want)
			}
		}
	}
}

// TestEqualRoundsRefill: a centroid without records finds one of two clusters that share one; where noise hides a fifth
// of a cluster after half of the rounds, it does after three quarters.
func TestEqualRoundsRefill(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	const n, k, d = 4000, 4, 7
	centres := make([]float64, k*d)
	for j := range k {
		for h := range d {
			centres[j*d+h] = -0.4
			if h == j {
				centres[j*d+h] = 0.4
			}
		}
	}
	p := kernels.NewPanels(n, d)
	row := make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = staged.OnGrid(centres[i%k*d+h]+0.05*rng.NormFloat64(), datasettest.Bits)
		}
		p.Set(i, row)
	}
	for _, c := range []struct {
		rounds              int
		total, radius, most float64
	}{{8, 1, 0.5, 0.1}, {3, 0.0043, 0.8, 0.3}} {
		f := stagedtest.Plan(t, p, k)
		planned := f.AddEqualRounds(staged.Share{Gaussian: true, Total: c.total}, c.rounds, k, false)
		centroids := make([]float32, k*d)
		for h := range d {
			centroids[h] = staged.OnGrid(centres[h], datasettest.Bits)
			centroids[d+h] = staged.OnGrid(centres[d+h], datasettest.Bits)
			centroids[2*d+h] = staged.OnGrid((centres[2*d+h]+centres[3*d+h])/2, datasettest.Bits)
			centroids[3*d+h] = staged.OnGrid(0.9, datasettest.Bits)
		}
		stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) error {
			_, err := p.EqualRounds(ctx, planned, centroids, c.radius)
			return err
		})
		for j := range k {
			nearest := math.Inf(1)
			for i := range k {
				nearest = min(nearest, distance(staged.Widen(centroids[i*d:(i+1)*d]), centres[j*d:(j+1)*d]))
			}
			if nearest > c.most {
				t.Errorf("%d rounds: cluster %d is %v away from the nearest centroid", c.rounds, j, nearest)
			}
		}
	}
}

// TestSpreadsOfARecord: a record is in one cell of the histograms of all clusters, once, so that the noise of one count
// is that of all (THEOREMS.md T5); all cells together are all records.
func TestSpreadsOfARecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(49, 50))
	const n, k, d = 2000, 5, 7
	p := datasettest.GridPanels(rng, n, d)
	centroids := make([]float32, k*d)
	for i := range centroids {
		centroids[i] = staged.OnGrid(rng.Float64()-0.5, datasettest.Bits)
	}
	cells := func(records *kernels.Panels) (out []float64) {
		f := stagedtest.Plan(t, records, k)
		planned := f.AddSpreads(staged.Share{Gaussian: true, Total: 1e6}, k)
		if planned.Scale < 1/math.Sqrt(1e6) {
			t.Errorf("a noise of %v is less than one record in one cell needs", planned.Scale)
		}
		stagedtest.OnParty(t, f, records, func(ctx context.Context, p *staged.Party) (err error) {
			out, err = p.SpreadsOf(ctx, planned, centroids)
			return err
		})
		return out
	}
	whole, all := cells(p), 0.0
	for _, x := range whole {
		all += x
	}
	if math.Abs(all-n) > 1 {
		t.Errorf("the cells have %v of %d records", all, n)
	}
	for range 5 {
		fewer := p.Slice(0, n-1-rng.IntN(300))
		without, moved := cells(&fewer), 0.0
		for c, x := range cells(p) {
			moved += math.Abs(x - without[c])
		}
		if want := float64(n - fewer.N); math.Abs(moved-want) > 1 {
			t.Errorf("without %v records the cells change by %v", want, moved)
		}
	}
}

// TestEqualRoundsLooks: of two centroids that share a cluster one finds one of two clusters that share one, where
// rounds look at how far records are; without looks both keep their half.
func TestEqualRoundsLooks(t *testing.T) {
	rng := rand.New(rand.NewPCG(47, 48))
	const n, k, d = 4000, 4, 12
	centres := make([]float64, k*d)
	for i := range centres {
		if centres[i] = -0.3; i%d == i/d {
			centres[i] = 0.5
		}
	}
	p, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = staged.OnGrid(centres[i%k*d+h]+0.08*rng.NormFloat64(), datasettest.Bits)
		}
		p.Set(i, row)
	}
	for _, looks := range []bool{true, false} {
		f := stagedtest.Plan(t, p, k)
		planned := f.AddEqualRounds(staged.Share{Gaussian: true, Total: 1}, 8, k, looks)
		centroids := staged.GridRow(centres, datasettest.Bits)
		for h := range d { // the first cluster has two centroids, the last two have one
			centroids[d+h] = staged.OnGrid(centres[h]+0.05, datasettest.Bits)
			centroids[h] = staged.OnGrid(centres[h]-0.05, datasettest.Bits)
			centroids[2*d+h] = staged.OnGrid((centres[2*d+h]+centres[3*d+h])/2, datasettest.Bits)
			centroids[3*d+h] = staged.OnGrid(centres[d+h], datasettest.Bits)
		}
		stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) error {
			_, err := p.EqualRounds(ctx, planned, centroids, 0.3)
			return err
		})
		farthest := 0.0
		for j := range k {
			nearest := math.Inf(1)
			for i := range k {
				nearest = min(nearest, distance(staged.Widen(centroids[i*d:(i+1)*d]), centres[j*d:(j+1)*d]))
			}
			farthest = max(farthest, nearest)
		}
		if looks && farthest > 0.1 || !looks && farthest < 0.4 {
			t.Errorf("looks %t: a cluster is %v away from the nearest centroid", looks, farthest)
		}
	}
}

// TestMergedRounds: of twice as many centroids, some on one cluster and some where there is nothing, each cluster has
// one when they are merged, with its records, though all of them start on two clusters.
func TestMergedRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(49, 50))
	const n, k, d = 4000, 4, 12
	p, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		for h := range row {
			row[h] = staged.OnGrid(0.08*rng.NormFloat64()-0.3, datasettest.Bits)
		}
		row[i%k] += 0.75
		p.Set(i, row)
	}
	f := stagedtest.Plan(t, p, k)
	planned := f.AddMergedRounds(staged.Share{Gaussian: true, Total: 1}, 8, 2*k, k)
	centroids := make([]float32, 2*k*d)
	for i := range centroids {
		if centroids[i] = staged.OnGrid(0.1*rng.NormFloat64()-0.3, datasettest.Bits); i%d == i/d%2 {
			centroids[i] += 0.5
		}
	}
	var counts []float64
	stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) (err error) {
		counts, err = p.EqualRounds(ctx, planned, centroids, 1)
		return err
	})
	if len(counts) != k {
		t.Fatalf("%d clusters are left, want %d", len(counts), k)
	}
	for c, size := range counts {
		farthest := 0
		for h := range d {
			if x := centroids[c*d+h]; x > centroids[c*d+farthest] {
				farthest = h
			}
		}
		if math.Abs(size-n/k) > 100 || math.Abs(float64(centroids[c*d+farthest])-0.45) > 0.05 {
			t.Errorf("cluster %d has %.0f records, at %v", c, size, centroids[c*d:(c+1)*d])
		}
	}
}

// TestEqualRoundsRefillBesideCrowd: a centroid without records does not halve a crowd of nine of ten records, but finds
// one of two clusters beside it that share one.
func TestEqualRoundsRefillBesideCrowd(t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 46))
	const n, k, d = 8000, 5, 7
	centres := make([]float64, k*d)
	for i := range centres {
		if centres[i] = -0.9; i/d > 0 {
			centres[i] = 0.2
		}
		if i/d > 0 && i%d == i/d {
			centres[i] = 0.8
		}
	}
	p, row := kernels.NewPanels(n, d), make([]float32, d)
	for i := range n {
		at := 0
		if i%10 == 0 {
			at = 1 + i/10%(k-1)
		}
		for h := range row {
			row[h] = staged.OnGrid(centres[at*d+h]+0.03*rng.NormFloat64(), datasettest.Bits)
		}
		p.Set(i, row)
	}
	f := stagedtest.Plan(t, p, k)
	planned := f.AddEqualRounds(staged.Share{Gaussian: true, Total: 1}, 8, k, false)
	centroids := staged.GridRow(centres, datasettest.Bits)
	for h := range d { // one cluster has what is of two, and one centroid has nothing
		centroids[3*d+h] = staged.OnGrid((centres[3*d+h]+centres[4*d+h])/2, datasettest.Bits)
		centroids[4*d+h] = staged.OnGrid(0.99-1.9*float64(h%2), datasettest.Bits)
	}
	stagedtest.OnParty(t, f, p, func(ctx context.Context, p *staged.Party) error {
		_, err := p.EqualRounds(ctx, planned, centroids, 0.5)
		return err
	})
	for j := range k {
		nearest := math.Inf(1)
		for i := range k {
			nearest = min(nearest, distance(staged.Widen(centroids[i*d:(i+1)*d]), centres[j*d:(j+1)*d]))
		}
		if nearest > 0.1 {
			t.Errorf("cluster %d is %v away from the nearest centroid", j, nearest)
		}
	}
}

func distance(x, y []float64) float64 {
	square := 0.0
	for i := range x {
		square += (x[i] - y[i]) * (x[i] - y[i])
	}
	return math.Sqrt(square)
}
