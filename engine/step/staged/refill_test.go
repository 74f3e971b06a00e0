package staged

import (
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
)

// A centroid with few records is taken to have none where noise hides less than a fifth of a cluster of the mean size,
// beside a crowd a twentieth: a few records far away are a cluster there.
func TestRefillBesideACrowd(t *testing.T) {
	seed := uint64(1)
	directions := privacy.NewStreams(&seed).Stream(0, 0, "refill")
	for _, c := range []struct {
		sums    []float64
		noise   float64
		refills bool
	}{
		{[]float64{220, 220, 260, 2, 298}, 12, true}, {[]float64{220, 220, 260, 2, 298}, 50, false},
		{[]float64{900, 30, 30, 2, 38}, 12, false}, {[]float64{900, 30, 30, 2, 38}, 8, true},
	} {
		centroids := make([]float32, 2*len(c.sums))
		before := slices.Clone(centroids)
		refill(c.sums, centroids, c.noise, 0.5, 20, directions)
		if moved := !slices.Equal(before, centroids); moved != c.refills {
			t.Errorf("of %v with noise %v a centroid is moved: %t", c.sums, c.noise, moved)
		}
	}
}
