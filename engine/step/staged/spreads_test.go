package staged

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// spreadOf is the histogram of distances that the clusters' records have, without noise.
func spreadOf(top float64, clusters ...[]float64) *spreads {
	h := &spreads{k: len(clusters), counts: make([]float64, len(clusters)*spreadBins), top: top}
	for c, distances := range clusters {
		for _, x := range distances {
			h.counts[c*spreadBins+spreadBin(x*x/(top*top))]++
		}
	}
	return h
}

// noisy sets the noise of a bin.
func noisy(h *spreads, noise float64) *spreads {
	h.noise = noise
	return h
}

// TestSpreads: sizes are exact, losses and quantiles are right within a bin, of which each ends at sqrt 2 of where it
// begins.
func TestSpreads(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	const top = 8
	distances := make([]float64, 5000)
	loss := 0.0
	for i := range distances {
		distances[i] = math.Abs(0.2 * (4 + rng.NormFloat64()))
		loss += distances[i] * distances[i]
	}
	h := spreadOf(top, nil, distances)
	if size, got := h.size(1); size != 5000 || got < loss*0.75 || got > loss*1.5 {
		t.Errorf("%v records with a loss of %v, they have %v", size, got, loss)
	}
	if size, got := h.size(0); size != 0 || got != 0 {
		t.Errorf("no records are %v with a loss of %v", size, got)
	}
	slices.Sort(distances)
	for _, q := range []float64{0.01, 0.4, 0.9} {
		want := distances[int(q*5000)]
		if got := h.quantile(h.counts[spreadBins:], q); got < want/math.Sqrt2 || got > want*math.Sqrt2 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	for _, x := range []float64{0, 1e-30, 0.1, 0.49, 0.5, 0.99, 1, 4} { // squared, of the top's square
		if b := spreadBin(x); b < 0 || b >= spreadBins || b < spreadBins-1 && x >= math.Ldexp(1, b+1-spreadBins) ||
			b > 0 && x < math.Ldexp(1, b-spreadBins) {
			t.Errorf("%v is in bin %d", x, b)
		}
	}
}

// TestSpreadsClean: noise alone leaves nothing, a bin or two next to each other that stand above it stay as they are.
func TestSpreadsClean(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	left := 0
	for range 100 {
		h := &spreads{k: 5, noise: 10, counts: make([]float64, 5*spreadBins), top: 1}
		for b := range h.counts {
			h.counts[b] = 10 * rng.NormFloat64()
		}
		h.counts[20], h.counts[40], h.counts[41] = 60, 32, 33
		h.clean()
		if h.counts[20] != 60 || h.counts[40] != 32 || h.counts[41] != 33 {
			t.Fatalf("bins above the noise are %v, %v and %v", h.counts[20], h.counts[40], h.counts[41])
		}
		for b, x := range h.counts {
			if x < 0 {
				t.Fatalf("bin %d is %v", b, x)
			}
			if x > 0 && b != 20 && b != 40 && b != 41 {
				left++
			}
		}
	}
	if left > 250 { // of 7700; a positive bin beside one that stays does so too, often
		t.Errorf("%d bins of noise are left", left)
	}
}

// TestSwap: of two centroids on one cluster one goes to a cluster that is two, and its radius and records with it;
// clusters of one kind stay as they are, and so do clusters where the loss would rise, and those that noise may hide.
func TestSwap(t *testing.T) {
	seed := uint64(1)
	near, wide := slices.Repeat([]float64{0.1}, 500), slices.Repeat([]float64{0.9}, 1000)
	for _, c := range []struct {
		name      string
		centroids []float32
		h         *spreads
		out, into int
		each      float64 // records of the halves
	}{
		{"two on one", []float32{0.5, 0.5, -0.5, -0.5, 0.5, 0.52}, spreadOf(4, near, wide, near), 0, 1, 20},
		{"one without records", []float32{0.5, 0.5, -0.5, -0.5, 0.9, -0.9}, spreadOf(4, near, wide, nil), 2, 1, 20},
		{"none beside two", []float32{0.5, 0.5, -0.5, -0.5, -0.4, -0.6}, spreadOf(4, near, wide, nil), 2, 1, 23},
		{"alike", []float32{0.5, 0.5, -0.5, -0.5, 0.5, 0.52}, spreadOf(4, near, near, near), -1, -1, 0},
		{"far apart", []float32{0.9, 0.9, -0.9, -0.9, 0.9, -0.9},
			spreadOf(4, near, slices.Repeat([]float64{0.2}, 1000), near), -1, -1, 0},
		{"too few", []float32{0.5, 0.5, -0.5, -0.5, 0.5, 0.52}, noisy(spreadOf(4, near, wide, near), 300), -1, -1, 0},
	} {
		before, radii, sums := slices.Clone(c.centroids), []float64{1, 2, 3}, []float64{10, 40, 6}
		c.h.swap(c.centroids, radii, sums, worthwhile, 20, privacy.NewStreams(&seed).Stream(0, 0, "swap"))
		for j := range 3 {
			moved := !slices.Equal(before[2*j:2*j+2], c.centroids[2*j:2*j+2])
			if moved != (j == c.out || j == c.into) {
				t.Errorf("%s: centroid %d has moved: %t", c.name, j+1, moved)
			}
		}
		if all := sums[0] + sums[1] + sums[2]; all != 56 {
			t.Errorf("%s: the clusters have counted %v records, not 56", c.name, all)
		}
		if c.out < 0 {
			continue
		}
		if radii[c.out] != 2 || sums[c.into] != c.each || sums[c.out] != c.each {
			t.Errorf("%s: radii %v and records %v", c.name, radii, sums)
		}
		for i := range 2 {
			middle := (c.centroids[2*c.out+i] + c.centroids[2*c.into+i]) / 2
			if math.Abs(float64(middle-before[2*c.into+i])) > 1e-4 {
				t.Errorf("%s: the halves lie around %v, not the centroid", c.name, middle)
			}
		}
	}
}

// TestRadii: each cluster's is its own; where its records are not seen it is that of all, or the one before where that
// is much longer.
func TestRadii(t *testing.T) {
	h := spreadOf(4, slices.Repeat([]float64{0.1}, 5000), slices.Repeat([]float64{1}, 100), nil)
	for _, c := range []struct{ before, unseen float64 }{{0.2, 0.1}, {0.4, 0.4}} {
		radii := make([]float64, 3)
		h.radii(radii, c.before)
		for j, want := range []float64{0.1, 1, c.unseen} {
			if radii[j] < want/math.Sqrt2 || radii[j] > want*math.Sqrt2 {
				t.Errorf("after %v the radius of cluster %d is %v, want %v", c.before, j+1, radii[j], want)
			}
		}
	}
}

// TestRefillLeavesWhatIsAlone: of three centroids without records one beside others goes to the widest cluster, and of
// two that are far from all others but not from each other one to what is the widest then.
func TestRefillLeavesWhatIsAlone(t *testing.T) {
	centroids := []float32{-0.9, -0.9, -0.8, -0.9, -0.85, -0.9, 0.5, 0.5, 0.5, 0.55}
	before := slices.Clone(centroids)
	sums, seed := []float64{400, 300, 5, -5, 5}, uint64(3)
	refill(sums, centroids, 20, hiddenOthers, 0.05, 20, privacy.NewStreams(&seed).Stream(0, 0, "refill"))
	for j, moves := range []bool{true, true, true, true, false} {
		if moved := !slices.Equal(centroids[2*j:2*j+2], before[2*j:2*j+2]); moved != moves {
			t.Errorf("centroid %d moved from %v to %v", j, before[2*j:2*j+2], centroids[2*j:2*j+2])
		}
	}
}
