package central

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/synopsis"
	"github.com/cohort-engine/cohort/kernels"
)

// TestRefinement: rounds and radius grow with the signal; a coarse tree gets
// three rounds at least with a smaller radius, unless the signal is too weak.
func TestRefinement(t *testing.T) {
	for _, c := range []struct {
		snr, halvings float64
		d, rounds     int
		radius        float64
	}{
		{10, 9, 2, 1, 0.9}, {3, 9, 2, 1, 0.9}, {100, 9, 2, 2, 0.9 * math.Pow(10, 0.3)}, {1e5, 20, 2, 10, 3}, {1000, 20, 2, 8, 3},
		{10, 9, 6, 3, 0.54}, {3, 9, 6, 1, 0.9}, {1e5, 11, 6, 10, 1.8},
	} {
		rounds, radius := refinement(c.snr, c.halvings, c.d)
		if rounds != c.rounds || math.Abs(radius-c.radius) > 1e-9 {
			t.Errorf("snr %v, %v halvings, d=%d: %d rounds of radius %v, want %d of %v", c.snr, c.halvings, c.d, rounds, radius, c.rounds, c.radius)
		}
	}
}

// TestSignificant keeps what stands above the noise, and everything where a
// cluster does not.
func TestSignificant(t *testing.T) {
	boxes := []synopsis.Box{{Weight: 3}, {Weight: 30}, {Weight: 9.9}, {Weight: 10}}
	if kept := significant(boxes, 10, 100); len(kept) != 2 || kept[0].Weight != 30 || kept[1].Weight != 10 {
		t.Errorf("kept %v", kept)
	}
	if boxes[0].Weight != 3 {
		t.Error("the leaves themselves were changed")
	}
	if kept := significant(boxes, 10, 49); len(kept) != 4 {
		t.Errorf("%d leaves kept at a weak signal, want all", len(kept))
	}
	if kept := significant(boxes, 40, 1000); len(kept) != 4 {
		t.Errorf("%d leaves kept where none is above the noise, want all", len(kept))
	}
}

// TestOverseeded: without noise to speak of, the merged centres of a few far
// clusters are the means of the clusters, k of them.
func TestOverseeded(t *testing.T) {
	const k, d = 4, 30
	norm, table := builtin(t, "blobs", dataset.Generator{N: 4000, D: d, K: k, Separation: 30, Seed: 4})
	f := testFrame(t, norm.Points, k)
	ample := law{gaussian: true, total: 1e4}
	o := &projectedPlan{mean: f.addMean(ample), reach: f.addCounts("distances", "histogram of distances", ample),
		tree: f.addTree(ample, 6), recover: f.addRound("recover", ample)}
	var got []float32
	onParty(t, f, norm.Points, func(ctx context.Context, p *party) error {
		mean, err := p.privateMean(ctx, o.mean)
		if err != nil {
			return err
		}
		reach, err := p.distanceQuantile(ctx, o.reach, gridRow(mean, p.bits), 2*math.Sqrt(d), 1)
		if err != nil {
			return err
		}
		got, err = p.overseeded(ctx, o, mean, reach)
		return err
	})
	if len(got) != k*d {
		t.Fatalf("%d coordinates", len(got))
	}
	means, counts := make([]float64, k*d), make([]float64, k)
	for i := range norm.Points.N {
		c := int(table.Labels[i])
		counts[c]++
		for h, x := range norm.Points.Point(i, nil) {
			means[c*d+h] += float64(x)
		}
	}
	for c := range k {
		best := math.Inf(1)
		for j := range k {
			square := 0.0
			for h := range d {
				x := means[c*d+h]/counts[c] - float64(got[j*d+h])
				square += x * x
			}
			best = min(best, math.Sqrt(square))
		}
		if best > 0.05 {
			t.Errorf("no centre within 0.05 of the mean of cluster %d: the nearest is at %v", c, best)
		}
	}
}

// TestReleasedSensitivities adds one extreme record to every release of this
// package and measures the change before noise against the sensitivity that the
// scale is made for. The noise is that of the same seed on both sides, so it
// cancels.
func TestReleasedSensitivities(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	const n, k = 400, 3
	for trial := range 12 {
		d := 2 + trial%5
		p := gridPanels(rng, n+1, d)
		extreme := make([]float32, d)
		for h := range extreme {
			extreme[h] = float32(2*rng.IntN(2) - 1)
		}
		p.Set(n, extreme)
		without := p.Slice(0, n)
		l := law{gaussian: true, total: 1}
		radius := []float64{0.4, 0.9, 2}
		scales := make([]roundScales, k)
		centroids := make([]float32, k*d)
		for i := range centroids {
			centroids[i] = onGrid(2*rng.Float64()-1, testBits)
		}
		var means, levels, sums, counts [2][]float64
		for i, records := range []*kernels.Panels{&without, p} {
			f := testFrame(t, &without, k) // n is public and the same
			mean, level, round := f.addMean(l), f.addCounts("level", "tree counts per level", l), f.addRound("round 1", l)
			for j := range scales {
				scales[j] = f.relativeScales(l, radius[j], n/k)
			}
			if level.scale != 1 {
				t.Errorf("scale %v of noise for sensitivity 1 and mu 1", level.scale)
			}
			onParty(t, f, records, func(ctx context.Context, p *party) error {
				var err error
				if means[i], err = p.privateMean(ctx, mean); err != nil {
					return err
				}
				paths, err := synopsis.MidpointPaths(ctx, p.Pool(), p.records, p.bits, min(d, 3), 1)
				if err != nil {
					return err
				}
				w := synopsis.NewWalker(paths)
				levels[i], err = p.releaseCounts(ctx, level, 1<<min(d, 3), func(words []int64) error { return w.Count(ctx, p.Pool(), words) })
				if err != nil {
					return err
				}
				sums[i], counts[i], err = p.relativeRound(ctx, newOffsets(p.Pool(), k, d, p.bits), round, centroids, radius, scales)
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
			cost += math.Pow(distance(sums[0][j*d:(j+1)*d], sums[1][j*d:(j+1)*d])/scales[j].sums, 2)
			cost += math.Pow((counts[1][j]-counts[0][j])/scales[j].counts, 2)
		}
		if cost > l.total*(1+1e-6) {
			t.Errorf("d=%d: a round costs mu² = %v, more than %v", d, cost, l.total)
		}
	}
}

// clustersOf are the sums, row-major, and counts of the records of p by the
// nearest of centres in the space of points, in float64.
func clustersOf(p, points *kernels.Panels, centers []float32) (sums, counts []float64) {
	q, d := points.D, p.D
	k := len(centers) / q
	sums, counts = make([]float64, k*d), make([]float64, k)
	for i := range p.N {
		y, best, at := points.Point(i, nil), math.Inf(1), 0
		for j := range k {
			square := 0.0
			for h := range q {
				x := float64(y[h]) - float64(centers[j*q+h])
				square += x * x
			}
			if square < best {
				best, at = square, j
			}
		}
		counts[at]++
		for h, x := range p.Point(i, nil) {
			sums[at*d+h] += float64(x)
		}
	}
	return sums, counts
}

// TestRecovery compares, without noise to speak of, the centres that are
// recovered in all dimensions with the direct means of the records of each
// projected cluster.
func TestRecovery(t *testing.T) {
	const k, d, n = 4, 25, 5000
	norm, _ := builtin(t, "blobs", dataset.Generator{N: n, D: d, K: k, Separation: 6, Seed: 5})
	f, ample, origin := testFrame(t, norm.Points, k), law{gaussian: true, total: 1e6}, make([]float32, d)
	tree, recover := f.addTree(ample, 6), f.addRound("recover", ample)
	top := 2 * math.Sqrt(d) // no offset is cut
	var low *lowStart
	var got []float32
	var released []float64
	onParty(t, f, norm.Points, func(ctx context.Context, p *party) (err error) {
		if low, err = p.projectedStart(ctx, tree, k, origin, top); err != nil {
			return err
		}
		got, released, err = p.recoverHigh(ctx, recover, low, origin, top)
		return err
	})
	sums, counts := clustersOf(norm.Points, low.records, low.centers)
	for j := range k {
		if math.Abs(released[j]-counts[j]) > 2 {
			t.Errorf("cluster %d has %v records, directly %v", j, released[j], counts[j])
		}
		for h := range d {
			if x := float64(got[j*d+h]); counts[j] > 100 && math.Abs(x-sums[j*d+h]/counts[j]) > 2e-3 {
				t.Fatalf("coordinate %d of centre %d is %v, directly %v", h, j, x, sums[j*d+h]/counts[j])
			}
		}
	}
}

// TestEqualRound: without noise to speak of and with a radius that cuts nothing,
// a round of refinement is a step of Lloyd's algorithm.
func TestEqualRound(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	const n, k, d = 3000, 5, 7
	p := gridPanels(rng, n, d)
	f := testFrame(t, p, k)
	round := f.addRound("round 1", law{gaussian: true, total: 1e6})
	centroids := make([]float32, k*d)
	for i := range centroids {
		centroids[i] = onGrid(rng.Float64()-0.5, testBits)
	}
	sums, counts := clustersOf(p, p, centroids)
	var released []float64
	onParty(t, f, p, func(ctx context.Context, p *party) (err error) {
		released, err = p.equalRound(ctx, newOffsets(p.Pool(), k, d, p.bits), round, centroids, 2*math.Sqrt(d))
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

// TestEdlerMeans compares the thesis's recovery, without noise to speak of, with
// the direct means, in which a cluster without records keeps the middle of the
// box.
func TestEdlerMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	const n, k, d = 2000, 4, 3
	p := gridPanels(rng, n, d)
	plan := testEdler(t, p, k, &Edler{}, 2)
	means := plan.addMeans(0, 1e9)
	centers := make([]float32, k*d)
	for i := range centers {
		centers[i] = float32(rng.Float64() - 0.5)
	}
	centers[(k-1)*d] = 50 // nobody's nearest
	var got []float64
	onParty(t, plan.frame, p, func(ctx context.Context, p *party) (err error) {
		got, err = (&edlerRun{p, plan}).privateMeans(ctx, 0, 0, p.records, centers, means)
		return err
	})
	sums, counts := clustersOf(p, p, centers)
	if counts[k-1] != 0 {
		t.Fatal("the far centre has records")
	}
	for i, x := range got {
		want := 0.0
		if c := counts[i/d]; c > 0 {
			want = sums[i] / c
		}
		if math.Abs(x-want) > 1e-6 {
			t.Errorf("coordinate %d of mean %d is %v, directly %v", i%d, i/d, x, want)
		}
	}
}

// TestDistanceQuantile compares the quantile, without noise to speak of, with the
// sorted distances: it is the upper edge of their bin.
func TestDistanceQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 46))
	const n, d = 4000, 6
	p := gridPanels(rng, n, d)
	points := make([]float32, 2*d)
	for i := range points {
		points[i] = onGrid(rng.Float64()-0.5, testBits)
	}
	dist := make([]float64, n)
	for i := range dist {
		dist[i] = math.Inf(1)
		for j := range 2 {
			square := 0.0
			for h, x := range p.Point(i, nil) {
				square += math.Pow(float64(x)-float64(points[j*d+h]), 2)
			}
			dist[i] = min(dist[i], math.Sqrt(square))
		}
	}
	slices.Sort(dist)
	top := 2 * math.Sqrt(d)
	for _, q := range []float64{0.1, 0.25, 0.4, 0.75} {
		f, got := testFrame(t, p, 2), 0.0
		stage := f.addCounts("distances", "histogram of distances", law{gaussian: true, total: 1e6})
		onParty(t, f, p, func(ctx context.Context, p *party) (err error) {
			got, err = p.distanceQuantile(ctx, stage, points, top, q)
			return err
		})
		want := dist[int(math.Ceil(q*n))-1]
		if got < want-1e-6 || got > want+top/64+1e-6 {
			t.Errorf("quantile %v is %v, directly %v in bins of %v", q, got, want, top/64)
		}
	}
}

// TestLeafSpread compares weights and radii of clusters with the mean squared
// distances of many points in each box.
func TestLeafSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(47, 48))
	const k, d, n = 3, 2, 900
	var boxes []synopsis.Box
	for range 40 {
		b := synopsis.Box{Lo: make([]float64, d), Hi: make([]float64, d), Weight: 10 * rng.Float64()}
		for h := range d {
			b.Lo[h] = 1.8*rng.Float64() - 1
			b.Hi[h] = b.Lo[h] + 0.2*rng.Float64()
		}
		boxes = append(boxes, b)
	}
	centroids := []float32{-0.5, -0.5, 0.5, 0.5, 0.5, -0.5}
	spread := leafSpread(boxes, centroids, n, k, d)
	weights, rms := spread.weights, spread.rms
	direct, squares, all := make([]float64, k), make([]float64, k), 0.0
	for _, b := range boxes {
		best, at := math.Inf(1), 0
		for j := range k {
			x, y := (b.Lo[0]+b.Hi[0])/2-float64(centroids[j*d]), (b.Lo[1]+b.Hi[1])/2-float64(centroids[j*d+1])
			if s := x*x + y*y; s < best {
				best, at = s, j
			}
		}
		const side = 60
		for i := range side * side {
			x := b.Lo[0] + (b.Hi[0]-b.Lo[0])*(float64(i%side)+0.5)/side - float64(centroids[at*d])
			y := b.Lo[1] + (b.Hi[1]-b.Lo[1])*(float64(i/side)+0.5)/side - float64(centroids[at*d+1])
			squares[at] += b.Weight * (x*x + y*y) / (side * side)
			all += b.Weight * (x*x + y*y) / (side * side)
		}
		direct[at] += b.Weight
	}
	const prior = n / (2.0 * k)
	for j := range k {
		want := math.Sqrt((squares[j] + all*prior/n) / (direct[j] + prior))
		if math.Abs(weights[j]-direct[j]) > 1e-9 || math.Abs(rms[j]-want) > 1e-3*want {
			t.Errorf("cluster %d: weight %v, radius %v; directly %v, %v", j, weights[j], rms[j], direct[j], want)
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
