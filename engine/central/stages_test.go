package central

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/synopsis"
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

func distance(x, y []float64) float64 {
	square := 0.0
	for i := range x {
		square += (x[i] - y[i]) * (x[i] - y[i])
	}
	return math.Sqrt(square)
}
