package central

import (
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
// clusters are the means of the clusters, k of them, and the session's k is again
// what it was.
func TestOverseeded(t *testing.T) {
	const k, d = 4, 30
	norm, table := builtin(t, "blobs", dataset.Generator{N: 4000, D: d, K: k, Separation: 30, Seed: 4})
	s := testSession(t, []dataset.Part{part(norm.Points)}, k)
	ample := law{gaussian: true, total: 1e4}
	mean, err := s.privateMean(ample)
	if err != nil {
		t.Fatal(err)
	}
	reach, err := s.distanceQuantile(ample, gridRow(mean, s.bits), 2*math.Sqrt(d), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.overseeded(ample, ample, mean, reach)
	if err != nil {
		t.Fatal(err)
	}
	if s.k != k || len(got) != k*d {
		t.Fatalf("k is %d, %d coordinates", s.k, len(got))
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
		sessions := func() [2]*session {
			return [2]*session{testSession(t, []dataset.Part{part(&without)}, k), testSession(t, []dataset.Part{part(p)}, k)}
		}
		l := law{gaussian: true, total: 1}

		// The sum of all records: at most sqrt d; n is public and the same.
		var means [2][]float64
		for i, s := range sessions() {
			s.n = n
			mean, err := s.privateMean(l)
			if err != nil {
				t.Fatal(err)
			}
			means[i] = mean
		}
		if change := n * distance(means[0], means[1]); change > math.Sqrt(float64(d))*(1+1e-6) {
			t.Errorf("d=%d: the sum changes by %v, more than the root of d", d, change)
		}

		// The counts of a tree's level: one cell by 1.
		var levels [2][]float64
		one := trieLevels{line: "tree counts per level", levels: 1, law: func(int) law { return l }, name: func(int) string { return "level" }}
		for i, s := range sessions() {
			parts := s.partSums(1 << min(d, 3))
			paths, err := synopsis.MidpointPaths(s.ctx, s.rt.Pool(), s.parties[0].Points, s.bits, min(d, 3), 1)
			if err != nil {
				t.Fatal(err)
			}
			noisy, variance, err := s.countLevel(&one, 0, []*synopsis.Walker{synopsis.NewWalker(paths)}, len(parts[0]))
			if err != nil {
				t.Fatal(err)
			}
			if variance != 1 {
				t.Errorf("variance %v of noise for sensitivity 1 and mu 1", variance)
			}
			levels[i] = noisy
		}
		if change := distance(levels[0], levels[1]); math.Abs(change-1) > 1e-9 {
			t.Errorf("d=%d: the counts change by %v, want 1", d, change)
		}

		// Sums of offsets cut to a radius and counts, in a round and in a recovery.
		radius := []float64{0.4, 0.9, 2}
		scales := make([]roundScales, k)
		centroids := make([]float32, k*d)
		for i := range centroids {
			centroids[i] = onGrid(2*rng.Float64()-1, testBits)
		}
		var sums, counts [2][]float64
		for i, s := range sessions() {
			for j := range scales {
				scales[j] = s.relativeScales(l, radius[j], n/k)
			}
			var err error
			if sums[i], counts[i], err = s.relativeRound(newOffsets(s.rt.Pool(), k, d, s.bits), "round 1", l, centroids, radius, scales); err != nil {
				t.Fatal(err)
			}
		}
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
	s := testSession(t, []dataset.Part{part(norm.Points)}, k)
	ample, origin := law{gaussian: true, total: 1e6}, make([]float32, d)
	top := 2 * math.Sqrt(d) // no offset is cut
	low, err := s.projectedStart(ample, origin, top)
	if err != nil {
		t.Fatal(err)
	}
	got, released, err := s.recoverHigh(ample, low, origin, top)
	if err != nil {
		t.Fatal(err)
	}
	sums, counts := clustersOf(norm.Points, low.parts[0], low.centers)
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
	s := testSession(t, []dataset.Part{part(p)}, k)
	centroids := make([]float32, k*d)
	for i := range centroids {
		centroids[i] = onGrid(rng.Float64()-0.5, testBits)
	}
	sums, counts := clustersOf(p, p, centroids)
	released, err := s.equalRound(newOffsets(s.rt.Pool(), k, d, s.bits), "round 1", law{gaussian: true, total: 1e6}, centroids, 2*math.Sqrt(d))
	if err != nil {
		t.Fatal(err)
	}
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
	s := testSession(t, []dataset.Part{part(p)}, k)
	e := &edlerRun{session: s, job: &Edler{}, records: p, width: []float64{2, 2, 2}, r: 2}
	centers := make([]float32, k*d)
	for i := range centers {
		centers[i] = float32(rng.Float64() - 0.5)
	}
	centers[(k-1)*d] = 50 // nobody's nearest
	got, err := e.privateMeans(0, 0, p, centers, 1e9)
	if err != nil {
		t.Fatal(err)
	}
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
	s := testSession(t, []dataset.Part{part(p)}, 2)
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
		got, err := s.distanceQuantile(law{gaussian: true, total: 1e6}, points, top, q)
		if err != nil {
			t.Fatal(err)
		}
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
	weights, rms := leafSpread(boxes, centroids, n, k, d)
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
