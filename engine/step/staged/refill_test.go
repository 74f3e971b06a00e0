package staged

import (
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// A centroid with few records is taken to have none where noise hides less than a fifth of a cluster of the mean size,
// or a third in rounds whose counts have more of the budget, beside a crowd a twentieth: a few records far away are a
// cluster there.
func TestRefillBesideACrowd(t *testing.T) {
	seed := uint64(1)
	directions := privacy.NewStreams(&seed).Stream(0, 0, "refill")
	for _, c := range []struct {
		sums          []float64
		noise, hidden float64
		refills       bool
	}{
		{[]float64{220, 220, 260, 2, 298}, 12, hiddenOthers, true},
		{[]float64{220, 220, 260, 2, 298}, 50, hiddenOthers, false},
		{[]float64{220, 220, 260, 2, 298}, 50, hiddenSized, true},
		{[]float64{220, 220, 260, 2, 298}, 70, hiddenSized, false},
		{[]float64{900, 30, 30, 2, 38}, 12, hiddenOthers, false},
		{[]float64{900, 30, 30, 2, 38}, 8, hiddenOthers, true},
	} {
		centroids := make([]float32, 2*len(c.sums))
		before := slices.Clone(centroids)
		refill(c.sums, centroids, c.noise, c.hidden, 0.5, 20, directions)
		if moved := !slices.Equal(before, centroids); moved != c.refills {
			t.Errorf("of %v with noise %v a centroid is moved: %t", c.sums, c.noise, moved)
		}
	}
}

// Counts are averaged with those of the rounds before, as precise as these are together.
func TestPool(t *testing.T) {
	counts := []float64{100, 40}
	(&sizes{sums: []float64{240, 120}, rounds: 2, variance: 6}).pool(counts, 3) // means of variance 3, too
	if !slices.Equal(counts, []float64{110, 50}) {
		t.Errorf("counts %v", counts)
	}
}
